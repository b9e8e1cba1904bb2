"""Predictions of built-in models equal the whole graph's forward pass."""

from pathlib import Path

import numpy as np
import pytest
import torch
from geokfp.components._files import InputError
from geokfp.components.promotion import inference
from geokfp.components.training import models
from geokfp.components.training.trained_gnn import (
    ModelSource,
    TrainedGnn,
    read_trained_gnn,
    write_trained_gnn,
)
from support.graphs import communities


def trained(folder: Path, architecture: str, num_features: int = 8) -> TrainedGnn:
    source = ModelSource(
        architecture=architecture,
        options={"hidden_size": 8},
        num_features=num_features,
        num_classes=3,
        num_layers=2,
    )
    torch.manual_seed(0)
    schema = {"label_names": ["a", "b", "c"], "feature_names": [], "fingerprint": ""}
    state = source.build().state_dict()
    write_trained_gnn(
        folder / architecture, source=source, weights=state, schema=schema, metrics={}, history=[]
    )
    return read_trained_gnn(folder / architecture)


@pytest.mark.parametrize("architecture", ["sage", "gcn", "gat"])
def test_batches_give_what_the_whole_graph_gives(
    architecture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference, "NODES_AT_ONCE", 7)
    graph, model = communities(), trained(tmp_path, architecture)
    whole = models.plain(model.build())(torch.tensor(graph.dense_features()), torch.tensor(graph.edges))
    nodes = np.flatnonzero(graph.split == 3)
    assert (inference.predictions(model, graph, nodes, "it") == whole.argmax(1).numpy()[nodes]).all()


def test_other_features_are_refused(tmp_path: Path) -> None:
    model = trained(tmp_path, "sage", 5)
    with pytest.raises(
        InputError, match="it: the model takes 5 features, the graph has 8; with other features"
    ):
        inference.predictions(model, communities(), np.array([0]), "it")
