"""The KFP declaration of `partition_graph`."""

from kfp import dsl

from .._images import image
from .._task_settings import TASK_SETTINGS


@dsl.component(
    base_image=image("training"), install_kfp_package=False, task_config_passthroughs=TASK_SETTINGS
)
def partition_graph(
    graph: dsl.Input[dsl.Dataset],
    partitions: dsl.Output[dsl.Dataset],
    metrics: dsl.Output[dsl.Metrics],
    report: dsl.Output[dsl.HTML],
    job_resource: dsl.OutputPath(str),  # type: ignore[valid-type]
    num_sites: int = 1,
    num_parts: int = 2,
    partition_method: str = "metis",
    halo_hops: int = 1,
    balance_train: bool = True,
    balance_edges: bool = False,
    seed: int = 0,
    fingerprint: str = "",
    launcher: str = "local",
    hand_over: str = "",
    run_id: str = "",
    namespace: str = "",
    service_account: str = "",
    start_timeout_s: int = 600,
    orphan_timeout_s: int = 300,
    task_config: dsl.TaskConfig = None,
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
        launcher: "local" (this step), or a pod of its own, with the task's settings - by "job", "jobset",
            "trainjob" or "dgljob".
        hand_over: Folder that step and pod share - a path on a volume that both mount, or an s3://, gs:// or
            minio:// URI. Empty is beside the partitions in their object store.
        run_id: The pipeline run, dsl.PIPELINE_JOB_ID_PLACEHOLDER; empty is that of the step's pod.
        namespace: Namespace of the pod; empty is the step's own.
        service_account: Account that the pod runs under; empty is the namespace's default.
        start_timeout_s: Seconds in which the pod must have started.
        orphan_timeout_s: Seconds without a sign of life of the step after which the pod ends itself.
        task_config: What KFP sets on the task, for the pod.
        job_resource: Reference of what was started in JSON; {} without a pod.
    """
    from pathlib import Path

    from geokfp.components._launch import failure_recorded

    with failure_recorded("partition_graph", beside=Path(partitions.path)):
        from geokfp.components._launch.launch_step import surroundings_of
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
            launcher=launcher,
            hand_over=hand_over,
            run_id=run_id,
            namespace=namespace,
            service_account=service_account,
            start_timeout_s=start_timeout_s,
            orphan_timeout_s=orphan_timeout_s,
        )
        uris = {"graph": graph.uri, "partitions": partitions.uri}
        result = run(
            config,
            Path(graph.path),
            partitions=Path(partitions.path),
            report=Path(report.path),
            surroundings=surroundings_of(config, task_config, uris, Path(job_resource)),
        )
        for name, value in result.metrics.items():
            metrics.log_metric(name, value)
