"""On real data: the exported ONNX gives cora's test nodes the labels that the trained model gives them."""

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from geokfp.components.export.config import ExportConfig
from geokfp.components.export.real_nodes import Case, block_logits
from geokfp.components.export.run import Inputs, Outputs, run
from geokfp.components.ingest.config import IngestConfig
from geokfp.components.ingest.graph import TEST, TRAIN, read_graph
from geokfp.components.ingest.run import run as ingest
from geokfp.components.partition.config import PartitionConfig
from geokfp.components.partition.run import run as partition
from geokfp.components.training.models import plain
from geokfp.components.training.trained_gnn import ModelSource, read_trained_gnn, write_trained_gnn

ONNX_ALONE = """
import sys
for name in ("dgl", "torch", "geokfp"):
    sys.modules[name] = None
import numpy as np, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
given = np.load(sys.argv[2])
(logits,) = session.run(["logits"], {"x": given["x"], "edge_index": given["edge_index"]})
np.save(sys.argv[3], logits)
"""


def test_onnx_alone_labels_coras_test_nodes_as_the_trained_model(real_data: Path, tmp_path: Path) -> None:
    cora = real_data / "cora"
    tables = {name: str(cora / f"{name}.csv") for name in ("nodes", "edges")}
    config = IngestConfig(features=str(cora / "features.npz"), **tables)
    ingest(
        config, graph=tmp_path / "graph", report=tmp_path / "graph.html", fingerprint=tmp_path / "fingerprint"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # DGL leaves /proc/self/status open
        partition(
            PartitionConfig(num_parts=2),
            tmp_path / "graph",
            partitions=tmp_path / "partitions",
            report=tmp_path / "partitions.html",
        )
    graph = read_graph(tmp_path / "graph")
    x = torch.from_numpy(graph.dense_features())
    edge_index = torch.from_numpy(np.array(graph.edges))
    labels = torch.from_numpy(np.array(graph.labels))
    is_train, is_test = (torch.from_numpy(np.asarray(graph.split) == split) for split in (TRAIN, TEST))

    source = ModelSource(
        architecture="gcn",
        options={"hidden_size": 16},
        num_features=graph.num_features,
        num_classes=graph.num_classes,
        num_layers=2,
    )
    torch.manual_seed(0)
    model = source.build().train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
    for _ in range(40):
        optimizer.zero_grad()
        logits = plain(model)(x, edge_index)
        torch.nn.functional.cross_entropy(logits[is_train], labels[is_train]).backward()
        optimizer.step()
    write_trained_gnn(
        tmp_path / "model",
        source=source,
        weights=model.state_dict(),
        schema={"label_names": graph.label_names, "feature_names": [], "fingerprint": graph.fingerprint},
        metrics={},
        history=[],
    )
    outputs = Outputs(exported=tmp_path / "exported", report=tmp_path / "export.html")
    result = run(ExportConfig(), Inputs(model=tmp_path / "model", data=tmp_path / "partitions"), outputs)
    assert result.metrics["max_abs_difference"] <= 1e-4

    np.savez(tmp_path / "graph.npz", x=x.numpy(), edge_index=edge_index.numpy())
    files = [outputs.exported / "model.onnx", tmp_path / "graph.npz", tmp_path / "logits.npy"]
    subprocess.run([sys.executable, "-c", ONNX_ALONE, *map(str, files)], check=True)
    exported = torch.from_numpy(np.load(files[2]))[is_test].argmax(1)
    case = Case(x=x, edge_index=edge_index, seeds=torch.nonzero(is_test).flatten())
    trained = block_logits(read_trained_gnn(tmp_path / "model").build(), case, num_layers=2).argmax(1)
    assert len(exported) == 1000
    assert torch.equal(exported, trained)
    assert (exported == labels[is_test]).float().mean() > 0.75
