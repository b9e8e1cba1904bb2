"""Short commands of the system; their words are told when they fail."""

import subprocess
from collections.abc import Sequence

from .errors import RigError

DEADLINE_S = 20.0


def execute(command: Sequence[str], given: str = "") -> str:
    """Runs a command to its end and returns what it printed.

    Args:
        command: the command's words.
        given: its standard input.

    Raises:
        RigError: it failed or took longer than `DEADLINE_S`.
    """
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RigError(f"{command[0]} could not be run: {error}") from error
    if done.returncode:
        told = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
        raise RigError(f"{' '.join(command)}: {told}")
    return done.stdout
