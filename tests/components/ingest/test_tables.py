"""Every format gives the same graph, and every wrong input gives one line that says where."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from geokfp.components._files import InputError
from geokfp.components.ingest.assemble import assemble
from geokfp.components.ingest.config import IngestConfig
from geokfp.components.ingest.graph import TEST, TRAIN, VALIDATION, Graph

NODES = "id,label,split,x,y\na,cat,train,1,0\nb,dog,val,0,1\nc,cat,test,1,1\nd,,none,0,0\n"
EDGES = "src,dst\na,b\nb,c\nc,a\nc,d\n"


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "edges.csv").write_text(EDGES)
    return tmp_path


def read(
    folder: Path, *, nodes: str = "nodes.csv", edges: str = "edges.csv", features: str = "", **options
) -> Graph:
    names = {"nodes": nodes, "edges": edges, "features": features}
    uris = {key: str(folder / name) if name else "" for key, name in names.items()}
    return assemble(IngestConfig(**uris, **options))[0]


def same(one: Graph, other: Graph) -> bool:
    arrays = ("edges", "labels", "split", "node_ids")
    return all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays
    ) and np.array_equal(one.dense_features(), other.dense_features())


def test_names_and_numbers(tables: Path) -> None:
    graph = read(tables)
    assert graph.node_ids.tolist() == ["a", "b", "c", "d"]
    assert graph.label_names == ("cat", "dog")
    assert graph.labels.tolist() == [0, 1, 0, -1]
    assert graph.split.tolist() == [TRAIN, VALIDATION, TEST, 0]
    assert graph.feature_names == ("x", "y")
    assert graph.dense_features().tolist() == [[1, 0], [0, 1], [1, 1], [0, 0]]
    assert sorted(map(tuple, graph.edges.T.tolist())) == [
        (0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1), (2, 3), (3, 2),
    ]  # fmt: skip


def test_a_path_may_hold_any_letter(tables: Path) -> None:
    folder = tables / "50% ü #1 ?"
    folder.mkdir()
    for name in ("nodes.csv", "edges.csv"):
        (tables / name).rename(folder / name)
    assert read(folder).node_ids.tolist() == ["a", "b", "c", "d"]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_columns_of_text_are_not_features_unless_named(tables: Path, form: str) -> None:
    rows = pd.read_csv(tables / "nodes.csv", keep_default_na=False).assign(town=["Rome", "", "Oslo", "Oslo"])
    if form == "csv":
        rows.to_csv(tables / "towns.csv", index=False)
    else:
        rows.to_parquet(tables / "towns.parquet")
    graph = read(tables, nodes=f"towns.{form}")
    assert graph.feature_names == ("x", "y")
    assert "Columns of text were not taken as features: town." in graph.warnings
    with pytest.raises(InputError, match="column 'town': 'Rome' is not a finite number"):
        read(tables, nodes=f"towns.{form}", feature_columns=["x", "town"])


def _gzip(folder: Path) -> dict[str, str]:
    for name in ("nodes", "edges"):
        (folder / f"{name}.csv.gz").write_bytes(gzip.compress((folder / f"{name}.csv").read_bytes()))
    return {"nodes": "nodes.csv.gz", "edges": "edges.csv.gz"}


def _parquet(folder: Path) -> dict[str, str]:
    for name in ("nodes", "edges"):
        pd.read_csv(folder / f"{name}.csv", keep_default_na=False, na_values=[""]).to_parquet(
            folder / f"{name}.parquet"
        )
    return {"nodes": "nodes.parquet", "edges": "edges.parquet"}


def _bom_and_crlf(folder: Path) -> dict[str, str]:
    for name in ("nodes", "edges"):
        text = (folder / f"{name}.csv").read_text().replace("\n", "\r\n")
        (folder / f"{name}-windows.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    return {"nodes": "nodes-windows.csv", "edges": "edges-windows.csv"}


def _npz_edges(folder: Path) -> dict[str, str]:
    rows = pd.read_csv(folder / "edges.csv")
    np.savez(folder / "edges.npz", src=rows.src.to_numpy(dtype=str), dst=rows.dst.to_numpy(dtype=str))
    return {"edges": "edges.npz"}


def _feature_file(folder: Path) -> dict[str, str]:
    np.save(folder / "features.npy", np.array([[1, 0], [0, 1], [1, 1], [0, 0]]))
    return {"features": "features.npy"}


def _sparse_feature_file(folder: Path) -> dict[str, str]:
    scipy.sparse.save_npz(
        folder / "features.npz", scipy.sparse.csr_matrix([[1.0, 0], [0, 1], [1, 1], [0, 0]])
    )
    return {"features": "features.npz"}


def _blank_lines(folder: Path) -> dict[str, str]:
    (folder / "blank.csv").write_text(EDGES.replace("b,c", "\nb,c\n") + "\n\n")
    return {"edges": "blank.csv"}


@pytest.mark.parametrize(
    "write", [_gzip, _parquet, _bom_and_crlf, _npz_edges, _feature_file, _sparse_feature_file, _blank_lines]
)
def test_every_format_gives_the_same_graph(tables: Path, write) -> None:
    assert same(read(tables), read(tables, **write(tables)))


def test_a_split_may_be_written_otherwise(tables: Path) -> None:
    (tables / "nodes.csv").write_text(NODES.replace("val", "VALIDATION ").replace("train", " Train"))
    assert read(tables).split.tolist() == [TRAIN, VALIDATION, TEST, 0]


def test_whole_numbers_that_a_missing_value_made_fractional_stay_whole(tables: Path) -> None:
    frame = {"id": [0, 1, 2], "label": [10, 9, None], "x": [1.0, 2.0, 3.0], "split": ["train", None, None]}
    pd.DataFrame(frame).to_parquet(tables / "nodes.parquet")
    pd.DataFrame({"src": [0, 1], "dst": [1, 2]}).to_parquet(tables / "edges.parquet")
    graph = read(tables, nodes="nodes.parquet", edges="edges.parquet")
    assert graph.label_names == ("9", "10")
    assert graph.labels.tolist() == [1, 0, -1]
    assert graph.split.tolist() == [TRAIN, 0, 0]


def test_a_damaged_file_is_named(tables: Path) -> None:
    _parquet(tables)
    _gzip(tables)
    for name in ("nodes.parquet", "nodes.csv.gz"):
        whole = (tables / name).read_bytes()
        middle = len(whole) // 2 if name.endswith("gz") else 12
        for damaged in (whole[:middle], whole[:middle] + b"\xff" * 12 + whole[middle + 12 :]):
            (tables / name).write_bytes(damaged)
            with pytest.raises(InputError, match=name):
                read(tables, nodes=name)


NPZ = {"edge_index": [[0, 1], [1, 2]], "x": np.eye(3), "y": [0, 1, 0], "train_mask": [True, True, False]}


def test_an_npz_holds_all(tmp_path: Path) -> None:
    np.savez(tmp_path / "g.npz", **NPZ)
    for nodes, edges in (("g.npz", ""), ("", "g.npz"), ("g.npz", "g.npz")):
        graph = read(tmp_path, nodes=nodes, edges=edges)
        assert graph.edges.T.tolist() == [[0, 1], [1, 2], [1, 0], [2, 1]]
        assert graph.split.tolist() == [TRAIN, TRAIN, 0]
        assert graph.label_names == ("0", "1")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"edge_index": [[0, 1], [1, 3]]}, "edge 1 joins [1, 3] but there are 3 nodes"),
        ({"edge_index": [[0, 1, 2]]}, "edge_index has shape [1, 3]"),
        ({"edge_index": [[0.5], [1]]}, "edge_index has type float64; whole numbers"),
        ({"x": np.ones((2, 2))}, "x has shape [2, 2]; [3, features] is needed"),
        ({"x": np.full((3, 1), np.nan)}, "x: row 0, column 0 is not a finite number"),
        ({"x": np.ones((3, 0))}, "x: no feature column"),
        ({"y": [0.5, 1, 0]}, "y has type float64; whole numbers or strings"),
        ({"y": np.ones((3, 2))}, "y has shape [3, 2]; [3] is needed"),
        ({"y": [-1, -1, -1]}, "no node has a label"),
        ({"edge_index": [[1], [1]]}, "no edges between different nodes"),
        ({"train_mask": [True]}, "train_mask has shape [1]; [3] is needed"),
    ],
)
def test_a_wrong_whole_graph_is_named(tmp_path: Path, changed: dict[str, object], message: str) -> None:
    np.savez(tmp_path / "g.npz", **{**NPZ, **changed})
    with pytest.raises(InputError) as caught:
        read(tmp_path, nodes="g.npz", edges="")
    assert message in str(caught.value)


def test_a_dgl_file_holds_all(tmp_path: Path) -> None:
    import dgl
    import torch

    graph = dgl.graph((torch.tensor([0, 1, 2]), torch.tensor([1, 2, 0])))
    graph.ndata["feat"] = torch.eye(3)
    graph.ndata["label"] = torch.tensor([0, 1, 0])
    graph.ndata["train_mask"] = torch.tensor([True, True, False])
    graph.ndata["test_mask"] = torch.tensor([False, False, True])
    dgl.save_graphs(str(tmp_path / "g.bin"), [graph])
    read_back = read(tmp_path, nodes="", edges="g.bin")
    assert same(read_back, read(tmp_path, nodes="g.bin", edges=""))
    assert read_back.num_edges == 6
    assert read_back.split.tolist() == [TRAIN, TRAIN, TEST]
    assert any("no validation" in warning for warning in read_back.warnings)


def test_whole_numbers_stay_numbers_and_leading_zeros_stay_text(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,label,x\n7,10,1\n5,9,2\n9,10,3\n")
    (tmp_path / "edges.csv").write_text("src,dst\n7,5\n5,9\n")
    graph = read(tmp_path)
    assert graph.node_ids.tolist() == [7, 5, 9]
    assert graph.label_names == ("9", "10")
    (tmp_path / "nodes.csv").write_text("id,label,x\n007,a,1\n005,b,2\n009,a,3\n")
    (tmp_path / "edges.csv").write_text("src,dst\n007,005\n005,009\n")
    assert read(tmp_path).node_ids.tolist() == ["007", "005", "009"]


def test_loops_and_duplicates_are_counted(tables: Path) -> None:
    (tables / "edges.csv").write_text("src,dst\na,b\nb,a\na,b\na,a\nb,c\n")
    graph = read(tables)
    assert graph.num_edges == 4
    assert any("1 edges from a node to itself were removed" in line for line in graph.warnings)
    assert any("2 edges given more than once" in line for line in graph.warnings)
    assert any("1 nodes have no edge" in line for line in graph.warnings)
    assert read(tables, self_loops="keep").num_edges == 5
    directed = read(tables, undirected=False)
    assert directed.edges.T.tolist() == [[0, 1], [1, 0], [1, 2]]


def test_fractions_are_alike_in_every_class_and_reproducible(tmp_path: Path) -> None:
    count = 500
    lines = [f"{i},{'rare' if i % 10 == 0 else 'common'},{i}" for i in range(count)]
    (tmp_path / "nodes.csv").write_text("id,label,x\n" + "\n".join(lines))
    (tmp_path / "edges.csv").write_text("src,dst\n0,1\n")
    graph = read(tmp_path, seed=3)
    for label, size in ((0, 450), (1, 50)):
        counts = np.bincount(graph.split[graph.labels == label], minlength=4)
        assert counts.tolist() == [0, size * 6 // 10, size * 2 // 10, size * 2 // 10]
    assert np.array_equal(graph.split, read(tmp_path, seed=3).split)
    assert not np.array_equal(graph.split, read(tmp_path, seed=4).split)


def test_the_example_needs_nothing() -> None:
    graph, _ = assemble(IngestConfig())
    assert (graph.num_nodes, graph.num_features, graph.num_classes) == (1797, 64, 10)
    assert "built-in example" in graph.warnings[0]


WRONG: dict[str, tuple[dict[str, str], dict[str, object], str]] = {
    "missing file": ({}, {"nodes": "none.csv"}, "none.csv: no such file"),
    "unknown format": ({"nodes.xls": ""}, {"nodes": "nodes.xls"}, "unknown format; allowed: .csv"),
    "empty file": ({"nodes.csv": ""}, {}, "nodes.csv: the file is empty"),
    "header only": ({"nodes.csv": "id,label,x\n"}, {}, "nodes.csv: no nodes"),
    "missing column": ({}, {"id_column": "key"}, "no column 'key'; it has id, label"),
    "missing edge column": ({}, {"source_column": "from"}, "no column 'from'; it has src, dst"),
    "missing feature column": ({}, {"feature_columns": ["z"]}, "no column 'z'"),
    "no feature column": ({"nodes.csv": "id,label\na,1\n"}, {}, "no column is left for features"),
    "unknown node": (
        {"edges.csv": "src,dst\na,b\nb,zz\n"},
        {},
        "edges.csv:3: column 'dst': no node has the id 'zz'",
    ),
    "unknown number": (
        {"nodes.csv": "id,label,x\n0,a,1\n1,b,1\n", "edges.csv": "src,dst\n0,1\n\n0,7\n"},
        {},
        "edges.csv:4: column 'dst': no node has the id 7",
    ),
    "text among numbers": (
        {"nodes.csv": "id,label,x\n4,a,1\n1,b,1\n", "edges.csv": "src,dst\n4,1\nx,1\n"},
        {},
        "edges.csv:3: column 'src': no node has the id 'x'",
    ),
    "missing end": ({"edges.csv": "src,dst\na,b\nb,\n"}, {}, "edges.csv:3: column 'dst': no value"),
    "ragged row": ({"edges.csv": "src,dst\na,b\nb,c,d\n"}, {}, "edges.csv:3: 3 values, the header names 2"),
    "ragged first row": ({"edges.csv": "src,dst\na,b,c\n"}, {}, "edges.csv:2: 3 values, the header names 2"),
    "no edges": ({"edges.csv": "src,dst\n"}, {}, "no edges between different nodes"),
    "only loops": ({"edges.csv": "src,dst\na,a\n"}, {}, "no edges between different nodes"),
    "duplicate id": (
        {"nodes.csv": NODES + "a,dog,test,1,1\n"},
        {},
        "nodes.csv:6: column 'id': the id 'a' was given",
    ),
    "missing id": ({"nodes.csv": NODES + ",dog,test,1,1\n"}, {}, "nodes.csv:6: column 'id': no value"),
    "feature is text": (
        {"nodes.csv": NODES.replace("1,1", "1,tall")},
        {},
        "nodes.csv:4: column 'y': 'tall' is not",
    ),
    "feature too large": ({"nodes.csv": NODES.replace("1,1", "1e39,1")}, {}, "nodes.csv:4: column 'x': '1e"),
    "short row": (
        {"nodes.csv": "id,label,x\na,1,1\nb,2\n"},
        {},
        "nodes.csv:3: 2 values, the header names 3 columns",
    ),
    "after a quoted line end": (
        {"nodes.csv": 'id,label,x\na,"1\n2",1\nb,2,tall\n'},
        {},
        "nodes.csv:4: column 'x': 'tall' is not",
    ),
    "open quote": (
        {"nodes.csv": 'id,label,x\na,"1,1\nb,2,1\n'},
        {},
        "nodes.csv:2: a quote is opened and never closed",
    ),
    "no nodes": ({}, {"nodes": ""}, "nodes is empty; give a URI of the nodes"),
    "no edges named": ({}, {"edges": ""}, "edges is empty; give a URI of the edges"),
    "not DGL": ({"edges.bin": "src,dst\n"}, {"edges": "edges.bin"}, "not a file that dgl.save_graphs wrote"),
    "DGL and edges": ({}, {"nodes": "nodes.dgl"}, "allowed: '', since"),
    "feature is infinite": ({"nodes.csv": NODES.replace("1,1", "inf,1")}, {}, "nodes.csv:4: column 'x'"),
    "feature is missing": ({"nodes.csv": NODES.replace("0,1", ",1")}, {}, "nodes.csv:3: column 'x'"),
    "no split": ({"nodes.csv": NODES.replace("test", "tset")}, {}, ":4: column 'split': 'tset' is no split"),
    "split without label": (
        {"nodes.csv": NODES.replace("none", "train")},
        {},
        "nodes.csv:5: column 'label': no label, but split is 'train'; label the node, or leave its split",
    ),
    "no training node": ({"nodes.csv": NODES.replace("train", "test")}, {}, "no training node"),
    "one class": ({"nodes.csv": NODES.replace("dog", "cat")}, {}, "one class only ('cat')"),
    "no label": ({"nodes.csv": "id,label,x\na,,1\n"}, {}, "column 'label' holds no label"),
    "missing site": ({"nodes.csv": NODES}, {"site_column": "town"}, "no column 'town'"),
    "not UTF-8": (
        {"nodes.csv": "id,label,x\na,1,1\nb,\xe9,1\n"},
        {},
        "nodes.csv:3: column 'label': not UTF-8 text (byte 0xe9)",
    ),
    "not gzip": (
        {"edges.csv.gz": "src,dst\n"},
        {"edges": "edges.csv.gz"},
        "edges.csv.gz: not a whole gzip file",
    ),
    "not Parquet": (
        {"edges.parquet": "src,dst\n"},
        {"edges": "edges.parquet"},
        "edges.parquet: not a Parquet file",
    ),
    "not numpy": ({"edges.npz": "src,dst\n"}, {"edges": "edges.npz"}, "edges.npz: "),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named_in_one_line(tables: Path, name: str) -> None:
    files, options, message = WRONG[name]
    for file, text in files.items():
        (tables / file).write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError) as caught:
        read(tables, **options)  # type: ignore[arg-type]
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((3, 2)), "3 rows but there are 4 nodes"),
        (np.zeros(4), "[number of nodes, number of features] is needed"),
        (np.array([["a"]] * 4), "numbers are needed"),
        (np.array([[0, 0], [0, np.nan], [0, 0], [0, 0]]), "row 1, column 1 is not a finite number"),
        (np.array([[{}]] * 4), "holds pickled Python objects"),
    ],
)
def test_wrong_feature_files_are_named(tables: Path, array, message: str) -> None:
    np.save(tables / "features.npy", array, allow_pickle=True)
    np.savez(tables / "features.npz", features=array)
    for name in ("features.npy", "features.npz"):
        with pytest.raises(InputError) as caught:
            read(tables, features=name)
        assert message in str(caught.value)


def test_a_sparse_feature_that_is_not_finite_is_named(tables: Path) -> None:
    scipy.sparse.save_npz(tables / "f.npz", scipy.sparse.csr_matrix([[0.0], [0], [np.inf], [0]]))
    with pytest.raises(InputError, match="row 2, column 0 is not a finite number"):
        read(tables, features="f.npz")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train_fraction": 0.0}, "train_fraction is 0.0; allowed: more than 0, at most 1"),
        (
            {"train_fraction": 0.9, "validation_fraction": 0.2},
            "validation_fraction is 0.2; allowed: 0 to 0.1",
        ),
        ({"self_loops": "drop"}, "self_loops is 'drop'; allowed: remove, keep"),
        ({"seed": -1}, "seed is -1; allowed: 0 to 2000000000"),
        ({"features": "f.npy"}, "features is given without edges"),
        ({"label_column": "id"}, "label_column is 'id'; allowed: a column that id_column does not name"),
        ({"feature_columns": ["x", "x"]}, "feature_columns is 'x'; allowed: a column that feature_columns"),
        ({"feature_columns": [2019]}, "feature_columns is [2019]; allowed: a list of names, each as text"),
        ({"nodes": "n.csv"}, "edges is empty; give a URI of the edges"),
        ({"edges": "e.parquet"}, "nodes is empty; give a URI of the nodes"),
        ({"source_column": "dst"}, "destination_column is 'dst'; allowed: another than source_column"),
    ],
)
def test_wrong_options_name_what_is_allowed(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        IngestConfig(**options)  # type: ignore[arg-type]
    assert message in str(caught.value)
