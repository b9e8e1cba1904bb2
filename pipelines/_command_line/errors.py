"""Errors that end the command with one line on stderr.

::

    CommandError
    ├── UsageError     what was typed is wrong, nothing was started: exit status 2
    ├── RunFailed      a step, or the set-up it needs, failed: exit status 1
    ├── ServerError    a Kubeflow Pipelines installation does not answer, or refuses: exit status 1
    ├── StillRunning   a run goes on when no one waits for it any longer: exit status 124
    └── Interrupted    Ctrl-C, and what became of the run: exit status 130
"""


class CommandError(Exception):
    """Ends the command; the message is one line."""

    exit_status = 1


class UsageError(CommandError):
    """An argument is wrong; names it, its value and what is allowed."""

    exit_status = 2


class RunFailed(CommandError):
    """The run failed; names the step and the cause."""


class ServerError(CommandError):
    """An installation cannot be asked, or refuses; names it, what was asked and its answer."""


class StillRunning(CommandError):
    """The time to wait for a run is over; says that it goes on, and where it is shown."""

    exit_status = 124


class Interrupted(CommandError):
    """Ctrl-C; says whether the run goes on."""

    exit_status = 130
