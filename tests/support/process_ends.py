"""Whether processes have ended, also those that nobody has waited for."""

from pathlib import Path

import psutil
from support.faults import wait_until


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_until_gone(pids: Path) -> None:
    """Waits for all, if they were started, whose numbers a file holds: to be killed takes a moment."""
    wait_until(lambda: not pids.exists() or all_gone(pids), f"the processes of {pids} to end")


def all_gone(pids: Path) -> bool:
    """Tells whether all have ended whose numbers a file holds."""
    return all(gone(int(pid)) for pid in pids.read_text().split())
