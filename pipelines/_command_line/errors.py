"""Errors that end the command with one line on stderr.

::

    CommandError
    ├── UsageError     what was typed is wrong, nothing was started: exit status 2
    └── RunFailed      a step, or the set-up it needs, failed: exit status 1
"""


class CommandError(Exception):
    """Ends the command; the message is one line."""

    exit_status = 1


class UsageError(CommandError):
    """An argument is wrong; names it, its value and what is allowed."""

    exit_status = 2


class RunFailed(CommandError):
    """The run failed; names the step and the cause."""
