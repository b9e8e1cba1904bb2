"""Named network namespaces, which vanish with the process that made them.

A guardian process removes them (see `guardian.py`): at the end of the `with` block as when this process is
killed.
"""

import ctypes
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from . import guardian
from .errors import RigError
from .execute import execute

Result = TypeVar("Result")

_CLONE_NEWNET = 0x40000000
_REMOVAL_S = 30.0


@contextmanager
def namespaces(labels: Sequence[str]) -> Iterator[dict[str, str]]:
    """Makes one namespace a label, with its loopback device up.

    Args:
        labels: what each is for; becomes the end of its name.

    Yields:
        Name of each namespace, unlike any other on this machine, by label.

    Raises:
        RigError: one could not be made; none is left then.
    """
    mark = f"geokfp-{uuid.uuid4().hex[:8]}"
    names = {label: f"{mark}-{label}" for label in labels}
    # In a session of its own, so that an interrupt from the terminal does not end it before its work.
    keeper = subprocess.Popen(
        [sys.executable, "-I", guardian.__file__, *names.values()],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        for name in names.values():
            execute(["ip", "netns", "add", name])
            execute(["ip", "-n", name, "link", "set", "lo", "up"])
        yield names
    finally:
        assert keeper.stdin is not None
        keeper.stdin.close()
        keeper.wait(_REMOVAL_S)


def within(name: str, command: Sequence[str]) -> list[str]:
    """Returns the command that runs `command` in a namespace, by becoming it."""
    return ["nsenter", f"--net={guardian.FOLDER / name}", "--", *command]


def call_within(name: str, function: Callable[[], Result]) -> Result:
    """Calls a function in a namespace, and returns what it returns; sockets made there stay there."""

    def call() -> Result:
        enter(name)
        return function()

    # A thread of its own: a namespace is entered by a thread, and is never left again.
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(call).result()


def enter(name: str) -> None:
    """Moves the calling thread into a namespace, for the rest of its life.

    Raises:
        RigError: there is no such namespace, or no right to enter it.
    """
    library = ctypes.CDLL(None, use_errno=True)
    descriptor = os.open(guardian.FOLDER / name, os.O_RDONLY)
    try:
        if library.setns(descriptor, _CLONE_NEWNET):
            raise RigError(f"namespace {name} cannot be entered: {os.strerror(ctypes.get_errno())}")
    finally:
        os.close(descriptor)


def set_kernel(name: str, setting: str, value: str) -> None:
    """Sets a network setting of the kernel in a namespace, such as `ipv4.ip_forward`, where it has it."""
    path = Path("/proc/sys/net", *setting.split("."))

    def write() -> None:
        if path.exists():
            path.write_text(value, encoding="ascii")

    call_within(name, write)
