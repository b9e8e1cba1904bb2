"""How a request to an API server fails, and how long it is tried again; pure, with time as an argument.

Errors::

    RuntimeError
    └── ApiError    no answer (status 0), or an answer that is not a success
"""

import random
import threading
import time
from collections.abc import Callable
from typing import TypeVar

_Answer = TypeVar("_Answer")

NO_ANSWER = 0
"""Status of a request that was refused, cut or too slow on the way."""
TRANSIENT = frozenset({NO_ANSWER, 429, 500, 502, 503, 504})
FIRST_DELAY_S = 0.5
MAX_DELAY_S = 20.0


class ApiError(RuntimeError):
    """A request to an API server failed.

    Attributes:
        status: HTTP status, or `NO_ANSWER`.
        reason: the server's word, such as `AlreadyExists`.
        message: one line.
        retry_after_s: what the server asks to wait, or None.
    """

    def __init__(self, status: int, reason: str, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(f"{status} {reason}: {message}" if status else message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status in TRANSIENT


class Stopped(RuntimeError):
    """A wait was ended from outside, as another part of the run has ended."""


def next_delay_s(error: ApiError, attempt: int, left_s: float, jitter: float) -> float | None:
    """Returns the seconds until the next try, or None when there is none.

    Args:
        error: why the last one failed.
        attempt: how many there were.
        left_s: seconds left for tries.
        jitter: from [0, 1); spreads the tries of many.
    """
    if not error.is_transient:
        return None
    backoff_s = min(MAX_DELAY_S, FIRST_DELAY_S * 2 ** (attempt - 1)) * (0.5 + jitter / 2)
    delay_s = max(backoff_s, error.retry_after_s or 0.0)
    return delay_s if delay_s <= left_s else None


def tried(call: Callable[[], _Answer], *, for_s: float, stop: threading.Event) -> _Answer:
    """Returns what `call` returns, tried again after transient errors.

    Args:
        call: one request.
        for_s: seconds after which there is no other try.
        stop: ends the waits between tries.

    Raises:
        ApiError: the last one.
        Stopped: `stop` was set.
    """
    until, attempt = time.monotonic() + for_s, 0
    while True:
        try:
            return call()
        except ApiError as error:
            attempt += 1
            delay_s = next_delay_s(error, attempt, until - time.monotonic(), random.random())
            if delay_s is None:
                raise
            if stop.wait(delay_s):
                raise Stopped from error
