"""A small real-format graph in two parts, and trained GNNs with random weights."""

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from geokfp.components.ingest.graph import TEST, TRAIN, VALIDATION, Graph, write_graph
from geokfp.components.partition.config import PartitionConfig
from geokfp.components.partition.partitions import read_partitions
from geokfp.components.partition.run import run as partition
from geokfp.components.training.trained_gnn import ModelSource, write_trained_gnn

NUM_NODES, NUM_FEATURES, LABELS = 90, 7, ("cat", "dog", "eel")
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def partitions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("partitions")
    generator = np.random.default_rng(4)
    one_way = np.unique(generator.integers(NUM_NODES, size=(240, 2)), axis=0)
    one_way = one_way[one_way[:, 0] < one_way[:, 1]]
    graph = Graph(
        edges=np.concatenate([one_way, one_way[:, ::-1]]).T.copy(),
        features=generator.normal(size=(NUM_NODES, NUM_FEATURES)).astype(np.float32),
        labels=generator.integers(3, size=NUM_NODES),
        split=generator.choice([TRAIN, VALIDATION, TEST], size=NUM_NODES).astype(np.int8),
        node_ids=np.arange(NUM_NODES) * 10,
        label_names=LABELS,
    )
    write_graph(graph, folder / "graph")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # DGL leaves /proc/self/status open
        partition(
            PartitionConfig(num_sites=1, num_parts=2),
            folder / "graph",
            partitions=folder / "partitions",
            report=folder / "partitions.html",
        )
    return folder / "partitions"


@pytest.fixture
def trained_gnn(partitions: Path, tmp_path: Path) -> Callable[..., Path]:
    """Writes a trained GNN with random weights and returns its folder."""

    def write(architecture: str = "", *, code: str = "", **changes: object) -> Path:
        user_code = None
        if code:
            user_code = tmp_path / "code"
            user_code.mkdir()
            (user_code / f"{tmp_path.name}_model.py").write_text(code, encoding="utf-8")
        values = {
            "architecture": architecture,
            "entry_point": f"{tmp_path.name}_model:build" if code else "",
            "options": {} if code else {"hidden_size": 8},
            "num_features": NUM_FEATURES,
            "num_classes": len(LABELS),
            "num_layers": 2,
            "user_code": user_code,
        }
        source = ModelSource(**{**values, **changes})
        torch.manual_seed(0)
        model = source.build()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.4)
        schema = {
            "label_names": list(LABELS[: source.num_classes]),
            "feature_names": [],
            "fingerprint": read_partitions(partitions).fingerprint,
        }
        write_trained_gnn(
            tmp_path / "model",
            source=source,
            weights=model.state_dict(),
            schema=schema,
            metrics={"test_accuracy": 0.5},
            history=[],
        )
        return tmp_path / "model"

    return write
