"""What a root costs as sites are added: its CPU and memory a site, over loopback.

One root, a process of its own, serves 1, 2, 4 and 8 sites of one worker, which bring dense gradients of one
model; sites are clients in this process, that say to the root what sites' nodes say. CPU is the root's own,
user and system; memory is what it grew by from when all had joined until its peak, in models. Both are told
for each site too, beside those of one site in the same run.

    python tests/benchmarks/scaling.py --values 1000000 --rounds 30 --output scaling.json
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from geokfp.components._launch import free_ports
from geokfp.components.geo_training.links.client import Client, Terms
from geokfp.components.geo_training.server import dial
from geokfp.components.geo_training.topology import ROOT, Site, Topology
from geokfp.components.geo_training.transport.base import Address
from geokfp.components.geo_training.tree_job import TreeJob
from geokfp.components.geo_training.wire.units import TREE, Unit

WARM_UP = 2
"""Rounds before CPU counts: what is allocated once."""
MOST_MODELS = 4.0
"""What a root may hold in all, in models."""
SERVER = "geokfp.components.geo_training.server"
DEADLINE_S = 120.0


def main() -> None:
    """Measures, prints a table and writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sites", default="1,2,4,8", help="numbers of sites, the first the reference")
    parser.add_argument("--values", type=int, default=1_000_000, help="float32 values of the model")
    parser.add_argument("--rounds", type=int, default=30, help="rounds that are measured")
    parser.add_argument("--output", type=Path, help="JSON file to write")
    options = parser.parse_args()
    numbers = [int(number) for number in options.sites.split(",")]
    rows = [measured(number, options.values, options.rounds) for number in numbers]
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
        "values": options.values,
        "rounds": options.rounds,
        "rows": rows,
        "most_models": max(row["memory_models"] for row in rows),
        "allowed_models": MOST_MODELS,
    }
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def measured(num_sites: int, num_values: int, num_rounds: int) -> dict[str, Any]:
    """Returns what one root with so many sites took."""
    job = job_of(num_sites)
    with tempfile.TemporaryDirectory() as folder:
        path = job.write(Path(folder) / "tree.json")
        root = psutil.Popen([sys.executable, "-m", SERVER, ROOT, str(path)], stdout=subprocess.DEVNULL)
        try:
            return rounds_with(root, job, num_values, num_rounds)
        finally:
            if root.poll() is None:
                root.kill()
                root.wait()


def job_of(num_sites: int) -> TreeJob:
    """Returns a tree of sites with a worker each, of which only the root is started."""
    ports = free_ports(num_sites + 1)
    sites = [Site(f"site-{i}", 1, Address("127.0.0.1", port)) for i, port in enumerate(ports[1:])]
    shape = Topology(Address("127.0.0.1", ports[0]), tuple(sites))
    return TreeJob(run_id="scaling", workers={site.name: 1 for site in sites}, topology=shape)


def rounds_with(root: psutil.Popen, job: TreeJob, num_values: int, num_rounds: int) -> dict[str, Any]:
    """Runs rounds over all sites, and looks at the root before and after."""
    names = [site.name for site in job.topology.sites]
    units = job.slices.cut("gradient w", num_values, 4)
    with ThreadPoolExecutor(len(names)) as pool:
        clients = list(pool.map(lambda name: dial(job, name, ROOT), names))

        def run(count: int) -> None:
            list(pool.map(lambda name, client: take_part(name, client, units, count), names, clients))

        before = root.memory_info().rss
        run(WARM_UP)
        began = cpu_s(root)
        run(num_rounds)
        spent = cpu_s(root) - began
        peak = peak_bytes(root.pid)
        list(pool.map(Client.close, clients))
    if root.wait(DEADLINE_S) != 0:
        raise RuntimeError(f"the root ended with {root.returncode}")
    return {
        "sites": len(names),
        "cpu_ms_a_round": 1e3 * spent / num_rounds,
        "memory_models": (peak - before) / (4 * num_values),
    }


def take_part(name: str, client: Client, units: Sequence[Unit], num_rounds: int) -> None:
    """Brings a site's part of some rounds, all units of a round at once."""
    terms = Terms(reduction="mean", weight=1.0, covers=(f"{name}/trainer-0",))
    values = [np.full(unit.count, 0.5, np.float32) for unit in units]
    for _ in range(num_rounds):
        pending = [
            client.push(client.next_round(TREE, unit), part, terms)
            for unit, part in zip(units, values, strict=True)
        ]
        for one in pending:
            client.wait(one)


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
