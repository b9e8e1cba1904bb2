"""What the replicas run of the tests of processes that are started again."""

import os
import signal
import time
from pathlib import Path

POLL_S = 0.01


def serve_with_memory(arguments: list[str]) -> None:
    """Leaves a segment of shared memory; kills itself in the first so many of its lives."""
    folder, number, segment = Path(arguments[0]), int(arguments[1]), arguments[2]
    Path(f"/dev/shm/{segment}").touch()
    (folder / f"begun-{number}").write_text(str(os.getpid()))
    if number < int((folder / "kills").read_text()):
        _await(folder / f"ready-{number}")
        os.kill(os.getpid(), signal.SIGKILL)
    (folder / "lives").touch()
    _await(folder / "done")


def finish_in_time(arguments: list[str]) -> None:
    """Ends when the server lives."""
    folder, number = Path(arguments[0]), int(arguments[1])
    print(f"life {number}", flush=True)
    (folder / f"ready-{number}").touch()
    _await(folder / "lives")
    (folder / "done").touch()


def await_file(arguments: list[str]) -> None:
    """Ends when a file is there."""
    _await(Path(arguments[0]))


def _await(path: Path) -> None:
    while not path.exists():
        time.sleep(POLL_S)
