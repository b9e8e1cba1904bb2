"""The graph artifact: what is written is what is drawn, and reads back."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from geokfp.components._files import ArtifactError
from geokfp.components.ingest import graph as module
from geokfp.components.ingest.config import IngestConfig
from geokfp.components.ingest.graph import Graph, read_graph, read_graph_schema, write_graph
from geokfp.components.ingest.report import write_report
from geokfp.components.ingest.run import run
from support.graphs import communities, written


def drawn() -> set[str]:
    return set(re.findall(r"^\s+(\w+\.\w+) ", str(module.__doc__), re.MULTILINE)) | {"features.npz"}


def with_sparse_features(graph: Graph) -> Graph:
    return replace(graph, features=scipy.sparse.csr_matrix(graph.features))


@pytest.mark.parametrize("sparse", [False, True])
def test_reads_back_what_was_written(tmp_path: Path, sparse: bool) -> None:
    graph = communities(sites=2)
    graph = with_sparse_features(graph) if sparse else graph
    path = written(graph, tmp_path)
    found = read_graph(path)
    for name in ("edges", "labels", "split", "node_ids", "sites"):
        assert np.array_equal(getattr(found, name), getattr(graph, name))
    assert scipy.sparse.issparse(found.features) == sparse
    assert np.array_equal(found.dense_features([3, 1]), graph.dense_features([3, 1]))
    assert found.site_names == ("city-0", "city-1")
    assert read_graph_schema(path).num_edges == graph.num_edges


def test_the_drawing_shows_what_is_written(tmp_path: Path) -> None:
    files: set[str] = set()
    for name, graph in (("a", communities(sites=2)), ("b", with_sparse_features(communities()))):
        files |= {path.name for path in written(graph, tmp_path / name).iterdir()}
    assert files == drawn()


def test_the_fingerprint_follows_the_contents_alone(tmp_path: Path) -> None:
    first = write_graph(communities(), tmp_path / "a")
    assert first == write_graph(communities(), tmp_path / "b")
    assert first != write_graph(communities(seed=1), tmp_path / "c")


def test_an_altered_array_is_noticed(tmp_path: Path) -> None:
    path = written(communities(), tmp_path)
    np.save(path / "labels.npy", np.zeros(120, dtype=np.int64))
    with pytest.raises(ArtifactError, match=r"labels.npy: checksum differs"):
        read_graph(path)


def test_run_writes_all_or_nothing(tmp_path: Path) -> None:
    outputs = {name: tmp_path / "step" / name for name in ("graph", "report", "fingerprint")}
    with pytest.raises(ValueError, match=r"none\.csv: no such file"):
        run(IngestConfig(nodes=str(tmp_path / "none.csv"), edges="none.csv"), **outputs)
    assert list(tmp_path.iterdir()) == []
    result = run(IngestConfig(), **outputs)
    assert (
        outputs["fingerprint"].read_text() == result.fingerprint == read_graph(outputs["graph"]).fingerprint
    )
    assert result.metrics["num_nodes"] == 1797
    assert "<svg" in outputs["report"].read_text()


MEASURE = """
import sys
from dataclasses import replace
from pathlib import Path
from geokfp.components.ingest.config import IngestConfig
from geokfp.components.ingest.report import write_report
from geokfp.components.ingest.run import run
from geokfp.components.ingest.graph import read_graph

def peak():
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line]
    return int(line.split()[1]) * 1024

def outputs(name):
    return {output: Path(name) / output for output in ("graph", "report", "fingerprint")}

run(IngestConfig(nodes="few-nodes.csv", edges="few-edges.csv"), **outputs("few"))
before = peak()
run(IngestConfig(nodes="nodes.csv", edges="edges.csv"), **outputs("many"))
size = sum(path.stat().st_size for path in Path("many/graph").iterdir())
print((peak() - before) / size)
"""


@pytest.mark.parametrize("kind", ["numbers", "text"])
def test_memory_stays_within_three_times_the_arrays(tmp_path: Path, kind: str) -> None:
    generator = np.random.default_rng(0)
    nodes, edges = 25_000, 1_000_000
    prefix = "v" if kind == "text" else ""
    for name, few in (("few-", 1000), ("", nodes)):
        lines = "\n".join(f"{prefix}{i},{i % 3},{i % 7}" for i in range(few))
        (tmp_path / f"{name}nodes.csv").write_text(f"id,label,x\n{lines}\n")
        ends = generator.integers(0, few, (2, few * edges // nodes)).tolist()
        lines = "\n".join(
            f"{prefix}{source},{prefix}{destination}" for source, destination in zip(*ends, strict=True)
        )
        (tmp_path / f"{name}edges.csv").write_text(f"src,dst\n{lines}\n")
    measured = subprocess.run(
        [sys.executable, "-c", MEASURE],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    ratio = float(measured.stdout.split()[-1])
    print(f"peak memory is {ratio:.2f} times the arrays")
    assert 0.5 < ratio < 3


def test_the_report_says_whom_the_logarithmic_axis_leaves_out(tmp_path: Path) -> None:
    write_report(communities(), tmp_path / "all")
    assert "leaves out" not in (tmp_path / "all").read_text()
    graph = communities()
    alone = replace(graph, edges=graph.edges[:, (graph.edges > 2).all(axis=0)])
    write_report(alone, tmp_path / "some")
    assert "which leaves out the 3 nodes that no edge leads to" in (tmp_path / "some").read_text()
