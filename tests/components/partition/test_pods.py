"""partition_graph in a pod, with a process in its place: the same artifact as from the step itself."""

import json
from pathlib import Path

import numpy as np
import pytest
from geokfp.components._files import ArtifactError, Folder, InputError
from geokfp.components._launch import ProcessFailed
from geokfp.components._launch.as_processes import run_as_processes
from geokfp.components._launch.launch_step import Surroundings
from geokfp.components._launch.pods import PodSettings
from geokfp.components.partition.config import PartitionConfig
from geokfp.components.partition.own_part import open_part, own_node_ids, partitions_at
from geokfp.components.partition.partitions import read_partitions
from geokfp.components.partition.pod_plan import planned
from geokfp.components.partition.run import run
from support.graphs import communities, written

# DGL leaves /proc/self/status open when it partitions.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*unclosed file:ResourceWarning",
    "ignore:.*proc.self.status:pytest.PytestUnraisableExceptionWarning",
)


def in_a_pod(folder: Path, **options: object) -> PartitionConfig:
    given = {"launcher": "job", "hand_over": str(folder / "shared"), "run_id": "r", "namespace": "n"}
    return PartitionConfig(**{**given, **options})


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(communities(sites=2), tmp_path_factory.mktemp("graph"))


@pytest.fixture(scope="module")
def partitions(graph: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("here")
    run(PartitionConfig(), graph, partitions=folder / "partitions", report=folder / "report")
    return folder / "partitions"


def test_a_pod_writes_what_the_step_writes(graph: Path, partitions: Path, tmp_path: Path) -> None:
    surroundings = Surroundings(run=run_as_processes, job_resource=tmp_path / "job_resource")
    target, report = tmp_path / "partitions", tmp_path / "report.html"
    result = run(in_a_pod(tmp_path), graph, partitions=target, report=report, surroundings=surroundings)

    assert read_partitions(target).quality == result.metrics == read_partitions(partitions).quality
    here, there = (json.loads((each / "manifest.json").read_text()) for each in (partitions, target))
    for each in (here, there):  # DGL's graph files differ from write to write in bytes that mean nothing
        each["files"] = {name: sum_ for name, sum_ in each["files"].items() if not name.endswith("graph.dgl")}
    assert here == there
    assert report.read_text().startswith("<!doctype html>")
    assert json.loads((tmp_path / "job_resource").read_text())["kind"] == "Processes"
    assert [path for path in (tmp_path / "shared").rglob("*") if path.is_file()] == []


@pytest.mark.long
def test_a_pod_writes_straight_to_the_store(
    graph: Path, partitions: Path, tmp_path: Path, bucket: str
) -> None:
    uris = {"graph": f"minio://{bucket}/graph", "partitions": f"minio://{bucket}/partitions"}
    Folder(uris["graph"]).put_artifact(graph)
    Folder(uris["partitions"]).replace("manifest.json", b"of an earlier run")
    target = tmp_path / "partitions"
    result = run(
        in_a_pod(tmp_path, hand_over=""),
        graph,
        partitions=target,
        report=tmp_path / "report.html",
        surroundings=Surroundings(run=run_as_processes, uris=uris),
    )
    assert not target.exists()  # as the artifact's path stays empty, the store's is kept
    Folder(uris["partitions"]).fetch_artifact(target)
    assert read_partitions(target).quality == result.metrics == read_partitions(partitions).quality
    assert Folder(f"s3://{bucket}").names() == ["graph", "partitions"]


@pytest.mark.parametrize(
    ("hand_over", "mounted", "handed_over"),
    [("", (), False), ("s3://b/other", (), False), ("/data", (), True), ("/data", ("/data",), True)],
)
def test_a_pod_reads_and_writes_artifacts_in_a_store_unless_it_sees_a_volume_alone(
    tmp_path: Path, hand_over: str, mounted: tuple[str, ...], handed_over: bool
) -> None:
    settings = PodSettings(volume_mounts=tuple({"name": "v", "mountPath": path} for path in mounted))
    uris = {"graph": "s3://b/graph", "partitions": "s3://b/partitions"}
    (launch,) = planned(in_a_pod(tmp_path, hand_over=hand_over), uris, settings)
    document = json.loads(launch.groups[0].document)
    if handed_over:
        assert (document["graph"], document["partitions"]) == (f"/data/{launch.name}/graph", "")
    else:
        assert (document["graph"], document["partitions"]) == ("s3://b/graph", "s3://b/partitions")


def test_a_graph_that_is_not_there_is_named_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent: no such folder .*a graph artifact is needed"):
        planned(in_a_pod(tmp_path), {"graph": str(tmp_path / "absent")}, PodSettings())


def test_what_a_pod_finds_wrong_is_the_steps_failure(graph: Path, tmp_path: Path) -> None:
    config = in_a_pod(tmp_path, num_parts=10_000)
    with pytest.raises(ProcessFailed, match=r"^partition/0/partition: InputError: num_sites 1 x num_parts"):
        run(
            config,
            graph,
            partitions=tmp_path / "partitions",
            report=tmp_path / "report",
            surroundings=Surroundings(run=run_as_processes),
        )
    assert not (tmp_path / "partitions").exists()


def test_one_part_is_read_where_it_lies_or_copied_alone(partitions: Path, tmp_path: Path) -> None:
    site = open_part(str(partitions), "site-0", 1, tmp_path / "unused")
    assert site == read_partitions(partitions).sites[0] == partitions_at(str(partitions)).sites[0]
    assert not (tmp_path / "unused").exists()

    import fsspec

    fsspec.filesystem("memory").put(f"{partitions}/", "memory://store/partitions/", recursive=True)
    copied = open_part("memory://store/partitions", "site-0", 1, tmp_path / "own")
    found = sorted(path.relative_to(tmp_path / "own").as_posix() for path in (tmp_path / "own").rglob("*.*"))
    assert found == [
        "site-0/graph.json",
        *(f"site-0/part-1/{name}" for name in ("edge_feat.dgl", "graph.dgl", "node_feat.dgl")),
    ]
    assert copied.directory == tmp_path / "own/site-0"
    ids = [own_node_ids("memory://store/partitions", copied, part) for part in range(2)]
    assert np.concatenate(ids).tolist() == read_partitions(partitions).sites[0].node_ids().tolist()
    assert copied.num_nodes == site.num_nodes


def test_an_own_part_that_was_altered_is_named(partitions: Path, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(partitions, copy)
    (copy / "site-0/part-0/graph.dgl").unlink()
    assert open_part(str(copy), "site-0", 1, tmp_path).num_parts == 2
    with pytest.raises(ArtifactError, match=r"part-0/graph.dgl: listed in manifest.json but missing"):
        open_part(str(copy), "site-0", 0, tmp_path)
    with (copy / "site-0/part-1/graph.dgl").open("ab") as file:
        file.write(b"x")
    with pytest.raises(ArtifactError, match=r"part-1/graph.dgl: checksum differs"):
        open_part(str(copy), "site-0", 1, tmp_path)
    with pytest.raises(ArtifactError, match="has no site 'site-7'"):
        open_part(str(copy), "site-7", 0, tmp_path)
    with pytest.raises(InputError, match=r"absent/manifest.json: no such file"):
        open_part(str(tmp_path / "absent"), "site-0", 0, tmp_path)
