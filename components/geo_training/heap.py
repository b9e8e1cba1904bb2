"""How a process that serves many connections takes memory of the system."""

import ctypes

_ARENA_MAX = -8
"""`M_ARENA_MAX` of glibc's `mallopt`."""


def share_heap() -> None:
    """Lets all threads take memory from one heap, where the C library (glibc) would give each its own.

    Each of these keeps what its thread once needed, and every connection has threads: in turn they would hold
    far more than ever was in use. Other C libraries have one heap, and nothing is changed there.
    """
    change = getattr(ctypes.CDLL(None), "mallopt", None)
    if change is not None:
        change(_ARENA_MAX, 1)
