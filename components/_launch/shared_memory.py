"""POSIX shared memory that killed processes leave behind."""

from collections.abc import Iterable
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")


def remove_shared_memory(prefixes: Iterable[str], folder: Path = SHARED_MEMORY) -> None:
    """Removes every segment whose name begins with one of the prefixes."""
    starts = tuple(prefixes)
    if not starts or not folder.is_dir():
        return
    for path in folder.iterdir():
        if path.name.startswith(starts):
            path.unlink(missing_ok=True)
