"""Whole-or-nothing writes: to a temporary name in the same folder, then a rename."""

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.partial")


@contextmanager
def new_file(path: Path | str) -> Iterator[Path]:
    """Yields a temporary path to write to; it becomes `path` when the block ends without an error.

    Args:
        path: the file to write; its folder is made when missing, an older file is replaced.

    Yields:
        The path to write to, in the same folder as `path`.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(target)
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def new_directory(path: Path | str) -> Iterator[Path]:
    """Yields an empty temporary folder; it becomes `path` when the block ends without an error.

    Args:
        path: the folder to write; an older folder of that name is replaced as a whole.

    Yields:
        The folder to write into, beside `path`.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(target)
    temporary.mkdir()
    try:
        yield temporary
        if target.exists():
            shutil.rmtree(target)
        os.replace(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
