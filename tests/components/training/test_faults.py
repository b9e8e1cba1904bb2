"""train_gnn when a process dies, a sampler fails, a port is taken, or the step itself is ended."""

import json
import signal
import socket

import pytest
from geokfp.components._launch import ProcessFailed, free_ports
from geokfp.components.training.config import TrainingConfig
from geokfp.components.training.run import Outputs, run
from support.fault_steps import FOREVER
from support.faults import KillAtEpoch, RunningStep
from support.real_graphs import communities, partitioned

# DGL leaves /proc/self/status open when it partitions.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*unclosed file:ResourceWarning",
    "ignore:.*proc.self.status:pytest.PytestUnraisableExceptionWarning",
)
PRINT_PROGRESS = "geokfp.components._launch.local.print_progress"


@pytest.fixture(scope="module")
def partitions(tmp_path_factory):
    return partitioned(communities(), tmp_path_factory.mktemp("two"), num_parts=2)


def outputs(folder):
    return Outputs(model=folder / "model", predictions=folder / "predictions", report=folder / "report.html")


@pytest.mark.parametrize(
    ("victim", "replica", "cause"),
    [
        ("server", "site-0/server-0", "killed by SIGKILL"),
        ("trainer", "site-0/trainer-1", "killed by SIGKILL"),
        ("sampler", "site-0/trainer-1", "a sampler of it killed by SIGKILL"),
    ],
)
def test_a_killed_process_ends_the_step_with_its_name(
    partitions, tmp_path, monkeypatch, victim, replica, cause
):
    kill = KillAtEpoch(lambda step: (step.sampler if victim == "sampler" else step.replica)(replica))
    monkeypatch.setattr(PRINT_PROGRESS, kill)
    config = TrainingConfig(**FOREVER, num_samplers=int(victim == "sampler"))
    with pytest.raises(ProcessFailed, match=f"^{replica}: {cause}$"):
        run(config, partitions, outputs(tmp_path))
    kill.assert_ended_soon_with_nothing_left()
    assert not (tmp_path / "model").exists()


@pytest.mark.long
def test_an_error_in_a_sampler_ends_the_step_with_its_words(partitions, tmp_path):
    code = tmp_path / "spoiled_sampler_of_test.py"
    code.write_text(
        "import multiprocessing\n\n"
        "from dgl.dataloading import NeighborSampler\n"
        "from geokfp.components.training.models import build as built_in\n\n"
        "sample = NeighborSampler.sample_blocks\n\n\n"
        "def sample_or_fail(*args, **kwargs):\n"
        "    if multiprocessing.parent_process() is not None:\n"
        "        raise ArithmeticError('no neighbours today')\n"
        "    return sample(*args, **kwargs)\n\n\n"
        "NeighborSampler.sample_blocks = sample_or_fail\n\n\n"
        "def build(num_features, num_classes):\n"
        "    return built_in('sage', num_features, num_classes, num_layers=2)\n"
    )
    config = TrainingConfig(entry_point="spoiled_sampler_of_test:build", user_code=str(code), num_samplers=1)
    ended = r"site-0/trainer-\d: a sampler of it ended with exit status 1"
    with pytest.raises(ProcessFailed, match=ended) as caught:
        run(config, partitions, outputs(tmp_path))
    assert any("no neighbours today" in line for line in caught.value.last_lines)


@pytest.mark.parametrize("whose", ["site", pytest.param("run", marks=pytest.mark.long)])
def test_a_port_taken_after_the_planning_ends_the_step(partitions, tmp_path, monkeypatch, whose):
    """`site` plans the DGL servers' ports, `run` the one that the trainers meet at."""
    with socket.socket() as holder:
        (port,) = free_ports(1)
        holder.bind(("127.0.0.1", port))
        holder.listen()
        monkeypatch.setattr(
            f"geokfp.components.training.{whose}.free_ports", lambda count: [port, *free_ports(count - 1)]
        )
        with pytest.raises(ProcessFailed) as caught:
            run(TrainingConfig(**FOREVER), partitions, outputs(tmp_path))
    assert caught.value.replica == {"site": "site-0/server-0", "run": "site-0/trainer-0"}[whose]
    said = " ".join((caught.value.cause, *caught.value.last_lines))
    assert str(port) in said


@pytest.mark.long
@pytest.mark.parametrize(
    ("how", "cause"),
    [(signal.SIGINT, "KeyboardInterrupt"), (signal.SIGTERM, "SystemExit: 143"), (signal.SIGKILL, "")],
)
def test_nothing_is_left_when_the_step_itself_is_ended(partitions, tmp_path, how, cause):
    status = RunningStep("support.fault_steps", "train", partitions, tmp_path).end(how)
    assert status != 0
    assert not (tmp_path / "model").exists()
    if cause:
        assert json.loads((tmp_path / "error.json").read_text("utf-8"))["cause"] == cause
