"""What the replicas of the supervisor's tests run."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from geokfp.components._launch import progress


def touch(arguments: list[str]) -> None:
    Path(arguments[0]).write_text(os.environ.get("GREETING", ""))


def tell(arguments: list[str]) -> None:
    print("chatter")
    progress("halfway")


def fail(arguments: list[str]) -> None:
    print("about to fail")
    raise ValueError("the sky fell")


def leave(arguments: list[str]) -> int:
    return int(arguments[0])


def leave_politely(arguments: list[str]) -> None:
    sys.exit(0)


def lose_peer(arguments: list[str]) -> None:
    raise ConnectionError("Connection closed by peer")


def die_by_signal(arguments: list[str]) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def hang(arguments: list[str]) -> None:
    """Waits for ever with a child of its own, and says who it is in a file."""
    child = subprocess.Popen(["sleep", "600"])
    if arguments:
        partial = Path(arguments[0] + ".partial")
        partial.write_text(f"{os.getpid()} {child.pid}")
        partial.rename(arguments[0])
    while True:
        time.sleep(60)
