"""geo_train_gnn when a process that only a site has dies, a port is taken, or the step itself is ended.

What a death in the tree of aggregators does is in `test_run.py`.
"""

import json
import signal
import socket

import pytest
from geokfp.components._launch import ProcessFailed, free_ports
from geokfp.components.geo_training.config import GeoTrainingConfig
from geokfp.components.geo_training.run import Outputs, run
from support.fault_steps import FOREVER
from support.faults import KillAtEpoch, RunningStep
from support.real_graphs import communities, partitioned

# DGL leaves files open while it writes parts.
pytestmark = pytest.mark.filterwarnings("ignore:.*unclosed file:ResourceWarning")
PRINT_PROGRESS = "geokfp.components._launch.local.print_progress"


@pytest.fixture(scope="module")
def partitions(tmp_path_factory):
    return partitioned(communities(), tmp_path_factory.mktemp("two"), num_sites=2, num_parts=1)


def outputs(folder):
    return Outputs(model=folder / "model", predictions=folder / "predictions", report=folder / "report.html")


@pytest.mark.parametrize(
    ("victim", "replica", "cause"),
    [
        ("server", "site-1/server-0", "killed by SIGKILL"),
        pytest.param(
            "sampler", "site-1/trainer-0", "a sampler of it killed by SIGKILL", marks=pytest.mark.long
        ),
    ],
)
def test_a_killed_process_of_a_site_without_checkpoints_ends_the_step_with_its_name(
    partitions, tmp_path, monkeypatch, victim, replica, cause
):
    kill = KillAtEpoch(lambda step: (step.sampler if victim == "sampler" else step.replica)(replica))
    monkeypatch.setattr(PRINT_PROGRESS, kill)
    topology = {
        "root": f"localhost:{free_ports(1)[0]}"
    }  # a host's name, which DGL's own addresses may not be
    config = GeoTrainingConfig(
        **FOREVER, num_samplers=int(victim == "sampler"), topology=topology, checkpoint_every=0
    )
    with pytest.raises(ProcessFailed, match=f"^{replica}: {cause}$"):
        run(config, partitions, None, outputs(tmp_path))
    kill.assert_ended_soon_with_nothing_left()
    assert not (tmp_path / "model").exists()


def test_a_port_taken_after_the_planning_ends_the_step(partitions, tmp_path):
    with socket.socket() as holder:
        (port,) = free_ports(1)
        holder.bind(("127.0.0.1", port))
        holder.listen()
        config = GeoTrainingConfig(**FOREVER, topology={"root": f"127.0.0.1:{port}"})
        with pytest.raises(ProcessFailed, match=rf"^root/aggregator: .*{port}"):
            run(config, partitions, None, outputs(tmp_path))


@pytest.mark.long
@pytest.mark.parametrize(("how", "cause"), [(signal.SIGINT, "KeyboardInterrupt"), (signal.SIGKILL, "")])
def test_nothing_is_left_when_the_step_itself_is_ended(partitions, tmp_path, how, cause):
    status = RunningStep("support.fault_steps", "geo", partitions, tmp_path).end(how)
    assert status != 0
    assert not (tmp_path / "model").exists()
    if cause:
        assert json.loads((tmp_path / "error.json").read_text("utf-8"))["cause"] == cause
