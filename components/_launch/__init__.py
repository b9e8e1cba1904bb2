"""Starts named groups of processes, anywhere, and ends all of them when one fails.

Knows nothing of graphs, of training, or of KFP; imports neither torch nor DGL.

Errors::

    RuntimeError
    └── ProcessFailed     a process of a job ended badly, or the job ran past its deadline

A plan that cannot be carried out is the caller's `InputError`.
"""

from .environment import variables
from .errors import ProcessFailed
from .failure import FailureRecord, failure_recorded, read_failures
from .local import run_job
from .plan import Job, Replica, Role
from .ports import free_ports
from .progress import parse_progress, progress
from .replica import fail
from .shared_memory import SHARED_MEMORY
from .verdict import describe

__all__ = [
    "SHARED_MEMORY",
    "FailureRecord",
    "Job",
    "ProcessFailed",
    "Replica",
    "Role",
    "describe",
    "fail",
    "failure_recorded",
    "free_ports",
    "parse_progress",
    "progress",
    "read_failures",
    "run_job",
    "variables",
]
