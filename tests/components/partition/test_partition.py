"""Laws of every method, the artifact that DGL reads, and the refusals."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from geokfp.components._files import ArtifactError, InputError
from geokfp.components.ingest.graph import TRAIN, read_graph
from geokfp.components.partition import partitions as module
from geokfp.components.partition.assignment import Assignment, assign
from geokfp.components.partition.config import PartitionConfig
from geokfp.components.partition.partitions import Partitions, read_partitions
from geokfp.components.partition.quality import cut_matrix, measure
from geokfp.components.partition.run import run
from hypothesis import given, settings
from hypothesis import strategies as st
from support.graphs import communities, written

TWO_LEVELS = [
    {"num_parts": 3},
    {"num_parts": 1},
    {"num_parts": 3, "partition_method": "random"},
    {"num_sites": 2, "num_parts": 2},
    {"num_sites": 2, "num_parts": 2, "partition_method": "random"},
    {"num_sites": 2, "num_parts": 2, "partition_method": "attribute"},
    {"num_sites": 0, "num_parts": 1, "partition_method": "attribute"},
    {"num_parts": 2, "halo_hops": 2, "balance_edges": True},
]


def partition(folder: Path, **options) -> tuple[Path, Partitions]:
    graph = written(communities(sites=2), folder)
    target = folder / "out" / "partitions"
    run(PartitionConfig(**options), graph, partitions=target, report=folder / "out" / "report")
    return graph, read_partitions(target)


@settings(max_examples=25, deadline=None)
@given(
    method=st.sampled_from(["metis", "random", "attribute"]),
    num_sites=st.sampled_from([1, 2]),
    num_parts=st.integers(1, 4),
    seed=st.integers(0, 5),
    balance_edges=st.booleans(),
)
def test_each_node_is_in_one_part_and_no_part_is_without_training(
    method: str, num_sites: int, num_parts: int, seed: int, balance_edges: bool
) -> None:
    if method == "attribute":
        num_sites = 2
    graph = communities(num_nodes=90, seed=seed, sites=2)
    config = PartitionConfig(
        partition_method=method,
        num_sites=num_sites,
        num_parts=num_parts,
        seed=seed,
        balance_edges=balance_edges,
    )
    assignment = assign(graph, config)
    assert assignment.flat.shape == (90,)
    held = np.bincount(assignment.flat[graph.split == TRAIN], minlength=num_sites * num_parts)
    assert len(held) == num_sites * num_parts
    assert held.min() >= 1
    assert np.array_equal(assignment.flat, assign(graph, config).flat)


@pytest.mark.parametrize("options", TWO_LEVELS, ids=str)
def test_dgl_reads_each_site_and_every_edge_is_known_where_it_ends(tmp_path: Path, options) -> None:
    import dgl

    path, parts = partition(tmp_path, **options)
    graph = read_graph(path)
    rows = np.concatenate([site.node_rows() for site in parts.sites])
    assert sorted(rows) == list(range(graph.num_nodes))
    between = 0
    for site in parts.sites:
        site_rows = site.node_rows()
        assert np.array_equal(site.node_ids(), graph.node_ids[site_rows])
        order = np.load(site.directory / "node_order.npy")
        assert np.array_equal(site_rows[order], np.sort(site_rows))
        inside = np.isin(graph.edges, site_rows).all(axis=0)
        expected = {tuple(pair) for pair in graph.edges[:, inside].T.tolist()}
        degrees = np.bincount(graph.edges[1, inside], minlength=graph.num_nodes)
        found: set[tuple[int, int]] = set()
        for part in range(site.num_parts):
            local, data, _, book, name, _, _ = dgl.distributed.load_partition(str(site.config_path), part)
            assert name == site.graph_name
            own = book.partid2nids(part).numpy()
            assert np.array_equal(data["_N/features"].numpy(), graph.dense_features(site_rows[own]))
            assert np.array_equal(data["_N/labels"].numpy(), graph.labels[site_rows[own]])
            assert np.array_equal(data["_N/in_degree"].numpy(), degrees[site_rows[own]])
            for code, mask in enumerate(module.MASKS, start=1):
                assert np.array_equal(data[f"_N/{mask}"].numpy(), graph.split[site_rows[own]] == code)
            ids = site_rows[local.ndata[dgl.NID].numpy()]
            source, destination = (ids[end.numpy()] for end in local.edges())
            inner = local.edata["inner_edge"].bool().numpy()
            found |= set(zip(source[inner].tolist(), destination[inner].tolist(), strict=True))
        assert found == expected
        assert site.num_edges == len(expected)
        between += len(expected)
    assert graph.num_edges - between == parts.quality["boundary_edges"]


def test_quality_is_counted_right() -> None:
    graph = communities(num_nodes=60)
    assignment = Assignment(
        sites=np.arange(60) // 30, parts=np.arange(60) % 2, site_names=("a", "b"), num_parts=2
    )
    figures = measure(graph, assignment)
    cut = sum(assignment.flat[u] != assignment.flat[v] for u, v in graph.edges.T)
    between = sum(assignment.sites[u] != assignment.sites[v] for u, v in graph.edges.T)
    ghosts = {
        (assignment.flat[v], u)
        for u, v in graph.edges.T.tolist()
        if assignment.sites[u] == assignment.sites[v] and assignment.flat[u] != assignment.flat[v]
    }
    assert figures["edge_cut_fraction"] == cut / graph.num_edges
    assert figures["boundary_edges"] == between
    assert figures["replication_factor"] == (60 + len(ghosts)) / 60
    assert figures["node_balance"] == 1
    matrix = cut_matrix(graph, assignment)
    assert matrix.sum() == graph.num_edges
    assert matrix.sum() - np.trace(matrix) == cut


def test_metis_cuts_less_than_random() -> None:
    graph = communities(num_nodes=600, degree=8)
    cut = {
        method: measure(graph, assign(graph, PartitionConfig(partition_method=method, num_parts=3)))[
            "edge_cut_fraction"
        ]
        for method in ("metis", "random")
    }
    assert cut["metis"] < 0.5 * cut["random"]


def test_the_drawing_shows_what_is_written(tmp_path: Path) -> None:
    _, parts = partition(tmp_path, num_sites=2)
    root = parts.sites[0].directory.parent
    entries = {path.name for path in root.rglob("*")}
    drawn = set(re.findall(r"^ {6,}([\w.-]+?)/? ", str(module.__doc__) + " ", re.MULTILINE))
    drawn |= set(re.findall(r"^ {6,}([\w.-]+)/?$", str(module.__doc__), re.MULTILINE))
    assert entries == {name.rstrip("/") for name in drawn if not name.startswith("(")} | {"part-1"}


def test_a_neighbourhood_is_complete(tmp_path: Path) -> None:
    path, parts = partition(tmp_path, num_sites=2)
    graph = read_graph(path)
    row_of = {name: row for row, name in enumerate(graph.node_ids.tolist())}
    site = parts.sites[1]
    found = site.neighbourhood(5, 2, 10_000)
    rows = np.array([row_of[name] for name in found.node_ids.tolist()])
    assert np.array_equal(found.features, graph.dense_features(rows))
    inside = np.isin(graph.edges, site.node_rows()).all(axis=0)
    into = scipy.sparse.csr_matrix(
        (np.ones(inside.sum()), (graph.edges[1, inside], graph.edges[0, inside])),
        shape=(graph.num_nodes,) * 2,
    )
    reached = set(rows[found.seeds].tolist())
    pairs = set(map(tuple, rows[found.edge_index].T.tolist()))
    for _ in range(2):
        for row in list(reached):
            for source in into[row].indices.tolist():
                assert (source, row) in pairs
                reached.add(source)
    assert len(site.neighbourhood(50, 2, 20).node_ids) <= 50


def test_a_graph_that_changed_is_refused(tmp_path: Path) -> None:
    graph = written(communities(), tmp_path)
    with pytest.raises(InputError, match="fingerprint is 'other' but"):
        run(PartitionConfig(fingerprint="other"), graph, partitions=tmp_path / "p", report=tmp_path / "r")
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_parts": 0}, "num_parts is 0; allowed: 1 or more"),
        ({"num_sites": 0}, "num_sites is 0; allowed: 1 or more"),
        ({"partition_method": "magic"}, "allowed: metis, random, attribute"),
        ({"num_parts": 500}, "the graph has 120 nodes; allowed: at most 120 parts"),
        ({"num_parts": 100}, "the graph has 60 training nodes; allowed: at most 60 parts"),
        ({"num_sites": 3, "partition_method": "attribute"}, "num_sites is 3 but the nodes carry 2 sites"),
        ({"partition_method": "attribute"}, "num_sites is 1 but the nodes carry 2 sites (city-0, city-1)"),
    ],
)
def test_what_cannot_be_divided_is_refused(tmp_path: Path, options, message: str) -> None:
    with pytest.raises(InputError) as caught:
        partition(tmp_path, **options)
    assert message in str(caught.value)
    assert not (tmp_path / "out" / "partitions").exists()


def test_attribute_needs_sites(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the graph carries no sites; name the nodes' column in site_column"):
        assign(communities(), PartitionConfig(partition_method="attribute", num_sites=2))


def test_a_damaged_artifact_is_refused(tmp_path: Path) -> None:
    _, parts = partition(tmp_path)
    root = parts.sites[0].directory.parent
    manifest = json.loads((root / "manifest.json").read_text())
    (root / "manifest.json").write_text(json.dumps({**manifest, "version": 99}))
    with pytest.raises(ArtifactError, match="version 99, this release reads 1"):
        read_partitions(root)
    (root / "manifest.json").write_text(json.dumps(manifest))
    (root / "site-0" / "part-1" / "graph.dgl").write_bytes(b"")
    with pytest.raises(ArtifactError, match=r"part-1/graph.dgl: checksum differs"):
        read_partitions(root)


def test_cora_is_cut_little_and_alike(real_data: Path) -> None:
    from geokfp.components.ingest.assemble import assemble
    from geokfp.components.ingest.config import IngestConfig

    folder = real_data / "cora"
    graph, _ = assemble(
        IngestConfig(
            nodes=str(folder / "nodes.csv"),
            edges=str(folder / "edges.csv"),
            features=str(folder / "features.npz"),
        )
    )
    figures = measure(graph, assign(graph, PartitionConfig(num_parts=2)))
    assert figures["edge_cut_fraction"] < 0.06
    assert figures["node_balance"] < 1.05
    assert figures["train_balance"] < 1.06
