"""Who is connected at which rate, and when rates change; knows nothing of how links are shaped.

A file of links is one or more blocks of words. The first row of a block is the time in seconds from which its
rates hold, and the endpoints to which a column leads; each further row is the endpoint from which it leads::

    0s      root    site-0  site-1
    root    -       10mbit  10mbit
    site-0  10mbit  -       100mbit
    site-1  2mbit   none    -
    60s     root    site-0  site-1
    ...

The first block begins at `0s`, every block names all endpoints, `none` is a link without a limit, and what
follows a `#` is not read.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from pathlib import Path

from geokfp.components._files import InputError

ROOT = "root"
UNLIMITED = "none"
Pair = tuple[str, str]
"""From and to."""
Rates = Mapping[Pair, float | None]
"""Bits a second by pair; None without a limit."""
Rows = Iterator[tuple[str, list[str]]]
"""Place and words of each line that holds any."""

_UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
_RATE = re.compile(r"(\d+(?:\.\d+)?)(kbit|mbit|gbit)")
_TIME = re.compile(r"(\d+(?:\.\d+)?)s")
_LOWEST_RATE = 8e3
"""Below, a single packet takes more than a second."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Links:
    """The network between the endpoints."""

    endpoints: tuple[str, ...]
    """The root, then the sites."""
    schedule: tuple[tuple[float, Rates], ...]
    """Rates, and the seconds from the start of the training at which they begin to hold; the first is 0."""
    root_rate: float | None = None
    """Bits a second of all the root's links together, each way; None without a limit."""
    loss_percent: float = 0.0
    """Chance of a packet to be lost on its way."""
    delay_ms: float = 0.0
    """Milliseconds that a packet takes beside its transmission, one way."""

    def __post_init__(self) -> None:
        if not 0 <= self.loss_percent < 100:
            raise InputError(f"--loss is {self.loss_percent:g}, allowed: 0 or more, below 100 (percent)")
        if not 0 <= self.delay_ms <= 10_000:
            raise InputError(f"--delay-ms is {self.delay_ms:g}, allowed: 0 to 10000")

    @property
    def shaped(self) -> bool:
        """Whether any link has a limit at any time."""
        pairs = (rate for _, rates in self.schedule for rate in rates.values())
        return self.root_rate is not None or any(rate is not None for rate in pairs)

    def unshaped(self) -> "Links":
        """Returns the same endpoints without limits, loss or delay."""
        return Links(endpoints=self.endpoints, schedule=uniform(self.endpoints, None))


def endpoints(num_sites: int) -> tuple[str, ...]:
    """Returns the names of the root and of the sites."""
    return (ROOT, *(f"site-{number}" for number in range(num_sites)))


def uniform(names: Sequence[str], rate: float | None) -> tuple[tuple[float, Rates], ...]:
    """Returns the schedule that gives every pair, of sites too, the same rate for ever."""
    return ((0.0, dict.fromkeys(permutations(names, 2), rate)),)


def parse_rate(text: str, where: str) -> float | None:
    """Returns bits a second, or None for `none`.

    Args:
        text: a number followed by `kbit`, `mbit` or `gbit`; or `none`.
        where: the option or the file and line, for the error.

    Raises:
        InputError: the text is no rate.
    """
    if text == UNLIMITED:
        return None
    found = _RATE.fullmatch(text)
    rate = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if rate < _LOWEST_RATE:
        allowed = f"allowed: {UNLIMITED}, or 8kbit or more written as 10mbit, 1.5gbit or 500kbit"
        raise InputError(f"{where} is {text!r}, {allowed}")
    return rate


def read_schedule(path: Path, names: Sequence[str]) -> tuple[tuple[float, Rates], ...]:
    """Reads a file of links.

    Args:
        path: the file; its form is drawn in the module's docstring.
        names: the endpoints that each block must name.

    Raises:
        InputError: the file cannot be read or is not of that form; names the line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--links {path} cannot be read: {error}") from None
    rows = _rows(path, text)
    schedule = []
    for where, words in rows:
        schedule.append((_time(where, words[0]), _block(where, words[1:], rows, names)))
    times = [time for time, _ in schedule]
    if not times or times[0] != 0 or any(later <= sooner for sooner, later in pairwise(times)):
        told = ", ".join(f"{time:g}s" for time in times) or "no block"
        raise InputError(
            f"--links {path} has {told}, allowed: blocks from 0s on, each later than the one before"
        )
    return tuple(schedule)


def _rows(path: Path, text: str) -> Rows:
    for number, line in enumerate(text.splitlines(), 1):
        if words := line.partition("#")[0].split():
            yield f"{path}:{number}", words


def _time(where: str, word: str) -> float:
    found = _TIME.fullmatch(word)
    if found is None:
        raise InputError(
            f"{where} begins with {word!r}, allowed: a time such as 0s or 60s at the head of a block"
        )
    return float(found[1])


def _block(where: str, columns: list[str], rows: Rows, names: Sequence[str]) -> Rates:
    _check_names(where, "columns", columns, names)
    lines = []
    for _ in names:
        where, words = next(rows, (where, []))
        if len(words) != 1 + len(columns):
            raise InputError(f"{where} has {len(words)} words, allowed: a name and {len(columns)} rates")
        lines.append((where, words))
    _check_names(where, "rows", [words[0] for _, words in lines], names)
    cells = {
        (words[0], to): _cell(where, (words[0], to), word)
        for where, words in lines
        for to, word in zip(columns, words[1:], strict=True)
    }
    return {pair: rate for pair, rate in cells.items() if pair[0] != pair[1]}


def _cell(where: str, pair: Pair, word: str) -> float | None:
    source, target = pair
    if (source == target) != (word == "-"):
        raise InputError(
            f"{where} has {word!r} from {source} to {target}, allowed: - from a name to itself only"
        )
    return None if word == "-" else parse_rate(word, f"{where} from {source} to {target}")


def _check_names(where: str, what: str, found: Sequence[str], names: Sequence[str]) -> None:
    if sorted(found) != sorted(names):
        raise InputError(
            f"{where} has {what} {', '.join(found) or 'none'}, allowed: {', '.join(names)}, each once"
        )
