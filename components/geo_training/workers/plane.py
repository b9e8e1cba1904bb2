"""A worker's rounds over one flat vector: cutting it into units, pushing them, putting the results together.

Knows nothing of frameworks, nor of when anything is exchanged.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..links.client import Client, Pending, Terms
from ..scheduling import InOrder, Slices
from ..scheduling.placement import PIECES_A_SHARD, placed
from ..wire.messages import Array
from ..wire.units import ENTERING, FLOAT_BYTES, OWN, TREE, WEIGHTS, Unit, at_shard, shard_of

SMALL = 1000
"""Tensors of fewer values travel together: a round of their own costs more than they do."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A tensor, or several small ones, in the flat vector.

    Attributes:
        name: of the tensor.
        start: its first value in the flat vector.
        count: number of its values.
        place: of the tensor among all, as the forward pass needs them; None for small ones.
    """

    name: str
    start: int
    count: int
    place: int | None = None


@dataclass(frozen=True)
class Layout:
    """Which tensors a flat vector is made of; the same on each worker.

    Attributes:
        pieces: one after the other, without a gap.
    """

    pieces: tuple[Piece, ...]

    @classmethod
    def of(cls, sizes: Sequence[tuple[str, int]]) -> "Layout":
        """Returns the layout of tensors, in their order.

        Args:
            sizes: name and number of values of each.
        """
        pieces: list[Piece] = []
        for place, (name, count) in enumerate(sizes):
            start = pieces[-1].start + pieces[-1].count if pieces else 0
            last = pieces[-1] if pieces else None
            if last is not None and max(count, last.count) < SMALL:
                pieces[-1] = Piece(last.name, last.start, last.count + count)
            else:
                pieces.append(Piece(name, start, count, None if count < SMALL else place))
        return cls(tuple(pieces))

    @property
    def start(self) -> int:
        """Where it begins in the whole flat vector."""
        return self.pieces[0].start if self.pieces else 0

    @property
    def count(self) -> int:
        """Its values."""
        return self.stop - self.start

    @property
    def stop(self) -> int:
        """Where it ends in the whole flat vector."""
        return self.pieces[-1].start + self.pieces[-1].count if self.pieces else 0

    def fragments(self, number: int) -> list["Layout"]:
        """Cuts the layout into about `number` runs of whole pieces with nearly equal counts, at least one."""
        runs: list[list[Piece]] = [[]]
        for piece in self.pieces:
            before = piece.start - self.start
            if runs[-1] and before + piece.count / 2 > len(runs) * self.count / number:
                runs.append([])
            runs[-1].append(piece)
        return [Layout(tuple(run)) for run in runs]


@dataclass(frozen=True, kw_only=True, slots=True)
class Members:
    """Who takes part; the same on each worker but for `name`."""

    workers: tuple[str, ...]
    """Names of the workers; the first gives the first weights."""

    name: str
    """This worker."""

    scope: str = TREE
    """Whom rounds join where nothing else is said: `tree` the workers of all sites, `site` those of one."""

    wait_s: float | None = None
    """Seconds that a round may wait for the other workers; None for the client's own."""


@dataclass(slots=True)
class Flight:
    """Values under way; `wait` gives what came of them."""

    client: Client
    pending: list[Pending]
    weight: float = field(default=0.0)

    @property
    def landed(self) -> bool:
        """Whether `wait` returns at once."""
        return all(one.finished for one in self.pending)

    @property
    def seconds(self) -> float:
        """Seconds from the first push to the last result, when all have landed."""
        return max(one.ended for one in self.pending) - min(one.started for one in self.pending)

    def wait(self) -> Array | None:
        """Returns the result, one-dimensional; None when nobody brought values. Sets `weight`.

        Raises:
            GeoError: the round was given up.
        """
        results = [self.client.wait(one) for one in self.pending]
        self.weight = max((result.weight for result in results), default=0.0)
        dtype = next((result.values.dtype for result in results if result.values is not None), None)
        if dtype is None:
            return None
        parts = [
            # Under a quorum what came late may be in this round with some of its units only.
            np.zeros(one.push.round.unit.count, dtype) if result.values is None else result.values
            for one, result in zip(self.pending, results, strict=True)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


class Plane:
    """What joins one worker to the others.

    Several may use one client, one after the other.

    Args:
        client: the worker's end of the link to its site's aggregator.
        members: who takes part.
        slices: how a large tensor is cut; the same on each worker.
        num_roots: roots of the tree, each of which ends the rounds of its own tensors once they are placed.
    """

    def __init__(
        self, client: Client, members: Members, slices: Slices | None = None, num_roots: int = 1
    ) -> None:
        self.members = members
        self.client = client
        self.num_roots = num_roots
        self._slices = slices or InOrder()
        self._placed: Mapping[tuple[str, int], int] = {}
        self._begun_at: dict[tuple[str, int], int] = {}
        self._entered: set[tuple[str, Layout]] = set()

    @property
    def index(self) -> int:
        """Number of this worker."""
        return self.members.workers.index(self.members.name)

    @property
    def size(self) -> int:
        """Number of workers."""
        return len(self.members.workers)

    def place(self, layout: Layout) -> None:
        """Spreads the tensors of the model over the roots; called once, by all workers, before any moves.

        Large ones are cut finer where else one root would have most of them.

        Args:
            layout: of all tensors.
        """
        if self.num_roots == 1:
            return
        most = layout.count * FLOAT_BYTES // (self.num_roots * PIECES_A_SHARD)
        self._slices = self._slices.finer(most)
        roots = placed([unit for _, unit in self._units("", layout)], self.num_roots)
        self._placed = {(unit.key, unit.offset): root for unit, root in roots.items()}

    def mean(
        self, role: str, layout: Layout, values: Array | None, weight: float, scope: str | None = None
    ) -> Flight:
        """Begins the weighted mean of vectors over all workers.

        Args:
            role: first word of the rounds' keys; says whether a compression may lose anything.
            layout: what the vector is made of.
            values: [layout.count], already multiplied by the weight; None to take part without values.
            weight: such as the number of samples.
            scope: whom the round joins; None for the members' own.
        """
        return self._begin(role, layout, values, Terms(reduction="mean", weight=weight), scope)

    def sum(self, role: str, layout: Layout, values: Array | None, scope: str | None = None) -> Flight:
        """Begins the sum of vectors over all workers; see `mean`."""
        return self._begin(role, layout, values, Terms(reduction="sum"), scope)

    def max(self, role: str, layout: Layout, values: Array | None, scope: str | None = None) -> Flight:
        """Begins the largest of vectors over all workers, value by value; see `mean`."""
        return self._begin(role, layout, values, Terms(reduction="max"), scope)

    def first(self, role: str, layout: Layout, values: Array, scope: str | None = None) -> Array:
        """Returns the first worker's values; only these travel up.

        Raises:
            GeoError: the round was given up.
        """
        if not layout.count:
            return values
        if self.first_round is not None and (role, layout) not in self._entered:
            self._entered.add((role, layout))
            return self._of_others(role, layout)
        first = self.sum(role, layout, values if self.index == 0 else None, scope).wait()
        assert first is not None  # the first worker's are in it
        return first

    @property
    def first_round(self) -> int | None:
        """The round of changes to begin with where the others have begun before; None at the start of all."""
        return self.client.first_round

    def skip(self, role: str, layout: Layout, scope: str, rounds: Callable[[int], int] = int) -> None:
        """Goes on where the others are, after `first` has given their weights.

        Args:
            role: of the rounds.
            layout: what they are about.
            scope: whom they join.
            rounds: how many of these rounds there are before so many of changes over all sites.
        """
        for piece, unit in self._units(role, layout):
            before = self._begun_at.get((piece.name, unit.offset), self.first_round or 0)
            self.client.skip(scope, unit, rounds(before))

    def total(self, numbers: Array) -> Array:
        """Returns the sum of a few numbers over all workers of the members' scope.

        Raises:
            GeoError: the round was given up.
        """
        total = self.sum("numbers", Layout.of([("", numbers.size)]), numbers).wait()
        assert total is not None
        return total.copy()

    def any_landed(self, flights: Sequence[Flight]) -> None:
        """Waits until at least one of some flights has landed.

        Raises:
            GeoError: a round was given up.
        """
        self.client.wait_any([flight.pending for flight in flights])

    def stepped(self) -> None:
        """Tells who observes that this worker has taken a step."""
        self.client.observer.stepped(self.client.now())

    def close(self) -> None:
        """Leaves the tree."""
        self.client.close()

    def _of_others(self, role: str, layout: Layout) -> Array:
        """Returns what the other workers have of what they were once given."""
        flight = self._begin(f"{ENTERING} {role}", layout, None, Terms(reduction="sum"), TREE)
        values = flight.wait()
        assert values is not None  # who has none does not answer
        if role == WEIGHTS:
            for (piece, unit), one in zip(self._units(role, layout), flight.pending, strict=True):
                self._begun_at[piece.name, unit.offset] = int(self.client.wait(one).weight)
        return values

    def _begin(
        self, role: str, layout: Layout, values: Array | None, terms: Terms, scope: str | None
    ) -> Flight:
        pending = []
        for piece, unit in self._units(role, layout):
            start = piece.start - layout.start + unit.offset
            brought = None if values is None else values[start : start + unit.count]
            number = self.client.next_round(self._scope(scope or self.members.scope, unit), unit)
            urgent = replace(terms, wait_s=self.members.wait_s, priority=self._slices.priority(piece.place))
            pending.append(self.client.push(number, brought, urgent))
        return Flight(self.client, pending)

    def _scope(self, scope: str, unit: Unit) -> str:
        if shard_of(scope) or not (scope == TREE or scope.startswith(OWN)):
            return scope
        return at_shard(scope, self._placed.get((unit.key.partition(" ")[2], unit.offset), 0))

    def _units(self, role: str, layout: Layout) -> list[tuple[Piece, Unit]]:
        return [
            (piece, unit)
            for piece in layout.pieces
            for unit in self._slices.cut(f"{role} {piece.name}".strip(), piece.count, FLOAT_BYTES)
        ]
