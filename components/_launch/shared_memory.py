"""POSIX shared memory that killed processes leave behind."""

from collections.abc import Iterable
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")


def remove_shared_memory(prefixes: Iterable[str]) -> None:
    """Removes every segment whose name begins with one of the prefixes."""
    for prefix in prefixes:
        for path in SHARED_MEMORY.glob(f"{prefix}*"):
            path.unlink(missing_ok=True)
