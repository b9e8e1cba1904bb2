"""The whole step with real processes on a small graph: what it leaves, how it ends when a process dies."""

import dataclasses
import json
import signal
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest
from geokfp.components._files import InputError
from geokfp.components._launch import ProcessFailed, free_ports
from geokfp.components.geo_training.config import GeoTrainingConfig
from geokfp.components.geo_training.run import Outputs, _alone_accuracies, run
from geokfp.components.geo_training.summary import Alone
from geokfp.components.ingest.graph import TRAIN, Graph
from geokfp.components.training.trained_gnn import read_trained_gnn
from support.real_graphs import communities, load, partitioned

# DGL leaves files open while it writes parts.
pytestmark = pytest.mark.filterwarnings("ignore:.*unclosed file:ResourceWarning")

NUM_NODES, NUM_TRAIN, NUM_TEST = 240, 96, 84


@pytest.fixture(scope="module")
def graph() -> Graph:
    return communities(NUM_NODES, num_train=NUM_TRAIN)


@pytest.fixture(scope="module")
def partitions(graph, tmp_path_factory) -> Path:
    return partitioned(graph, tmp_path_factory.mktemp("partitions"), num_sites=2, num_parts=2)


def outputs_in(folder: Path) -> Outputs:
    return Outputs(model=folder / "model", predictions=folder / "predictions", report=folder / "report.html")


@pytest.fixture(scope="module")
def trained(partitions, tmp_path_factory):
    outputs = outputs_in(tmp_path_factory.mktemp("trained"))
    config = GeoTrainingConfig(
        epochs=6, hidden_size=8, batch_size=16, learning_rate=0.05, model_options={"input_dropout": 0.0}
    )
    return run(config, partitions, None, outputs), outputs


def test_metrics_tell_all_sites_and_each_alone(trained):
    result, _ = trained
    assert set(result.metrics) == {
        "train_accuracy", "val_accuracy", "test_accuracy", "epochs_run", "best_epoch", "seconds_per_epoch",
        "wan_bytes_sent", "wan_bytes_received", "alone_test_accuracy_site_0", "alone_test_accuracy_site_1",
    }  # fmt: skip
    assert all(np.isfinite(value) for value in result.metrics.values())
    assert result.metrics["epochs_run"] == 6
    assert result.metrics["test_accuracy"] > 0.5
    assert int(result.confusion.sum()) == NUM_TEST


def test_predictions_of_all_sites_agree_with_the_metrics(trained, graph):
    result, outputs = trained
    table = pd.read_parquet(outputs.predictions / "predictions.parquet")
    assert sorted(table["id"]) == sorted(graph.node_ids)
    assert set(table["site"]) == {"site-0", "site-1"}
    test = table[table["split"] == "test"]
    assert (test["label"] == test["predicted"]).mean() == pytest.approx(result.metrics["test_accuracy"])


def test_the_model_is_a_trained_gnn_and_nothing_else_is_left(trained):
    result, outputs = trained
    gnn = read_trained_gnn(outputs.model)
    assert gnn.metrics == result.metrics
    assert len(gnn.history) == 6
    assert not gnn.build().training
    assert sorted(path.name for path in outputs.model.parent.iterdir()) == [
        "model",
        "predictions",
        "report.html",
    ]


def test_bytes_between_sites_are_what_the_rounds_need(trained):
    result, outputs = trained
    num_parameters = sum(p.numel() for p in read_trained_gnn(outputs.model).build().parameters())
    num_steps = 6 * max(1, -(-NUM_TRAIN // 4 // 16))
    one_way = 2 * num_steps * num_parameters * 4
    assert result.metrics["wan_bytes_sent"] > one_way
    assert result.metrics["wan_bytes_received"] > one_way


def test_the_report_shows_links_and_each_site_alone(trained):
    _, outputs = trained
    page = outputs.report.read_text(encoding="utf-8")
    for text in ("site-0 alone", "site-1 to root", "site-0/trainer-1 to site-0", "all sites"):
        assert text in page


def test_a_site_may_have_any_name(tmp_path):
    nodes = communities(120, num_train=30)
    sites = {"site_names": ("New York", "東京"), "sites": (np.arange(120) % 2).astype(np.int32)}
    named = dataclasses.replace(nodes, **sites)
    parts = partitioned(named, tmp_path / "p", num_sites=2, num_parts=1, partition_method="attribute")
    config = GeoTrainingConfig(epochs=1, hidden_size=4)
    metrics = run(config, parts, None, outputs_in(tmp_path)).metrics
    assert {"alone_test_accuracy_New York", "alone_test_accuracy_東京"} < set(metrics)


def test_sites_whose_names_differ_in_hyphens_only_keep_a_metric_each():
    alone = {name: Alone(1, [], value) for name, value in (("ber-1", 0.1), ("ber_1", 0.2), ("par-2", 0.3))}
    assert _alone_accuracies(alone) == {
        "alone_test_accuracy_ber-1": 0.1,
        "alone_test_accuracy_ber_1": 0.2,
        "alone_test_accuracy_par_2": 0.3,
    }


def test_without_validation_and_test_nodes_their_metrics_are_left_out(tmp_path):
    nodes = communities(60, num_train=30)
    nodes.split[nodes.split != TRAIN] = 0
    parts = partitioned(nodes, tmp_path / "p", num_sites=2, num_parts=1)
    metrics = run(GeoTrainingConfig(epochs=2, hidden_size=4), parts, None, outputs_in(tmp_path)).metrics
    assert [name for name in metrics if "accuracy" in name] == ["train_accuracy"]
    assert "site-0 alone" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("synchronization", "compression", "transmission"),
    [
        ("mixed(optimizer=adam(rate=0.05))", "top_k(ratio=0.2)", "p3"),
        ("hfa(k1=2) + outer(rate=1, momentum=0.5)", "fp16", "fifo + multigps(at=root)"),
    ],
)
def test_sites_may_keep_in_step_in_other_ways(
    partitions, tmp_path, synchronization, compression, transmission
):
    config = GeoTrainingConfig(
        epochs=15,
        hidden_size=8,
        batch_size=16,
        learning_rate=0.05,
        model_options={"input_dropout": 0.0},
        synchronization=synchronization,
        compression=compression,
        transmission=transmission,
    )
    result = run(config, partitions, None, outputs_in(tmp_path))
    assert result.metrics["epochs_run"] == 15
    assert result.metrics["test_accuracy"] > 0.5
    assert result.metrics["alone_test_accuracy_site_0"] > 0.3


def test_it_starts_from_a_trained_model_and_takes_its_architecture(partitions, trained, tmp_path):
    _, before = trained
    config = GeoTrainingConfig(architecture="gcn", epochs=1, learning_rate=1e-9, compare_alone=False)
    result = run(config, partitions, before.model, outputs_in(tmp_path))
    assert read_trained_gnn(tmp_path / "model").source.architecture == "sage"
    assert result.metrics["test_accuracy"] == pytest.approx(trained[0].metrics["test_accuracy"], abs=0.02)
    assert not any(name.startswith("alone") for name in result.metrics)


def test_a_trained_model_of_another_graph_is_refused(partitions, trained, tmp_path):
    manifest = trained[1].model / "manifest.json"
    for key, value, reason in (("num_features", 7, "takes 7 features"), ("label_names", ["oak"], "classes")):
        copy = tmp_path / key
        copy.mkdir()
        for path in trained[1].model.iterdir():
            (copy / path.name).write_bytes(path.read_bytes())
        document = json.loads(manifest.read_text())
        (copy / "manifest.json").write_text(json.dumps({**document, key: value}))
        with pytest.raises(InputError, match=reason):
            run(GeoTrainingConfig(), partitions, copy, outputs_in(tmp_path / "out"))
    assert list((tmp_path / "out").iterdir()) == []


def test_a_quorum_of_more_workers_than_the_partitions_have_is_refused_before_any_starts(
    partitions, tmp_path, capsys
):
    config = GeoTrainingConfig(synchronization="fsa + quorum(workers=5)")
    with pytest.raises(InputError, match="workers of quorum is 5, allowed: at most the 4 of all sites"):
        run(config, partitions, None, outputs_in(tmp_path))
    assert capsys.readouterr().out == ""
    assert list(tmp_path.iterdir()) == []


def processes_at(port: int, status: str) -> list[int]:
    """Returns whose connections lead to a local port, or who listens there."""
    found = []
    for connection in psutil.net_connections("tcp"):
        address = connection.laddr if status == psutil.CONN_LISTEN else connection.raddr
        if connection.status == status and address and address.port == port and connection.pid:
            found.append(connection.pid)
    return found


@pytest.mark.parametrize("victim", ["root", "site", "worker"])
def test_a_killed_process_ends_the_step_without_checkpoints_with_its_name(
    partitions, tmp_path, monkeypatch, victim
):
    root, site = free_ports(2)
    killed = []
    started = threading.Event()

    def kill(message: str) -> None:
        """Runs at the third epoch's line, when all connections stand."""
        if "epoch 3 " in message and not started.is_set():
            started.set()
            port, status = {
                "root": (root, psutil.CONN_LISTEN),
                "site": (site, psutil.CONN_LISTEN),
                "worker": (site, psutil.CONN_ESTABLISHED),
            }[victim]
            killed.append(processes_at(port, status)[0])
            psutil.Process(killed[0]).send_signal(signal.SIGKILL)

    monkeypatch.setattr(
        "geokfp.components._launch.local.print_progress", lambda message, replica: kill(message)
    )
    config = GeoTrainingConfig(
        epochs=100_000,
        patience=0,
        hidden_size=8,
        checkpoint_every=0,
        topology={"root": f"127.0.0.1:{root}", "sites": {"site-0": {"listens": f"127.0.0.1:{site}"}}},
    )
    names = {"root": "root/aggregator", "site": "site-0/aggregator", "worker": "site-0/trainer-"}
    with pytest.raises(ProcessFailed, match=f"{names[victim]}.*killed by SIGKILL") as caught:
        run(config, partitions, None, outputs_in(tmp_path))
    assert len(killed) == 1
    assert caught.value.replica.startswith(names[victim])
    assert not (tmp_path / "model").exists()
    assert not processes_at(root, psutil.CONN_LISTEN)


@pytest.mark.long
def test_on_cora_all_sites_together_beat_each_alone(tmp_path):
    partitions = partitioned(load("cora"), tmp_path, num_sites=2, num_parts=2)
    result = run(GeoTrainingConfig(), partitions, None, outputs_in(tmp_path))
    alone = [value for name, value in result.metrics.items() if name.startswith("alone_test_accuracy")]
    assert len(alone) == 2
    assert result.metrics["test_accuracy"] >= 0.77 > max(alone)
