"""What to start: frozen values, with no clients and no processes.

Knows nothing of how or where the processes are started.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from .._files import InputError


@dataclass(frozen=True, kw_only=True, slots=True)
class Replica:
    """One process."""

    name: str
    """Unique in its job, such as `site-0/trainer-1`."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables set for it beside those inherited."""
    arguments: tuple[str, ...] = ()
    """What its role's target is called with."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._/-]*", self.name):
            raise InputError(f"replica name {self.name!r}: letters, digits and ._/- are allowed")

    @property
    def log_name(self) -> str:
        """Name of the file that what it prints goes to."""
        return f"{self.name.replace('/', '.')}.log"


@dataclass(frozen=True, kw_only=True, slots=True)
class Role:
    """Processes that run the same function."""

    name: str
    """What they are, such as `trainer`."""
    target: str
    """`package.module:function`, called with a list of arguments; returns None or an exit status."""
    replicas: tuple[Replica, ...]
    """The processes."""
    preload: tuple[str, ...] = ()
    """Modules imported once, before the replicas are forked."""
    finishes: bool = True
    """Whether it ends by itself; a server does not, and is ended when all that finish have."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\w+(\.\w+)*:\w+", self.target):
            raise InputError(
                f"target {self.target!r} of role {self.name!r}: `package.module:function` is needed"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """All processes that start, and end, together."""

    name: str
    """Shown in messages."""
    roles: tuple[Role, ...]
    """What to start; at least one role finishes."""
    deadline_s: float
    """Seconds after which the job is ended as failed."""
    shared_memory_prefixes: tuple[str, ...] = ()
    """Names in /dev/shm that begin so are removed at the end."""

    def __post_init__(self) -> None:
        logs: dict[str, str] = {"fork-host.log": "the supervisor's own process"}
        for replica in (replica for role in self.roles for replica in role.replicas):
            if replica.log_name in logs:
                raise InputError(
                    f"job {self.name!r}: replica {replica.name!r} and {logs[replica.log_name]} "
                    f"would share the log {replica.log_name}; different names are needed"
                )
            logs[replica.log_name] = f"replica {replica.name!r}"
        if not any(role.finishes and role.replicas for role in self.roles):
            raise InputError(f"job {self.name!r}: no role finishes, so it would never end")
        if not self.deadline_s > 0:
            raise InputError(f"job {self.name!r}: deadline_s is {self.deadline_s}, more than 0 is needed")
        for prefix in self.shared_memory_prefixes:
            if not prefix or "/" in prefix:
                raise InputError(
                    f"job {self.name!r}: shared-memory prefix is {prefix!r}, the start of a name is needed"
                )
