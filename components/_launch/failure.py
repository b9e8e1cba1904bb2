"""`error.json`: what a failed step leaves beside its outputs for whoever shows the run.

Its content::

{"step": "train_gnn", "replica": "site-0/trainer-1", "cause": "killed by SIGKILL", "last_lines": [...]}
"""

import json
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from .._files import ArtifactError, InputError, new_file
from .errors import ProcessFailed
from .log_reader import LAST_LINES

NAME = "error.json"
KILLED = "its process ended without a word, as one that was killed does (SIGKILL, out of memory)"


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureRecord:
    """Why a step failed."""

    step: str
    """Name of the component."""
    replica: str
    """The process that failed, or "" for the step's own."""
    cause: str
    """One line."""
    last_lines: tuple[str, ...] = ()
    """The end of what the process printed; of an error in the step's own process, where it arose."""

    def __post_init__(self) -> None:
        words = (self.step, self.replica, self.cause, *self.last_lines)
        if not all(isinstance(word, str) for word in words):
            raise TypeError("step, replica, cause and last_lines must be text")


@contextmanager
def failure_recorded(step: str, *, beside: Path) -> Iterator[None]:
    """Writes `error.json` into the folder that holds `beside` when the block raises; the error goes on.

    While the block runs the file says that the process was killed, for then nobody would write it.

    Args:
        step: name of the component.
        beside: one of the step's output paths.
    """
    path = Path(beside).parent / NAME
    _write(path, FailureRecord(step=step, replica="", cause=KILLED))
    try:
        yield
    except (Exception, KeyboardInterrupt, SystemExit) as error:
        _write(path, record_of(step, error))
        raise
    path.unlink(missing_ok=True)


def read_failures(root: Path) -> list[FailureRecord]:
    """Reads every `error.json` under `root`, the oldest first.

    Raises:
        ArtifactError: a file is not what `failure_recorded` writes.
    """
    paths = sorted(Path(root).rglob(NAME), key=lambda path: path.stat().st_mtime_ns)
    return [_read(path) for path in paths]


def record_of(step: str, error: BaseException) -> FailureRecord:
    """Returns what is to be told of an error that ends a step, or a pod of it."""
    if isinstance(error, ProcessFailed):
        return FailureRecord(step=step, replica=error.replica, cause=error.cause, last_lines=error.last_lines)
    text = " ".join(str(error).split())
    if isinstance(error, InputError):
        return FailureRecord(step=step, replica="", cause=text or "no message")
    name = type(error).__name__
    where = "".join(traceback.format_exception(error)).splitlines()[-LAST_LINES:]
    return FailureRecord(
        step=step, replica="", cause=f"{name}: {text}" if text else name, last_lines=tuple(where)
    )


def to_json(record: FailureRecord) -> str:
    """Returns a record as the text of `error.json`."""
    return json.dumps(asdict(record), indent=2) + "\n"


def from_json(text: str, name: str) -> FailureRecord:
    """Reads what `to_json` wrote.

    Raises:
        ArtifactError: it is something else; `name` says where it was.
    """
    try:
        document = json.loads(text)
        return FailureRecord(**{**document, "last_lines": tuple(document["last_lines"])})
    except (ValueError, KeyError, TypeError) as error:
        raise ArtifactError(f"{name}: not a record of a failure ({error})") from error


def _write(path: Path, record: FailureRecord) -> None:
    with new_file(path) as temporary:
        temporary.write_text(to_json(record), encoding="utf-8")


def _read(path: Path) -> FailureRecord:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ArtifactError(f"{path}: not a record of a failure ({error})") from error
    return from_json(text, str(path))
