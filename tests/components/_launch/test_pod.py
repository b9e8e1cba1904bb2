"""A pod's process: who it is, its work, what it leaves when it fails, and its end when nobody beats."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from geokfp.components._files import InputError
from geokfp.components._launch.hand_over import HandOver
from geokfp.components._launch.names import ipv4_of, resolve
from geokfp.components._launch.pod import PodOrders, orders_of, read_failures_of_pods
from support.faults import wait_until
from support.process_ends import wait_until_gone

TESTS = Path(__file__).parents[2]
HOSTS = {"root": ["l-root-0.l"], "worker": ["l-worker-0.l", "l-worker-1.l"]}
ADDRESSES = {"l-root-0.l": "127.0.0.1", "l-worker-0.l": "127.0.0.2", "l-worker-1.l": "127.0.0.3"}


def start(folder: Path, *, orphan_timeout_s: float = 50, index: str = "1", **body: Any) -> Any:
    orders = PodOrders(
        step="train_gnn",
        hand_over=str(folder / "hand-over"),
        start_timeout_s=10,
        orphan_timeout_s=orphan_timeout_s,
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(TESTS),
        "GEOKFP_GROUP": "worker",
        "GEOKFP_INDEX": index,
        "GEOKFP_HOSTS": json.dumps(HOSTS),
        "GEOKFP_ADDRESSES": json.dumps(ADDRESSES),
        "GEOKFP_TARGET": "support.pod_targets:work",
        "GEOKFP_DOCUMENT": orders.document({"logs": str(folder / "logs"), **body}),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "geokfp.components._launch.pod"],
        env=environment,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def failures(folder: Path) -> list[tuple[str, str]]:
    records = read_failures_of_pods(HandOver(str(folder / "hand-over")), {"root": 1, "worker": 2})
    assert all(record.step == "train_gnn" for record in records)
    return [(record.replica, record.cause) for record in records]


@pytest.mark.parametrize("index", ["1", "l-worker-1.l"])
def test_a_pod_knows_its_place_runs_its_job_and_hands_over(tmp_path: Path, index: str) -> None:
    out, errors = (pod := start(tmp_path, index=index)).communicate(timeout=50)
    assert (pod.returncode, errors) == (0, "")
    assert "one: halfway" in out
    assert "pod worker-1 is done" in out
    told = json.loads((tmp_path / "hand-over/told/worker-1.json").read_text())
    assert told["address"] == "127.0.0.3"
    assert told["hosts"] == HOSTS
    assert told["addresses"] == {"root": ["127.0.0.1"], "worker": ["127.0.0.2", "127.0.0.3"]}
    assert failures(tmp_path) == []


def test_a_failed_replica_is_told_and_left_in_the_hand_over(tmp_path: Path) -> None:
    _, errors = (pod := start(tmp_path, function="fail")).communicate(timeout=50)
    assert pod.returncode == 1
    assert errors.splitlines()[-1] == "pod worker-1 failed: one: ValueError: the sky fell"
    assert failures(tmp_path) == [("worker/1/one", "ValueError: the sky fell")]


def test_wrong_input_found_in_a_pod_is_told_in_one_line(tmp_path: Path) -> None:
    _, errors = (pod := start(tmp_path, wrong="part-1: altered")).communicate(timeout=50)
    assert pod.returncode == 1
    assert errors == "pod worker-1 failed: part-1: altered\n"
    assert failures(tmp_path) == [("worker/1", "part-1: altered")]


def test_a_pod_ends_itself_and_its_processes_when_nobody_beats(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    pod = start(tmp_path, orphan_timeout_s=3, function="hang", arguments=[str(pids)])
    hand_over = HandOver(str(tmp_path / "hand-over"))
    wait_until(lambda: hand_over.beat() or pids.exists(), "the replica", 40.0)
    _, errors = pod.communicate(timeout=50)
    assert pod.returncode not in (0, None)
    cause = f"nobody has beaten in {tmp_path}/hand-over for 3 s (orphan_timeout_s)"
    assert f"pod worker-1 failed: {cause}" in errors
    assert failures(tmp_path) == [("worker/1", cause)]
    wait_until_gone(pids)


def test_sigterm_ends_a_pod_with_its_processes(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    pod = start(tmp_path, function="hang", arguments=[str(pids)])
    wait_until(pids.exists, "the replica", 40.0)
    pod.send_signal(signal.SIGTERM)
    pod.communicate(timeout=20)
    assert pod.returncode == 128 + signal.SIGTERM
    wait_until_gone(pids)


def test_the_dgl_operators_own_partitioner_does_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "DGL_OPERATOR_PHASE_ENV": "Partitioner"}
    command = [sys.executable, "-m", "geokfp.components._launch.pod"]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, timeout=50, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_orders_come_back_from_a_document() -> None:
    orders = PodOrders(step="s", hand_over="s3://b/k", start_timeout_s=1.5, orphan_timeout_s=2.0)
    document = orders.document({"part": 1})
    assert orders_of(document) == orders
    assert json.loads(document)["part"] == 1


def test_names_are_asked_for_until_they_resolve() -> None:
    asked: list[str] = []

    def lookup(name: str) -> str | None:
        asked.append(name)
        return None if name == "b" and asked.count("b") < 2 else f"10.0.0.{len(name)}"

    assert resolve({"g": ("a", "b")}, None, timeout_s=20, lookup=lookup) == {"g": ("10.0.0.1", "10.0.0.1")}
    assert asked == ["a", "b", "b"]


def test_names_that_never_resolve_are_named() -> None:
    with pytest.raises(TimeoutError, match=r"^b did not resolve to an address in 0 s$"):
        resolve({"g": ("a", "b")}, None, timeout_s=0, lookup={"a": "10.0.0.1"}.get)
    with pytest.raises(InputError, match="addresses given lack 1, 2, 3, 4, 5 and 2 more"):
        resolve({"g": tuple("1234567")}, {}, timeout_s=0)


def test_a_name_of_this_host_resolves_to_ipv4() -> None:
    assert ipv4_of("localhost") == "127.0.0.1"
    assert ipv4_of("no-such-host.invalid") is None
