"""The KFP declaration of `shard_table`."""

from kfp import dsl

from .._images import image


@dsl.component(base_image=image("geomx"), install_kfp_package=False)
def shard_table(
    shards: dsl.Output[dsl.Dataset],
    metrics: dsl.Output[dsl.Metrics],
    report: dsl.Output[dsl.HTML],
    fingerprint: dsl.OutputPath(str),  # type: ignore[valid-type]
    table: str = "",
    images: str = "",
    labels: str = "",
    task: str = "classification",
    label_column: str = "label",
    feature_columns: list[str] = [],
    split_column: str = "split",
    site_column: str = "",
    num_sites: int = 2,
    method: str = "iid",
    alpha: float = 0.5,
    site_names: list[str] = [],
    train_fraction: float = 0.6,
    validation_fraction: float = 0.2,
    scale_images: bool = False,
    seed: int = 0,
):
    """Splits a table, or images with labels, into one shard a site.

    Args:
        shards: Shards artifact: plain arrays, a folder a site.
        metrics: Rows per site, classes, features and label skew.
        report: Page with counts, warnings and the classes of each site.
        fingerprint: Hash of the shards' contents.
        table: URI of the rows (.csv, .csv.gz, .parquet, or .npz with x and y). All three URIs empty: the
            built-in example.
        images: URI of images in IDX format (MNIST's), packed by gzip or not.
        labels: URI of the images' labels in IDX format.
        task: 'classification' (labels are classes) or 'regression' (labels are numbers).
        label_column: Column of the table with the labels; an .npz has them in y.
        feature_columns: Columns to take as features; empty takes all numeric ones that no option names.
        split_column: Column that says train, validation, test or none; without it fractions divide.
        site_column: Column with the name of the row's site, for the method by_column.
        num_sites: Number of sites; with 'by_column', as many as the data has, or 0 to take those.
        method: 'iid' (a shuffle), 'by_class', 'by_column' or 'dirichlet' (uneven shares of each class).
        alpha: Concentration of 'dirichlet'; the smaller, the less the sites' classes are alike.
        site_names: Name of each site; empty for site-0, site-1, ..., or the names in site_column.
        train_fraction: Share of each site's rows to train on, where no column says.
        validation_fraction: Share of each site's rows to validate on; the rest is for test.
        scale_images: Whether images become numbers between 0 and 1; otherwise their bytes are kept.
        seed: Seed of who gets which rows and of the division by fractions.
    """
    from pathlib import Path

    from geokfp.components._launch import failure_recorded

    with failure_recorded("shard_table", beside=Path(shards.path)):
        from geokfp.components.shard.config import ShardConfig
        from geokfp.components.shard.run import run

        config = ShardConfig(
            table=table,
            images=images,
            labels=labels,
            task=task,
            label_column=label_column,
            feature_columns=feature_columns,
            split_column=split_column,
            site_column=site_column,
            num_sites=num_sites,
            method=method,
            alpha=alpha,
            site_names=site_names,
            train_fraction=train_fraction,
            validation_fraction=validation_fraction,
            scale_images=scale_images,
            seed=seed,
        )
        result = run(
            config, shards=Path(shards.path), report=Path(report.path), fingerprint=Path(fingerprint)
        )
        for name, value in result.metrics.items():
            metrics.log_metric(name, value)
