"""`cross_site_table`: from a table or images to an exported model trained across sites."""

from typing import Any

from geokfp.components import export_model, geo_train, shard_table
from kfp import dsl

from ..step_policy import EXPORT, HOUR_S, READ_TABLES, training_policy
from ..task_settings import apply_storage


def make_cross_site_table(
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
        storage: a PersistentVolumeClaim and where training and its pods mount it, such as
            `("geokfp-data", "/data")`; `hand_over` and `checkpoint_folder` may lie on it.
    """
    default_launcher = launcher
    policy = training_policy(retries, timeout_s)

    @dsl.pipeline(  # type: ignore[untyped-decorator]
        name="cross-site-table",
        display_name="Cross site, table",
        description="Trains one model across sites that each keep their rows, and exports it.",
    )
    def cross_site_table(
        table: str = "",
        images: str = "",
        labels: str = "",
        task: str = "classification",
        label_column: str = "label",
        feature_columns: list[str] = [],  # noqa: B006  kfp reads it as the default
        split_column: str = "split",
        site_column: str = "",
        num_sites: int = 2,
        shard_method: str = "iid",
        alpha: float = 0.5,
        site_names: list[str] = [],  # noqa: B006
        train_fraction: float = 0.6,
        validation_fraction: float = 0.2,
        scale_images: bool = False,
        algorithm: str = "mlp",
        entry_point: str = "",
        user_code: str = "",
        hyperparameters: dict[str, Any] = {},  # noqa: B006
        epochs: int = 20,
        batch_size: int = 64,
        workers_per_site: int = 1,
        eval_every: int = 1,
        topology: dict[str, Any] = {},  # noqa: B006
        certificates: str = "",
        plain_text: bool = False,
        synchronization: str = "auto",
        compression: str = "auto",
        transmission: str = "fifo",
        checkpoint_folder: str = "",
        checkpoint_every: int = 1,
        export_formats: list[str] = ["torchscript", "onnx"],  # noqa: B006
        export_tolerance: float = 0.0001,
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
        """Trains one model across sites that each keep their rows, and exports it.

        Args:
            table: URI of the rows (CSV, Parquet, .npz); with images and labels empty too: built-in digits.
            images: URI of images in IDX format (MNIST's), packed by gzip or not; needs labels.
            labels: URI of the images' labels in IDX format.
            task: classification, or regression (labels are numbers).
            label_column: Column of the table with the labels; an .npz has them in y.
            feature_columns: Columns that are features; empty: all numeric ones that no option names.
            split_column: Column with train, validation, test or none; used when it is there.
            site_column: Column with the name of each row's site, for the method by_column.
            num_sites: Sites; 0, with the method by_column: as many as the column has.
            shard_method: iid (a shuffle), by_class, by_column (data stays) or dirichlet (uneven classes).
            alpha: Concentration of dirichlet; the smaller, the less the sites' classes are alike.
            site_names: Name of each site; empty: site-0, site-1, ..., or those of the column.
            train_fraction: Share of each site's rows to train on, when there is no split column.
            validation_fraction: Share of each site's rows to validate on, when there is no split column.
            scale_images: Store images as numbers between 0 and 1; else as bytes, which training scales.
            algorithm: softmax_regression, mlp or cnn; empty with entry_point.
            entry_point: module:function that builds your own model, loss and optimizer, of torch or gluon.
            user_code: Folder or .py file (path or URI) with that module; it is executed, so trust it.
            hyperparameters: Further arguments of your function, or of the algorithm.
            epochs: Passes of each worker over its training rows.
            batch_size: Most rows that a worker takes in one step.
            workers_per_site: Workers of each site; they share its training rows.
            eval_every: Epochs between two judgements by each site's validation rows.
            topology: Addresses of root and sites; what is missing is a free port of the machine.
            certificates: Folder with tls.crt, tls.key and ca.crt; links between sites are TLS then.
            plain_text: Whether links may leave the machine without TLS.
            synchronization: How the sites keep in step - auto (as links allow), fsa (all in every step), ...
            compression: How values travel between sites - auto (as links allow), none, fp16, ...
            transmission: In what pieces and order they do: fifo, or p3 (first layers first).
            checkpoint_folder: Folder, on a volume that stays, to go on from if training is ended.
            checkpoint_every: Epochs between two checkpoints; 0 keeps none.
            export_formats: Among torchscript, onnx; the default is all that the model's framework has.
            export_tolerance: Largest difference of an output, between exported and trained model.
            launcher: local, or job, jobset, trainjob or dgljob - training in pods, one a worker.
            hand_over: Folder that training and its pods share; empty: beside the model's object.
            namespace: Namespace of the pods; empty: the run's own.
            service_account: Account that the pods run under; empty: the namespace's default.
            round_timeout_s: Seconds that a round waits for its last worker before training has failed.
            metrics_host: Where the processes' pages for Prometheus listen; 0.0.0.0 for all addresses.
            metrics_port: Port of the root's page, those of the others follow; 0 for no pages.
            timeout_s: Seconds that training may take; its pod's limit is fixed when compiled.
            seed: Seed of shards, split, weights and order.
        """
        shard = READ_TABLES.apply(
            shard_table(
                table=table,
                images=images,
                labels=labels,
                task=task,
                label_column=label_column,
                feature_columns=feature_columns,
                split_column=split_column,
                site_column=site_column,
                num_sites=num_sites,
                method=shard_method,
                alpha=alpha,
                site_names=site_names,
                train_fraction=train_fraction,
                validation_fraction=validation_fraction,
                scale_images=scale_images,
                seed=seed,
            ),
            "Shard table",
        )
        train = policy.apply(
            geo_train(
                shards=shard.outputs["shards"],
                entry_point=entry_point,
                user_code=user_code,
                algorithm=algorithm,
                hyperparameters=hyperparameters,
                epochs=epochs,
                batch_size=batch_size,
                num_workers=workers_per_site,
                eval_every=eval_every,
                topology=topology,
                certificates=certificates,
                plain_text=plain_text,
                synchronization=synchronization,
                compression=compression,
                transmission=transmission,
                checkpoint_folder=checkpoint_folder,
                checkpoint_every=checkpoint_every,
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
            "Train across sites",
        )
        if storage is not None:
            apply_storage(train, *storage)
        EXPORT.apply(
            export_model(
                model=train.outputs["model"],
                data=shard.outputs["shards"],
                formats=export_formats,
                tolerance=export_tolerance,
                model_name="model",
            ),
            "Export model",
        )

    return cross_site_table


cross_site_table = make_cross_site_table()
