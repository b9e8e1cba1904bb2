"""`error.json`: what a failed step leaves beside its outputs for whoever shows the run."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from .._files import ArtifactError, new_file
from .errors import ProcessFailed

NAME = "error.json"


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
    """The end of what the process printed."""


@contextmanager
def failure_recorded(step: str, *, beside: Path) -> Iterator[None]:
    """Writes `error.json` into the folder that holds `beside` when the block raises; the error goes on.

    Args:
        step: name of the component.
        beside: one of the step's output paths.
    """
    path = Path(beside).parent / NAME
    path.unlink(missing_ok=True)
    try:
        yield
    except ProcessFailed as error:
        _write(
            path,
            FailureRecord(step=step, replica=error.replica, cause=error.cause, last_lines=error.last_lines),
        )
        raise
    except Exception as error:
        text = " ".join(str(error).split()) or "no message"
        cause = text if isinstance(error, ValueError) else f"{type(error).__name__}: {text}"
        _write(path, FailureRecord(step=step, replica="", cause=cause))
        raise


def read_failures(root: Path) -> list[FailureRecord]:
    """Reads every `error.json` under `root`, the oldest first.

    Raises:
        ArtifactError: a file is not what `failure_recorded` writes.
    """
    paths = sorted(Path(root).rglob(NAME), key=lambda path: path.stat().st_mtime_ns)
    return [_read(path) for path in paths]


def _write(path: Path, record: FailureRecord) -> None:
    with new_file(path) as temporary:
        temporary.write_text(json.dumps(asdict(record), indent=2) + "\n", encoding="utf-8")


def _read(path: Path) -> FailureRecord:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return FailureRecord(**{**document, "last_lines": tuple(document["last_lines"])})
    except (ValueError, KeyError, TypeError) as error:
        raise ArtifactError(f"{path}: not a record of a failure ({error})") from error
