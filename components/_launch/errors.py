"""How a job ends badly; the tree is drawn in the package's docstring."""


class ProcessFailed(RuntimeError):
    """A process of a job ended badly, or the job ran past its deadline.

    Attributes:
        replica: name of the process.
        cause: one line.
        last_lines: the end of what it printed.
    """

    def __init__(self, replica: str, cause: str, last_lines: tuple[str, ...] = ()) -> None:
        super().__init__(f"{replica}: {cause}")
        self.replica = replica
        self.cause = cause
        self.last_lines = last_lines


class Terminated(BaseException):
    """The supervising process was told to end (SIGTERM); not an error of the job."""
