"""When workers exchange, what, and what the tree makes of it: one policy a file, composed by the user's text.

A technique says what a worker does (`fsa`, `mixed`, `hfa`, `esync`, `nbsync`); rules add to it: `outer`, an
outer optimizer at the root; `streamed`, fragments that are synchronised at different times; `quorum`, rounds
that do not wait for all.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from ..._files import InputError
from ..grammar import read
from ..options import SYNCHRONIZATION, Options, Whole, option
from .base import NodePolicy, Replica, Update, WorkerPolicy
from .esync import ESync
from .fsa import Fsa
from .hfa import Hfa
from .mixed import Mixed
from .nbsync import NbSync
from .node import Node, QuorumOptions, Root
from .outer import Nesterov, Outer

__all__ = ["NodePolicy", "Replica", "Synchronization", "Update", "WorkerPolicy", "synchronization"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Streamed(Options):
    """Parts of the model are synchronised one after the other (Streaming DiLoCo; Douillard et al., 2025)."""

    what: ClassVar[str] = SYNCHRONIZATION
    name: ClassVar[str] = "streamed"

    fragments: int = option(4, Whole(1, 1000))
    """Parts, of whole tensors and nearly equal size."""


LocalTechnique: TypeAlias = Hfa | ESync | NbSync
TECHNIQUES: Mapping[str, type[Options]] = {kind.name: kind for kind in (Fsa, Hfa, ESync, NbSync)}
RULES: Mapping[str, type[Options]] = {kind.name: kind for kind in (Outer, Streamed, QuorumOptions)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Synchronization:
    """What was chosen.

    Raises:
        InputError: a rule that the technique has no use for; names both.
    """

    technique: Fsa | LocalTechnique
    """What a worker does."""
    outer: Outer | None = None
    """The root's outer optimizer."""
    streamed: Streamed | None = None
    """Fragments; None synchronises the whole model at once."""
    quorum: QuorumOptions | None = None
    """Whom rounds wait for; None for all."""

    def __post_init__(self) -> None:
        """Checks that the rules fit the technique."""
        if isinstance(self.technique, Fsa):
            for rule in (self.outer, self.streamed):
                if rule is not None:
                    raise InputError(
                        f"synchronization {self.technique.name} + {rule.name}: {rule.name} is for changes of "
                        "weights, allowed with hfa, esync, nbsync"
                    )

    @property
    def unequal_steps(self) -> bool:
        """Whether sites take different numbers of steps between two rounds."""
        return isinstance(self.technique, ESync)

    def worker(self) -> WorkerPolicy:
        """Returns a worker's end."""
        if isinstance(self.technique, Fsa):
            return self.technique.worker()
        return self.technique.local_steps(self.streamed.fragments if self.streamed else 1)

    def worker_of_one_site(self) -> WorkerPolicy:
        """Returns a worker's end where its site trains alone, so that the root has no part."""
        return self.worker()

    def node(self) -> NodePolicy:
        """Returns the end of a site's aggregator."""
        return Node()

    def root(self) -> NodePolicy:
        """Returns the root's end."""
        return Root(self.quorum, Nesterov(self.outer) if self.outer else None)


def synchronization(text: str) -> Synchronization:
    """Reads what a user writes, such as `hfa(k1=20) + outer(rate=0.7, momentum=0.9)`.

    Raises:
        InputError: it is not of the grammar, a name or value is not allowed, or two do not fit.
    """
    technique, rules = read("synchronization", text, TECHNIQUES, RULES)
    return Synchronization(technique=technique, **rules)
