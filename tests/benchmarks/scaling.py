"""What a root costs as sites are added: its CPU and memory a site, over loopback.

Each root, a process of its own, serves 1, 2, 4 and 8 sites of one worker, which train one vector as a tree's
workers do; the sites' nodes and workers are threads of this process. CPU is that of all roots, user and
system, in the last rounds; memory is what one root grew by from when all had joined until its peak, in whole
models, of several roots the one that grew most. Both are told for each site too, beside those of one site in
the same run. With `--late` the last site stands still until the others are so many steps ahead, and comes
after them then: a synchronisation with a `quorum` goes on meanwhile.

    python tests/benchmarks/scaling.py --values 1000000 --rounds 30 --output scaling.json
    python tests/benchmarks/scaling.py --synchronization 'fsa + quorum(workers=SITES-1, grace_s=0)' --late 30
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from geokfp.components._launch import free_ports
from geokfp.components.geo_training import server
from geokfp.components.geo_training.server import dial
from geokfp.components.geo_training.synchronization import synchronization
from geokfp.components.geo_training.topology import Site, Topology
from geokfp.components.geo_training.transport.base import Address
from geokfp.components.geo_training.tree_job import TreeJob
from geokfp.components.geo_training.wire.units import WEIGHTS
from geokfp.components.geo_training.workers.pace import agreed_slices
from geokfp.components.geo_training.workers.plane import Layout, Members, Plane

SITES = "SITES-1"
"""What stands in options for the number of sites but one, at least 1."""
WARM_UP = 2
"""Steps before CPU counts: what is allocated once."""
MOST_MODELS = 4.0
"""What a root may hold in all, in models."""
SERVER = "geokfp.components.geo_training.server"
DEADLINE_S = 300.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """What is measured."""

    synchronization: str
    compression: str
    transmission: str
    values: int
    rounds: int
    late: int


def main() -> None:
    """Measures, prints a table and writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sites", default="1,2,4,8", help="numbers of sites, the first the reference")
    parser.add_argument("--values", type=int, default=1_000_000, help="float32 values of the model")
    parser.add_argument("--rounds", type=int, default=30, help="steps of each worker that are measured")
    parser.add_argument("--synchronization", default="fsa", help=f"of the tree; {SITES} is sites but one")
    parser.add_argument("--compression", default="none", help="of the tree")
    parser.add_argument("--transmission", default="fifo", help="of the tree")
    parser.add_argument("--late", type=int, default=0, help="steps that the last site is behind")
    parser.add_argument("--output", type=Path, help="JSON file to write")
    given = vars(parser.parse_args())
    numbers, output = [int(number) for number in given.pop("sites").split(",")], given.pop("output")
    choice = Choice(**given)
    rows = [measured(number, choice) for number in numbers]
    for row in rows:
        for what in ("cpu_ms_a_round", "memory_models"):
            row[f"{what}_a_site"] = row[what] / row["sites"]
            row[f"{what}_a_site_ratio"] = row[f"{what}_a_site"] / max(rows[0][f"{what}_a_site"], 1e-9)
    print("sites  root's CPU a round  a site, of the first  memory  a site, of the first")
    for row in rows:
        print(
            f"{row['sites']:5d}  {row['cpu_ms_a_round']:15.1f} ms  "
            f"{row['cpu_ms_a_round_a_site_ratio']:20.2f}  {row['memory_models']:6.2f}  "
            f"{row['memory_models_a_site_ratio']:20.2f}"
        )
    result = {
        "machine": {"cores": os.cpu_count(), "load": os.getloadavg()[0]},
        **given,
        "rows": rows,
        "most_models": max(row["memory_models"] for row in rows),
        "allowed_models": MOST_MODELS,
    }
    if output:
        output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def measured(num_sites: int, choice: Choice) -> dict[str, Any]:
    """Returns what the roots of so many sites took."""
    job = job_of(num_sites, choice)
    with tempfile.TemporaryDirectory() as folder:
        path = job.write(Path(folder) / "tree.json")
        roots = [
            psutil.Popen([sys.executable, "-m", SERVER, root.name, str(path)], stdout=subprocess.DEVNULL)
            for root in job.roots
        ]
        try:
            return trained_with(roots, job, path, choice)
        finally:
            for root in roots:
                if root.poll() is None:
                    root.kill()
                    root.wait()


def job_of(num_sites: int, choice: Choice) -> TreeJob:
    """Returns a tree of sites with a worker each, all of which may relay or have a root beside them."""
    ports = free_ports(2 * num_sites + 8)
    sites = [
        Site(f"site-{i}", 1, Address("127.0.0.1", ports[2 * i]), Address("127.0.0.1", ports[2 * i + 1]))
        for i in range(num_sites)
    ]
    shape = Topology(Address("127.0.0.1", ports[-1]), tuple(sites))
    return TreeJob(
        run_id="scaling",
        workers={site.name: 1 for site in sites},
        topology=shape,
        synchronization=choice.synchronization.replace(SITES, str(max(1, num_sites - 1))),
        compression=choice.compression,
        transmission=choice.transmission,
    )


class Training:
    """The sites of a tree, and where they have to wait for one another."""

    def __init__(self, roots: Sequence[psutil.Popen], job: TreeJob, choice: Choice) -> None:
        self.job = job
        self.choice = choice
        self.late = choice.late if len(job.workers) > 1 else 0
        self.begins = threading.Barrier(len(job.workers), self._begin)
        self.ends = threading.Barrier(len(job.workers), self._end)
        self.are_ahead = threading.Event()
        self.cpu_s: list[float] = []
        self.before: list[int] = []
        self.peaks: list[int] = []
        self._roots = roots

    def _begin(self) -> None:
        self.before = [root.memory_info().rss for root in self._roots]

    def _end(self) -> None:
        self.cpu_s.append(sum(map(cpu_s, self._roots)))
        self.peaks = [peak_bytes(root.pid) for root in self._roots]

    def work(self, name: str) -> None:
        """Trains at one worker."""
        job, choice = self.job, self.choice
        client = dial(job, name, job.topology.site(name).name)
        members = Members(workers=job.topology.workers, name=name)
        plane = Plane(client, members, agreed_slices(job, client, members), len(job.roots))
        policy = synchronization(job.synchronization).worker(piecewise=False, root_follows=False)
        self.begins.wait(DEADLINE_S)
        replica = Vector(choice.values)
        plane.place(replica.layout)
        replica.set_weights(plane.first(WEIGHTS, replica.layout, replica.weights()))
        policy.begin(replica, plane, replica.descend)
        for step in range(WARM_UP + choice.rounds):
            self._before(name, step)
            policy.step(Gradient(replica), 1)
        policy.finish()
        self.ends.wait(DEADLINE_S)
        plane.close()

    def _before(self, name: str, step: int) -> None:
        first, last = self.job.topology.workers[0], self.job.topology.workers[-1]
        if name == first and step == WARM_UP:
            self.cpu_s.append(sum(map(cpu_s, self._roots)))
        if name == first and step == WARM_UP + self.late:
            self.are_ahead.set()
        if name == last and step == WARM_UP and self.late:
            self.are_ahead.wait(DEADLINE_S)


class Vector:
    """A model of one vector; see `Replica`."""

    def __init__(self, num_values: int) -> None:
        self.layout = Layout.of([("w", num_values)])
        self.statistics_layout = Layout.of([])
        self._weights = np.zeros(num_values, np.float32)

    def weights(self) -> Any:
        """See `Replica`."""
        return self._weights.copy()

    def set_weights(self, weights: Any) -> None:
        """See `Replica`."""
        self._weights = np.array(weights, np.float32)

    def statistics(self) -> Any:
        """See `Replica`."""
        return np.zeros(0, np.float32)

    def set_statistics(self, statistics: Any) -> None:
        """See `Replica`."""

    def descend(self, mean: Any) -> None:
        """Takes a step of plain SGD."""
        self._weights = self._weights - np.float32(0.01) * mean


class Gradient:
    """See `Gradient` of the policies; the same in every step."""

    def __init__(self, replica: Vector) -> None:
        self._replica = replica
        self._values = np.linspace(-1, 1, replica.layout.count, dtype=np.float32)

    def flat(self) -> Any:
        """See `Gradient`."""
        return self._values

    def apply(self, num_samples: int) -> None:
        """See `Gradient`."""
        self._replica.descend(self._values / np.float32(num_samples))


def trained_with(roots: Sequence[psutil.Popen], job: TreeJob, path: Path, choice: Choice) -> dict[str, Any]:
    """Trains over all sites, and looks at the roots before and after."""
    training, names = Training(roots, job, choice), [site.name for site in job.topology.sites]
    with ThreadPoolExecutor(2 * len(names)) as pool:
        nodes = [pool.submit(server.main, [name, str(path)]) for name in names]
        list(pool.map(training.work, job.topology.workers))
        for node in nodes:
            node.result(DEADLINE_S)
    for root in roots:
        if root.wait(DEADLINE_S) != 0:
            raise RuntimeError(f"a root ended with {root.returncode}")
    began, ended = training.cpu_s
    grew = [peak - before for peak, before in zip(training.peaks, training.before, strict=True)]
    return {
        "sites": len(names),
        "cpu_ms_a_round": 1e3 * (ended - began) / choice.rounds,
        "memory_models": max(grew) / (4 * choice.values),
    }


def cpu_s(process: psutil.Popen) -> float:
    """Returns the seconds that a process has computed."""
    times = process.cpu_times()
    return float(times.user + times.system)


def peak_bytes(pid: int) -> int:
    """Returns the most memory that a process ever had."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


if __name__ == "__main__":
    main()
