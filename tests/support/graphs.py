"""Small graphs for tests."""

from pathlib import Path

import numpy as np
from geokfp.components.ingest.graph import TEST, TRAIN, VALIDATION, Graph, write_graph


def communities(
    num_nodes: int = 120, num_classes: int = 3, *, degree: int = 6, seed: int = 0, sites: int = 0
) -> Graph:
    """A graph whose classes are communities and whose features tell the class, with noise.

    Args:
        num_nodes: number of nodes.
        num_classes: number of classes; nodes take turns.
        degree: undirected edges drawn per node, four of five inside the class.
        seed: seed of everything.
        sites: when positive, the nodes carry one of so many sites.
    """
    generator = np.random.default_rng(seed)
    labels = np.arange(num_nodes) % num_classes
    source = np.repeat(np.arange(num_nodes), degree)
    inside = generator.random(len(source)) < 0.8
    steps = generator.integers(1, num_nodes // num_classes, len(source)) * num_classes
    destination = np.where(
        inside, (source + steps) % num_nodes, generator.integers(0, num_nodes, len(source))
    )
    low, high = np.minimum(source, destination), np.maximum(source, destination)
    pairs = np.unique(np.stack([low, high])[:, low != high], axis=1)
    features = generator.normal(size=(num_nodes, 8)).astype(np.float32)
    features[np.arange(num_nodes), labels] += 1.5
    split = np.full(num_nodes, TEST, dtype=np.int8)
    split[generator.permutation(num_nodes)[: num_nodes // 2]] = TRAIN
    split[np.flatnonzero(split == TEST)[: num_nodes // 5]] = VALIDATION
    return Graph(
        edges=np.concatenate([pairs, pairs[::-1]], axis=1),
        features=features,
        labels=labels.astype(np.int64),
        split=split,
        node_ids=np.array([f"n{i}" for i in range(num_nodes)]),
        label_names=tuple(f"class-{i}" for i in range(num_classes)),
        site_names=tuple(f"city-{i}" for i in range(sites)),
        sites=(np.arange(num_nodes) * sites // num_nodes).astype(np.int32) if sites else None,
    )


def written(graph: Graph, folder: Path) -> Path:
    """Writes a graph artifact and returns its folder."""
    path = folder / "graph"
    write_graph(graph, path)
    return path
