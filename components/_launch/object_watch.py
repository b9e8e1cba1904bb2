"""Watches objects to be told early that something has changed; what has changed is looked up by others.

`WatchState` is pure: it knows from where to watch on, and when all must be listed again.
"""

import json
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from .api_errors import NO_ANSWER, ApiError, next_delay_s

SERVER_S = 240
"""After which the server is asked to end a watch, so that one that is dead is found."""
SILENT_S = SERVER_S + 30.0
"""Without a byte after which the connection is given up."""
GONE = 410


class WatchApi(Protocol):
    """What is asked of an API server; `kubernetes.ApiServer` is one."""

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Sends one request; raises ApiError when it is not a success."""

    def lines(self, path: str, *, query: Mapping[str, str], silent_s: float) -> Iterator[bytes]:
        """Yields lines for as long as the server sends; raises ApiError."""


class WatchState:
    """Where a watch stands."""

    def __init__(self) -> None:
        self.version = ""
        """The resource version from which to watch on; "" when all must be listed first."""
        self.failures = 0
        """Tries in a row that brought nothing."""

    def listed(self, answer: Mapping[str, Any]) -> None:
        """Notes the answer to a list."""
        self.version = str(answer["metadata"]["resourceVersion"])

    def told(self, event: Mapping[str, Any]) -> bool:
        """Notes one event; returns whether something has changed.

        Raises:
            ApiError: the server ends the watch with an error.
        """
        document = event["object"]
        if event["type"] == "ERROR":
            status = int(document.get("code", 0))
            raise ApiError(status, str(document.get("reason", "")), str(document.get("message", "")))
        self.failures = 0
        self.version = str(document["metadata"]["resourceVersion"])
        return str(event["type"]) != "BOOKMARK"

    def failed(self, error: ApiError, jitter: float) -> float:
        """Notes an error; returns the seconds to wait.

        Args:
            error: that ended a list or a watch.
            jitter: from [0, 1).
        """
        if error.status == GONE:
            self.version = ""
            return 0.0
        self.failures += 1
        delay_s = next_delay_s(_transient(error), self.failures, float("inf"), jitter)
        assert delay_s is not None
        return delay_s


def watch(
    api: WatchApi,
    path: str,
    selector: str,
    changed: Callable[[], None],
    stop: threading.Event,
) -> None:
    """Calls `changed` after each change, until `stop` is set; never fails: looks are taken without it too.

    Args:
        api: the server, whose `close` ends the stream that is read.
        path: of the objects.
        selector: which of them, by labels.
        changed: called in this thread.
        stop: ends it.
    """
    state = WatchState()
    query = {"labelSelector": selector}
    while not stop.is_set():
        try:
            if not state.version:
                state.listed(api.request("GET", path, query=query))
                changed()
            _follow(api, path, query, state, changed, stop)
        except ApiError as error:
            if error.status == 403:
                return
            stop.wait(state.failed(error, random.random()))


def _follow(
    api: WatchApi,
    path: str,
    query: Mapping[str, str],
    state: WatchState,
    changed: Callable[[], None],
    stop: threading.Event,
) -> None:
    asked = {
        **query,
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": state.version,
        "timeoutSeconds": str(SERVER_S),
    }
    quiet = True
    for line in api.lines(path, query=asked, silent_s=SILENT_S):
        if stop.is_set():
            return
        quiet = False
        try:
            event = json.loads(line)
        except json.JSONDecodeError as error:
            raise ApiError(NO_ANSWER, "", f"a watch was cut ({error})") from error
        if state.told(event):
            changed()
    if quiet:  # a server that ends every watch at once is not asked without a pause
        raise ApiError(NO_ANSWER, "", "the watch ended without an event")


def _transient(error: ApiError) -> ApiError:
    return error if error.is_transient else ApiError(NO_ANSWER, error.reason, error.message)
