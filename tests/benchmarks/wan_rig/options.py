"""Options of the benchmark; each is checked before any work starts."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from geokfp.components._files import InputError

from .comparison import LAN
from .links import UNLIMITED, Links, endpoints, parse_rate, read_schedule, uniform
from .mnist import SPLITS
from .slow_site import parse_slow_sites
from .systems import SYSTEMS


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """What a benchmark is told; values are checked on making it."""

    rate: str | None = None
    """Of every pair of endpoints, each way; 10mbit unless links are given."""
    links: Path | None = None
    """File of rates by pair and time, instead of `rate`."""
    root_rate: str = UNLIMITED
    """Of all the root's links together, each way."""
    loss: float = 0.0
    """Percent of packets that are lost, each way."""
    delay_ms: float = 0.0
    """Milliseconds that each packet is held, each way."""
    sites: int = 2
    """Sites beside the root."""
    workers: int = 2
    """Workers of each site."""
    slow_site: str = ""
    """Sites whose workers sleep after each step, and how many times as long as it took: `site-1:3`."""
    data: Path
    """Folder of the images."""
    split: str = "iid"
    """How sites differ: iid or by_class."""
    target: float = 0.95
    """Accuracy to reach."""
    systems: tuple[str, ...] = ("mxnet", LAN)
    """Which to compare; the control is always run."""
    learning_rates: tuple[float, ...] = (1e-3, 3e-3)
    """Of Adam; each system is told with its best."""
    batch: int = 32
    """Images of one worker's step."""
    runs: int = 1
    """Trainings of each system at its best learning rate, which one training each finds out; the run's number
    is the seed."""
    at_once: tuple[tuple[str, int], ...] = ()
    """Systems whose trainings run side by side, and how many: for those that mostly wait for their links."""
    max_steps: int = 400
    """Steps after which a training ends."""
    max_seconds: float = 900.0
    """Seconds after which a training ends."""
    every: int = 5
    """Steps between two evaluations."""
    to_the_end: bool = False
    """Whether trainings go on after the target."""
    json: Path | None = None
    """JSON file to write."""
    plot: Path | None = None
    """SVG file to write."""
    keep: Path | None = None
    """Folder for logs and snapshots; must not exist yet."""

    def __post_init__(self) -> None:
        for name in ("sites", "workers", "batch", "runs", "max_steps", "every"):
            if getattr(self, name) < 1:
                raise InputError(f"{_option(name)} is {getattr(self, name)}, allowed: 1 or more")
        if self.sites > 50:
            raise InputError(f"--sites is {self.sites}, allowed: 1 to 50")
        if self.rate is not None and self.links is not None:
            raise InputError(f"--rate is {self.rate} beside --links {self.links}, allowed: one of them")
        if not 0 < self.target <= 1:
            raise InputError(f"--target is {self.target:g}, allowed: above 0, at most 1")
        if not self.max_seconds > 0:
            raise InputError(f"--max-seconds is {self.max_seconds:g}, allowed: above 0")
        if self.split not in SPLITS:
            raise InputError(f"--split is {self.split!r}, allowed: {', '.join(SPLITS)}")
        if not self.learning_rates or not all(0 < rate < float("inf") for rate in self.learning_rates):
            raise InputError(f"--learning-rates is {self.learning_rates}, allowed: numbers above 0")
        self._check_names()
        self.slow_sites()

    def _check_names(self) -> None:
        unknown = [name for name in self.systems if name not in SYSTEMS]
        if unknown or not self.systems:
            raise InputError(f"--systems names {', '.join(unknown) or 'none'}, allowed: {', '.join(SYSTEMS)}")
        for name, count in self.at_once:
            if name not in self.systems or count < 1:
                allowed = f"one of {', '.join(self.systems)} and 1 or more"
                raise InputError(f"--at-once has {name}:{count}, allowed: {allowed}")
        if self.plot is not None and self.plot.suffix != ".svg":
            raise InputError(f"--plot is {self.plot}, allowed: a name that ends in .svg")
        if self.keep is not None and self.keep.exists():
            raise InputError(f"--keep is {self.keep}, which exists; allowed: a folder that does not")

    def slow_sites(self) -> Mapping[str, float]:
        """Returns by how much which sites are slowed."""
        return parse_slow_sites(self.slow_site, endpoints(self.sites)[1:]) if self.slow_site else {}

    def network(self) -> Links:
        """Returns the network that these options describe.

        Raises:
            InputError: a rate or the file of links is not what is allowed.
        """
        names = endpoints(self.sites)
        if self.links is not None:
            schedule = read_schedule(self.links, names)
        else:
            schedule = uniform(names, parse_rate(self.rate or "10mbit", "--rate"))
        return Links(
            endpoints=names,
            schedule=schedule,
            root_rate=parse_rate(self.root_rate, "--root-rate"),
            loss_percent=self.loss,
            delay_ms=self.delay_ms,
        )


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong."""

    def error(self, message: str) -> NoReturn:
        raise InputError(message)


def parse(words: Sequence[str], about: str = "") -> Options:
    """Returns the options that a command line gives.

    Args:
        words: the command line, without the program's name.
        about: what `--help` says first.

    Raises:
        InputError: one line that names the option, its value and what is allowed.
    """
    parser = _Parser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds: dict[str, Callable[[str], Any]] = {
        "rate": str,
        "links": Path,
        "root_rate": str,
        "loss": float,
        "delay_ms": float,
        "sites": int,
        "workers": int,
        "slow_site": str,
        "data": Path,
        "split": str,
        "target": float,
        "systems": _names,
        "learning_rates": _numbers,
        "batch": int,
        "runs": int,
        "at_once": _counts,
        "max_steps": int,
        "max_seconds": float,
        "every": int,
        "json": Path,
        "plot": Path,
        "keep": Path,
    }
    for name, kind in kinds.items():
        parser.add_argument(_option(name), type=kind, required=name == "data", default=argparse.SUPPRESS)
    parser.add_argument("--to-the-end", action="store_true")
    return Options(**vars(parser.parse_args(words)))


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)


def _counts(text: str) -> tuple[tuple[str, int], ...]:
    pairs = [word.partition(":") for word in _names(text)]
    return tuple((name, int(count)) for name, _, count in pairs)  # argparse names the option if it is none


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(word) for word in text.split(","))
