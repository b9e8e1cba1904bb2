"""What a root has beside its policy, in the forms in which it outlives the root: a state, and records.

The state holds the rounds that it remembers: what is counted in them, and what senders are answered.
"""

from typing import Any

from ..compression import Compressor
from ..nodes.presence import Presence
from ..nodes.rounds import Contribution, Done, Rounds
from ..nodes.shelf import in_memory
from ..wire.messages import Answer, Array, Payload
from ..wire.units import RoundId, Unit
from .carried import Value, carried_state, load_carried
from .journal import Record
from .state import State, load_into, state_of


def lasting_state(presence: Presence, down: Compressor) -> State:
    """Returns what a node has; called under its lock."""
    parts = {
        "carried": carried_state(presence.rounds),
        "rounds": remembered_state(presence.rounds),
        "given": presence.given.state(),
        "down": state_of(down),
    }
    return State.of(parts)


def load_lasting(presence: Presence, down: Compressor, state: State) -> None:
    """Gives a node that has had no rounds what `lasting_state` gave."""
    load_remembered(presence.rounds, state.part("rounds"))
    load_carried(presence.rounds, state.part("carried"))
    presence.given.load_state(state.part("given"))
    load_into(down, state.part("down"))


def late_record(round_id: RoundId, late: Contribution) -> Record:
    """Returns the record of a contribution that came too late for a round."""
    return Record(
        round=round_id,
        reduction=late.value.reduction,
        weight=late.weight,
        senders=(late.sender,),
        covers=tuple(sorted(late.covers)),
        values=late.value.values,
        priority=late.value.priority,
        is_late=True,
    )


def late_contribution(record: Record) -> Contribution:
    """Returns the contribution of which `late_record` gave the record."""
    value, covers = Value(record.reduction, record.values, record.priority), frozenset(record.covers)
    return Contribution(record.senders[0], covers, record.weight, 0.0, value, idle=record.values is None)


def remembered_state(rounds: Rounds) -> State:
    """Returns the finished rounds with their answers, as a state."""
    arrays: dict[str, Array] = {}
    entries: list[dict[str, Any]] = []
    for round_id, done in rounds.done():
        entry = {
            "scope": round_id.scope,
            "unit": round_id.unit.to_list(),
            "number": round_id.number,
            "expected": sorted(done.expected),
            "covered": sorted(done.covered),
            "waiting": sorted(done.waiting),
            "settled": done.settled,
        }
        if done.result is not None:
            answer = in_memory(done.result)
            payload = answer.payload
            for index, buffer in enumerate(payload.buffers):
                arrays[f"{len(entries)} {index}"] = buffer.copy()
            entry["answer"] = [
                answer.weight,
                answer.priority,
                payload.codec,
                payload.dtype,
                len(payload.buffers),
            ]
        entries.append(entry)
    return State(arrays, {"done": entries})


def load_remembered(rounds: Rounds, state: State) -> None:
    """Lets a node that has had no rounds remember what `remembered_state` gave."""
    for index, entry in enumerate(state.facts.get("done", [])):
        round_id = RoundId(entry["scope"], Unit(*entry["unit"]), entry["number"])
        answer = None
        if "answer" in entry:
            weight, priority, codec, dtype, num_buffers = entry["answer"]
            buffers = tuple(state.arrays[f"{index} {number}"] for number in range(num_buffers))
            answer = Answer(round_id, weight, Payload(codec, dtype, buffers), priority)
        done = Done(
            expected=frozenset(entry["expected"]),
            covered=set(entry["covered"]),
            waiting=set(entry["waiting"]),
            settled=entry["settled"],
            result=answer,
        )
        rounds.redo(round_id, done, 0 if answer is None else answer.payload.num_bytes)
