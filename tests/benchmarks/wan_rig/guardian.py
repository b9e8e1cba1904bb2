"""Removes network namespaces, and kills what runs in them, when the process that built them is no more.

Runs as a process of its own, and outlives the builder by a moment: it waits for the end of its standard
input, which the builder closes when it is done, and the kernel when the builder was killed.

    python guardian.py NAME ... < pipe
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

FOLDER = Path("/run/netns")
"""Where `ip netns` keeps names."""
PATIENCE_S = 5.0
"""Seconds within which what was killed is expected to be gone."""
POLL_S = 0.01


def main(names: Sequence[str]) -> None:
    """Waits for the end of standard input, then removes the namespaces."""
    sys.stdin.buffer.read()
    remove(names)


def remove(names: Sequence[str]) -> None:
    """Kills all processes in the namespaces, waits until they are gone, and removes the namespaces."""
    deadline = time.monotonic() + PATIENCE_S
    while (left := list(inhabitants(names))) and time.monotonic() < deadline:
        for process_id in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGKILL)
        time.sleep(POLL_S)
    for name in names:
        if (FOLDER / name).exists():
            subprocess.run(["ip", "netns", "delete", name], check=False)


def inhabitants(names: Sequence[str]) -> Iterator[int]:
    """Yields the processes in any of the namespaces; one that ended but was not yet waited for is in none."""
    wanted = {_identity(FOLDER / name) for name in names} - {None}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and _identity(entry / "ns" / "net") in wanted:
            yield int(entry.name)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:  # it is gone by now
        return None
    return found.st_dev, found.st_ino


if __name__ == "__main__":
    main(sys.argv[1:])
