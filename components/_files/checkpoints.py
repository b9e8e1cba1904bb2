"""Checkpoints of processes that go on together: a folder a moment, in it a folder a process.

Its folder, for two workers::

    <folder>/
      epoch-2/
        worker-0/
          manifest.json     kind geokfp.checkpoint, version 1: epoch, checksums
          ...               what the process keeps
        worker-1/
      epoch-3/
        worker-0/           worker 1 has not written yet: epoch 2 is what is gone on from

Each process keeps its last two. Knows nothing of what is kept.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .atomic import new_directory
from .errors import ArtifactError, InputError
from .manifest import read_manifest, sha256, write_manifest

KIND = "geokfp.checkpoint"
VERSION = 1
KEPT = 2
"""Checkpoints that a process keeps: the one before the last is good when the last is spoiled."""
EPOCH = "epoch"


def digest(options: Mapping[str, Any], code: Path | None, data: Mapping[str, Any]) -> str:
    """Returns what tells trainings apart that must not go on from each other's checkpoints, 16 hex digits.

    Args:
        options: all that has a part in the result.
        code: the user's code, or None.
        data: what tells one input from another, as JSON.
    """
    files = sorted(path for path in code.rglob("*") if path.is_file()) if code else []
    what = {
        "geokfp": version("geokfp"),
        "options": dict(options),
        "data": dict(data),
        "code": {path.relative_to(str(code)).as_posix(): sha256(path) for path in files},
    }
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=list).encode()).hexdigest()[:16]


def usable_folder(folder: Path) -> Path:
    """Makes the folder of all checkpoints where it is missing, and returns it.

    Raises:
        InputError: nothing can be written there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".writable").touch()
        (folder / ".writable").unlink()
    except OSError as error:
        raise InputError(
            f"checkpoint_folder {str(folder)!r}: {error.strerror}; must be a folder that can be written to"
        ) from error
    return folder


def last_common(folder: Path, members: Sequence[str], what: str = EPOCH) -> int:
    """Returns the number of the last checkpoint that all members have written whole; 0 when there is none.

    Args:
        folder: the training's folder.
        members: the processes.
        what: what is counted.
    """
    numbers = sorted((_number(path, what) for path in folder.glob(f"{what}-*")), reverse=True)
    return next((number for number in numbers if _is_whole(folder, number, members, what)), 0)


def checkpoint_of(folder: Path, number: int, member: str, what: str = EPOCH) -> Path:
    """Returns the folder of one process's checkpoint."""
    return folder / f"{what}-{number}" / member


@contextmanager
def new_checkpoint(folder: Path, number: int, member: str, what: str = EPOCH) -> Iterator[Path]:
    """Yields a temporary folder, which becomes a process's checkpoint; its third last one goes.

    Args:
        folder: the training's folder.
        number: which checkpoint it is, from 1.
        member: the process.
        what: what is counted.
    """
    with new_directory(checkpoint_of(folder, number, member, what)) as temporary:
        yield temporary
        write_manifest(temporary, kind=KIND, version=VERSION, body={what: number})
    own = {_number(path.parent, what): path for path in folder.glob(f"{what}-*/{member}")}
    for old in sorted(own)[:-KEPT]:
        _remove(own[old])


def forget_after(folder: Path, number: int, members: Sequence[str] | None = None, what: str = EPOCH) -> None:
    """Removes all checkpoints after one that is gone on from: what was written then is of another course.

    Args:
        folder: see `last_common`.
        number: of the one that is gone on from.
        members: who go on from it; None for all.
        what: see `last_common`.
    """
    for path in folder.glob(f"{what}-*"):
        if _number(path, what) > number:
            for gone in [path] if members is None else [path / member for member in members]:
                shutil.rmtree(gone, ignore_errors=True)


def forget(folder: Path) -> None:
    """Removes a training's checkpoints, once its model is written."""
    shutil.rmtree(folder, ignore_errors=True)


def _is_whole(folder: Path, number: int, members: Sequence[str], what: str) -> bool:
    states = [checkpoint_of(folder, number, member, what) for member in members]
    try:
        found = [read_manifest(state, kind=KIND, version=VERSION)[what] for state in states]
    except (ArtifactError, KeyError):
        return False
    return found == [number] * len(members)


def _number(folder: Path, what: str) -> int:
    found = re.fullmatch(rf"{what}-(\d+)", folder.name)
    return int(found[1]) if found else 0


def _remove(state: Path) -> None:
    shutil.rmtree(state, ignore_errors=True)
    try:
        state.parent.rmdir()
    except OSError:  # another process's state lies there still
        return
