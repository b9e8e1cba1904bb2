"""What a trained GNN says of nodes of a graph, in this process and with all neighbours.

Knows nothing of who wins, and of where models come from.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .._files import InputError
from ..ingest.graph import Array, Graph
from ..training.message_passing import IN_DEGREE
from ..training.trained_gnn import TrainedGnn

NODES_AT_ONCE = 1024
"""Nodes whose neighbourhoods are taken together."""


def predictions(trained: TrainedGnn, graph: Graph, nodes: Array, name: str) -> Array:
    """Returns the class that a model finds likeliest, int64 [n]: numbers of the model's own classes.

    Args:
        trained: the model.
        graph: the whole graph.
        nodes: rows of the graph, int64 [n].
        name: what the model is called in a complaint.

    Raises:
        InputError: the model was trained on other features.
    """
    _check_features(trained, graph, name)
    with _own_modules(trained.source.user_code), torch.no_grad():
        model = trained.build()
        found = [
            model(blocks, features).argmax(1).numpy()
            for blocks, features in _batches(graph, nodes, trained.source.num_layers)
        ]
    return np.concatenate(found)


def _check_features(trained: TrainedGnn, graph: Graph, name: str) -> None:
    width = trained.source.num_features
    if width != graph.num_features:
        raise InputError(
            f"{name}: the model takes {width} features, the graph has {graph.num_features}; "
            "with other features a new folder of champions is needed"
        )
    names = zip(trained.feature_names, graph.feature_names, strict=False)
    other = next((pair for pair in names if pair[0] != pair[1]), None)
    if other:
        raise InputError(
            f"{name}: the model's feature {other[0]!r} is {other[1]!r} in the graph; "
            "the same columns in the same order are needed, or a new folder of champions"
        )


def _batches(graph: Graph, nodes: Array, num_layers: int) -> Iterator[tuple[list[Any], torch.Tensor]]:
    import dgl

    source, destination = (torch.from_numpy(np.array(ends)) for ends in graph.edges)
    whole = dgl.graph((source, destination), num_nodes=graph.num_nodes)
    degrees = whole.in_degrees()
    sampler = dgl.dataloading.MultiLayerFullNeighborSampler(num_layers)
    for seeds in torch.split(torch.from_numpy(nodes), NODES_AT_ONCE):
        inputs, _, blocks = sampler.sample_blocks(whole, seeds)
        for block in blocks:
            block.srcdata[IN_DEGREE] = degrees[block.srcdata[dgl.NID]]
        yield blocks, torch.from_numpy(graph.dense_features(inputs.numpy()))


@contextmanager
def _own_modules(code: Path | None) -> Iterator[None]:
    """Lets a model import its own code, and the next one its own of the same names."""
    before, path = set(sys.modules), list(sys.path)
    try:
        yield
    finally:
        if code is not None:
            sys.path[:] = path
            for name in set(sys.modules) - before:
                if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(code):
                    del sys.modules[name]
