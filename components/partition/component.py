"""The KFP declaration of `partition_graph`."""

from kfp import dsl

from .._images import image


@dsl.component(base_image=image("training"), install_kfp_package=False)
def partition_graph(
    graph: dsl.Input[dsl.Dataset],
    partitions: dsl.Output[dsl.Dataset],
    metrics: dsl.Output[dsl.Metrics],
    report: dsl.Output[dsl.HTML],
    num_sites: int = 1,
    num_parts: int = 2,
    partition_method: str = "metis",
    halo_hops: int = 1,
    balance_train: bool = True,
    balance_edges: bool = False,
    seed: int = 0,
    fingerprint: str = "",
):
    """Divides a graph into sites, and each site into the parts that its workers hold.

    Args:
        graph: Graph artifact, as ingest_graph writes it.
        partitions: Partitions artifact: one DGL partition set a site.
        metrics: Edge cut, balances and replication.
        report: Page with tables and plots.
        num_sites: Number of sites; with 'attribute', as many as the data has, or 0 to take those.
        num_parts: Number of parts (workers) of each site.
        partition_method: 'metis' (few cut edges), 'random', or 'attribute' (the nodes' own sites).
        halo_hops: Hops of in-neighbours that a part knows beyond its own nodes.
        balance_train: Whether 'metis' evens out training nodes beside nodes.
        balance_edges: Whether 'metis' balances nodes and edges together, not nodes alone.
        seed: Seed of the method; the same seed gives the same parts.
        fingerprint: Fingerprint that the graph must have, so that a cached result follows the contents.
    """
    from pathlib import Path

    from geokfp.components._launch import failure_recorded

    with failure_recorded("partition_graph", beside=Path(partitions.path)):
        from geokfp.components.partition.config import PartitionConfig
        from geokfp.components.partition.run import run

        config = PartitionConfig(
            num_sites=num_sites,
            num_parts=num_parts,
            partition_method=partition_method,
            halo_hops=halo_hops,
            balance_train=balance_train,
            balance_edges=balance_edges,
            seed=seed,
            fingerprint=fingerprint,
        )
        result = run(config, Path(graph.path), partitions=Path(partitions.path), report=Path(report.path))
        for name, value in result.metrics.items():
            metrics.log_metric(name, value)
