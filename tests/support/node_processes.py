"""The aggregators of a tree as real processes, for tests that look at them from outside."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
from geokfp.components.geo_training.topology import ROOT
from geokfp.components.geo_training.tree_job import TreeJob


@contextmanager
def nodes(job: TreeJob, folder: Path) -> Iterator[dict[str, psutil.Popen]]:
    """Starts root and sites, and ends them; what each has printed lies in `folder` under its name."""
    path = job.write(folder / "tree.json")
    started: dict[str, psutil.Popen] = {}
    with ExitStack() as stack:
        for name in (ROOT, *job.workers):
            log = stack.enter_context((folder / f"{name}.txt").open("w"))
            command = [sys.executable, "-m", "geokfp.components.geo_training.server", name, str(path)]
            started[name] = psutil.Popen(command, stdout=log, stderr=subprocess.STDOUT)
            stack.callback(_end, started[name])
        yield started


def _end(process: psutil.Popen) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
