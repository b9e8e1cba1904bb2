"""The KFP declaration of `ingest_graph`."""

from kfp import dsl

from .._images import image


@dsl.component(base_image=image("training"), install_kfp_package=False)
def ingest_graph(
    graph: dsl.Output[dsl.Dataset],
    metrics: dsl.Output[dsl.Metrics],
    report: dsl.Output[dsl.HTML],
    fingerprint: dsl.OutputPath(str),  # type: ignore[valid-type]
    nodes: str = "",
    edges: str = "",
    features: str = "",
    id_column: str = "id",
    label_column: str = "label",
    split_column: str = "split",
    site_column: str = "",
    source_column: str = "src",
    destination_column: str = "dst",
    feature_columns: list[str] = [],
    train_fraction: float = 0.6,
    validation_fraction: float = 0.2,
    undirected: bool = True,
    self_loops: str = "remove",
    seed: int = 0,
):
    """Makes a checked graph of tables of nodes, edges and features.

    Args:
        graph: Graph artifact: plain arrays with checksums.
        metrics: Counts of nodes, edges, classes and features.
        report: Page with counts, warnings and plots.
        fingerprint: Hash of the graph's contents.
        nodes: URI of the nodes (.csv, .csv.gz, .parquet, .npz). All three URIs empty: the built-in example.
        edges: URI of the edges (the same formats, or a DGL graph file .bin or .dgl).
        features: URI of the features, one row a node (scipy .npz, .npy); empty takes columns of the nodes.
        id_column: Column of the nodes with their ids, whole numbers or strings.
        label_column: Column of the nodes with their labels, whole numbers or strings; an empty label is none.
        split_column: Column of the nodes: train, validation, test or none; without it fractions divide.
        site_column: Column of the nodes with the name of their site; empty for none.
        source_column: Column of the edges with the id of their source.
        destination_column: Column of the edges with the id of their destination.
        feature_columns: Columns of the nodes to take as features; empty takes all that are not named above
            but those of text, which a warning names.
        train_fraction: Share of each class's nodes to train on, where no column says.
        validation_fraction: Share of each class's nodes to validate on; the rest is for test.
        undirected: Whether each edge is stored in both directions.
        self_loops: 'remove' or 'keep' edges from a node to itself.
        seed: Seed of the division by fractions.
    """
    from pathlib import Path

    from geokfp.components._launch import failure_recorded

    with failure_recorded("ingest_graph", beside=Path(graph.path)):
        from geokfp.components.ingest.config import IngestConfig
        from geokfp.components.ingest.run import run

        config = IngestConfig(
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
            self_loops=self_loops,
            seed=seed,
        )
        result = run(config, graph=Path(graph.path), report=Path(report.path), fingerprint=Path(fingerprint))
        for name, value in result.metrics.items():
            metrics.log_metric(name, value)
