"""What the replicas of the supervisor's tests run."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from geokfp.components import _launch
from geokfp.components._launch import progress

GREETING_AT_IMPORT = os.environ.get("GREETING", "")
IMPORTED_BY = os.getpid()


def touch(arguments: list[str]) -> None:
    Path(arguments[0]).write_text(os.environ.get("GREETING", ""))


def wait_for(arguments: list[str]) -> None:
    """Ends once a file is there."""
    while not Path(arguments[0]).exists():
        time.sleep(0.02)


def tell(arguments: list[str]) -> None:
    print("chatter")
    progress("halfway")


def tell_temporary(arguments: list[str]) -> None:
    progress(tempfile.mkdtemp())


def tell_import(arguments: list[str]) -> None:
    here = (
        "here"
        if os.getpid() == IMPORTED_BY
        else "in the host"
        if os.getppid() == IMPORTED_BY
        else "elsewhere"
    )
    progress(f"{GREETING_AT_IMPORT} imported {here}")


def tell_session(arguments: list[str]) -> None:
    progress(f"leads {os.getpid() == os.getsid(0) == os.getpgid(0)}")


def import_module(arguments: list[str]) -> None:
    __import__(arguments[0])


def fail(arguments: list[str]) -> None:
    print("about to fail")
    raise ValueError("the sky fell")


def leave(arguments: list[str]) -> int:
    return int(arguments[0])


def leave_politely(arguments: list[str]) -> None:
    sys.exit(0)


def fail_from_a_thread(arguments: list[str]) -> None:
    threading.Thread(target=_launch.fail, args=("the helper gave up",), daemon=True).start()
    hang([])


def lose_peer(arguments: list[str]) -> None:
    raise ConnectionError("Connection closed by peer")


def die_by_signal(arguments: list[str]) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def abort(arguments: list[str]) -> None:
    os.abort()


def fail_in_a_fork(arguments: list[str]) -> None:
    """Lets an error through in a child of its own, which is not its own error."""
    child = os.fork()
    if child == 0:
        raise ValueError("of the child")
    os.waitpid(child, 0)


def hang(arguments: list[str]) -> None:
    """Waits for ever with two children, one in a session of its own, and says who they are in a file."""
    children = [subprocess.Popen(["sleep", "600"], start_new_session=apart) for apart in (False, True)]
    if arguments:
        partial = Path(arguments[0] + ".partial")
        partial.write_text(" ".join(str(pid) for pid in (os.getpid(), *(child.pid for child in children))))
        partial.rename(arguments[0])
    while True:
        time.sleep(60)


def tell_surroundings(arguments: list[str]) -> None:
    """Says what the process has of network and shared memory."""
    room = os.statvfs("/dev/shm")
    names = " ".join(sorted(name for _, name in socket.if_nameindex()))
    content = "empty" if not os.listdir("/dev/shm") else "not empty"
    progress(f"{names}, {room.f_blocks * room.f_frsize >> 20} MB, {content}")


def fail_or_hang(arguments: list[str]) -> None:
    """Fails as number 1 once number 0 hangs."""
    index, pids = arguments
    if index == "0":
        hang([pids])
    wait_for([pids])
    fail([])
