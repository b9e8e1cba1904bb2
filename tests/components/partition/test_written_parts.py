"""The files of the parts: the same from the same seed, halos as counted, and refused where DGL cannot."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from geokfp.components._files import InputError, sha256
from geokfp.components.ingest.graph import NO_SPLIT, TEST, TRAIN, Graph
from geokfp.components.partition import config
from geokfp.components.partition.assignment import METHODS, assign
from geokfp.components.partition.config import PartitionConfig
from geokfp.components.partition.partitions import Partitions, read_partitions
from geokfp.components.partition.run import run
from support.graphs import communities, written


def partition(graph: Graph, folder: Path, **options) -> Partitions:
    path = written(graph, folder)
    run(PartitionConfig(**options), path, partitions=folder / "partitions", report=folder / "report")
    return read_partitions(folder / "partitions")


def contents(folder: Path) -> dict[str, object]:
    """What each file holds: its hash, or a graph's values, as DGL pads its bytes with what lay in memory."""
    return {
        path.relative_to(folder).as_posix(): graph_values(path) if path.name == "graph.dgl" else sha256(path)
        for path in folder.rglob("*")
        if path.is_file()
    }


def graph_values(path: Path) -> list[object]:
    import dgl

    ((local,), _) = dgl.load_graphs(str(path))
    data = [(name, values.tolist()) for data in (local.ndata, local.edata) for name, values in data.items()]
    return [*sorted(data), *(ends.tolist() for ends in local.edges())]


def only_training(graph: Graph, rows: list[int]) -> Graph:
    split = np.full(graph.num_nodes, TEST, dtype=np.int8)
    split[rows] = TRAIN
    return replace(graph, split=split)


@pytest.mark.parametrize("method", ["metis", "random"])
def test_every_seed_gives_parts_of_its_own(method: str) -> None:
    graph = communities(600)
    found = {
        assign(graph, PartitionConfig(num_parts=4, partition_method=method, seed=seed)).flat.tobytes()
        for seed in range(4)
    }
    assert len(found) == 4


def test_every_method_has_its_function() -> None:
    assert tuple(METHODS) == config.METHODS


def test_the_same_seed_writes_the_same_parts_and_dgl_prints_nothing(tmp_path: Path, capfd) -> None:
    graph = communities()
    first = partition(graph, tmp_path / "first", num_sites=2)
    second = partition(graph, tmp_path / "second", num_sites=2)
    other = partition(graph, tmp_path / "other", num_sites=2, seed=1)
    printed = capfd.readouterr()
    assert all(line.startswith("[geokfp ") for line in printed.out.splitlines()), printed.out
    assert printed.err == ""
    for site, again, differs in zip(first.sites, second.sites, other.sites, strict=True):
        names = contents(site.directory)
        assert names == contents(again.directory)
        assert names.keys() == contents(differs.directory).keys()
        assert names != contents(differs.directory)


@pytest.mark.parametrize("halo_hops", [1, 2])
def test_the_replication_factor_counts_the_nodes_that_files_hold(tmp_path: Path, halo_hops: int) -> None:
    import dgl

    graph = communities(200, degree=2)
    parts = partition(graph, tmp_path, num_sites=2, num_parts=3, halo_hops=halo_hops)
    held = 0
    for site in parts.sites:
        for part in range(site.num_parts):
            local = dgl.distributed.load_partition(str(site.config_path), part, load_feats=False)[0]
            own = local.ndata["inner_node"].bool()
            held += local.num_nodes()
            destination = local.edges()[1]
            assert bool(own[destination[local.edata["inner_edge"].bool()]].all())
    assert parts.quality["replication_factor"] == held / graph.num_nodes


def test_sparse_features_are_written_as_dense_rows(tmp_path: Path) -> None:
    graph = communities()
    dense = np.where(graph.features > 1, graph.features, 0).astype(np.float32)
    stored = replace(graph, features=scipy.sparse.csr_matrix(dense))
    (site,) = partition(stored, tmp_path, num_parts=3).sites
    found = site.neighbourhood(graph.num_nodes, 1, graph.num_nodes)
    row_of = {name: row for row, name in enumerate(graph.node_ids.tolist())}
    assert np.array_equal(found.features, dense[[row_of[name] for name in found.node_ids.tolist()]])


def test_few_training_nodes_reach_every_part_of_every_site() -> None:
    graph = only_training(communities(), [0, 1, 2, 3])
    for method in ("metis", "random"):
        assignment = assign(graph, PartitionConfig(num_sites=2, num_parts=2, partition_method=method))
        held = np.bincount(assignment.flat[graph.split == TRAIN], minlength=4)
        assert held.tolist() == [1, 1, 1, 1], method


@pytest.mark.parametrize(
    ("training", "message"),
    [
        ([0, 1, 119], r"num_parts is 2 but site 'city-1' has 1 training nodes; allowed: 1 to 1"),
        ([0, 1, 2], r"site 'city-1' has 60 nodes and none of them is a training node; allowed: "),
    ],
)
def test_a_site_with_too_few_training_nodes_is_refused(training: list[int], message: str) -> None:
    graph = only_training(communities(sites=2), training)
    with pytest.raises(InputError, match=message):
        assign(graph, PartitionConfig(num_sites=0, num_parts=2, partition_method="attribute"))


def test_a_part_without_edges_is_refused_and_nothing_stays(tmp_path: Path) -> None:
    graph = communities(sites=2)
    inside = graph.edges[:, (graph.edges < 60).all(axis=0)]
    message = r"num_parts is 1 but no edge of site-1 \(60 nodes, 0 edges\) leads into its part 0; allowed: "
    with pytest.raises(InputError, match=message):
        partition(
            replace(graph, edges=inside), tmp_path, num_sites=2, num_parts=1, partition_method="attribute"
        )
    assert not (tmp_path / "partitions").exists()


def test_unlabelled_and_unsplit_nodes_are_kept(tmp_path: Path) -> None:
    graph = communities()
    labels, split = graph.labels.copy(), graph.split.copy()
    labels[::4], split[::4] = -1, NO_SPLIT
    (site,) = partition(replace(graph, labels=labels, split=split), tmp_path, partition_method="random").sites
    assert site.num_nodes == graph.num_nodes
    assert site.num_train + site.num_validation + site.num_test == (split != NO_SPLIT).sum()


def test_the_report_names_every_part_and_what_is_left_out(tmp_path: Path) -> None:
    partition(communities(sites=2), tmp_path, num_sites=0, partition_method="attribute")
    page = (tmp_path / "report").read_text(encoding="utf-8")
    for text in ("city-0 part 0", "city-1 part 1", "replication_factor", "join different sites"):
        assert text in page
    assert page.count("<svg") == 3
