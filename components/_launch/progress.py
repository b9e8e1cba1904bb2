"""Progress lines: one line a message, marked so that whoever reads the output can tell them from chatter."""

import sys
import time

from .environment import step_start

_MARK = "[geokfp"


def progress(message: str) -> None:
    """Prints one progress line, flushed, with the seconds since the step began."""
    print_progress(message, replica="")


def print_progress(message: str, *, replica: str) -> None:
    """Prints a progress line of the named replica ("" = the step's own process)."""
    who = f"{replica}: " if replica else ""
    one_line = " ".join(message.split("\n"))
    sys.stdout.write(f"{_MARK} {time.time() - step_start():7.1f} s] {who}{one_line}\n")
    sys.stdout.flush()


def parse_progress(line: str) -> str | None:
    """Returns the message of a progress line, or None for any other line."""
    mark, _, rest = line.lstrip().partition("]")
    return rest.strip() if mark.startswith(_MARK) and rest else None
