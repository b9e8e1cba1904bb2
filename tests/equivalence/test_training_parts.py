"""One site's training does not depend on how its graph is cut: remote neighbours count in full."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from geokfp.components.partition.assignment import assign
from geokfp.components.partition.config import PartitionConfig
from geokfp.components.training.config import TrainingConfig
from geokfp.components.training.run import Outputs, run
from geokfp.components.training.trained_gnn import read_trained_gnn
from support.real_graphs import communities, load, partitioned

SEEDS = range(5)
SAME = 0.01
LOWER = 0.04
"""Calibrated on cora cut at random into 2 parts (5,228 of 10,556 edges are left), mean of seeds 0 to 4:
GCN 0.808 with the cut edges, 0.739 without. Single runs spread by 0.01, the means by 0.005: half is safe."""

pytestmark = [
    pytest.mark.timeout(1500),
    pytest.mark.filterwarnings("ignore:.*proc/self/status:pytest.PytestUnraisableExceptionWarning"),
]


def trained(partitions, folder, **options):
    paths = Outputs(model=folder / "model", predictions=folder / "predictions", report=folder / "report.html")
    result = run(TrainingConfig(**options), partitions, paths)
    return result.metrics["test_accuracy"], read_trained_gnn(paths.model)


def mean_accuracy(partitions, folder, **options):
    return float(np.mean([trained(partitions, folder, seed=seed, **options)[0] for seed in SEEDS]))


def without_cut_edges(graph, config):
    """The same graph and parts without the edges between parts: what a broken fetch would see."""
    parts = assign(graph, config).parts
    source, destination = graph.edges
    return replace(graph, edges=graph.edges[:, parts[source] == parts[destination]])


def test_weights_do_not_depend_on_the_number_of_parts(tmp_path):
    """Without dropout and sampling, with one step an epoch, training is a function of the graph alone."""
    options = {"architecture": "gcn", "dropout": 0.0, "fan_outs": [], "patience": 0, "epochs": 20}
    options |= {"model_options": {"input_dropout": 0.0}, "learning_rate": 0.001}
    graph = communities(200)
    states = []
    for num_parts in (1, 3):
        folder = tmp_path / str(num_parts)
        partitions = partitioned(graph, folder, num_parts=num_parts, partition_method="random")
        _, gnn = trained(partitions, folder, **options)
        states.append(gnn)
    assert [row["epoch"] for row in states[0].history] == list(range(1, 21))
    for one, three in zip(states[0].history, states[1].history, strict=True):
        assert one["train_loss"] == pytest.approx(three["train_loss"], abs=1e-4)
        assert one["val_loss"] == pytest.approx(three["val_loss"], abs=1e-4)
    for name, tensor in states[0].build().state_dict().items():
        assert torch.allclose(tensor, states[1].build().state_dict()[name], atol=1e-4), name


@pytest.mark.long
@pytest.mark.parametrize(("architecture", "least"), [("gcn", 0.78), ("sage", 0.77)])
def test_cora_is_learned_as_well_in_parts_as_in_one(architecture, least, tmp_path):
    graph = load("cora")
    means = {}
    for method, num_parts in (("metis", 1), ("metis", 2), ("random", 2)):
        folder = tmp_path / f"{method}-{num_parts}"
        partitions = partitioned(graph, folder, num_parts=num_parts, partition_method=method)
        means[method, num_parts] = mean_accuracy(partitions, folder, architecture=architecture)
    assert means["metis", 2] >= least
    assert means["metis", 2] == pytest.approx(means["metis", 1], abs=SAME)
    assert means["random", 2] == pytest.approx(means["metis", 1], abs=SAME)


@pytest.mark.long
def test_cora_without_cut_edges_is_clearly_worse(tmp_path):
    graph, config = load("cora"), PartitionConfig(num_parts=2, partition_method="random")
    whole = partitioned(graph, tmp_path / "whole", num_parts=2, partition_method="random")
    cut = partitioned(
        without_cut_edges(graph, config), tmp_path / "cut", num_parts=2, partition_method="random"
    )
    with_edges = mean_accuracy(whole, tmp_path / "whole", architecture="gcn")
    without = mean_accuracy(cut, tmp_path / "cut", architecture="gcn")
    assert without <= with_edges - LOWER


@pytest.mark.long
def test_facebook_pages_beat_a_model_that_ignores_the_graph(tmp_path):
    partitions = partitioned(load("facebook_pages"), tmp_path, num_parts=2)
    accuracy, _ = trained(partitions, tmp_path)
    assert accuracy >= 0.94
