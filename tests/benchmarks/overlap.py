"""What P3 and a second root make of a step over slow links: its seconds, and the busiest endpoint's bytes.

The model's first layers are small and its last are large. Each layer sleeps for as long as it is to compute,
as if on a device, backwards twice as long, so that few cores do not judge the order of messages. Real
processes in network namespaces with shaped links, all ways in turn, several times; ratios are of medians.

    python tests/benchmarks/overlap.py --rate 20mbit --repeats 3 --output overlap.json
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import torch
from geokfp.components.geo_training.topology import Site, Topology
from geokfp.components.geo_training.transport.base import Address
from geokfp.components.geo_training.tree_job import TreeJob
from torch import nn
from wan_rig.counters import Counters
from wan_rig.links import ROOT, Links, endpoints, uniform
from wan_rig.network import Network, network

SITES = ("site-0", "site-1")
WIDTHS = (16, 32, 48, 64, 96, 128, 192, 256, 384)
"""Numbers into the layers and out of the last: 195,520 weights, half of them in the last layer."""
WARM_UP = 3
"""Steps that are not measured."""
WAYS = {"fifo": "fifo", "p3": "p3", "two roots": "fifo + multigps(shards=2)"}


class _Compute(torch.autograd.Function):
    """Takes as long as it is told, forwards and twice backwards."""

    @staticmethod
    def forward(context: Any, values: torch.Tensor, seconds: float) -> torch.Tensor:
        context.seconds = seconds
        time.sleep(seconds)
        return values.clone()

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        time.sleep(2 * context.seconds)
        return gradient, None


class _Layer(nn.Linear):
    def __init__(self, into: int, out: int, seconds: float) -> None:
        super().__init__(into, out)
        self._seconds = seconds

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return _Compute.apply(super().forward(values), self._seconds).relu()


def main() -> None:
    """Measures all ways in turn, prints a line for each and writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", default="20mbit", help="of each pair of endpoints, each way")
    parser.add_argument("--layer-ms", type=float, default=13.0, help="what a layer computes forwards")
    parser.add_argument("--steps", type=int, default=12, help="steps of a run, the first 3 not measured")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each way")
    parser.add_argument("--output", type=Path, help="JSON file to write")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options)
        return
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for _ in range(options.repeats):
        for way, transmission in WAYS.items():
            runs[way].append(run(transmission, options))
    typical = {way: {key: median(one[key] for one in many) for key in many[0]} for way, many in runs.items()}
    result = {
        "rate": options.rate,
        "layer_ms": options.layer_ms,
        "runs": runs,
        "typical": typical,
        "step_ratio_of_p3": typical["p3"]["step_s"] / typical["fifo"]["step_s"],
        "bytes_ratio_of_two_roots": typical["two roots"]["busiest_bytes"] / typical["fifo"]["busiest_bytes"],
    }
    for way, row in typical.items():
        print(
            f"{way}: {row['step_s']:.3f} s a step, {row['busiest_bytes'] / 1e6:.3f} MB of the busiest a step"
        )
    print(
        f"p3 / fifo: {result['step_ratio_of_p3']:.2f} of the time; two roots / one: "
        f"{result['bytes_ratio_of_two_roots']:.2f} of the busiest endpoint's bytes"
    )
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def run(transmission: str, options: argparse.Namespace) -> dict[str, float]:
    """Runs one training; returns seconds a step, and the bytes that the busiest endpoint sent a step."""
    rate = float(options.rate.removesuffix("mbit")) * 1e6
    names = endpoints(len(SITES))
    links = Links(endpoints=names, schedule=uniform(names, rate))
    with tempfile.TemporaryDirectory() as folder, network(links) as built, Counters(built) as counters:
        times = _train(built, Path(folder), transmission, options)
        began, ended = times[WARM_UP], times[-1]
        steps = len(times) - 1 - WARM_UP
        sent = [counters.sent([name], began, ended).payload_bytes / steps for name in names]
    return {"step_s": (ended - began) / steps, "busiest_bytes": max(sent)}


def _train(built: Network, folder: Path, transmission: str, options: argparse.Namespace) -> list[float]:
    addresses = built.addresses
    sites = tuple(
        Site(name, 1, Address(addresses[name], 9201), Address(addresses[name], 9202)) for name in SITES
    )
    job = TreeJob(
        run_id="overlap",
        workers=dict.fromkeys(SITES, 1),
        topology=Topology(Address(addresses[ROOT], 9200), sites),
        transmission=transmission,
        plain_text=True,
        round_timeout_s=60.0,
    )
    path = str(job.write(folder / "tree.json"))
    server = [sys.executable, "-m", "geokfp.components.geo_training.server"]
    with ExitStack() as stack:
        started = [
            _start(stack, built, root.site or ROOT, [*server, root.name, path], {}) for root in job.roots
        ]
        started += [_start(stack, built, name, [*server, name, path], {}) for name in SITES]
        numbers = ["--steps", str(options.steps), "--layer-ms", str(options.layer_ms)]
        for name in SITES:
            place = {
                "GEOKFP_TREE": path,
                "GEOKFP_WORKER": f"{name}/trainer-0",
                "RESULT": str(folder / name),
                "PYTHONPATH": str(Path(__file__).parent),
            }
            command = [sys.executable, __file__, "--work", *numbers]
            started.append(_start(stack, built, name, command, place))
        for process in started:
            if process.wait(240):
                raise RuntimeError(f"{process.args} ended with {process.returncode}")
    times: list[float] = json.loads((folder / SITES[0]).read_text(encoding="utf-8"))
    return times


def _start(
    stack: ExitStack, built: Network, endpoint: str, command: list[str], environment: dict[str, str]
) -> "subprocess.Popen[bytes]":
    one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    process = subprocess.Popen(
        built.within(endpoint, command), env={**os.environ, **one_thread, **environment}
    )
    stack.callback(process.wait)
    stack.callback(process.kill)
    return process


def work(options: argparse.Namespace) -> None:
    """Trains as one worker; leaves the moments between its steps."""
    from geokfp.components.geo_training.frameworks.torch_worker import join

    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = [_Layer(into, out, options.layer_ms / 1e3) for into, out in pairwise(WIDTHS)]
    model = nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    geo = join(model, optimizer)
    geo.barrier()
    times = [time.monotonic()]
    for _ in range(options.steps):
        optimizer.zero_grad()
        geo.backward(model(torch.randn(8, WIDTHS[0])).square().mean(), 8)
        geo.step(8)
        times.append(time.monotonic())
    geo.agreed_weights()
    Path(os.environ["RESULT"]).write_text(json.dumps(times), encoding="utf-8")
    geo.finish()


if __name__ == "__main__":
    main()
