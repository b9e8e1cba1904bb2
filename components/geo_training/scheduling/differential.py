"""What a node sends of its units in blocks, and what of it comes back to be sent again (DGT).

For values g and what was not counted so far, r: v = g + r is cut into blocks; the important ones travel
reliably, the others in datagrams, until the receiver says which were counted. Those that were not are the
next r. So what was counted and the last r sum to what was given. The first push of a unit is reliable as a
whole, and a block of zeros that is not encoded is not sent. Knows nothing of networks.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..checkpoints.state import State, load_into, state_of
from ..compression.blockwise import Blockwise, part
from ..compression.decoding import decode_values
from ..compression.per_unit import may_lose
from ..wire.block_messages import IN_BLOCKS, Blocks
from ..wire.messages import Array, Payload
from ..wire.units import RoundId, Unit
from .dgt import Dgt
from .importance import Cut, Ranking, split

_BLOCKS_A_MESSAGE = 64
"""Dense blocks that travel together on the reliable channel."""
_DTYPE = np.dtype("<f4")


@dataclass(frozen=True, slots=True)
class Plan:
    """How one push travels.

    Attributes:
        round: the round.
        cut: its blocks.
        marker: payload of the push itself, which ends it.
        important: messages of the reliable channel.
        channels: those of each other channel, a block each, the most important channel first.
    """

    round: RoundId
    cut: Cut
    marker: Payload
    important: tuple[Blocks, ...]
    channels: tuple[tuple[Blocks, ...], ...]

    @property
    def messages(self) -> tuple[Blocks, ...]:
        """All of them, the most important first."""
        return (*self.important, *(message for channel in self.channels for message in channel))

    @property
    def num_in_datagrams(self) -> int:
        """Blocks that are not important."""
        return sum(len(channel) for channel in self.channels)


@dataclass(slots=True)
class _Line:
    """What is kept of a unit in one scope."""

    cut: Cut
    ranking: Ranking
    is_dense: bool
    residual: Array | None = None
    first_norm: float | None = None
    plans: dict[int, Plan] = field(default_factory=dict)


class Differential:
    """The units of one link; any thread may call it.

    Args:
        options: the options of DGT.
        blocks: encodes a block.
    """

    def __init__(self, options: Dgt, blocks: Blockwise) -> None:
        self._options = options
        self._blocks = blocks
        self._lock = threading.Lock()
        self._lines: dict[tuple[str, Unit], _Line] = {}

    def plan(self, round_id: RoundId, values: Array, weight: float) -> Plan | None:
        """Returns how a push travels; None for one that travels as it would without blocks.

        Args:
            round_id: the round; a unit's rounds come in order.
            values: [unit.count]; they must not change until `settle` is called.
            weight: samples behind them; norms are told by sample.
        """
        unit = round_id.unit
        if self._options.is_off or not may_lose(unit) or values.dtype != _DTYPE or values.size != unit.count:
            return None
        with self._lock:
            line = self._line(round_id.scope, unit)
            if line.cut.num_blocks == 1:
                return None
            if line.residual is not None:
                values, line.residual = values + line.residual, None
            plan = self._planned(round_id, line, values, weight)
            line.plans[round_id.number] = plan
        return plan

    def again(self, round_id: RoundId) -> Plan | None:
        """Returns the plan of a push that is under way; None where it has none."""
        line = self._lines.get((round_id.scope, round_id.unit))
        return None if line is None else line.plans.get(round_id.number)

    def settle(self, round_id: RoundId, counted: frozenset[int]) -> tuple[int, int]:
        """Keeps what was not counted for the next push; a second call of a round changes nothing.

        Args:
            round_id: the round.
            counted: the blocks that were.

        Returns:
            How many blocks were sent in datagrams, and how many of these were counted.
        """
        with self._lock:
            line = self._lines.get((round_id.scope, round_id.unit))
            plan = None if line is None else line.plans.pop(round_id.number, None)
            if line is None or plan is None:
                return 0, 0
            for message in plan.messages:
                for index, number in enumerate(message.numbers):
                    if number not in counted:
                        self._take_back(line, plan, message, index)
            arrived = sum(message.numbers[0] in counted for channel in plan.channels for message in channel)
            return plan.num_in_datagrams, arrived

    def residual(self, scope: str, unit: Unit) -> Array | None:
        """Returns what was not counted of a unit and is not under way; None for nothing."""
        line = self._lines.get((scope, unit))
        return None if line is None else line.residual

    def state(self) -> State:
        """See `Stateful`; called where nothing is under way."""
        arrays: dict[str, Array] = {}
        entries: list[dict[str, Any]] = []
        for (scope, unit), line in self._lines.items():
            name = str(len(entries))
            arrays[f"contributions {name}"] = line.ranking.contributions.copy()
            if line.residual is not None:
                arrays[f"residual {name}"] = line.residual.copy()
            entries.append({"scope": scope, "unit": unit.to_list(), "first_norm": line.first_norm})
        return State.of({"own": State(arrays, {"lines": entries}), "blocks": state_of(self._blocks)})

    def load_state(self, state: State) -> None:
        """See `Stateful`."""
        self._lines.clear()
        own = state.part("own")
        for name, entry in enumerate(own.facts.get("lines", [])):
            line = self._line(entry["scope"], Unit(*entry["unit"]))
            line.ranking.contributions = own.arrays[f"contributions {name}"].copy()
            residual = own.arrays.get(f"residual {name}")
            line.residual = None if residual is None else residual.copy()
            line.first_norm = entry["first_norm"]
        load_into(self._blocks, state.part("blocks"))

    def _line(self, scope: str, unit: Unit) -> _Line:
        if (scope, unit) not in self._lines:
            cut = Cut(max(1, unit.count), self._blocks.block_values(unit, self._options.block_bytes))
            ranking = Ranking(cut, self._options.alpha)
            self._lines[scope, unit] = _Line(cut, ranking, self._blocks.is_dense(unit))
        return self._lines[scope, unit]

    def _planned(self, round_id: RoundId, line: _Line, values: Array, weight: float) -> Plan:
        present = line.ranking.update(values)
        if not line.is_dense:  # a compressor may have something left to send
            present[:] = True
        norm = float(np.linalg.norm(values)) / (weight or 1.0)
        fraction = 1.0 if line.first_norm is None else self._options.share.of(norm, line.first_norm)
        line.first_norm = norm if line.first_norm is None else line.first_norm
        ways = split(line.ranking.contributions, present, fraction, self._options.channels)

        def one(numbers: Sequence[int]) -> Blocks:
            return self._message(round_id, line, tuple(numbers), values)

        step = _BLOCKS_A_MESSAGE if line.is_dense else 1
        return Plan(
            round_id,
            line.cut,
            Payload(IN_BLOCKS, _DTYPE.str, (np.array([line.cut.block], "<u4"),)),
            tuple(one(ways.important[i : i + step]) for i in range(0, len(ways.important), step)),
            tuple(tuple(one((number,)) for number in channel) for channel in ways.channels),
        )

    def _message(self, round_id: RoundId, line: _Line, numbers: tuple[int, ...], values: Array) -> Blocks:
        spans = [line.cut.span(number) for number in numbers]
        if line.is_dense:
            together = values[spans[0]] if len(spans) == 1 else np.concatenate([values[s] for s in spans])
            payload = Payload("dense", _DTYPE.str, (together,))
        else:
            payload = self._blocks.encode(round_id.unit, spans[0], values)
        return Blocks(round_id, line.cut.block, numbers, payload)

    def _take_back(self, line: _Line, plan: Plan, message: Blocks, index: int) -> None:
        unit, span = plan.round.unit, plan.cut.span(message.numbers[index])
        if line.is_dense:
            start = sum(plan.cut.sizes(message.numbers[:index]))
            values = message.payload.buffers[0][start : start + span.stop - span.start]
        else:
            values = decode_values(part(unit, span), message.payload)
            if self._blocks.take_back(unit, span, values):
                return
        if line.residual is None:
            line.residual = np.zeros(unit.count, _DTYPE)
        line.residual[span] += values
