"""Reading a log while it is written."""

from pathlib import Path

from .progress import parse_progress

LAST_LINES = 20
LINE_LIMIT = 500
"""Characters of one of the last lines; a crash names all loaded libraries in one."""
_TAIL_BYTES = 1 << 16


class LogReader:
    """Follows one log file for progress lines, and gives its end when asked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._pending = b""

    def new_progress(self) -> list[str]:
        """Returns the progress messages written since the last call."""
        try:
            with self.path.open("rb") as log:
                log.seek(self._offset)
                data = log.read()
        except FileNotFoundError:
            return []
        self._offset += len(data)
        *lines, self._pending = (self._pending + data).split(b"\n")
        messages = (parse_progress(line.decode("utf-8", "replace")) for line in lines)
        return [message for message in messages if message is not None]

    def last_lines(self) -> tuple[str, ...]:
        """Returns the last lines of the log that are not blank, each cut at `LINE_LIMIT`."""
        try:
            with self.path.open("rb") as log:
                log.seek(0, 2)
                log.seek(max(0, log.tell() - _TAIL_BYTES))
                text = log.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return ()
        return tuple(line[:LINE_LIMIT] for line in text.splitlines() if line.strip())[-LAST_LINES:]
