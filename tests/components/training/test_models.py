"""One conformance suite over all architectures: DGL blocks, plain tensors, TorchScript and ONNX agree."""

from pathlib import Path

import dgl
import numpy as np
import onnxruntime
import pytest
import torch
from geokfp.components._files import InputError
from geokfp.components.training import models
from geokfp.components.training.sparse_rows import SparseRows
from hypothesis import given, settings
from hypothesis import strategies as st

ARCHITECTURES = sorted(models.ARCHITECTURES)
TOLERANCE = 1e-5
torch.set_num_threads(1)
dgl.utils.set_num_threads(1)


def random_graph(
    num_nodes: int, num_edges: int, seed: int
) -> tuple[dgl.DGLGraph, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(num_nodes, (2, num_edges), generator=generator)
    graph = dgl.graph((edges[0], edges[1]), num_nodes=num_nodes)
    graph.ndata["in_degree"] = graph.in_degrees()
    return graph, edges, torch.randn(num_nodes, 12, generator=generator)


def blocks_of(graph: dgl.DGLGraph, seeds: torch.Tensor, num_layers: int, fan_out: int = -1) -> list:
    blocks: list = []
    for _ in range(num_layers):
        frontier = (
            dgl.sampling.sample_neighbors(graph, seeds, fan_out)
            if fan_out >= 0
            else dgl.in_subgraph(graph, seeds)
        )
        block = dgl.to_block(frontier, seeds)
        seeds = block.srcdata[dgl.NID]
        block.srcdata["in_degree"] = graph.ndata["in_degree"][seeds]
        blocks.insert(0, block)
    return blocks


def built(architecture: str, num_layers: int = 2) -> models.Stack:
    torch.manual_seed(1)
    model = models.build(architecture, 12, 5, hidden_size=8, num_layers=num_layers)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model.eval()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@given(
    num_nodes=st.integers(1, 30),
    num_edges=st.integers(0, 120),
    num_layers=st.integers(1, 3),
    seed=st.integers(0, 99),
)
@settings(max_examples=20, deadline=None)
def test_blocks_and_plain_tensors_agree(architecture, num_nodes, num_edges, num_layers, seed):
    graph, edges, features = random_graph(num_nodes, num_edges, seed)
    model = built(architecture, num_layers)
    seeds = torch.randperm(num_nodes)[: max(1, num_nodes // 2)]
    blocks = blocks_of(graph, seeds, num_layers)
    with torch.no_grad():
        over_blocks = model(blocks, features[blocks[0].srcdata[dgl.NID]])
        over_tensors = models.plain(model)(features, edges)[seeds]
    assert torch.allclose(over_blocks, over_tensors, atol=TOLERANCE, rtol=TOLERANCE)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_sparse_features_give_what_dense_ones_give(architecture):
    graph, _, features = random_graph(20, 90, 3)
    features = torch.where(torch.rand_like(features) < 0.2, features, 0.0)
    model = built(architecture)
    blocks = blocks_of(graph, torch.arange(20), 2)
    dense = features[blocks[0].srcdata[dgl.NID]]
    results = []
    for x in (dense, SparseRows.from_dense(dense)):
        model.zero_grad()
        logits = model(blocks, x)
        logits.square().sum().backward()
        results.append([logits.detach(), *(parameter.grad.clone() for parameter in model.parameters())])
    for from_dense, from_sparse in zip(*results, strict=True):
        assert torch.allclose(from_dense, from_sparse, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_gradients_agree(architecture):
    graph, edges, features = random_graph(20, 90, 3)
    model = built(architecture)
    seeds = torch.arange(20)
    blocks = blocks_of(graph, seeds, 2)
    weight = torch.randn(20, 5)
    gradients = []
    for logits in (model(blocks, features[blocks[0].srcdata[dgl.NID]]), models.plain(model)(features, edges)):
        model.zero_grad()
        (logits * weight).sum().backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
    for over_blocks, over_tensors in zip(*gradients, strict=True):
        assert torch.allclose(over_blocks, over_tensors, atol=1e-4, rtol=1e-4)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_scripts(architecture):
    _, edges, features = random_graph(25, 80, 5)
    plain = models.plain(built(architecture)).eval()
    scripted = torch.jit.script(plain)
    assert torch.allclose(scripted(features, edges), plain(features, edges), atol=TOLERANCE)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_exports_to_onnx_and_runs_at_another_size(architecture, tmp_path: Path):
    _, edges, features = random_graph(25, 80, 5)
    plain = models.plain(built(architecture)).eval()
    path = tmp_path / "model.onnx"
    torch.onnx.export(
        plain,
        (features, edges),
        str(path),
        dynamo=False,
        opset_version=18,
        input_names=["features", "edge_index"],
        output_names=["logits"],
        dynamic_axes={"features": {0: "n"}, "edge_index": {1: "e"}, "logits": {0: "n"}},
    )
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for num_nodes, num_edges in ((25, 80), (7, 0), (60, 333)):
        _, edges, features = random_graph(num_nodes, num_edges, num_nodes)
        (logits,) = session.run(None, {"features": features.numpy(), "edge_index": edges.numpy()})
        assert np.allclose(logits, plain(features, edges).detach().numpy(), atol=TOLERANCE)


@pytest.mark.parametrize("architecture", ["gcn", "sage"])
def test_sampled_aggregation_is_unbiased(architecture):
    graph, _, features = random_graph(12, 100, 7)
    model = built(architecture, num_layers=1)
    seeds = torch.arange(12)
    with torch.no_grad():
        block = blocks_of(graph, seeds, 1)[0]
        exact = model([block], features[block.srcdata[dgl.NID]])
        sampled = []
        dgl.seed(0)
        for _ in range(800):
            block = blocks_of(graph, seeds, 1, fan_out=2)[0]
            sampled.append(model([block], features[block.srcdata[dgl.NID]]))
    stacked = torch.stack(sampled)
    error = (stacked.mean(0) - exact).abs()
    assert (error <= 5 * stacked.std(0) / len(sampled) ** 0.5 + 1e-4).all()


def test_same_seed_gives_the_same_weights():
    one, two = built("gat"), built("gat")
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


@pytest.mark.parametrize(
    ("architecture", "options", "message"),
    [
        ("mlp", {}, "architecture 'mlp': allowed are gat, gcn, sage"),
        (
            "sage",
            {"num_heads": 2},
            "model option 'num_heads': sage allows hidden_size, num_layers, dropout",
        ),
        ("gat", {"hidden_size": 10}, "hidden_size 10 must be a multiple"),
    ],
)
def test_bad_options_are_named(architecture, options, message):
    with pytest.raises(InputError, match=message):
        models.build(architecture, 3, 2, **options)
