"""Follows the log of one pod over cut connections, and keeps its end.

`LogCursor` is pure: it knows from when to ask again, and which lines were had before, as the server takes
that in whole seconds.
"""

import collections
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from .api_errors import ApiError
from .log_reader import LAST_LINES, LINE_LIMIT

SILENT_S = 300.0
"""Without a line after which the connection is made anew: one that stalls looks the same."""
AGAIN_S = 1.0
"""Between two tries."""


class LogApi(Protocol):
    """What is asked of an API server; `kubernetes.ApiServer` is one."""

    def lines(self, path: str, *, query: Mapping[str, str], silent_s: float) -> Iterator[bytes]:
        """Yields lines for as long as the server sends; raises ApiError."""


class LogCursor:
    """How far a log has been read."""

    def __init__(self, container: str) -> None:
        self._container = container
        self._time = ""
        self._at_time = 0
        self._skip = 0
        self.last_lines: collections.deque[str] = collections.deque(maxlen=LAST_LINES)
        """The end of what was read, without blank lines."""

    def query(self) -> dict[str, str]:
        """Returns the parameters of the next request, and expects its lines from the start."""
        self._skip = self._at_time
        since = {"sinceTime": f"{self._time[:19]}Z"} if self._time else {}
        return {"container": self._container, "follow": "true", "timestamps": "true", **since}

    def accept(self, raw: bytes) -> str | None:
        """Returns a line's text, or None when it was had before.

        Args:
            raw: the line, after the time that the server puts before it.
        """
        time, _, text = raw.decode("utf-8", "replace").partition(" ")
        key = _sortable(time)
        if key < _sortable(self._time):
            return None
        if key == _sortable(self._time):
            if self._skip:
                self._skip -= 1
                return None
            self._at_time += 1
        else:
            self._time, self._at_time, self._skip = time, 1, 0
        line = text.rstrip("\r")[:LINE_LIMIT]
        if line.strip():
            self.last_lines.append(line)
        return line


class LogFollower:
    """Follows one pod's log in a thread of its own."""

    def __init__(
        self, api: LogApi, path: str, container: str, on_line: Callable[[str], None], stop: threading.Event
    ) -> None:
        """Starts it.

        Args:
            api: the server, whose `close` ends the stream that is read.
            path: of the pod's log.
            container: of the pod.
            on_line: called with each line, in that thread.
            stop: ends it.
        """
        self._api = api
        self._path = path
        self._on_line = on_line
        self._stop = stop
        self._cursor = LogCursor(container)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"log {path}", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Says that the pod has ended: what the server still has is all that comes."""
        self._ended.set()

    def join(self, timeout_s: float) -> None:
        """Waits at most `timeout_s` seconds for the end of the log."""
        self._thread.join(timeout_s)

    def last_lines(self) -> tuple[str, ...]:
        """Returns the end of the log so far."""
        return tuple(self._cursor.last_lines)

    def _run(self) -> None:
        while not self._stop.is_set():
            last = self._ended.is_set()
            whole = self._read()
            if last and whole:
                return
            if last:
                self._stop.wait(AGAIN_S)
            else:
                self._ended.wait(AGAIN_S)

    def _read(self) -> bool:
        """Reads until the stream ends; returns whether it ended by itself."""
        try:
            for raw in self._api.lines(self._path, query=self._cursor.query(), silent_s=SILENT_S):
                text = self._cursor.accept(raw)
                if text is not None:
                    self._on_line(text)
        except ApiError as error:
            return error.status in {400, 403, 404}  # no log to be had, now that the pod has ended
        return True


def _sortable(time: str) -> str:
    """Pads the fraction of a second, so that times sort as text."""
    whole, _, fraction = time.rstrip("Z").partition(".")
    return f"{whole}.{fraction:0<9}" if time else ""
