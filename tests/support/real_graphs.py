"""Real graphs as graph artifacts, and their partitions; for tests of the stages after ingest."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from geokfp.components.ingest.graph import Graph, write_graph
from geokfp.components.partition import run as partition
from geokfp.components.partition.config import PartitionConfig

SPLITS = {"train": 1, "val": 2, "test": 3}


def data_folder() -> Path:
    """The folder of real data; skips the test where there is none."""
    if not os.environ.get("GEOKFP_TEST_DATA"):
        pytest.skip("GEOKFP_TEST_DATA does not name the folder of real data")
    return Path(os.environ["GEOKFP_TEST_DATA"])


def load(name: str, *, seed: int = 0) -> Graph:
    """Reads `cora` or `facebook_pages`; without a split of its own, 60/20/20 by seed."""
    folder = data_folder() / name
    nodes = pd.read_csv(folder / "nodes.csv")
    labels = pd.Categorical(nodes["label"])
    if "split" in nodes:
        split = nodes["split"].map(SPLITS).fillna(0).to_numpy(np.int8)
    else:
        drawn = np.random.default_rng(seed).random(len(nodes))
        split = (1 + (drawn >= 0.6) + (drawn >= 0.8)).astype(np.int8)
    return Graph(
        edges=both_directions(pd.read_csv(folder / "edges.csv").to_numpy(np.int64).T),
        features=scipy.sparse.load_npz(folder / "features.npz").astype(np.float32),
        labels=labels.codes.astype(np.int64),
        split=split,
        node_ids=nodes["id"].to_numpy(np.int64),
        label_names=tuple(str(name) for name in labels.categories),
        feature_names=(),
        undirected=True,
    )


def communities(num_nodes: int = 300, *, seed: int = 0, num_train: int = 90) -> Graph:
    """A small graph of three communities whose features tell little and whose neighbours tell much."""
    generator = np.random.default_rng(seed)
    labels = np.arange(num_nodes) % 3
    pairs = generator.integers(num_nodes, size=(2, num_nodes * 12))
    same = labels[pairs[0]] == labels[pairs[1]]
    kept = same | (generator.random(pairs.shape[1]) < 0.1)
    features = np.eye(3)[labels] * 0.5 + generator.normal(size=(num_nodes, 3))
    split = np.full(num_nodes, 3, dtype=np.int8)
    order = generator.permutation(num_nodes)
    split[order[:num_train]], split[order[num_train : num_train + 60]] = 1, 2
    return Graph(
        edges=both_directions(pairs[:, kept]),
        features=np.concatenate([features, generator.normal(size=(num_nodes, 5))], axis=1).astype(np.float32),
        labels=labels.astype(np.int64),
        split=split,
        node_ids=np.array([f"n{row}" for row in generator.permutation(num_nodes)]),
        label_names=("red", "green", "blue"),
        feature_names=tuple(f"f{column}" for column in range(8)),
        undirected=True,
    )


def both_directions(pairs: np.ndarray) -> np.ndarray:
    pairs = pairs[:, pairs[0] != pairs[1]]
    return np.unique(np.concatenate([pairs, pairs[::-1]], axis=1), axis=1)


def partitioned(graph: Graph, folder: Path, **options: object) -> Path:
    """Writes the graph and its partitions under `folder`; returns the partitions artifact."""
    write_graph(graph, folder / "graph")
    partition.run(
        PartitionConfig(**options),
        folder / "graph",
        partitions=folder / "partitions",
        report=folder / "partitions.html",
    )
    return folder / "partitions"
