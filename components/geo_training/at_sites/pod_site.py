"""What the pod of a site does in a step that reads the site's tables there."""

import json
import tempfile
from functools import partial
from pathlib import Path

from ..._launch import Job, Replica, Role
from ..._launch.hand_over import HandOver
from ..._launch.pod import PodPlace, PodWork, orders_of
from ..clusters.results import give_back
from ..job import write_json

SITE = "site.json"
"""What the process tells of its site, in JSON: all that leaves it."""
TARGET = "geokfp.components.geo_training.at_sites.pod_site:site"


def site(place: PodPlace, document: str) -> PodWork:
    """Plans the process that reads the site's tables; see `PodGroup.target`."""
    body, orders = json.loads(document), orders_of(document)
    folder = Path(tempfile.mkdtemp(prefix="geokfp-"))
    work = folder / "work"
    work.mkdir()
    given = {
        **body["sites_orders"][place.group],
        "sites": body["sites"],
        "hand_over": orders.hand_over,
        "start_timeout_s": orders.start_timeout_s,
        "work": str(work),
    }
    write_json(folder / "orders.json", given)
    replica = Replica(name=f"{place.group}/reader", arguments=(str(folder / "orders.json"),))
    role = Role(name="reader", target=body["worker"], replicas=(replica,))
    return PodWork(
        job=Job(name=orders.step, roles=(role,), deadline_s=float(body["timeout_s"])),
        log_folder=folder / "logs",
        finish=partial(give_back, HandOver(orders.hand_over), work, place.name),
    )
