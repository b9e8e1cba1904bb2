"""What the pods of the launch's tests run."""

import json
from collections.abc import Mapping
from pathlib import Path

from geokfp.components._files import InputError
from geokfp.components._launch import Job, Replica, Role
from geokfp.components._launch.hand_over import HandOver
from geokfp.components._launch.pod import PodOrders, PodPlace, PodWork, orders_of
from geokfp.components._launch.pods import PodGroup, PodLaunch


def work(place: PodPlace, document: str) -> PodWork:
    """One replica, whose function of `launch_targets` and arguments the document names."""
    body = json.loads(document)
    if "wrong" in body:
        raise InputError(body["wrong"])
    arguments = [each.format(index=place.index) for each in body.get("arguments", ())]
    replica = Replica(name="one", arguments=tuple(arguments))
    target = f"support.launch_targets:{body.get('function', 'tell')}"
    role = Role(name="one", target=target, replicas=(replica,))
    hand_over = HandOver(orders_of(document).hand_over)

    def finish() -> None:
        told = {"address": place.address, "addresses": _lists(place.addresses), "hosts": _lists(place.hosts)}
        hand_over.put_text(f"told/{place.name}.json", json.dumps(told))

    job = Job(name=place.name, roles=(role,), deadline_s=50)
    return PodWork(job=job, log_folder=Path(body["logs"].format(index=place.index)), finish=finish)


def _lists(groups: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
    return {group: list(values) for group, values in groups.items()}


def launch(
    folder: Path, hand_over: str, orphan_timeout_s: float = 50, num_pods: int = 2, **body: object
) -> PodLaunch:
    """Returns a launch of pods that run `work`, which print to a folder."""
    orders = PodOrders(
        step="train_gnn", hand_over=hand_over, start_timeout_s=30, orphan_timeout_s=orphan_timeout_s
    )
    group = PodGroup(
        name="worker",
        num_pods=num_pods,
        image="image",
        target="support.pod_targets:work",
        document=orders.document({"logs": str(folder / "logs-{index}"), **body}),
    )
    return PodLaunch(
        name="test-0123456789", run_id="r", step="train_gnn", namespace="n", groups=(group,), deadline_s=600
    )


def hanging_launch(folder: Path, hand_over: str, orphan_timeout_s: float) -> PodLaunch:
    """Returns a launch of two pods that hang, and say in files `pids-<index>` who does."""
    arguments = [str(folder / "pids-{index}")]
    return launch(folder, hand_over, orphan_timeout_s, function="hang", arguments=arguments)
