"""geo_train_gnn in which a process of a site is killed: the site is started again while the others wait."""

import pytest
import torch
from geokfp.components._launch import ProcessFailed
from geokfp.components.geo_training.config import GeoTrainingConfig
from geokfp.components.geo_training.run import Outputs, run
from geokfp.components.training.trained_gnn import read_trained_gnn
from support.killed_site import Killer
from support.real_graphs import communities, load, partitioned

# DGL leaves files open while it writes parts.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*unclosed file:ResourceWarning"),
    pytest.mark.long,
    pytest.mark.timeout(400),
]
SUPERVISOR = "geokfp.components._launch.local"


def outputs(folder):
    return Outputs(model=folder / "model", predictions=folder / "predictions", report=folder / "report.html")


def said(killed, number=1):
    site = killed.partition("/")[0]
    return f"{killed}: killed by SIGKILL: starts {site} again, {number} of at most 2 times"


@pytest.fixture
def lines(monkeypatch):
    """What the supervisor says."""
    found = []
    monkeypatch.setattr(f"{SUPERVISOR}.progress", found.append)
    return found


def assert_same(first, second):
    """Both folders hold the same model, bit for bit, and the same history."""
    first, second = (read_trained_gnn(folder / "model") for folder in (first, second))
    weights, others = (gnn.build().state_dict().values() for gnn in (first, second))
    for tensor, again in zip(weights, others, strict=True):
        assert torch.equal(tensor, again)
    for row, again in zip(first.history, second.history, strict=True):
        # Validation sums over batches in DGL's order.
        assert {**row, "seconds": 0} == pytest.approx({**again, "seconds": 0}, abs=1e-6)


@pytest.mark.parametrize(
    ("killed", "at", "options"),
    [
        ("site-1/trainer-0", 8, {"compression": "top_k(ratio=0.1) + by_size(bound=0)"}),
        ("site-1/server-1", 2, {"synchronization": "fsa(optimizer=adam(rate=0.01))"}),
        ("site-1/aggregator", 8, {"compression": "quantized(bits=4)", "transmission": "p3(slice_ms=1)"}),
        ("site-1/trainer-1", 8, {"synchronization": "hfa(k1=2) + outer"}),
        ("site-1/trainer-0", 14, {"compare_alone": True}),
    ],
    ids=["top_k", "before-the-first-checkpoint", "p3", "hfa", "while-each-site-is-alone"],
)
def test_with_one_process_killed_it_gives_what_one_run_gives(tmp_path, lines, killed, at, options):
    partitions = partitioned(communities(240, num_train=96), tmp_path, num_sites=2, num_parts=2)
    killer = Killer(tmp_path, killed, (at,))
    chosen = {"epochs": 6, "batch_size": 16, "compare_alone": False, **killer.options, **options}
    wanted = GeoTrainingConfig(**chosen)
    straight = run(wanted, partitions, None, outputs(tmp_path / "straight"))
    killer.arm()
    restarted = run(wanted, partitions, None, outputs(tmp_path / "killed"))
    assert killer.is_done
    assert lines == [said(killed)]
    assert_same(tmp_path / "straight", tmp_path / "killed")
    for name, value in straight.metrics.items():
        if not name.startswith(("seconds", "wan_bytes")):
            assert restarted.metrics[name] == pytest.approx(value, abs=1e-6), name
    assert not list(tmp_path.rglob("epoch-*"))
    assert not list(tmp_path.rglob("answers"))


def test_a_site_that_is_killed_again_and_again_ends_the_step(tmp_path, lines):
    partitions = partitioned(communities(240, num_train=96), tmp_path, num_sites=2, num_parts=1)
    killed = "site-1/trainer-0"
    killer = Killer(tmp_path, killed, (5, 8, 11))
    killer.arm()
    config = GeoTrainingConfig(epochs=20, batch_size=16, compare_alone=False, **killer.options)
    told = "killed by SIGKILL; site-1 had been started again 2 of at most 2 times"
    with pytest.raises(ProcessFailed, match=f"^{killed}: {told}$"):
        run(config, partitions, None, outputs(tmp_path))
    assert lines == [said(killed, 1), said(killed, 2)]
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("synchronization", "compression", "accuracy"),
    [
        ("fsa", "none", 0.77),
        ("fsa + quorum(workers=2, grace_s=0.2)", "none", 0.77),
        ("auto", "auto", 0.75),
    ],
)
def test_cora_is_learnt_with_each_kind_of_process_killed(
    tmp_path, lines, synchronization, compression, accuracy
):
    partitions = partitioned(load("cora"), tmp_path, num_sites=2, num_parts=2)
    killer = Killer(tmp_path, "site-1/trainer-1", (6, 12))
    config = GeoTrainingConfig(
        epochs=60,
        compare_alone=False,
        synchronization=synchronization,
        compression=compression,
        batch_size=32,
        **killer.options,
    )
    killer.arm()
    result = run(config, partitions, None, outputs(tmp_path))
    assert killer.is_done
    assert lines == [said("site-1/trainer-1", 1), said("site-1/trainer-1", 2)]
    assert result.metrics["test_accuracy"] >= accuracy
