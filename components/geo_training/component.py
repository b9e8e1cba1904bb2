"""The KFP declaration of the geo-training stage."""

from typing import Any

from kfp import dsl

from .._images import image
from .._task_settings import TASK_SETTINGS


@dsl.component(
    base_image=image("training"), install_kfp_package=False, task_config_passthroughs=TASK_SETTINGS
)
def geo_train_gnn(
    partitions: dsl.Input[dsl.Dataset],
    model: dsl.Output[dsl.Model],
    predictions: dsl.Output[dsl.Dataset],
    metrics: dsl.Output[dsl.Metrics],
    classification: dsl.Output[dsl.ClassificationMetrics],
    report: dsl.Output[dsl.HTML],
    job_resource: dsl.OutputPath(str),  # type: ignore[valid-type]
    trained: dsl.Input[dsl.Model] = None,
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
    num_samplers: int = 0,
    seed: int = 0,
    timeout_s: int = 86400,
    topology: dict[str, Any] = {},
    certificates: str = "",
    plain_text: bool = False,
    synchronization: str = "auto",
    compression: str = "auto",
    transmission: str = "fifo",
    checkpoint_folder: str = "",
    checkpoint_every: int = 1,
    compare_alone: bool = True,
    round_timeout_s: int = 300,
    metrics_host: str = "127.0.0.1",
    metrics_port: int = 0,
    launcher: str = "local",
    hand_over: str = "",
    run_id: str = "",
    namespace: str = "",
    service_account: str = "",
    start_timeout_s: int = 600,
    orphan_timeout_s: int = 300,
    task_config: dsl.TaskConfig = None,
) -> None:
    """Trains one GNN over all sites of the partitions; nodes, edges and features stay where they are.

    Each site runs DGL's distributed training on its own partitions. A tree of aggregators, one a site and a
    root, joins the trainers: only weights, gradients and counts cross between sites.

    Args:
        partitions: Partitions of one or more sites, written by partition_graph.
        model: The trained GNN.
        predictions: Table of id, site, split, label, predicted and probability of every node of all sites.
        metrics: Accuracies over all sites, those of each site alone, and bytes between sites.
        classification: Confusion matrix and ROC curve of the test nodes of all sites.
        report: Each site alone beside all together, loss curves, bytes on each link, classes.
        trained: A trained GNN to start from; its architecture and options are taken too. Without it weights
            are fresh.
        architecture: "sage" (GraphSAGE with the mean aggregator), "gcn" or "gat"; not used with entry_point
            or with trained.
        entry_point: Your own model, module:function, called as build(num_features, num_classes,
            **model_options).
        user_code: Folder or .py file (path or URI) with the module of entry_point; it is executed, so
            trust it.
        model_options: Further options of the model - input_dropout, num_heads of gat, or those of your
            own build.
        hidden_size: Width of the inner layers.
        num_layers: Layers, each one hop of neighbours.
        dropout: Share of the hidden values zeroed in training.
        learning_rate: Step size of Adam, a replica of which each worker steps with the same averaged
            gradient.
        weight_decay: L2 penalty of Adam.
        epochs: Most passes over the training nodes.
        patience: Epochs without a better validation result after which training stops; 0 never stops early.
        eval_every: Epochs between two validations.
        batch_size: Training nodes a worker takes in one step.
        fan_outs: Neighbours sampled per layer, outermost first; one number for all layers; empty is all
            neighbours.
        num_samplers: Processes per worker that sample ahead; 0 samples in the worker itself.
        seed: Seed of weights, order, dropout and sampling.
        timeout_s: Seconds after which the whole training is ended as failed.
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
        checkpoint_every: Epochs between two checkpoints; 0 keeps none.
        compare_alone: With several sites also train each alone, from the same start, judged on all sites'
            test nodes.
        round_timeout_s: Seconds that a round waits for its last worker before the training is ended as
            failed.
        metrics_host: Where the processes' pages for Prometheus listen; "0.0.0.0" for all addresses.
        metrics_port: Port of the root's page; the pages of sites, then of workers, have the next ones. 0 for
            no pages.
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

    with failure_recorded("geo_train_gnn", beside=Path(model.path)):
        from geokfp.components._launch.launch_step import surroundings_of
        from geokfp.components.geo_training.config import GeoTrainingConfig
        from geokfp.components.geo_training.run import Outputs, run

        config = GeoTrainingConfig(
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
            num_samplers=num_samplers,
            seed=seed,
            timeout_s=timeout_s,
            topology=topology,
            certificates=certificates,
            plain_text=plain_text,
            synchronization=synchronization,
            compression=compression,
            transmission=transmission,
            checkpoint_folder=checkpoint_folder,
            checkpoint_every=checkpoint_every,
            compare_alone=compare_alone,
            round_timeout_s=round_timeout_s,
            metrics_host=metrics_host,
            metrics_port=metrics_port,
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
        where = surroundings_of(config, task_config, uris, Path(job_resource))
        result = run(config, Path(partitions.path), Path(trained.path) if trained else None, paths, where)
        for name, value in result.metrics.items():
            metrics.log_metric(name, value)
        classification.log_confusion_matrix(list(result.label_names), result.confusion.tolist())
        if result.roc is not None:
            curve = result.roc
            classification.log_roc_curve(curve.false_positive_rate, curve.true_positive_rate, curve.threshold)


@dsl.component(
    base_image=image("training"), install_kfp_package=False, task_config_passthroughs=TASK_SETTINGS
)
def partition_at_sites(
    partitions: dsl.Output[dsl.Dataset],
    metrics: dsl.Output[dsl.Metrics],
    report: dsl.Output[dsl.HTML],
    job_resource: dsl.OutputPath(str),  # type: ignore[valid-type]
    tables: dict[str, Any] = {},
    ingest: dict[str, Any] = {},
    topology: dict[str, Any] = {},
    num_parts: int = 2,
    partition_method: str = "metis",
    halo_hops: int = 1,
    seed: int = 0,
    timeout_s: int = 7200,
    launcher: str = "local",
    hand_over: str = "",
    run_id: str = "",
    namespace: str = "",
    service_account: str = "",
    start_timeout_s: int = 600,
    orphan_timeout_s: int = 300,
    task_config: dsl.TaskConfig = None,
) -> None:
    """Reads and partitions each site's graph at the site, so that its rows and features never leave it.

    A pod at each site reads the site's tables and keeps the parts in the site's own store. What comes back
    and travels on to geo_train_gnn are URIs, counts, names of features and labels.

    Args:
        partitions: Manifest of the partitions, for geo_train_gnn with a launcher.
        metrics: Counts over all sites.
        report: Page with a table of the sites.
        tables: Tables of each site, as {name - {"nodes" - URI, "edges" - URI, "features" - URI}}, as the
            site's pod reads them.
        ingest: Further options of ingest_graph, the same at all sites.
        topology: Where each site's pod goes, and its storage, the URI of the site's own store.
        num_parts: Number of parts (workers) of each site.
        partition_method: How each site is divided into parts - "metis" or "random".
        halo_hops: Hops of in-neighbours that a part knows beyond its own nodes.
        seed: Seed of the division; the same seed gives the same parts.
        timeout_s: Seconds after which the whole is ended as failed.
        launcher: One pod a site, by "job", "jobset", "trainjob" or "dgljob"; "local" is to try it out.
        hand_over: Folder that step and pods share - a path on a volume that all mount, or an s3://, gs:// or
            minio:// URI. Empty is beside the partitions in their object store.
        run_id: The pipeline run, dsl.PIPELINE_JOB_ID_PLACEHOLDER; empty is that of the step's pod.
        namespace: Namespace of the pods; empty is the step's own.
        service_account: Account that the pods run under; empty is the namespace's default.
        start_timeout_s: Seconds in which all pods must have started.
        orphan_timeout_s: Seconds without a sign of life of the step after which its pods end themselves.
        task_config: What KFP sets on the task, for the pods.
        job_resource: Reference of what was started in JSON; {} before that.
    """
    from pathlib import Path

    from geokfp.components._launch import failure_recorded

    with failure_recorded("partition_at_sites", beside=Path(partitions.path)):
        from geokfp.components._launch.launch_step import surroundings_of
        from geokfp.components.geo_training.at_sites.run import run
        from geokfp.components.geo_training.config import SitePartitionConfig

        config = SitePartitionConfig(
            tables=tables,
            ingest=ingest,
            topology=topology,
            num_parts=num_parts,
            partition_method=partition_method,
            halo_hops=halo_hops,
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
        where = surroundings_of(config, task_config, {"partitions": partitions.uri}, Path(job_resource))
        found = run(config, partitions=Path(partitions.path), report=Path(report.path), surroundings=where)
        for name, value in found.items():
            metrics.log_metric(name, value)


@dsl.component(base_image=image("geomx"), install_kfp_package=False, task_config_passthroughs=TASK_SETTINGS)
def shard_at_sites(
    shards: dsl.Output[dsl.Dataset],
    metrics: dsl.Output[dsl.Metrics],
    report: dsl.Output[dsl.HTML],
    job_resource: dsl.OutputPath(str),  # type: ignore[valid-type]
    tables: dict[str, Any] = {},
    shard: dict[str, Any] = {},
    topology: dict[str, Any] = {},
    seed: int = 0,
    timeout_s: int = 7200,
    launcher: str = "local",
    hand_over: str = "",
    run_id: str = "",
    namespace: str = "",
    service_account: str = "",
    start_timeout_s: int = 600,
    orphan_timeout_s: int = 300,
    task_config: dsl.TaskConfig = None,
) -> None:
    """Reads each site's rows at the site, so that they never leave it.

    A pod at each site reads the site's table and keeps its rows in the site's own store. What comes back and
    travels on to geo_train are URIs, counts, names of features and labels.

    Args:
        shards: Manifest of the shards, for geo_train with the same topology.
        metrics: Counts over all sites.
        report: Page with a table of the sites.
        tables: Rows of each site, as {name - {"table" - URI}} or {name - {"images" - URI, "labels" - URI}},
            as the site's pod reads them.
        shard: Further options of shard_table but those about sites, the same at all of them.
        topology: Where each site's pod goes, and its storage, the URI of the site's own store.
        seed: Seed of the division into training, validation and test rows by fractions.
        timeout_s: Seconds after which the whole is ended as failed.
        launcher: One pod a site, by "job", "jobset", "trainjob" or "dgljob"; "local" is to try it out.
        hand_over: Folder that step and pods share - a path on a volume that all mount, or an s3://, gs:// or
            minio:// URI. Empty is beside the shards in their object store.
        run_id: The pipeline run, dsl.PIPELINE_JOB_ID_PLACEHOLDER; empty is that of the step's pod.
        namespace: Namespace of the pods; empty is the step's own.
        service_account: Account that the pods run under; empty is the namespace's default.
        start_timeout_s: Seconds in which all pods must have started.
        orphan_timeout_s: Seconds without a sign of life of the step after which its pods end themselves.
        task_config: What KFP sets on the task, for the pods.
        job_resource: Reference of what was started in JSON; {} before that.
    """
    from pathlib import Path

    from geokfp.components._launch import failure_recorded

    with failure_recorded("shard_at_sites", beside=Path(shards.path)):
        from geokfp.components._launch.launch_step import surroundings_of
        from geokfp.components.geo_training.at_sites.shard_run import run
        from geokfp.components.geo_training.config import SiteShardConfig

        config = SiteShardConfig(
            tables=tables,
            shard=shard,
            topology=topology,
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
        where = surroundings_of(config, task_config, {"shards": shards.uri}, Path(job_resource))
        found = run(config, shards=Path(shards.path), report=Path(report.path), surroundings=where)
        for name, value in found.items():
            metrics.log_metric(name, value)
