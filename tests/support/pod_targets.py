"""What the pods of the launch's tests run."""

import json
from collections.abc import Mapping
from pathlib import Path

from geokfp.components._files import InputError
from geokfp.components._launch import Job, Replica, Role
from geokfp.components._launch.hand_over import HandOver
from geokfp.components._launch.pod import PodPlace, PodWork, orders_of


def work(place: PodPlace, document: str) -> PodWork:
    """One replica, whose function of `launch_targets` and arguments the document names."""
    body = json.loads(document)
    if "wrong" in body:
        raise InputError(body["wrong"])
    replica = Replica(name="one", arguments=tuple(body.get("arguments", ())))
    target = f"support.launch_targets:{body.get('function', 'tell')}"
    role = Role(name="one", target=target, replicas=(replica,))
    hand_over = HandOver(orders_of(document).hand_over)

    def finish() -> None:
        told = {"address": place.address, "addresses": _lists(place.addresses), "hosts": _lists(place.hosts)}
        hand_over.put_text(f"told/{place.name}.json", json.dumps(told))

    job = Job(name=place.name, roles=(role,), deadline_s=50)
    return PodWork(job=job, log_folder=Path(body["logs"]), finish=finish)


def _lists(groups: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
    return {group: list(values) for group, values in groups.items()}
