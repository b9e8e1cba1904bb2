"""Published graphs are read with the options left as they are."""

import os
from pathlib import Path

import numpy as np
import pytest
from geokfp.components.ingest.config import IngestConfig
from geokfp.components.ingest.graph import read_graph
from geokfp.components.ingest.run import run

DATA = os.environ.get("GEOKFP_TEST_DATA", "")
pytestmark = pytest.mark.skipif(not DATA, reason="GEOKFP_TEST_DATA is unset")


@pytest.mark.parametrize(
    ("name", "sizes", "splits"),
    [
        (
            "cora",
            {"num_nodes": 2708, "num_edges": 10556, "num_classes": 7, "self_loops": 0},
            [140, 500, 1000],
        ),
        (
            "facebook_pages",
            {"num_nodes": 22470, "num_edges": 341646, "num_classes": 4, "self_loops": 179},
            [13482, 4494, 4494],
        ),
    ],
)
def test_default_options_suit(tmp_path: Path, name: str, sizes: dict[str, int], splits: list[int]) -> None:
    tables = {"nodes": "nodes.csv", "edges": "edges.csv", "features": "features.npz"}
    config = IngestConfig(**{option: f"{DATA}/{name}/{file}" for option, file in tables.items()})
    outputs = {output: tmp_path / output for output in ("graph", "report", "fingerprint")}
    result = run(config, **outputs)
    assert {key: result.metrics[key] for key in sizes} == sizes
    graph = read_graph(outputs["graph"])
    assert np.bincount(graph.split, minlength=4)[1:].tolist() == splits
