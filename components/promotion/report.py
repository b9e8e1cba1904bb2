"""The HTML reports of a comparison and of a promotion. Know nothing of how either came about."""

import math
from collections.abc import Sequence
from pathlib import Path

from .._report import Report, plots
from .champions import Record
from .comparison import Comparison, Scores, Verdict
from .config import Criterion

MAX_CLASSES_DRAWN = 30
"""With more classes their bars are left out of the page."""
CHANCE = 0.05
"""Above this the sign test says that a difference may be chance."""


def write_comparison(path: Path, comparison: Comparison, verdict: Verdict, criterion: Criterion) -> None:
    """Writes what champion and challenger make of the same nodes.

    Args:
        path: the HTML file.
        comparison: the two.
        verdict: who wins.
        criterion: by what rule.
    """
    challenger, champion = comparison.scores()
    report = Report("Champion and challenger")
    facts: dict[str, object] = {"Winner": "challenger" if verdict.wins else "champion"}
    if champion is None and not verdict.wins:
        facts["Winner"] = "none"
    report.facts(facts | _facts(comparison, criterion, challenger, champion))
    report.paragraph(f"{verdict.why[0].upper()}{verdict.why[1:]}.")
    if champion is None:
        report.section("Classes, on the test nodes")
        report.table(["class", "nodes", "F1"], _classes(comparison, challenger, None))
    else:
        report.warnings(_warnings(comparison, verdict))
        _both(report, comparison, challenger, champion)
    report.write(path)


def write_promotion(path: Path, kind: str, why: str, records: Sequence[Record]) -> None:
    """Writes what came of a promotion, and the champions so far.

    Args:
        path: the HTML file.
        kind: the outcome.
        why: one line that says why.
        records: the last promotions, newest first.
    """
    report = Report("Promotion")
    newest = records[0] if records else None
    report.facts(
        {
            "Outcome": kind,
            "Champion's window": _minute(newest.window) if newest else "none",
            "Generation": newest.generation if newest else 0,
        }
    )
    report.paragraph(f"{why[0].upper()}{why[1:]}.")
    if newest is not None:
        report.section("Champions")
        scores: dict[str, tuple[list[float], list[float]]] = {}
        for record in reversed(records):
            x, y = scores.setdefault(record.metric.replace("_", " "), ([], []))
            x.append(float(record.generation))
            y.append(record.score)
        figure = plots.lines(scores, x_label="generation", y_label="score at promotion")
        report.figure(figure, "Each on the test nodes of its own window, which are others each time")
        rows = [
            [
                str(each.generation),
                _minute(each.window),
                each.version,
                each.metric,
                f"{each.score:.4f}",
                _minute(each.promoted),
            ]
            for each in records
        ]
        report.table(["generation", "window", "version", "metric", "score", "promoted"], rows)
    report.write(path)


def _facts(
    comparison: Comparison, criterion: Criterion, challenger: Scores, champion: Scores | None
) -> dict[str, object]:
    name = criterion.metric.replace("_", " ")
    shown: dict[str, object] = {f"Challenger's {name}": f"{challenger.of(criterion.metric):.4f}"}
    if champion is not None:
        gain = challenger.of(criterion.metric) - champion.of(criterion.metric)
        shown |= {
            f"Champion's {name}": f"{champion.of(criterion.metric):.4f}",
            "Gain": f"{gain:+.4f}",
            "Margin needed": f"{criterion.margin:g}",
        }
    return shown | {"Test nodes": len(comparison.truth)}


def _warnings(comparison: Comparison, verdict: Verdict) -> list[str]:
    found = []
    chance = comparison.sign_test()
    if verdict.wins and chance > CHANCE:
        found.append(
            f"The gain may be chance: models that are equally good differ as much in {chance:.0%} of such "
            "comparisons. More test nodes, or a margin, would tell."
        )
    for name, classes in (("champion", comparison.champion), ("challenger", comparison.challenger)):
        others = int((classes < 0).sum()) if classes is not None else 0
        if others:
            found.append(f"The {name} takes {others:,} nodes for classes that this window does not have.")
    return found


def _both(report: Report, comparison: Comparison, challenger: Scores, champion: Scores) -> None:
    names = ["accuracy", "macro F1"]
    pairs = {
        "champion": [champion.accuracy, champion.macro_f1],
        "challenger": [challenger.accuracy, challenger.macro_f1],
    }
    report.section("Scores, on the same test nodes")
    report.figure(plots.grouped_bars(names, pairs, y_label="score"), "Both models on the same nodes")
    rows = [
        [name, f"{old:.4f}", f"{new:.4f}", f"{new - old:+.4f}"]
        for name, old, new in zip(names, pairs["champion"], pairs["challenger"], strict=True)
    ]
    report.table(["score", "champion", "challenger", "gain"], rows)
    report.section("Where they differ")
    (both, only_champion), (only_challenger, neither) = comparison.right().tolist()
    counts = [both, only_champion, only_challenger, neither]
    report.figure(
        plots.bars(["both", "champion only", "challenger only", "neither"], counts, y_label="test nodes"),
        f"Who finds a node's class; sign test of {only_champion:,} against {only_challenger:,}: "
        f"p = {comparison.sign_test():.3g}",
    )
    report.section("Classes")
    if len(comparison.label_names) <= MAX_CLASSES_DRAWN:
        of_classes = {
            name: [0.0 if math.isnan(value) else float(value) for value in scores.f1]
            for name, scores in (("champion", champion), ("challenger", challenger))
        }
        figure = plots.grouped_bars(comparison.label_names, of_classes, y_label="F1", x_label="class")
        report.figure(figure, "F1 by class")
    head = ["class", "nodes", "champion's F1", "challenger's F1", "gain"]
    report.table(head, _classes(comparison, challenger, champion))


def _classes(comparison: Comparison, challenger: Scores, champion: Scores | None) -> list[list[str]]:
    rows = []
    for index, name in enumerate(comparison.label_names):
        count, new = int((comparison.truth == index).sum()), float(challenger.f1[index])
        if champion is None:
            rows.append([name, f"{count:,}", _score(new)])
            continue
        old = float(champion.f1[index])
        gain = "-" if count == 0 else f"{new - old:+.3f}"
        rows.append([name, f"{count:,}", _score(old), _score(new), gain])
    return rows


def _minute(moment: str) -> str:
    return moment[:16].replace("T", " ")


def _score(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"
