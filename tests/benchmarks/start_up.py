"""How much sooner a short training ends when its processes share their imports and DGL does not sleep.

Both ways run the same processes with the same arguments over the same parts: a DGL server and a trainer
beside each part, which train for two epochs and then evaluate every node with all its neighbours. Theirs is
the plain way: a Python of its own for each process, which imports all that it needs, and DGL's own sleeps at
connecting. Ours is the supervisor: one import, forks, short sleeps. Each way ends when its last process has.

    python tests/benchmarks/start_up.py --output start_up.json
"""

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

REPLICA = "--as-replica"
NUM_FEATURES, NUM_CLASSES = 32, 8
DEADLINE_S = 900.0


@dataclass(frozen=True)
class Measured:
    """One run."""

    way: str
    """`forked` or `plain`."""
    seconds: float
    """From the start of the first process to the end of the last."""
    training_seconds: float
    """Of that, the epochs."""


def main() -> None:
    """Measures both ways in turn, prints a table and writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=1_000_000, help="directed edges, about")
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=1, help="runs of each way")
    parser.add_argument("--output", type=Path, help="JSON file to write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        partitions = partition(Path(folder), options.nodes, options.edges, options.parts)
        runs = [
            measure(way, partitions, Path(folder) / f"{way}-{number}", options.epochs)
            for number in range(options.repeats)
            for way in ("plain", "forked")
        ]
    result = summary(runs, {**vars(options), "output": None})
    print(table(result))
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def partition(folder: Path, num_nodes: int, num_edges: int, num_parts: int) -> Path:
    """Writes a random graph and its parts; returns the partitions artifact."""
    from geokfp.components.ingest.graph import Graph, write_graph
    from geokfp.components.partition.config import PartitionConfig
    from geokfp.components.partition.run import run

    generator = np.random.default_rng(0)
    pairs = generator.integers(num_nodes, size=(2, num_edges // 2))
    pairs = pairs[:, pairs[0] != pairs[1]]
    graph = Graph(
        edges=np.unique(np.concatenate([pairs, pairs[::-1]], axis=1), axis=1),
        features=generator.normal(size=(num_nodes, NUM_FEATURES)).astype(np.float32),
        labels=generator.integers(NUM_CLASSES, size=num_nodes),
        split=np.where(generator.random(num_nodes) < 0.6, 1, 3).astype(np.int8),
        node_ids=np.arange(num_nodes),
        label_names=tuple(f"class {number}" for number in range(NUM_CLASSES)),
        feature_names=(),
        undirected=True,
    )
    write_graph(graph, folder / "graph")
    config = PartitionConfig(num_parts=num_parts)
    run(config, folder / "graph", partitions=folder / "partitions", report=folder / "report.html")
    return folder / "partitions"


def measure(way: str, partitions: Path, work: Path, epochs: int) -> Measured:
    """Trains once, the `plain` or the `forked` way."""
    from geokfp.components._launch import Job, run_job

    job = plan(partitions, work, epochs)
    began = time.monotonic()
    if way == "plain":
        run_plain(job, work / "logs")
    else:
        assert isinstance(job, Job)
        run_job(job, log_folder=work / "logs", on_line=lambda _who, _line: None)
    seconds = time.monotonic() - began
    rows = json.loads((work / "history.json").read_text(encoding="utf-8"))["rows"]
    return Measured(way, seconds, sum(row["seconds"] for row in rows))


def plan(partitions: Path, work: Path, epochs: int) -> Any:
    """Plans what `train_gnn` would start."""
    from geokfp.components._launch import Job, free_ports
    from geokfp.components.partition.partitions import read_partitions
    from geokfp.components.training.config import TrainingConfig
    from geokfp.components.training.run import TRAINER, model_source
    from geokfp.components.training.site import shared_memory_prefix, site_roles
    from geokfp.components.training.worker import WorkerJob

    parts = read_partitions(partitions)
    work.mkdir()
    config = TrainingConfig(epochs=epochs, batch_size=1000, fan_outs=[10, 10])
    source = model_source(config, parts, work)
    path = WorkerJob(
        config=config,
        source=source,
        work=work,
        port=free_ports(1)[0],
        checkpoints=work / "checkpoints",
        resume_epoch=0,
    ).write()
    run_id = uuid.uuid4().hex[:8]
    roles = site_roles(parts.sites[0], trainer=TRAINER, arguments=(str(path),), work=work, run_id=run_id)
    prefixes = (shared_memory_prefix(run_id),)
    return Job(name="start-up", roles=roles, deadline_s=DEADLINE_S, shared_memory_prefixes=prefixes)


def run_plain(job: Any, logs: Path) -> None:
    """Starts each process of a job as a Python of its own, and waits for all."""
    from geokfp.components._launch.shared_memory import remove_shared_memory

    logs.mkdir()
    started: list[subprocess.Popen[bytes]] = []
    deadline = time.monotonic() + job.deadline_s
    try:
        for role in job.roles:
            for replica in role.replicas:
                with (logs / replica.log_name).open("wb") as log:
                    command = [sys.executable, __file__, REPLICA, role.target, *replica.arguments]
                    environment = {**os.environ, **replica.environment}
                    process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
                    started.append(process)
        for process in started:
            if status := process.wait(deadline - time.monotonic()):
                raise RuntimeError(f"a plain process ended with status {status}; its log is in {logs}")
    finally:
        for process in started:
            process.kill()
            process.wait()
        remove_shared_memory(job.shared_memory_prefixes)


def be_replica(target: str, arguments: list[str]) -> None:
    """Runs a target as the plain way does: parts still share the host, but DGL sleeps as it likes."""
    from geokfp.components.training import one_host

    vars(one_host)["_ShortSleep"] = lambda: time
    vars(one_host)["await_servers"] = lambda *_: None
    module, _, function = target.partition(":")
    getattr(importlib.import_module(module), function)(arguments)


def summary(runs: list[Measured], options: dict[str, Any]) -> dict[str, Any]:
    """Returns medians, their ratio, and where it was measured."""
    seconds = {way: median(run.seconds for run in runs if run.way == way) for way in ("plain", "forked")}
    return {
        "options": options,
        "machine": {"cores": os.cpu_count(), "load": os.getloadavg()[0], "python": platform.python_version()},
        "runs": [asdict(run) for run in runs],
        "seconds": seconds,
        "ratio": seconds["plain"] / seconds["forked"],
    }


def table(result: dict[str, Any]) -> str:
    """Returns the runs as lines of text."""
    rows = [f"{'way':8} {'wall s':>8} {'epochs s':>9} {'other s':>8}"]
    for run in result["runs"]:
        other = run["seconds"] - run["training_seconds"]
        rows.append(f"{run['way']:8} {run['seconds']:8.1f} {run['training_seconds']:9.1f} {other:8.1f}")
    machine = result["machine"]
    rows.append(
        f"plain / forked: {result['ratio']:.2f} ({machine['cores']} cores, load {machine['load']:.1f})"
    )
    return "\n".join(rows)


if __name__ == "__main__":
    if sys.argv[1:2] == [REPLICA]:
        be_replica(sys.argv[2], sys.argv[3:])
    else:
        main()
