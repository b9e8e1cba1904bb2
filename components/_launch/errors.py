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


class ClusterFailed(ProcessFailed):
    """A cluster could not be reached, refused a request, or holds another run's object of the same name.

    Attributes:
        cluster: name of the cluster, or "".
    """

    def __init__(self, where: str, cause: str, cluster: str = "") -> None:
        super().__init__(where, cause)
        self.cluster = cluster


class Terminated(BaseException):
    """The supervising process was told to end (SIGTERM); not an error of the job."""
