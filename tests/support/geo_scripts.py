"""Training scripts as users write them, each run as real processes: a tree of aggregators and its workers."""

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from geokfp.components._launch import free_ports
from geokfp.components.geo_training.topology import ROOT
from geokfp.components.geo_training.tree_job import TreeJob
from support.geo_tree import topology

DEADLINE_S = 100.0


def run_script(
    script: str, folder: Path, *, num_sites: int = 2, num_workers: int = 1, **choices: str
) -> dict:
    """Runs a script as every worker of a tree; returns what each wrote to `$RESULT`, as arrays by name."""
    shape = topology(num_sites, num_workers, free_ports(num_sites + 1))
    workers = {site.name: site.num_workers for site in shape.sites}
    job = TreeJob(run_id="scripts", workers=workers, topology=shape, round_timeout_s=80.0, **choices)
    path, code = job.write(folder / "tree.json"), folder / "script.py"
    code.write_text(script, encoding="utf-8")
    started: dict[str, subprocess.Popen] = {}
    results = {}
    with ExitStack() as stack:
        server = [sys.executable, "-m", "geokfp.components.geo_training.server"]
        for name in (ROOT, *workers):
            started[name] = _start(stack, [*server, name, str(path)], {})
        for index, name in enumerate(shape.workers):
            results[name] = folder / f"result-{index}.npz"
            place = {"GEOKFP_TREE": str(path), "GEOKFP_WORKER": name, "RESULT": str(results[name])}
            started[name] = _start(stack, [sys.executable, str(code)], {**place, "INDEX": str(index)})
        for name, process in started.items():
            said, _ = process.communicate(timeout=DEADLINE_S)
            assert process.returncode == 0, f"{name}: {said}"
    return {name: dict(np.load(result)) for name, result in results.items()}


def _start(stack: ExitStack, command: list[str], environment: dict[str, str]) -> subprocess.Popen:
    one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command,
        env={**os.environ, **one_thread, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    stack.callback(process.communicate)
    stack.callback(process.kill)
    return process
