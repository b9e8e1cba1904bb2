"""Whole runs of `wan.py`: of toy systems over a real network, and of MXNet itself."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.wan_rig import links
from benchmarks.wan_rig.command_line import compare, tell
from benchmarks.wan_rig.options import Options
from benchmarks.wan_rig.processes import Process
from benchmarks.wan_rig.requirements import missing
from benchmarks.wan_rig.systems import CONTROL, Setting, System
from benchmarks.wan_rig.systems.base import PYTHON_ENVIRONMENT

TWO_SITES = links.endpoints(2)
LACKING = missing(links.Links(endpoints=TWO_SITES, schedule=links.uniform(TWO_SITES, None)))
pytestmark = pytest.mark.skipif(bool(LACKING), reason=f"the network needs {', '.join(LACKING)}")

SERVER = """
import socket, sys, threading
server = socket.create_server((sys.argv[1], 7000))
size = int(sys.argv[2])
def answer(connection):
    while size and connection.recv(size, socket.MSG_WAITALL):
        connection.sendall(b".")
both = [server.accept()[0] for _ in range(2)]
for connection in both:
    connection.sendall(b".")
    threading.Thread(target=answer, args=(connection,)).start()
"""
WORKER = """
import pathlib, socket, sys, time
from wan_rig.records import Recorder
address, folder, gain, size = sys.argv[1:]
for _ in range(1000):
    try:
        link = socket.create_connection((address, 7000), 10)
        break
    except ConnectionRefusedError:
        time.sleep(0.01)
recorder = Recorder(pathlib.Path(folder))
link.recv(1)
recorder.start(lambda: ([0.0], 0))
for step in range(5, 45, 5):
    if int(size):
        link.sendall(bytes(int(size)))
        link.recv(1)
    recorder.save(step, lambda: ([step * float(gain)], step // 5 * int(size)))
"""


def toy(gain: float, size: int = 500_000, script: str = WORKER, **others) -> System:
    """A system that sends `size` bytes in five steps, and gains `gain` of accuracy a step."""

    def plan(setting: Setting) -> tuple[Process, ...]:
        address = setting.addresses["root"]
        server = Process(
            name="server", endpoint="root", command=(sys.executable, "-c", SERVER, address, str(size))
        )
        workers = [
            Process(
                name=site,
                endpoint=site,
                command=(
                    *(sys.executable, "-c", script, address, str(setting.records / site)),
                    *(str(gain), str(size)),
                ),
                environment=PYTHON_ENVIRONMENT,
                finishes=True,
            )
            for site in setting.sites
        ]
        return (server, *workers)

    return System(says="a toy", plan=plan, **others)


class FirstNumber:
    """Judges weights by the first of them."""

    def submit(self, weights: Path) -> None:
        assert weights.exists()

    def accuracy(self, weights: Path) -> float:
        return float(np.load(weights)[0])


def benchmark(folder: Path, systems: dict[str, System]) -> tuple[int, dict]:
    names = tuple(name for name in systems if name != CONTROL)
    options = Options(
        data=folder,
        systems=names,
        split="by_class",
        rate="8mbit",
        learning_rates=(1e-3,),
        json=folder / "f.json",
        plot=folder / "f.svg",
    )
    outcomes = compare(options, options.network(), FirstNumber(), folder / "work", systems)
    status = tell(options, outcomes)
    return status, json.loads((folder / "f.json").read_text())


NUMBERS = {
    "seconds_to_target",
    "seconds_per_step",
    "steps_to_target",
    "final_accuracy",
    "wan_bytes",
    "wan_bytes_counted_by_engine",
    "initial_bytes",
}


def test_systems_are_compared(tmp_path, capsys):
    alone = toy(0.01, size=0, shaped=False, judged=max)
    systems = {CONTROL: alone, "mxnet": toy(0.03), "mxnet_p3": toy(0.1)}
    status, result = benchmark(tmp_path, systems)
    assert status == 0, result["disagreements"]
    assert list(result["systems"]) == list(systems)
    for name, row in result["systems"].items():
        assert row.keys() >= NUMBERS, name
        assert all(isinstance(row[key], int | float) or name == CONTROL for key in NUMBERS)
    slow, fast = result["systems"]["mxnet"], result["systems"]["mxnet_p3"]
    assert (slow["steps_to_target"], fast["steps_to_target"]) == (35, 10)
    assert fast["wan_bytes_counted_by_engine"] == pytest.approx(2 * 2 * 500_000, rel=0.01)
    assert fast["wan_bytes"] == pytest.approx(2_000_000, rel=0.02)
    assert result["systems"][CONTROL]["seconds_to_target"] is None
    assert result["systems"][CONTROL]["final_accuracy"] == pytest.approx(0.4)
    assert result["speed_ups"]["mxnet_p3"] == pytest.approx(
        slow["seconds_to_target"] / fast["seconds_to_target"], rel=0.01
    )
    assert "mxnet_p3" in capsys.readouterr().out
    assert (tmp_path / "f.svg").read_text().startswith("<svg")


def test_no_speed_up_is_told_of_toys_whose_site_alone_gets_there(tmp_path, capsys):
    alone = toy(0.05, size=0, shaped=False, judged=max)
    status, result = benchmark(tmp_path, {CONTROL: alone, "mxnet": toy(0.05), "mxnet_p3": toy(0.1)})
    assert status == 0
    assert result["speed_ups"] == {}
    assert "no speed-ups: a site alone reaches 0.95" in capsys.readouterr().out


def test_a_system_that_fails_does_not_stop_the_others(tmp_path, capsys):
    broken = toy(0.1, script="raise SystemExit('out of order')")
    status, result = benchmark(tmp_path, {CONTROL: toy(0.01, size=0), "mxnet": broken, "mxnet_p3": toy(0.1)})
    assert status == 1
    assert "ended with exit status 1: out of order" in result["systems"]["mxnet"]["runs"][0]["error"]
    assert result["systems"]["mxnet_p3"]["seconds_to_target"] > 0
    assert "failed at 0.001" in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.parametrize("name", ["mxnet", "mxnet_2bit", "mxnet_p3"])
def test_mxnet_trains_over_shaped_links(name, tmp_path, real_data):
    script = Path(__file__).with_name("wan.py")
    command = [sys.executable, script, "--data", real_data / "mnist_10k", "--systems", name]
    command += ["--rate", "100mbit", "--learning-rates", "3e-3"]
    command += ["--target", "0.6", "--json", tmp_path / "f.json"]
    subprocess.run(command, check=True, timeout=600)
    row = json.loads((tmp_path / "f.json").read_text())["systems"][name]
    assert row["final_accuracy"] >= 0.6
    gradients = 4 * row["steps_to_target"] * 178_762 * 4
    sent = row["wan_bytes"] - row["wan_bytes_from_root"]
    assert sent == pytest.approx(gradients / (16 if name == "mxnet_2bit" else 1), rel=0.1)


@pytest.mark.long
def test_torch_trains_over_a_network_as_one_process_does(tmp_path, real_data):
    script = Path(__file__).with_name("wan.py")
    command = [sys.executable, script, "--data", real_data / "mnist_10k", "--rate", "none"]
    command += ["--systems", "torch_ddp,torch_fsa,torch_hfa,torch_joined,joined", "--learning-rates", "3e-3"]
    command += ["--target", "0.6", "--max-steps", "60", "--json", tmp_path / "f.json"]
    subprocess.run(command, check=True, timeout=900)
    result = json.loads((tmp_path / "f.json").read_text())["systems"]
    for name, row in result.items():
        assert row["final_accuracy"] >= 0.6, name
    together = result["torch_joined"]
    for name in ("torch_ddp", "torch_fsa"):  # the same mean gradients: only the order of sums differs
        assert result[name]["steps_to_target"] == together["steps_to_target"]
        assert result[name]["final_accuracy"] == pytest.approx(together["final_accuracy"], abs=0.005)
    assert result["torch_hfa"]["wan_bytes_counted_by_engine"] < result["torch_fsa"]["wan_bytes"] / 2
    assert result["torch_ddp"]["wan_bytes"] > result["torch_ddp"]["steps_to_target"] * 178_762 * 4
    assert together["wan_bytes"] == result["joined"]["wan_bytes"] == 0
