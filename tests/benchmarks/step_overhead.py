"""What a step of a pipeline costs beyond its work, when it runs on this machine.

The same ingestion of the built-in graph is run both ways, in turn: as a step of a compiled pipeline, as
`geokfp run` runs it, from kfp's "Executing" to its "finished"; and by a plain Python that imports the same
engine and calls it.

    python tests/benchmarks/step_overhead.py --repeats 9 --output step_overhead.json
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from geokfp.components import ingest_graph
from geokfp.pipelines._command_line.supervision import read_event, run_supervised
from kfp import dsl
from kfp.compiler import Compiler

PLAIN = """
import sys
from pathlib import Path

from geokfp.components.ingest.config import IngestConfig
from geokfp.components.ingest.run import run

folder = Path(sys.argv[1])
run(
    IngestConfig(),
    graph=folder / "graph",
    report=folder / "report.html",
    fingerprint=folder / "fingerprint",
)
"""


def main() -> None:
    """Measures both ways in turn, prints a line and writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9, help="runs of each way")
    parser.add_argument("--output", type=Path, help="JSON file to write")
    options = parser.parse_args()
    runs: dict[str, list[float]] = {"step": [], "plain": []}
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "one_step.yaml"
        compile_one_step(package)
        for number in range(options.repeats):
            work = Path(folder) / str(number)
            work.mkdir()
            runs["step"].append(step_seconds(package, work / "pipeline"))
            runs["plain"].append(plain_seconds(work))
    seconds = {way: median(values) for way, values in runs.items()}
    result: dict[str, Any] = {
        "machine": {"cores": os.cpu_count(), "load": os.getloadavg()[0], "python": platform.python_version()},
        "runs": runs,
        "seconds": seconds,
        "overhead_seconds": seconds["step"] - seconds["plain"],
        "ratio": seconds["step"] / seconds["plain"],
    }
    print(
        f"step {seconds['step']:.2f} s, the same work plainly {seconds['plain']:.2f} s: overhead "
        f"{result['overhead_seconds']:.3f} s (load {result['machine']['load']:.1f})"
    )
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def compile_one_step(package: Path) -> None:
    """Compiles a pipeline that ingests the built-in graph."""

    @dsl.pipeline(name="one-step")
    def one_step() -> None:
        ingest_graph()

    Compiler().compile(one_step, str(package))


def step_seconds(package: Path, root: Path) -> float:
    """Runs the pipeline and returns the time of its step."""
    root.mkdir()
    times: dict[str, float] = {}

    def note(line: str) -> None:
        event = read_event(line)
        if event is not None and event.folder == "ingest-graph":
            times[event.kind] = time.monotonic()

    if not run_supervised(package, {}, root, note):
        raise RuntimeError("the step failed")
    return times["succeeded"] - times["started"]


def plain_seconds(work: Path) -> float:
    """Runs the same work in a plain Python and returns its time."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-W", "ignore", "-c", PLAIN, str(work)], check=True, capture_output=True)
    return time.monotonic() - began


if __name__ == "__main__":
    main()
