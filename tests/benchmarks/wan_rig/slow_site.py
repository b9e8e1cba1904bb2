"""One site whose workers are slower than the others': they sleep after each step, in proportion to it."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from geokfp.components._files import InputError


@dataclass(frozen=True, slots=True)
class SlowSite:
    """Which site is slow, and how much."""

    name: str
    """Of the site."""
    factor: float
    """Seconds that a worker sleeps for each second of computing: 3 makes its steps four times as long."""


def parse_slow_site(text: str, sites: Sequence[str]) -> SlowSite:
    """Reads what `--slow-site` gives, such as `site-1:3`.

    Args:
        text: name and factor.
        sites: names of the sites.

    Raises:
        InputError: no site has that name, or the factor is no number of 0 or more.
    """
    name, _, word = text.partition(":")
    try:
        factor = float(word)
    except ValueError:
        factor = math.nan
    if name not in sites or not 0 <= factor < math.inf:
        raise InputError(
            f"--slow-site is {text!r}, allowed: NAME:FACTOR, "
            f"one of {', '.join(sites)} and a number of 0 or more"
        )
    return SlowSite(name, factor)


@contextmanager
def slowed(
    factor: float,
    finish: Callable[[], object],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """Sleeps after the block, which is the computing of one step, without any wait for other workers.

    Args:
        factor: seconds of sleep for each second that the block took; 0 changes nothing.
        finish: waits until what the block began is computed.
        clock: seconds on a clock that never goes back.
        sleep: sleeps for so many seconds.
    """
    began = clock()
    yield
    if factor:
        finish()
        sleep(factor * (clock() - began))
