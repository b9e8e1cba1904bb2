"""`warm_start_cross_site`: a GNN trained at one site, then across all sites from its weights."""

from typing import Any

from geokfp.components import export_model, geo_train_gnn, ingest_graph, partition_graph, train_gnn
from kfp import dsl

from ..step_policy import EXPORT, HOUR_S, PARTITION, READ_TABLES, training_policy
from ..task_settings import apply_storage


def make_warm_start_cross_site(
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
        launcher: default of the parameter of that name: what starts the pods of partitioning and training.
        storage: a PersistentVolumeClaim and where those steps and their pods mount it, such as
            `("geokfp-data", "/data")`; `hand_over` and `checkpoint_folder` may lie on it.
    """
    default_launcher = launcher
    policy = training_policy(retries, timeout_s)

    @dsl.pipeline(  # type: ignore[untyped-decorator]
        name="warm-start-cross-site",
        display_name="Warm start, then cross site",
        description="Trains a GNN at one site, goes on across all sites from its weights, and exports it.",
    )
    def warm_start_cross_site(
        nodes: str = "",
        edges: str = "",
        features: str = "",
        id_column: str = "id",
        label_column: str = "label",
        split_column: str = "split",
        site_column: str = "",
        source_column: str = "src",
        destination_column: str = "dst",
        feature_columns: list[str] = [],  # noqa: B006  kfp reads it as the default
        train_fraction: float = 0.6,
        validation_fraction: float = 0.2,
        undirected: bool = True,
        num_sites: int = 2,
        workers_per_site: int = 2,
        partition_method: str = "metis",
        architecture: str = "sage",
        hidden_size: int = 128,
        num_layers: int = 2,
        dropout: float = 0.5,
        warm_start_site: str = "site-0",
        warm_start_epochs: int = 20,
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
        """Trains a GNN at one site, goes on across all sites from its weights, and exports it.

        Args:
            nodes: URI of the node table (CSV, Parquet); with edges and features empty too: a built-in graph.
            edges: URI of the edge table (CSV, Parquet, .npz).
            features: URI of node features (.npy, scipy .npz), one row a node; empty: columns of nodes.
            id_column: Column of nodes with the ids that edges use.
            label_column: Column of nodes with the class, number or text; an empty cell is no label.
            split_column: Column of nodes with train, validation or test; used when it is there.
            site_column: Column of nodes with the site's name, for the method attribute.
            source_column: Column of edges with the source's id.
            destination_column: Column of edges with the destination's id.
            feature_columns: Columns of nodes that are features; empty: all other numeric ones.
            train_fraction: Share of the labelled nodes to train on, when there is no split column.
            validation_fraction: Share of the labelled nodes to validate on, when there is no split column.
            undirected: Store each edge in both directions.
            num_sites: Sites of the graph; 0, with the method attribute: as many as the column has.
            workers_per_site: Workers of each site, one part of the site's graph each.
            partition_method: metis (few cut edges), random, or attribute (by site_column: data stays).
            architecture: sage, gcn or gat.
            hidden_size: Width of the inner layers.
            num_layers: Layers, each one hop of neighbours.
            dropout: Share of the hidden values zeroed in training.
            warm_start_site: Site to train at first, by name or folder; site-0 is the first.
            warm_start_epochs: Most passes at one site.
            epochs: Most passes across the sites.
            patience: Epochs without a better validation result after which training stops; 0 never.
            batch_size: Training nodes a worker takes in one step.
            fan_outs: Neighbours sampled per layer, outermost first; one for all layers; empty: all.
            learning_rate: Step size of Adam.
            weight_decay: L2 penalty of Adam.
            num_samplers: Processes per worker that sample ahead; 0: the worker samples.
            topology: Addresses of root and sites; what is missing is a free port of the machine.
            certificates: Folder with tls.crt, tls.key and ca.crt; links between sites are TLS then.
            plain_text: Whether links may leave the machine without TLS.
            synchronization: How the sites keep in step - auto (as links allow), fsa (all in every step), ...
            compression: How values travel between sites - auto (as links allow), none, fp16, ...
            transmission: In what pieces and order they do: fifo, or p3 (first layers first).
            checkpoint_folder: Folder, on a volume that stays, to go on from if training is ended.
            checkpoint_every: Epochs between two checkpoints across sites; 0 keeps none.
            compare_alone: Also train each site alone, to show what the others add.
            entry_point: module:function that builds your own model, in place of architecture.
            user_code: Folder or .py file (path or URI) with that module; it is executed, so trust it.
            model_options: Further options of the model, such as num_heads of gat.
            export_formats: Among torchscript, onnx; weights and model card are always written.
            launcher: local, or job, jobset, trainjob or dgljob - partitioning and training in pods.
            hand_over: Folder that steps and their pods share; empty: beside the artifacts' objects.
            namespace: Namespace of the pods; empty: the run's own.
            service_account: Account that the pods run under; empty: the namespace's default.
            round_timeout_s: Seconds that a round waits for its last worker before training has failed.
            metrics_host: Where the processes' pages for Prometheus listen; 0.0.0.0 for all addresses.
            metrics_port: Port of the root's page, those of the others follow; 0 for no pages.
            timeout_s: Seconds that training may take; its pod's limit is fixed when compiled.
            seed: Seed of split, partition, weights and sampling.
        """
        ingest = READ_TABLES.apply(
            ingest_graph(
                nodes=nodes,
                edges=edges,
                features=features,
                id_column=id_column,
                label_column=label_column,
                split_column=split_column,
                site_column=site_column,
                source_column=source_column,
                destination_column=destination_column,
                feature_columns=feature_columns,
                train_fraction=train_fraction,
                validation_fraction=validation_fraction,
                undirected=undirected,
                seed=seed,
            ),
            "Ingest graph",
        )
        partition = PARTITION.apply(
            partition_graph(
                graph=ingest.outputs["graph"],
                num_sites=num_sites,
                num_parts=workers_per_site,
                partition_method=partition_method,
                seed=seed,
                fingerprint=ingest.outputs["fingerprint"],
                launcher=launcher,
                hand_over=hand_over,
                namespace=namespace,
                service_account=service_account,
            ),
            "Partition graph",
        )
        first = policy.apply(
            train_gnn(
                partitions=partition.outputs["partitions"],
                site=warm_start_site,
                checkpoint_folder=checkpoint_folder,
                epochs=warm_start_epochs,
                architecture=architecture,
                hidden_size=hidden_size,
                num_layers=num_layers,
                dropout=dropout,
                patience=patience,
                batch_size=batch_size,
                fan_outs=fan_outs,
                learning_rate=learning_rate,
                weight_decay=weight_decay,
                num_samplers=num_samplers,
                entry_point=entry_point,
                user_code=user_code,
                model_options=model_options,
                launcher=launcher,
                hand_over=hand_over,
                run_id=dsl.PIPELINE_JOB_ID_PLACEHOLDER,
                namespace=namespace,
                service_account=service_account,
                seed=seed,
                timeout_s=timeout_s,
            ),
            "Train GNN at one site",
        )
        train = policy.apply(
            geo_train_gnn(
                partitions=partition.outputs["partitions"],
                trained=first.outputs["model"],
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
            for task in (partition, first, train):
                apply_storage(task, *storage)
        EXPORT.apply(
            export_model(
                model=train.outputs["model"],
                data=partition.outputs["partitions"],
                formats=export_formats,
            ),
            "Export model",
        )

    return warm_start_cross_site


warm_start_cross_site = make_warm_start_cross_site()
