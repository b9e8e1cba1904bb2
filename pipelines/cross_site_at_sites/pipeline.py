"""`cross_site_at_sites`: as `cross_site`, for tables that may not leave their sites."""

from typing import Any

from geokfp.components import export_model, geo_train_gnn, partition_at_sites
from kfp import dsl

from ..step_policy import EXPORT, HOUR_S, READ_TABLES, training_policy
from ..task_settings import apply_storage


def make_cross_site_at_sites(
    *,
    retries: int = 1,
    timeout_s: int = 24 * HOUR_S,
    launcher: str = "local",
    storage: tuple[str, str] | None = None,
) -> Any:
    """Returns the pipeline, with what KFP fixes when it compiles.

    Args:
        retries: how often KFP starts a failed training step again.
        timeout_s: seconds that the pod of a training step may take, and the default of the parameter.
        launcher: default of the parameter of that name.
        storage: a PersistentVolumeClaim and where steps and their pods mount it, such as
            `("geokfp-data", "/data")`; `hand_over` and `checkpoint_folder` may lie on it, a site's own
            store may not.
    """
    default_launcher = launcher
    policy = training_policy(retries, timeout_s)

    @dsl.pipeline(  # type: ignore[untyped-decorator]
        name="cross-site-at-sites",
        display_name="Cross site, at the sites",
        description="Trains one GNN across sites whose tables never leave them, and exports it.",
    )
    def cross_site_at_sites(
        tables: dict[str, Any],
        ingest: dict[str, Any] = {},  # noqa: B006  kfp reads it as the default
        workers_per_site: int = 2,
        partition_method: str = "metis",
        architecture: str = "sage",
        hidden_size: int = 128,
        num_layers: int = 2,
        dropout: float = 0.5,
        epochs: int = 200,
        patience: int = 30,
        batch_size: int = 1024,
        fan_outs: list[int] = [10],  # noqa: B006
        learning_rate: float = 0.01,
        weight_decay: float = 0.0005,
        num_samplers: int = 0,
        topology: dict[str, Any] = {},  # noqa: B006
        certificates: str = "",
        plain_text: bool = False,
        synchronization: str = "auto",
        compression: str = "auto",
        transmission: str = "fifo",
        checkpoint_folder: str = "",
        checkpoint_every: int = 1,
        compare_alone: bool = True,
        entry_point: str = "",
        user_code: str = "",
        model_options: dict[str, Any] = {},  # noqa: B006
        export_formats: list[str] = ["torchscript", "onnx"],  # noqa: B006
        launcher: str = default_launcher,
        hand_over: str = "",
        namespace: str = "",
        service_account: str = "",
        round_timeout_s: int = 300,
        metrics_host: str = "127.0.0.1",
        metrics_port: int = 0,
        timeout_s: int = timeout_s,
        seed: int = 0,
    ) -> None:
        """Trains one GNN across sites whose tables never leave them, and exports it.

        Args:
            tables: Tables of each site, as {name - {"nodes" - URI, "edges" - URI, "features" - URI}}.
            ingest: Further options of ingest_graph, the same at all sites.
            workers_per_site: Workers of each site, one part of the site's graph each.
            partition_method: metis (few cut edges) or random.
            architecture: sage, gcn or gat.
            hidden_size: Width of the inner layers.
            num_layers: Layers, each one hop of neighbours.
            dropout: Share of the hidden values zeroed in training.
            epochs: Most passes over the training nodes.
            patience: Epochs without a better validation result after which training stops; 0 never.
            batch_size: Training nodes a worker takes in one step.
            fan_outs: Neighbours sampled per layer, outermost first; one for all layers; empty: all.
            learning_rate: Step size of Adam.
            weight_decay: L2 penalty of Adam.
            num_samplers: Processes per worker that sample ahead; 0: the worker samples.
            topology: Where each site's pods go, and its storage, the URI of the site's own store.
            certificates: Folder with tls.crt, tls.key and ca.crt; links between sites are TLS then.
            plain_text: Whether links may leave the machine without TLS.
            synchronization: How the sites keep in step - auto (as links allow), fsa (all in every step), ...
            compression: How values travel between sites - auto (as links allow), none, fp16, ...
            transmission: In what pieces and order they do: fifo, or p3 (first layers first).
            checkpoint_folder: Folder, on a volume that stays, to go on from if training is ended.
            checkpoint_every: Epochs between two checkpoints; 0 keeps none.
            compare_alone: Also train each site alone, to show what the others add.
            entry_point: module:function that builds your own model, in place of architecture.
            user_code: Folder or .py file (path or URI) with that module; it is executed, so trust it.
            model_options: Further options of the model, such as num_heads of gat.
            export_formats: Among torchscript, onnx; weights and model card are always written.
            launcher: job, jobset, trainjob or dgljob - pods at each site; local: processes, to try it out.
            hand_over: Folder that steps and their pods share; empty: beside the steps' outputs.
            namespace: Namespace of the pods; empty: the run's own.
            service_account: Account that the pods run under; empty: the namespace's default.
            round_timeout_s: Seconds that a round waits for its last worker before training has failed.
            metrics_host: Where the processes' pages for Prometheus listen; 0.0.0.0 for all addresses.
            metrics_port: Port of the root's page, those of the others follow; 0 for no pages.
            timeout_s: Seconds that training may take; its pod's limit is fixed when compiled.
            seed: Seed of partition, weights and sampling.
        """
        partition = READ_TABLES.apply(
            partition_at_sites(
                tables=tables,
                ingest=ingest,
                topology=topology,
                num_parts=workers_per_site,
                partition_method=partition_method,
                launcher=launcher,
                hand_over=hand_over,
                run_id=dsl.PIPELINE_JOB_ID_PLACEHOLDER,
                namespace=namespace,
                service_account=service_account,
                seed=seed,
            ),
            "Partition at the sites",
        )
        train = policy.apply(
            geo_train_gnn(
                partitions=partition.outputs["partitions"],
                architecture=architecture,
                hidden_size=hidden_size,
                num_layers=num_layers,
                dropout=dropout,
                epochs=epochs,
                patience=patience,
                batch_size=batch_size,
                fan_outs=fan_outs,
                learning_rate=learning_rate,
                weight_decay=weight_decay,
                num_samplers=num_samplers,
                topology=topology,
                certificates=certificates,
                plain_text=plain_text,
                synchronization=synchronization,
                compression=compression,
                transmission=transmission,
                checkpoint_folder=checkpoint_folder,
                checkpoint_every=checkpoint_every,
                compare_alone=compare_alone,
                entry_point=entry_point,
                user_code=user_code,
                model_options=model_options,
                launcher=launcher,
                hand_over=hand_over,
                run_id=dsl.PIPELINE_JOB_ID_PLACEHOLDER,
                namespace=namespace,
                service_account=service_account,
                seed=seed,
                round_timeout_s=round_timeout_s,
                metrics_host=metrics_host,
                metrics_port=metrics_port,
                timeout_s=timeout_s,
            ),
            "Train GNN across sites",
        )
        if storage is not None:
            for task in (partition, train):
                apply_storage(task, *storage)
        EXPORT.apply(
            export_model(
                model=train.outputs["model"],
                data=partition.outputs["partitions"],
                formats=export_formats,
            ),
            "Export model",
        )

    return cross_site_at_sites


cross_site_at_sites = make_cross_site_at_sites()
