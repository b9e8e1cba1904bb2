"""The kernel's help in not outliving a parent (Linux)."""

import ctypes
import signal

_PR_SET_PDEATHSIG = 1


def die_with_parent(yes: bool = True) -> None:
    """Asks the kernel to kill this process when the thread that started it ends, or no longer to."""
    if ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL if yes else 0) != 0:
        raise OSError("the kernel does not take PR_SET_PDEATHSIG; Linux is needed")
