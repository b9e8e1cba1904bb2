"""When workers exchange, what, and what the tree makes of it: one policy a file, composed by the user's text.

A technique says what a worker does (`fsa`, `mixed`, `hfa`, `esync`, `nbsync`), and of the first two which
optimizer acts at the root; rules add to it: `outer`, the root's optimizer of mean changes; `streamed`,
fragments that are synchronised at different times; `quorum`, rounds that do not wait for all.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from ..._files import InputError
from ..optimizers import OptimizerSpec
from ..optimizers.nesterov import Outer
from ..scheduling.controller import Controller
from ..scheduling.ladder import adaptive_ladder, steps_ladder
from ..spec import Interval, check, parse_with_rules
from ..wire.units import DELTA, GRADIENT
from .auto import Auto
from .base import NodePolicy, Replica, Update, WorkerPolicy
from .esync import ESync
from .fsa import Fsa, FullAtWorker
from .hfa import Hfa
from .mixed import Mixed
from .nbsync import NbSync
from .node import Node, QuorumOptions, Root
from .served_worker import ServedWorker

__all__ = [
    "NodePolicy",
    "Replica",
    "ServedWorker",
    "Synchronization",
    "Update",
    "WorkerPolicy",
    "synchronization",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Streamed:
    """Parts of the model are synchronised one after the other (Streaming DiLoCo; Douillard et al., 2025).

    Raises:
        InputError: a value that is not allowed; names the option, the value and what is.
    """

    fragments: Annotated[int, Interval(low=1, high=1000)] = 4
    """Parts, of whole tensors and nearly equal size."""

    def __post_init__(self) -> None:
        """Checks the values."""
        check(self)


LocalTechnique: TypeAlias = Hfa | ESync | NbSync | Auto
AnyTechnique: TypeAlias = Fsa | Mixed | LocalTechnique
TECHNIQUES: Mapping[str, type[AnyTechnique]] = {
    "fsa": Fsa,
    "mixed": Mixed,
    "hfa": Hfa,
    "esync": ESync,
    "nbsync": NbSync,
    "auto": Auto,
}
_LOCAL = "hfa, esync, nbsync, auto"
_WITH_QUORUM = "fsa, mixed, hfa, nbsync"
_ENTERED = "fsa(optimizer=...), mixed, hfa, nbsync"
RULES: Mapping[str, type[Any]] = {"outer": Outer, "streamed": Streamed, "quorum": QuorumOptions}


@dataclass(frozen=True, kw_only=True, slots=True)
class Synchronization:
    """What was chosen.

    Raises:
        InputError: a rule that the technique has no use for, or an option that a rule has none for; names it.
    """

    technique: AnyTechnique
    """What a worker does."""
    outer: Outer | None = None
    """The root's outer optimizer."""
    streamed: Streamed | None = None
    """Fragments; None synchronises the whole model at once."""
    quorum: QuorumOptions | None = None
    """Whom rounds wait for; None for all."""

    def __post_init__(self) -> None:
        """Checks that the rules fit the technique."""
        for rule in ("outer", "streamed"):
            if isinstance(self.technique, Fsa | Mixed) and getattr(self, rule) is not None:
                raise InputError(
                    f"rule {rule} is for changes of weights, not for gradients, allowed with: {_LOCAL}"
                )
        if isinstance(self.technique, ESync | Auto) and self.quorum is not None:
            raise InputError(f"rule quorum leaves out times that a plan needs, allowed with: {_WITH_QUORUM}")
        if self.outer is not None and self.outer.weight_decay:
            raise InputError(
                f"weight_decay of outer is {self.outer.weight_decay}, allowed: 0, as changes do not decay"
            )

    @property
    def optimizer(self) -> OptimizerSpec | None:
        """The root's, which moves weights by gradients; None where each worker's own acts."""
        return self.technique.optimizer if isinstance(self.technique, Fsa | Mixed) else None

    @property
    def is_planned(self) -> bool:
        """Whether the root plans rounds from what workers measure."""
        return isinstance(self.technique, Auto)

    @property
    def unequal_steps(self) -> bool:
        """Whether sites take different numbers of steps between two rounds."""
        return isinstance(self.technique, ESync)

    def worker(
        self, *, meets: bool = False, piecewise: bool = False, root_follows: bool = False
    ) -> WorkerPolicy:
        """Returns a worker's end.

        Args:
            root_follows: whether the root is to have the weights, which gradients do not tell it.
            piecewise: whether the framework lets tensors come and go one by one, which `fsa` makes use of
                where every worker is in every round.
            meets: whether all workers ask for the agreed weights after the same steps, so that asking may
                take a round of all.
        """
        if isinstance(self.technique, Mixed):
            return self.technique.worker(meets=meets)
        if isinstance(self.technique, Fsa):
            return self.technique.worker(piecewise=piecewise and self.quorum is None)
        fragments = self.streamed.fragments if self.streamed else 1
        if isinstance(self.technique, Auto):
            return self.technique.local_steps(fragments, gradients=not root_follows)
        return self.technique.local_steps(fragments)

    def worker_of_one_site(self) -> WorkerPolicy:
        """Returns a worker's end where its site trains alone: the root neither plans nor acts."""
        at_root = self.optimizer is not None or isinstance(self.technique, Auto)
        return FullAtWorker() if at_root else self.worker()

    def check_workers(self, num_workers: int) -> None:
        """Holds the choice against the number of workers of the tree.

        Raises:
            InputError: a round would wait for more; names the option, its value and what is allowed.
        """
        if self.quorum is not None and self.quorum.workers > num_workers:
            raise InputError(
                f"synchronization: workers of quorum is {self.quorum.workers}, allowed: at most the "
                f"{num_workers} of all sites"
            )

    def node(self) -> NodePolicy:
        """Returns the end of a site's aggregator."""
        return Node()

    def root(self, *, follows: bool = False, bytes_a_value: float | None = None) -> Root:
        """Returns the root's end.

        Args:
            follows: whether it follows the weights where its optimizer does not hold them.
            bytes_a_value: what a value needs on a link between sites, where rounds are planned; None where
                the plans are of the compression too.
        """
        controller = None
        if isinstance(self.technique, Auto):
            most = self.technique.max_steps
            ladder = adaptive_ladder(most) if bytes_a_value is None else steps_ladder(most, bytes_a_value)
            controller = Controller(ladder)
        return Root(self.quorum, self.outer, self.optimizer, controller, follows=follows)

    @property
    def in_step(self) -> bool:
        """Whether all sites are at the same step whenever they exchange."""
        return not isinstance(self.technique, Mixed | ESync)

    @property
    def changes(self) -> str:
        """Role of the rounds whose results change the weights of all workers alike; empty where none do."""
        if isinstance(self.technique, Fsa | Mixed):
            return "" if self.optimizer is None else GRADIENT
        return DELTA

    @property
    def cannot_enter(self) -> str:
        """Why a worker cannot come anew when the others have begun; empty where it can."""
        if isinstance(self.technique, Fsa) and self.optimizer is None:
            return f"only the others have what optimizers at the workers keep; it may with {_ENTERED}"
        if isinstance(self.technique, ESync | Auto):
            return f"plans are made by the times of all, from the start; it may with {_ENTERED}"
        if self.streamed is not None:
            return "the fragments of streamed are of different moments; it may without this rule"
        return ""

    @property
    def weights_at_root(self) -> bool:
        """Whether the root can tell what the weights are."""
        return not isinstance(self.technique, Fsa) or self.technique.optimizer is not None


def synchronization(text: str) -> Synchronization:
    """Reads what a user writes, such as `hfa(k1=20) + outer(rate=0.7, momentum=0.9)`.

    Raises:
        InputError: it is not of the grammar, a name or value is not allowed, or two do not fit.
    """
    technique, rules = parse_with_rules(text, "synchronization", TECHNIQUES, RULES)
    try:
        return Synchronization(technique=technique, **rules)
    except InputError as error:
        raise InputError(f"synchronization {text!r}: {error}") from error
