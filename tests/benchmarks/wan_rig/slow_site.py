"""Sites whose workers are slower than they are: they sleep after each step, in proportion to it.

Slower than others, where only some of the sites are; or, where all are, like those that compute on a device
beside the processor, which leave its cores to others meanwhile.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from geokfp.components._files import InputError


def parse_slow_sites(text: str, sites: Sequence[str]) -> Mapping[str, float]:
    """Reads what `--slow-site` gives, such as `site-1:3` or `site-0:1,site-1:7`.

    Args:
        text: names and factors.
        sites: names of the sites.

    Returns:
        By name, seconds that a worker sleeps for each second of computing: 3 makes its steps four times as
        long.

    Raises:
        InputError: no site has that name, or has it once more, or a factor is no number of 0 or more.
    """
    found: dict[str, float] = {}
    for word in text.split(","):
        name, _, factor = word.partition(":")
        if name not in sites or name in found or not 0 <= _number(factor) < math.inf:
            raise InputError(
                f"--slow-site is {text!r}, allowed: NAME:FACTOR, with a comma between several, "
                f"each of {', '.join(sites)} once and a number of 0 or more"
            )
        found[name] = float(factor)
    return found


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return math.nan


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
