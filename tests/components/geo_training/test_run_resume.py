"""geo_train_gnn whose root is killed in mid-training goes on from its checkpoint, as if nothing had been."""

import dataclasses

import pytest
import torch
from geokfp.components._files import InputError
from geokfp.components._launch import ProcessFailed
from geokfp.components.geo_training.config import GeoTrainingConfig
from geokfp.components.geo_training.run import Outputs, run
from geokfp.components.training.trained_gnn import read_trained_gnn
from support.killed_root import KILL_ROOT
from support.real_graphs import communities, partitioned

# DGL leaves files open while it writes parts.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*unclosed file:ResourceWarning"),
    pytest.mark.timeout(240),
]
ATTEMPTS = "geokfp.components.geo_training.attempts"

KILLS_IN_EPOCH_3 = f"""
{KILL_ROOT}
from geokfp.components.training.models import build as built_in


def build(num_features, num_classes, mark):
    model, steps = built_in("sage", num_features, num_classes, num_layers=2), []

    def count(module, _inputs):
        steps.extend([1] if module.training else [])
        if len(steps) == 8:  # of 3 steps an epoch
            kill_root(mark)

    model.register_forward_pre_hook(count)
    return model
"""


def outputs(folder):
    return Outputs(model=folder / "model", predictions=folder / "predictions", report=folder / "report.html")


@pytest.mark.parametrize(
    ("synchronization", "compression", "heals"),
    [
        ("fsa", "top_k(ratio=0.1) + by_size(bound=0)", True),
        pytest.param("fsa(optimizer=adam(rate=0.01))", "quantized(bits=4)", False, marks=pytest.mark.long),
    ],
)
def test_killed_in_epoch_3_it_gives_what_one_run_gives(
    tmp_path, monkeypatch, synchronization, compression, heals
):
    partitions = partitioned(communities(240, num_train=96), tmp_path, num_sites=2, num_parts=1)
    mark, code = tmp_path / "mark", tmp_path / "kills_of_test.py"
    code.write_text(KILLS_IN_EPOCH_3, encoding="utf-8")
    config = GeoTrainingConfig(
        entry_point="kills_of_test:build",
        user_code=str(code),
        model_options={"mark": str(mark)},
        epochs=5,
        batch_size=16,
        synchronization=synchronization,
        compression=compression,
    )
    straight = run(config, partitions, None, outputs(tmp_path / "straight"))
    mark.touch()
    said = []
    monkeypatch.setattr(f"{ATTEMPTS}.progress", said.append)
    if not heals:
        monkeypatch.setattr(f"{ATTEMPTS}.RESTARTS", 0)
        with pytest.raises(ProcessFailed, match=r"^root/aggregator: killed by SIGKILL$"):
            run(config, partitions, None, outputs(tmp_path / "killed"))
    kept = tmp_path / "kept" if heals else ""
    resumed = run(
        dataclasses.replace(config, checkpoint_folder=str(kept)),
        partitions,
        None,
        outputs(tmp_path / "killed"),
    )
    assert ("root/aggregator: killed by SIGKILL: starts again, 1 of at most 2 times" in said) == heals
    assert any(line.startswith("resumes after epoch 2, ") for line in said), said
    first, second = (read_trained_gnn(tmp_path / name / "model") for name in ("straight", "killed"))
    for tensor, again in zip(
        first.build().state_dict().values(), second.build().state_dict().values(), strict=True
    ):
        assert torch.equal(tensor, again)
    for row, again in zip(first.history, second.history, strict=True):
        # Validation sums over batches in DGL's order.
        assert {**row, "seconds": 0} == pytest.approx({**again, "seconds": 0}, abs=1e-6)
    for name, value in straight.metrics.items():
        if not name.startswith(("seconds", "wan_bytes")):
            assert resumed.metrics[name] == pytest.approx(value, abs=1e-6), name
    assert resumed.metrics["wan_bytes_sent"] > straight.metrics["wan_bytes_sent"]
    assert not list(tmp_path.rglob("epoch-*"))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"checkpoint_folder": "s3://bucket/kept"}, "checkpoint_folder 's3://bucket/kept': must be the path"),
        ({"checkpoint_every": -1}, "checkpoint_every -1: must be at least 0"),
    ],
)
def test_wrong_options_are_refused_by_name(options, reason):
    with pytest.raises(InputError, match=reason):
        GeoTrainingConfig(**options)
