"""Progress lines: one line a message, marked so that whoever reads the output can tell them from chatter.

Such as::

[geokfp    12.3 s] site-0/trainer-0: epoch 3 loss 0.41
"""

import re
import sys
import time

from .environment import step_start

_LINE = re.compile(r"\s*\[geokfp +\d+\.\d s\] (.*)")


def progress(message: str) -> None:
    """Prints one progress line, flushed, with the seconds since the step began."""
    print_progress(message, replica="")


def print_progress(message: str, *, replica: str) -> None:
    """Prints a progress line of the named replica ("" = the step's own process)."""
    who = f"{replica}: " if replica else ""
    one_line = " ".join(message.splitlines())
    elapsed_s = max(0.0, time.time() - step_start())
    sys.stdout.write(f"[geokfp {elapsed_s:7.1f} s] {who}{one_line}\n")
    sys.stdout.flush()


def parse_progress(line: str) -> str | None:
    """Returns the message of a progress line, or None for any other line."""
    found = _LINE.fullmatch(line.rstrip("\r\n"))
    return found[1] if found else None
