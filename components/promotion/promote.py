"""What the component `promote_model` does: a challenger that has won becomes the champion, or is too late.

Between a comparison and its promotion another run may have promoted a model. One of a later window stays. Any
other champion is compared with the challenger here once more, so that who is promoted has won against the
very champion that it replaces. So it goes until nobody has been faster; each turn costs another run a whole
training.
"""

import itertools
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from .._files import InputError, new_file
from .._launch import progress
from ..export.exported_model import read_exported_model
from ..ingest.graph import read_graph
from ..training.trained_gnn import read_trained_gnn
from .champions import Champions, Record, version_name
from .comparison import judge
from .config import PromotionConfig
from .evaluate import compare
from .report import write_promotion

PROMOTED, LATE, BEATEN = "promoted", "late", "beaten"
MOST_TURNS = 20


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What the step reads."""

    graph: Path
    """The graph that the models were compared on."""
    trained: Path
    """The challenger, a trained GNN."""
    exported: Path
    """The same, exported."""


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Where the step's outputs go."""

    report: Path
    """The HTML report."""
    outcome: Path
    """`promoted`, `late` or `beaten`, as text."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a promotion.

    Attributes:
        kind: `promoted`, `late` (a champion of a later window is there) or `beaten` (by the champion of the
            moment).
        record: of the promoted model, or else of the champion that stays; None where there is none.
        why: one line that says so.
    """

    kind: str
    record: Record | None
    why: str


def run(config: PromotionConfig, inputs: Inputs, outputs: Outputs, now: datetime) -> dict[str, float]:
    """Makes a challenger the champion, unless another one has a better claim by now.

    Done again with the same artifacts it finds its own record, whatever came after it, and changes nothing.

    Args:
        config: the champions, the window, and what the challenger was compared with.
        inputs: the challenger, and the graph to compare it on once more where need be.
        outputs: where to write.
        now: the present.

    Returns:
        Finite metrics by name.

    Raises:
        InputError: an input is wrong, or the folder of the champions cannot be read or written.
    """
    champions = Champions(config.champions)
    outcome = _decide(config, inputs, champions, now)
    champions.point()
    progress(f"{outcome.kind}: {outcome.why}")
    write_promotion(
        outputs.report, outcome.kind, outcome.why, list(itertools.islice(champions.records(), 50))
    )
    with new_file(outputs.outcome) as temporary:
        temporary.write_text(outcome.kind, encoding="ascii")
    generation = 0 if outcome.record is None else outcome.record.generation
    return {"promoted": float(outcome.kind == PROMOTED), "generation": float(generation)}


def _decide(config: PromotionConfig, inputs: Inputs, champions: Champions, now: datetime) -> Outcome:
    trained, graph = read_trained_gnn(inputs.trained), read_graph(inputs.graph)
    read_exported_model(inputs.exported)
    version = version_name(config.window, inputs.trained, inputs.exported)
    for _ in range(MOST_TURNS):
        own = _own(champions, version, config.window)
        if own is not None:
            return Outcome(PROMOTED, own, f"generation {own.generation} is this model already")
        newest = champions.newest()
        if newest is not None and newest.window > config.window:
            return Outcome(LATE, newest, f"the champion is of the later window {newest.window}")
        comparison = compare(graph, trained, "" if newest is None else champions.trained_uri(newest))
        verdict = judge(comparison, config)
        if not verdict.wins:
            return Outcome(BEATEN, newest, verdict.why)
        champions.put(version, inputs.trained, inputs.exported)
        record = Record(
            generation=1 if newest is None else newest.generation + 1,
            version=version,
            window=config.window,
            metric=config.metric,
            score=comparison.scores()[0].of(config.metric),
            promoted=now.astimezone(UTC).isoformat(timespec="seconds"),
        )
        if champions.claim(record):
            return Outcome(PROMOTED, record, f"generation {record.generation}, {version}; {verdict.why}")
        progress("another run has been faster; looking at its champion")
    raise InputError(
        f"champions {config.champions!r}: {MOST_TURNS} promotions of others came between; "
        "fewer runs at once are needed"
    )


def _own(champions: Champions, version: str, window: str) -> Record | None:
    """Finds the record of this very model: those before it are of older windows."""
    since = itertools.takewhile(lambda record: record.window >= window, champions.records())
    return next((record for record in since if record.version == version), None)
