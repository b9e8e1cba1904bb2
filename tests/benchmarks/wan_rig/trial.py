"""One training of one system over one network, from building the network to what was measured."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .cores import Cores
from .counters import Counters
from .curve import Point, reached
from .judge import Judge
from .links import ROOT, Links
from .network import network
from .processes import Processes
from .records import Row
from .systems import Setting, System
from .watch import Limits, Watch


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """What one trial gave; clock and bytes end at the target, or with the last snapshot without it."""

    reached: bool
    """Whether the target was reached."""
    seconds: float
    """Of training."""
    steps: int
    """Batches of the worker that is furthest."""
    seconds_per_step: float
    """Over these steps."""
    final_accuracy: float
    """With the last snapshot."""
    wan_bytes: int
    """Payload that crossed the links between the endpoints, both ways, by the interfaces' counters."""
    wan_bytes_with_headers: int
    """The same with the headers of Ethernet, IP and TCP."""
    wan_bytes_from_root: int
    """Of `wan_bytes`, what the root sent."""
    wan_bytes_counted_by_engine: int | None
    """What the system counted itself; None where it counts nothing."""
    initial_bytes: int
    """Payload before the clock started: meeting, and distributing the initial weights."""
    cores_busy: float
    """Share of all processor time that anything on the machine used, from the start of the clock on."""
    curve: tuple[Point, ...]
    """Accuracy over time."""


def run(system: System, setting: Setting, links: Links, judge: Judge, limits: Limits) -> Measured:
    """Trains once.

    Args:
        system: what trains.
        setting: of the trial; its folder exists and is empty.
        links: the network as told; a system that is not shaped gets its endpoints only.
        judge: what tells accuracies.
        limits: when to stop.

    Raises:
        RigError: the network could not be built.
        TrialFailed: a process ended badly, or no site started in time.
    """
    with network(links if system.shaped else links.unshaped()) as built, Counters(built) as counters:
        came = time.monotonic()
        with Processes(built, system.plan(setting), setting.folder / "logs") as processes:
            watch = Watch(system, setting, judge, limits)
            watch.until_started(processes)
            cores = Cores()
            watch.until_over(built, processes)
            cores_busy = cores.busy()
        built.stop_schedule()
        watch.until_judged()
        return _measured(watch, counters, came, limits.target, cores_busy)


def _measured(watch: Watch, counters: Counters, came: float, target: float, cores_busy: float) -> Measured:
    points = watch.points
    found = reached(points, target)
    end = found or points[-1]
    # A site that has taken its last step goes on sending until the others have, and tells of it no more.
    last = {row.site: row.moment for row in watch.rows}
    until = end.moment if found else min(end.moment, *last.values())
    names = counters.endpoints
    everything = counters.sent(names, watch.began, until)
    return Measured(
        reached=found is not None,
        seconds=end.seconds,
        steps=end.step,
        seconds_per_step=end.seconds / max(1, end.step),
        final_accuracy=points[-1].accuracy,
        wan_bytes=everything.payload_bytes,
        wan_bytes_with_headers=round(everything.num_bytes),
        wan_bytes_from_root=counters.sent([ROOT], watch.began, until).payload_bytes,
        wan_bytes_counted_by_engine=_counted(watch.rows, watch.began, until),
        initial_bytes=counters.sent(names, came, watch.began).payload_bytes,
        cores_busy=cores_busy,
        curve=tuple(points),
    )


def _counted(rows: Sequence[Row], since: float, until: float) -> int | None:
    """Returns what the sites counted themselves between two moments, as if evenly between snapshots."""
    total = 0.0
    for site in {row.site for row in rows}:
        own = [row for row in rows if row.site == site]
        counts = [row.engine_bytes for row in own if row.engine_bytes is not None]
        if len(counts) < len(own):
            return None
        before, after = np.interp([since, until], [row.moment for row in own], counts)
        total += after - before
    return round(total)
