"""Launches whose pods are real processes, started by a cluster double as its objects say."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from geokfp.components._launch.cluster_run import Placed
from geokfp.components._launch.errors import ProcessFailed
from geokfp.components._launch.hand_over import HandOver
from geokfp.components._launch.launch_options import LaunchOptions
from geokfp.components._launch.launch_step import Surroundings, run_launches
from geokfp.components._launch.pod import PodOrders
from support.api_server import ApiServerDouble
from support.launched import NAMESPACE, launch, refuse_what_schemas_do
from support.pod_launches import pod_group
from support.pod_processes import on_a_double


@pytest.fixture
def server() -> Iterator[ApiServerDouble]:
    with ApiServerDouble() as double:
        double.checks = [refuse_what_schemas_do]
        yield double


def run_pods(server: ApiServerDouble, folder: Path, first_address: int, kind: str, **body: Any) -> HandOver:
    hand_over = HandOver(str(folder / "hand-over"))
    orders = PodOrders(step="step", hand_over=hand_over.uri, start_timeout_s=30, orphan_timeout_s=50)
    document = orders.document({"logs": str(folder / "logs-{index}"), **body})
    group = pod_group("worker", 2, target="support.pod_targets:work", document=document)
    options = LaunchOptions(launcher=kind, run_id="run", namespace=NAMESPACE)
    run_launches(
        [(Placed(launch=launch(group), kind=kind), hand_over)],
        options,
        Surroundings(run=on_a_double(server, folder, first_address), job_resource=folder / "job_resource"),
    )
    return hand_over


@pytest.mark.parametrize(("kind", "first_address"), [("job", 10), ("dgljob", 20)])
def test_pods_learn_their_places_and_hand_over(
    server: ApiServerDouble, tmp_path: Path, kind: str, first_address: int
) -> None:
    hand_over = run_pods(server, tmp_path, first_address, kind)
    for index in range(2):
        told = json.loads(hand_over.get_text(f"told/worker-{index}.json") or "")
        assert told["address"] == f"127.0.77.{first_address + index}"
    assert json.loads((tmp_path / "job_resource").read_text())["namespace"] == NAMESPACE
    assert [one["kind"] for one in server.store.everything()] == []


def test_a_pod_that_fails_tells_why(server: ApiServerDouble, tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed) as caught:
        run_pods(server, tmp_path, 30, "job", function="fail")
    assert caught.value.cause == "ValueError: the sky fell"
    assert caught.value.replica in {"worker/0/one", "worker/1/one"}
    assert [one["kind"] for one in server.store.everything()] == []
