"""What `geokfp run` must refuse when it reads it, and how: a table of `test_bad_input.py`."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet

NODES = "id,label,split,x,y\na,cat,train,1,0\nb,dog,train,0,1\nc,cat,val,1,1\nd,dog,test,0,0\ne,,none,2,1\n"
EDGES = "src,dst\na,b\nb,c\nc,a\nc,d\nd,e\n"
TABLES = ("nodes=nodes.csv", "edges=edges.csv")


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is typed, what lies there, and what must come of it."""

    pipeline: str = "single_site"
    """A built-in pipeline, or one of this file's."""
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    """Further files, or others than the good tables, by name."""
    change: Callable[[Path], object] | None = None
    """Called with the folder of the files, for what is no text."""
    given: tuple[str, ...] = TABLES
    """Parameters as typed; a word without `=` is a file of parameters."""
    status: int = 1
    """The exit status."""
    says: tuple[str, ...]
    """What the line holds."""


def wrong_node(old: str, new: str) -> dict[str, str]:
    assert old in NODES
    return {"nodes.csv": NODES.replace(old, new)}


def with_npy(array: Any) -> Callable[[Path], None]:
    return lambda folder: np.save(folder / "features.npy", array)


def pickled(name: str, **arrays: Any) -> Callable[[Path], None]:
    return lambda folder: np.savez(folder / name, allow_pickle=True, **arrays)


def altered(path: str) -> Callable[[Path], object]:
    return lambda folder: (folder / path).write_bytes((folder / path).read_bytes()[:-1] + b"?")


def of_version_9(name: str) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        manifest = folder / name / "manifest.json"
        manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "version": 9}))

    return change


FEATURES = (*TABLES, "features=features.npy")
PARTS = ("partitions=partitions",)
HAS = "the header names 2 columns"
OBJECTS = np.array([[{}]] * 5)

BAD: dict[str, Case] = {
    # Files and columns that are not there.
    "missing node file": Case(given=("nodes=n.csv", "edges=edges.csv"), says=("n.csv: no such file",)),
    "missing edge file, before nodes are read": Case(
        files={"nodes.csv": "no table"},
        given=("nodes=nodes.csv", "edges=e.csv"),
        says=("e.csv: no such file",),
    ),
    "missing feature file": Case(given=FEATURES, says=("features.npy: no such file",)),
    "missing decoded file": Case(
        given=("nodes=file:///no%20where/n.csv", "edges=edges.csv"),
        says=("file:///no%20where/n.csv: no such",),
    ),
    "a folder": Case(
        given=("nodes=.", "edges=edges.csv"),
        says=(
            "ingest_graph",
            ".: is a folder, a file is",
        ),
    ),
    "unknown scheme": Case(
        given=("nodes=what://x/n.csv", "edges=edges.csv"), says=("what://x/n.csv: Protocol not known: what",)
    ),
    "unknown format": Case(
        files={"n.xls": ""},
        given=("nodes=n.xls", "edges=edges.csv"),
        says=("n.xls: unknown format; allowed: .csv",),
    ),
    "missing id column": Case(
        given=(*TABLES, "id_column=key"), says=("nodes.csv: no column 'key'; it has id, la",)
    ),
    "missing label column": Case(
        given=(*TABLES, "label_column=y1"), says=("nodes.csv: no column 'y1'; it has",)
    ),
    "missing edge column": Case(
        given=(*TABLES, "source_column=from"), says=("edges.csv: no column 'from'; it has src, dst",)
    ),
    "missing feature column": Case(
        given=(*TABLES, "feature_columns=[z]"), says=("nodes.csv: no column 'z'",)
    ),
    "missing site column": Case(
        pipeline="cross_site", given=(*TABLES, "site_column=town"), says=("nodes.csv: no column 'town'",)
    ),
    # Values.
    "edge to an unknown node": Case(
        files={"edges.csv": "src,dst\na,b\nb,zz\n"},
        says=("edges.csv:3: column 'dst': no node has the id 'zz'",),
    ),
    "edge without an end": Case(
        files={"edges.csv": "src,dst\na,b\n,b\n"}, says=("edges.csv:3: column 'src': no value",)
    ),
    "feature that is no number": Case(
        files=wrong_node("1,1\n", "1,tall\n"),
        says=("nodes.csv:4: column 'y': 'tall' is not a finite number",),
    ),
    "feature that is infinite": Case(
        files=wrong_node("1,1\n", "1,-inf\n"),
        says=("nodes.csv:4: column 'y': '-inf' is not a finite number",),
    ),
    "feature that is NaN": Case(
        change=with_npy([[0.0], [np.nan], [0], [0], [0]]),
        given=FEATURES,
        says=("features.npy: row 1, column 0 is not a finite number",),
    ),
    "feature that is missing": Case(
        files=wrong_node("0,1\n", ",1\n"),
        says=("nodes.csv:3: column 'x': no value; a finite number is need",),
    ),
    "feature rows that do not match": Case(
        change=with_npy(np.zeros((4, 2))),
        given=FEATURES,
        says=("features.npy: 4 rows but there are 5 nodes",),
    ),
    "duplicate id": Case(
        files={"nodes.csv": NODES + "b,dog,test,1,1\n"},
        says=("nodes.csv:7: column 'id': the id 'b' was given be",),
    ),
    "label missing on a training node": Case(
        files=wrong_node("b,dog,", "b,,"),
        says=("nodes.csv:3: column 'label': no label, but split is 'train'; label the node, or",),
    ),
    "a word that is no split": Case(
        files=wrong_node(",val,", ",vla,"),
        says=(
            "nodes.csv:4: column 'split': 'vla' is no split; allowed: train, validation (val), test, none",
        ),
    ),
    "one class only": Case(
        files={"nodes.csv": NODES.replace("dog", "cat")},
        says=("nodes.csv: one class only ('cat'); at least two",),
    ),
    "no training node": Case(
        files={"nodes.csv": NODES.replace("train", "test")}, says=("nodes.csv: no training node",)
    ),
    # Form.
    "empty file": Case(
        files={"nodes.csv": ""}, says=("nodes.csv: the file is empty; a header line is needed",)
    ),
    "no node": Case(
        files={"nodes.csv": "id,label,x\n"}, says=("nodes.csv: no nodes; a header and at least one",)
    ),
    "no edge": Case(files={"edges.csv": "src,dst\n"}, says=("edges.csv: no edges between different nodes",)),
    "not UTF-8": Case(
        files={"nodes.csv": NODES.replace("c,cat", "c,k\xe4t").encode("latin-1")},
        says=("nodes.csv:4: column 'label': not UTF-8 text (byte 0xe4)",),
    ),
    "UTF-16": Case(
        files={"edges.csv": EDGES.encode("utf-16")}, says=("edges.csv:1: not UTF-8 text (byte 0xff)",)
    ),
    "row too long": Case(files={"edges.csv": EDGES + "a,b,c\n"}, says=(f"edges.csv:7: 3 values, {HAS}",)),
    "first row too long": Case(
        files={"edges.csv": "src,dst\na,b,c\n"}, says=(f"edges.csv:2: 3 values, {HAS}",)
    ),
    "row too short": Case(
        files=wrong_node("c,cat,val,1,1\n", "c,cat,val,1\n"),
        says=("nodes.csv:4: 4 values, the header names 5 columns",),
    ),
    "open quote": Case(
        files=wrong_node("d,dog", 'd,"dog'), says=("nodes.csv:5: a quote is opened and never closed",)
    ),
    "column twice": Case(
        files={"nodes.csv": NODES.replace("split,x,y", "split,x,x")},
        says=("nodes.csv:1: column 'x' is there twice, as columns 4 and 5; every column needs a name of",),
    ),
    "edge column twice": Case(
        files={"edges.csv": EDGES.replace("src,dst", "src,src")},
        says=("edges.csv:1: column 'src' is there twice, as columns 1 and 2",),
    ),
    "column without a name": Case(
        files={"nodes.csv": "\n" + NODES.replace("split,x,y", "split,x, ")},
        says=("nodes.csv:2: column 5 has no name; every column needs one",),
    ),
    "column twice in Parquet": Case(
        change=lambda folder: parquet.write_table(
            pyarrow.table([["a", "b"], ["x", "y"], [1, 2], [3, 4]], names=["id", "label", "x", "x"]),
            folder / "n.parquet",
        ),
        given=("nodes=n.parquet", "edges=edges.csv"),
        says=("n.parquet: column 'x' is there twice, as columns 3 and 4",),
    ),
    "text behind a quote": Case(
        files=wrong_node("c,cat", 'c,"ca"t'),
        says=("nodes.csv:4: column 'label': text behind a closing quote (\"ca\"t); inside quotes a quote",),
    ),
    "text behind a quote in a long value": Case(
        files=wrong_node("c,cat", 'c,"c\nat" ""x' + 100 * "y"),
        says=('nodes.csv:4: column \'label\': text behind a closing quote ("c at" ""xyy', "yyy); inside"),
    ),
    "NUL before a number": Case(
        files=wrong_node("c,cat,val,1", "c,cat,val,\x001"),
        says=("nodes.csv:4: column 'x': '\\x001' holds the character NUL (byte 0x00); remove it",),
    ),
    "NUL in an id": Case(
        files={"edges.csv": EDGES.replace("c,a", "c,a\0")},
        says=("edges.csv:4: column 'dst': 'a\\x00' holds the character NUL",),
    ),
    "damaged gzip": Case(
        files={"e.csv.gz": b"\x1f\x8b no"},
        given=("nodes=nodes.csv", "edges=e.csv.gz"),
        says=("e.csv.gz: not a who",),
    ),
    "damaged Parquet": Case(
        files={"n.parquet": "no"},
        given=("nodes=n.parquet", "edges=edges.csv"),
        says=("n.parquet: not a Parquet fi",),
    ),
    "features of plain text": Case(
        files={"features.npy": "1,0\n0,1\n"},
        given=FEATURES,
        says=("features.npy: neither .npy nor .npz, whatever its name says: it begins with b'1,0\\n0,'",),
    ),
    "features with pickled objects": Case(
        change=pickled("features.npz", features=OBJECTS),
        given=(*TABLES, "features=features.npz"),
        says=("features.npz: holds pickled Python objects, which are not read",),
    ),
    "nodes with pickled objects": Case(
        change=pickled("n.npz", id=OBJECTS[:, 0], label=OBJECTS[:, 0]),
        given=("nodes=n.npz", "edges=edges.csv"),
        says=("n.npz: holds pickled Python objects, which are not read",),
    ),
    # Parts and sites.
    "more parts than nodes": Case(
        given=(*TABLES, "num_parts=9"),
        says=("num_parts 9 = 9 parts but the graph has 5 nodes; allowed: at most 5",),
    ),
    "more parts than training nodes": Case(
        given=(*TABLES, "num_parts=3"),
        says=("num_parts 3 = 3 parts but the graph has 2 training nodes; allowed: at",),
    ),
    "more workers than training nodes": Case(
        pipeline="cross_site",
        given=TABLES,
        says=("num_sites 2 x workers_per_site 2 = 4 parts but the graph has 2 training nodes",),
    ),
    "more parts than training nodes of a site": Case(
        pipeline="divide",
        given=("graph=graph", "num_parts=40"),
        says=("num_parts is 40 but site 'city-", "training nodes; allowed: 1 to "),
    ),
    "sites that the nodes do not name": Case(
        pipeline="cross_site",
        given=(*TABLES, "partition_method=attribute"),
        says=("partition_method is 'attribute' but the graph carries no sites", "site_column"),
    ),
    "a site of the topology that the data has not": Case(
        pipeline="geo",
        given=(*PARTS, "trained=model", "topology={sites: {paris: {listens: 'localhost:9000'}}}"),
        says=("topology['sites'] names ['paris'], allowed: ['city-0', 'city-1']",),
    ),
    "a site to train at that the data has not": Case(
        pipeline="train", given=(*PARTS, "site=paris"), says=("site 'paris': must be one of city-0, city-1",)
    ),
    # Artifacts.
    "partitions with another checksum": Case(
        pipeline="train",
        change=altered("partitions/site-0/node_rows.npy"),
        given=PARTS,
        says=("partitions/site-0/node_rows.npy: checksum differs from manifest.json; the file was altered",),
    ),
    "partitions of another version": Case(
        pipeline="geo",
        change=of_version_9("partitions"),
        given=(*PARTS, "trained=model"),
        says=("partitions/manifest.json: geokfp.partitions version 9, this release reads 1",),
    ),
    "a graph in place of partitions": Case(
        pipeline="train",
        given=("partitions=graph",),
        says=("graph/manifest.json: kind is 'geokfp.graph', 'geokfp.partitions' is needed",),
    ),
    "no partitions": Case(
        pipeline="train",
        given=("partitions=nowhere",),
        says=("nowhere/manifest.json: no such file; a geokfp.par",),
    ),
    "a graph with another checksum": Case(
        pipeline="divide",
        change=altered("graph/labels.npy"),
        given=("graph=graph",),
        says=("graph/labels.npy: checksum differs from manifest.json",),
    ),
    "a model of another width, to start from": Case(
        pipeline="geo",
        given=(*PARTS, "trained=narrow"),
        says=("trained: the model takes 5 features, the partitions have 8",),
    ),
    "a model of another width, to export": Case(
        pipeline="export",
        given=(*PARTS, "model=narrow"),
        says=("model: takes 5 features, the partitions have 8; they must be equal",),
    ),
    # The user's own code.
    "code that is not there": Case(
        pipeline="train",
        given=(*PARTS, "entry_point=own_model_1:build", "user_code=own.py"),
        says=("own.py: no such file",),
    ),
    "code without the function": Case(
        pipeline="train",
        files={"own_model_2.py": "def make(): pass\n"},
        given=(*PARTS, "entry_point=own_model_2:build", "user_code=own_model_2.py"),
        says=("entry_point 'own_model_2:build': own_model_2 has no function 'build'",),
    ),
    "code that raises": Case(
        pipeline="train",
        files={"own_model_3.py": "def build(width, classes):\n    return width / 0\n"},
        given=(*PARTS, "entry_point=own_model_3:build", "user_code=own_model_3.py"),
        says=("entry_point 'own_model_3:build': own_model_3.py:2: ZeroDivisionError: division by zero",),
    ),
}
