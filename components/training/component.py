"""The KFP declaration of the training stage."""

from typing import Any

from kfp import dsl

from .._images import image
from .._task_settings import TASK_SETTINGS


@dsl.component(
    base_image=image("training"), install_kfp_package=False, task_config_passthroughs=TASK_SETTINGS
)
def train_gnn(
    partitions: dsl.Input[dsl.Dataset],
    model: dsl.Output[dsl.Model],
    predictions: dsl.Output[dsl.Dataset],
    metrics: dsl.Output[dsl.Metrics],
    classification: dsl.Output[dsl.ClassificationMetrics],
    report: dsl.Output[dsl.HTML],
    job_resource: dsl.OutputPath(str),  # type: ignore[valid-type]
    architecture: str = "sage",
    entry_point: str = "",
    user_code: str = "",
    model_options: dict[str, Any] = {},
    hidden_size: int = 128,
    num_layers: int = 2,
    dropout: float = 0.5,
    learning_rate: float = 0.01,
    weight_decay: float = 0.0005,
    epochs: int = 200,
    patience: int = 30,
    eval_every: int = 1,
    batch_size: int = 1024,
    fan_outs: list[int] = [10],
    site: str = "",
    checkpoint_folder: str = "",
    warm_start: str = "",
    num_samplers: int = 0,
    seed: int = 0,
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
    """Trains a GNN for node classification on the partitions of one site, with DGL's distributed training.

    One DGL server and one trainer run beside each part. Gradients are averaged over the trainers; the
    epoch with the best validation accuracy is kept, and all nodes are predicted with all their
    neighbours.

    Args:
        partitions: Partitions of one site, written by partition_graph.
        model: The trained GNN.
        predictions: Table of id, site, split, label, predicted and probability of every node.
        metrics: Accuracies, epochs and their time.
        classification: Confusion matrix and ROC curve of the test nodes.
        report: Loss curves and a table of classes.
        architecture: "sage" (GraphSAGE with the mean aggregator), "gcn" or "gat"; not used with entry_point
            or with warm_start.
        entry_point: Your own model, module:function, called as build(num_features, num_classes,
            **model_options).
        user_code: Folder or .py file (path or URI) with the module of entry_point; it is executed, so
            trust it.
        model_options: Further options of the model - input_dropout, num_heads of gat, or those of your
            own build.
        hidden_size: Width of the inner layers.
        num_layers: Layers, each one hop of neighbours.
        dropout: Share of the hidden values zeroed in training.
        learning_rate: Step size of Adam.
        weight_decay: L2 penalty of Adam.
        epochs: Most passes over the training nodes.
        patience: Epochs without a better validation result after which training stops; 0 never stops early.
        eval_every: Epochs between two validations.
        batch_size: Training nodes a worker takes in one step.
        fan_outs: Neighbours sampled per layer, outermost first; one number for all layers; empty is all
            neighbours.
        site: Site to train at, by name or folder (site-0 is the first); empty is the only one.
        checkpoint_folder: Folder where the state after each epoch is kept, to go on from if the training
            is ended; on a volume that outlives the step's pod. Empty is beside the model.
        warm_start: Trained GNN to start from, the path or URI of its folder; its architecture and options
            are taken too. Empty is fresh weights.
        num_samplers: Processes per worker that sample ahead; 0 samples in the worker itself.
        seed: Seed of weights, order, dropout and sampling.
        timeout_s: Seconds after which the whole training is ended as failed.
        launcher: "local" (processes of this step), or pods of their own, one a part - by "job", "jobset",
            "trainjob" or "dgljob".
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

    with failure_recorded("train_gnn", beside=Path(model.path)):
        from geokfp.components._launch.launch_step import surroundings_of
        from geokfp.components.training.config import TrainingConfig
        from geokfp.components.training.run import Outputs, run

        config = TrainingConfig(
            architecture=architecture,
            entry_point=entry_point,
            user_code=user_code,
            model_options=model_options,
            hidden_size=hidden_size,
            num_layers=num_layers,
            dropout=dropout,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            epochs=epochs,
            patience=patience,
            eval_every=eval_every,
            batch_size=batch_size,
            fan_outs=fan_outs,
            site=site,
            checkpoint_folder=checkpoint_folder,
            warm_start=warm_start,
            num_samplers=num_samplers,
            seed=seed,
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
        uris = {"partitions": partitions.uri, "model": model.uri, "predictions": predictions.uri}
        result = run(
            config,
            Path(partitions.path),
            paths,
            surroundings_of(config, task_config, uris, Path(job_resource)),
        )
        for name, value in result.metrics.items():
            metrics.log_metric(name, value)
        classification.log_confusion_matrix(list(result.label_names), result.confusion.tolist())
        if result.roc is not None:
            curve = result.roc
            classification.log_roc_curve(curve.false_positive_rate, curve.true_positive_rate, curve.threshold)
