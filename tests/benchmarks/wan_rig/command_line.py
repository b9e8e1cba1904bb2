"""Runs the benchmark as its options say."""

import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path

from geokfp.components._files import InputError

from . import mnist, requirements, results, trial
from .comparison import Outcome, disagreements, repeat, speed_ups, with_control
from .judge import Judge, idle_judge
from .links import Links
from .network import addresses
from .options import Options, parse
from .systems import CONTROL, SYSTEMS, Setting, System
from .systems.base import PYTHON_ENVIRONMENT
from .trial import Measured
from .watch import Limits

CONTROL_STEPS = 400
"""The control gets at least these steps: it shall not miss the target for want of time."""


def main(words: Sequence[str], about: str = "") -> int:
    """Runs the benchmark; returns the status to exit with."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        options = parse(words, about)
        network = options.network()
        mnist.read(options.data)
        requirements.check(network)
    except InputError as error:
        print(f"wan.py: {error}", file=sys.stderr)
        return 2
    with _work_folder(options.keep) as folder, _judge(options, folder) as judge:
        outcomes = compare(options, network, judge, folder)
    return tell(options, outcomes)


def compare(
    options: Options, network: Links, judge: Judge, folder: Path, systems: Mapping[str, System] = SYSTEMS
) -> dict[str, Outcome]:
    """Trains all systems, one after the other.

    Args:
        options: the benchmark's.
        network: the links.
        judge: what tells accuracies.
        folder: an empty folder; each trial gets one in it.
        systems: those that may be named.

    Returns:
        What each gave, the control first.
    """
    outcomes = {}
    for name in with_control(options.systems):
        bench = _Bench(name, systems[name], options, network, judge, folder / name)
        at_once = dict(options.at_once).get(name, 1)
        train = bench.train if at_once == 1 else bench.train_by_itself
        outcomes[name] = repeat(options.learning_rates, options.runs, train, at_once)
    return outcomes


def tell(options: Options, outcomes: dict[str, Outcome]) -> int:
    """Writes and prints the results; returns 1 when a training failed or counts of bytes disagree."""
    gains = speed_ups(outcomes, options.split, options.target)
    given = {name: str(v) if isinstance(v, Path) else v for name, v in asdict(options).items()}
    result = results.document(given, outcomes, gains)
    print(results.table(result))
    if options.json:
        results.write(options.json, results.as_json(result))
    if options.plot:
        results.write(options.plot, results.plot(result))
    failed = any(found.failures for found in outcomes.values())
    return int(failed or bool(disagreements(outcomes)))


class _Bench:
    """One system and all that its trials share."""

    def __init__(
        self, name: str, system: System, options: Options, network: Links, judge: Judge, folder: Path
    ) -> None:
        self._name, self._system, self._options = name, system, options
        self._network, self._judge, self._folder = network, judge, folder

    def train_by_itself(self, learning_rate: float, number: int) -> Measured:
        """Trains once with a judge of its own, as others train beside it."""
        folder = self._folder / f"{learning_rate:g}-{number}-judge"
        folder.mkdir(parents=True)
        with _judge(self._options, folder) as judge:
            return self._train(learning_rate, number, judge)

    def train(self, learning_rate: float, number: int) -> Measured:
        """Trains once."""
        return self._train(learning_rate, number, self._judge)

    def _train(self, learning_rate: float, number: int, judge: Judge) -> Measured:
        """Trains, and prints what came of it."""
        options = self._options
        folder = self._folder / f"{learning_rate:g}-{number}"
        folder.mkdir(parents=True)
        setting = Setting(
            folder=folder,
            data=options.data.absolute(),
            addresses=addresses(self._network),
            sites=self._network.endpoints[1:],
            workers=options.workers,
            split=options.split,
            batch=options.batch,
            learning_rate=learning_rate,
            seed=number,
            steps=max(options.max_steps, CONTROL_STEPS if self._name == CONTROL else 0),
            every=options.every,
            slow_sites=options.slow_sites(),
        )
        limits = Limits(target=options.target, seconds=options.max_seconds, to_the_end=options.to_the_end)
        measured = trial.run(self._system, setting, self._network, judge, limits)
        print(
            f"{self._name} at {learning_rate:g}, run {number}: accuracy {measured.final_accuracy:.4f}, "
            f"{'reached' if measured.reached else 'not reached'} after {measured.seconds:.1f} s, "
            f"{measured.steps} steps",
            file=sys.stderr,
        )
        return measured


def _judge(options: Options, folder: Path) -> AbstractContextManager[Judge]:
    return idle_judge(options.data, folder, {**os.environ, **PYTHON_ENVIRONMENT})


@contextmanager
def _work_folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True)
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="geokfp-wan-") as folder:
        yield Path(folder)


def _terminate(number: int, frame: object) -> None:
    raise SystemExit(128 + number)
