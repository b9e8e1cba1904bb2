"""What measuring costs a small round, where it weighs most: all nodes and workers of a tree in one process.

The same tree runs rounds of one small unit over TCP in blocks, which are measured and not, in turn, so that
whatever else the machine does touches both alike. A block that is measured is held against the mean of the
two beside it, by the seconds that passed and by those that the process computed; the latter hardly depend on
what else runs.

    python tests/benchmarks/metrics_cost.py --blocks 60 --rounds 200 --output metrics_cost.json
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np
from geokfp.components._launch import free_ports
from geokfp.components.geo_training.metrics import UNOBSERVED, Observer, Recorder
from geokfp.components.geo_training.transport.tcp import TcpTransport
from geokfp.components.geo_training.workers.plane import Layout, Members, Plane

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.geo_tree import at_once, topology, tree

NUM_SITES = 2
NUM_VALUES = 1000


class Switched:
    """An `Observer` that tells a recorder, or nobody."""

    def __init__(self) -> None:
        self.to: Observer = UNOBSERVED

    def pushed(self, *told: Any) -> None:
        self.to.pushed(*told)

    def answered(self, *told: Any) -> None:
        self.to.answered(*told)

    def spent(self, *told: Any) -> None:
        self.to.spent(*told)

    def stepped(self, *told: Any) -> None:
        self.to.stepped(*told)


def main() -> None:
    """Measures, prints a line and writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=60, help="blocks that are measured")
    parser.add_argument("--rounds", type=int, default=200, help="rounds of a block")
    parser.add_argument("--output", type=Path, help="JSON file to write")
    options = parser.parse_args()
    blocks = measured(options.blocks, options.rounds)
    result = {"machine": {"cores": os.cpu_count(), "load": os.getloadavg()[0]}}
    for clock, seconds in zip(("passed", "computed"), zip(*blocks, strict=True), strict=True):
        result[clock] = compared(seconds)
        print(
            f"{clock} in a round of {NUM_VALUES} values: {1e3 * result[clock]['without_s']:.3f} ms, measured "
            f"{1e3 * result[clock]['with_s']:.3f} ms; ratio {result[clock]['ratio']:.4f} "
            "(quartiles {:.4f} to {:.4f})".format(*result[clock]["quartiles"])
        )
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def compared(seconds: Sequence[float]) -> dict[str, Any]:
    """Returns what measuring adds to a round's seconds, of which the odd blocks were measured."""
    pairs = zip(seconds[1::2], seconds[0::2], seconds[2::2], strict=False)
    ratios = [with_ / ((before + after) / 2) for with_, before, after in pairs]
    low, _, high = quantiles(ratios, n=4)
    return {
        "without_s": median(seconds[0::2]),
        "with_s": median(seconds[1::2]),
        "ratio": median(ratios),
        "quartiles": [low, high],
    }


def measured(num_blocks: int, num_rounds: int) -> list[tuple[float, float]]:
    """Returns the seconds a round of each block, passed and computed; the odd ones are with measuring."""
    observer, recorder = Switched(), Recorder()
    shape = topology(NUM_SITES, 1, free_ports(NUM_SITES + 1))
    layout, values = Layout.of([("w", NUM_VALUES)]), np.ones(NUM_VALUES, np.float32)
    seconds = []
    with tree(shape, TcpTransport(), observer=observer) as whole:
        planes = {
            name: Plane(whole.client(name), Members(workers=shape.workers, name=name))
            for name in shape.workers
        }

        def work(name: str) -> None:
            for _ in range(num_rounds):
                planes[name].mean("gradient", layout, values, 1).wait()
                planes[name].stepped()

        at_once(work, shape.workers)
        for block in range(2 * num_blocks + 1):
            observer.to = recorder if block % 2 else UNOBSERVED
            began, computed = time.perf_counter(), time.process_time()
            at_once(work, shape.workers)
            passed, computed = time.perf_counter() - began, time.process_time() - computed
            seconds.append((passed / num_rounds, computed / num_rounds))
        at_once(lambda name: planes[name].close(), shape.workers)
    return seconds


if __name__ == "__main__":
    main()
