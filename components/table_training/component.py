"""The KFP declaration of the stage that trains over the rows of several sites."""

from typing import Any

from kfp import dsl

from .._images import image
from .._task_settings import TASK_SETTINGS


@dsl.component(base_image=image("geomx"), install_kfp_package=False, task_config_passthroughs=TASK_SETTINGS)
def geo_train(
    shards: dsl.Input[dsl.Dataset],
    model: dsl.Output[dsl.Model],
    predictions: dsl.Output[dsl.Dataset],
    metrics: dsl.Output[dsl.Metrics],
    classification: dsl.Output[dsl.ClassificationMetrics],
    report: dsl.Output[dsl.HTML],
    job_resource: dsl.OutputPath(str),  # type: ignore[valid-type]
    entry_point: str = "",
    user_code: str = "",
    algorithm: str = "",
    hyperparameters: dict[str, Any] = {},
    epochs: int = 20,
    batch_size: int = 64,
    num_workers: int = 1,
    eval_every: int = 1,
    topology: dict[str, Any] = {},
    certificates: str = "",
    plain_text: bool = False,
    synchronization: str = "auto",
    compression: str = "auto",
    transmission: str = "fifo",
    checkpoint_folder: str = "",
    checkpoint_every: int = 1,
    seed: int = 0,
    round_timeout_s: int = 300,
    metrics_host: str = "127.0.0.1",
    metrics_port: int = 0,
    timeout_s: int = 86400,
    launcher: str = "local",
    hand_over: str = "",
    run_id: str = "",
    namespace: str = "",
    service_account: str = "",
    start_timeout_s: int = 600,
    orphan_timeout_s: int = 300,
    task_config: dsl.TaskConfig = None,
) -> None:
    """Trains one model over the rows of several sites, each of which keeps its own.

    The model is the user's own, of torch or gluon, or a built-in algorithm; exactly one of entry_point and
    algorithm is given. Each site's workers push to the site's aggregator, which pushes to the root.

    Args:
        shards: Rows of each site, written by shard_table.
        model: The trained model.
        predictions: Table of site, row, split, label, predicted and probability of every row.
        metrics: Accuracies (for regression RMSE and R2), bytes between sites, seconds.
        classification: Confusion matrix and ROC curve of the test rows; nothing for regression.
        report: Curves of each site over time, bytes on each link and a table of classes.
        entry_point: Your own model, module:function, called as build(feature_shape, num_classes,
            **hyperparameters); returns model, loss and optimizer, of torch or gluon.
        user_code: Folder or .py file (path or URI) with the module of entry_point; it is executed, so
            trust it.
        algorithm: A built-in model - "softmax_regression", "mlp" or "cnn".
        hyperparameters: Further arguments of build - your own function's, or the algorithm's.
        epochs: Passes of each worker over its training rows.
        batch_size: Most rows that a worker takes in one step; an epoch's batches are of nearly equal size.
        num_workers: Workers at each site; they share its training rows.
        eval_every: Epochs between two judgements by each site's validation rows.
        topology: Addresses, as {"root" - "host:port", "sites" - {name - {"listens" - "host:port"}}}; what is
            missing is a free port of this machine. With pods where they go, see README.md of geo_training.
        certificates: Folder with tls.crt, tls.key and ca.crt of this node, or with such a folder for each
            node of this machine; links between sites are TLS then, in which both ends show certificates.
        plain_text: Whether links may leave this machine without TLS; only for networks that are trusted.
        synchronization: How the sites keep in step - "auto" is as often as the links allow, "fsa" every
            worker of every site in every step, "hfa(k1=20) + outer(momentum=0.9)" 20 steps between two
            means; a technique, then rules.
        compression: How gradients and changes of weights travel between sites, both ways - "auto" is as
            synchronization "auto" finds that the links need, "none" dense FP32, "top_k(ratio=0.015, bits=2)
            + zstd" about 1 % of it; a technique, then rules.
        transmission: In which pieces and in what order values travel - "fifo" is as they come,
            "p3(slice_ms=50)" small slices, those of the first layers first; a technique, then rules.
        checkpoint_folder: Folder where the state after an epoch is kept, to go on from if the training is
            ended; on a volume that outlives the step's pod. Empty is beside the model.
        checkpoint_every: Epochs between two checkpoints; 0 keeps none. With "mixed" and "esync", whose sites
            do not wait for each other but for a checkpoint, only in a checkpoint_folder that is given.
        seed: Seed of weights, order and draws.
        round_timeout_s: Seconds that a round waits for its last worker before the training is ended as
            failed.
        metrics_host: Where the processes' pages for Prometheus listen; "0.0.0.0" for all addresses.
        metrics_port: Port of the root's page; the pages of sites, then of workers, have the next ones. 0 for
            no pages.
        timeout_s: Seconds after which the whole training is ended as failed.
        launcher: "local" (processes of this step), or pods of their own, one a worker and one for the root -
            by "job", "jobset", "trainjob" or "dgljob".
        hand_over: Folder that step and pods share - a path on a volume that all mount, or an s3://, gs:// or
            minio:// URI. Empty is beside the model in its object store.
        run_id: The pipeline run, dsl.PIPELINE_JOB_ID_PLACEHOLDER; empty is that of the step's pod.
        namespace: Namespace of the pods; empty is the step's own.
        service_account: Account that the pods run under; empty is the namespace's default.
        start_timeout_s: Seconds in which all pods must have started.
        orphan_timeout_s: Seconds without a sign of life of the step after which its pods end themselves.
        task_config: What KFP sets on the task, for the pods.
        job_resource: Reference of what was started in JSON; {} without pods.
    """
    from pathlib import Path

    from geokfp.components._launch import failure_recorded

    with failure_recorded("geo_train", beside=Path(model.path)):
        from geokfp.components._launch.launch_step import surroundings_of
        from geokfp.components.table_training.config import GeoTableConfig
        from geokfp.components.table_training.run import Outputs, run

        config = GeoTableConfig(
            entry_point=entry_point,
            user_code=user_code,
            algorithm=algorithm,
            hyperparameters=hyperparameters,
            epochs=epochs,
            batch_size=batch_size,
            num_workers=num_workers,
            eval_every=eval_every,
            topology=topology,
            certificates=certificates,
            plain_text=plain_text,
            synchronization=synchronization,
            compression=compression,
            transmission=transmission,
            checkpoint_folder=checkpoint_folder,
            checkpoint_every=checkpoint_every,
            seed=seed,
            round_timeout_s=round_timeout_s,
            metrics_host=metrics_host,
            metrics_port=metrics_port,
            timeout_s=timeout_s,
            launcher=launcher,
            hand_over=hand_over,
            run_id=run_id,
            namespace=namespace,
            service_account=service_account,
            start_timeout_s=start_timeout_s,
            orphan_timeout_s=orphan_timeout_s,
        )
        paths = Outputs(model=Path(model.path), predictions=Path(predictions.path), report=Path(report.path))
        uris = {"model": model.uri, "predictions": predictions.uri}
        where = surroundings_of(config, task_config, uris, Path(job_resource))
        result = run(config, Path(shards.path), paths, where)
        for name, value in result.metrics.items():
            metrics.log_metric(name, value)
        if result.classes is not None:
            classes, curve = result.classes, result.classes.roc
            classification.log_confusion_matrix(list(classes.names), classes.matrix.tolist())
            if curve is not None:
                classification.log_roc_curve(
                    curve.false_positive_rate, curve.true_positive_rate, curve.threshold
                )
