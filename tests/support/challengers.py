"""Models whose scores are known beforehand, and stores to keep champions in."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from geokfp.components.export.exported_model import CARD_KEYS, seal_exported_model
from geokfp.components.ingest.graph import Graph, write_graph
from geokfp.components.training.trained_gnn import ModelSource, write_trained_gnn

CLASSES = ("ash", "birch", "cedar", "elm")
CODE = """
import torch

class Model(torch.nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.known = torch.nn.Parameter(torch.zeros(num_classes))

    def forward(self, blocks, x):
        return x[: blocks[-1].num_dst_nodes(), : len(self.known)] * self.known

def build(num_features, num_classes):
    return Model(num_classes)
"""


def window_graph(folder: Path, *, num_nodes: int = 80, test: bool = True) -> Path:
    """A graph whose features are the classes, all nodes for test; returns its folder."""
    labels = np.arange(num_nodes) % len(CLASSES)
    ring = np.stack([np.arange(num_nodes), (np.arange(num_nodes) + 1) % num_nodes])
    graph = Graph(
        edges=np.concatenate([ring, ring[::-1]], axis=1),
        features=np.eye(len(CLASSES), dtype=np.float32)[labels],
        labels=labels.astype(np.int64),
        split=np.full(num_nodes, 3 if test else 1, dtype=np.int8),
        node_ids=np.arange(num_nodes),
        label_names=CLASSES,
        feature_names=CLASSES,
    )
    write_graph(graph, folder / "graph")
    return folder / "graph"


def challenger(folder: Path, known: int, *, code: str = CODE, **schema: object) -> Path:
    """A trained GNN that finds the first so many of the classes, and takes all others for the first."""
    (folder / "code").mkdir(parents=True, exist_ok=True)
    (folder / "code/forest.py").write_text(code, encoding="utf-8")
    source = ModelSource(
        architecture="",
        entry_point="forest:build",
        num_features=len(CLASSES),
        num_classes=len(CLASSES),
        num_layers=1,
        user_code=folder / "code",
    )
    write_trained_gnn(
        folder / "trained",
        source=source,
        weights={"known": torch.tensor([float(number < known) for number in range(len(CLASSES))])},
        schema={"label_names": CLASSES, "feature_names": CLASSES, "fingerprint": "", **schema},
        metrics={},
        history=[],
    )
    return folder / "trained"


def exported(folder: Path) -> Path:
    """An exported model, as far as its manifest goes."""
    path = folder / "exported"
    path.mkdir(parents=True)
    (path / "weights.safetensors").write_bytes(str(folder).encode())
    entry = {"file": "weights.safetensors"}
    card: dict[str, object] = {key: {} for key in CARD_KEYS} | {"files": {"safetensors": entry}}
    seal_exported_model(path, card)
    return path


@contextmanager
def object_store(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Serves S3 on this machine; yields the URI of an empty bucket."""
    import s3fs
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in (
        ("AWS_ENDPOINT_URL", f"http://{host}:{port}"),
        ("AWS_ACCESS_KEY_ID", "any"),
        ("AWS_SECRET_ACCESS_KEY", "any"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    bucket = f"kept-{uuid.uuid4().hex}"  # what was stored lives as long as this process
    s3fs.S3FileSystem().mkdir(bucket)
    try:
        yield f"s3://{bucket}"
    finally:
        s3fs.S3FileSystem.clear_instance_cache()
        server.stop()
