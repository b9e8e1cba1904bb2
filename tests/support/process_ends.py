"""Whether processes have ended, also those that nobody has waited for."""

from pathlib import Path

import psutil


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def all_gone(pids: Path) -> bool:
    """Tells whether all have ended whose numbers a file holds."""
    return all(gone(int(pid)) for pid in pids.read_text().split())
