"""What a benchmark tells: JSON, a table and a plot."""

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from geokfp.components._files import new_file

from .comparison import Outcome, SpeedUps, disagreements, too_busy
from .trial import Measured

_NOTHING = "-"


def document(options: Mapping[str, Any], outcomes: Mapping[str, Outcome], gains: SpeedUps) -> dict[str, Any]:
    """Returns what `--json` writes.

    Args:
        options: as given.
        outcomes: by system.
        gains: speed-ups over the baseline.
    """
    return {
        "options": dict(options),
        "machine": {"cores": os.cpu_count(), "load": os.getloadavg()[0], "python": platform.python_version()},
        "systems": {name: _system(found) for name, found in outcomes.items()},
        "speed_ups": dict(gains.ratios),
        "speed_up_baselines": dict(gains.baselines),
        "speed_ups_note": gains.note,
        "disagreements": disagreements(outcomes),
        "too_busy": too_busy(outcomes, dict(options.get("at_once", ()))),
    }


def _system(found: Outcome) -> dict[str, Any]:
    typical = found.typical
    return {
        "seconds_to_target": found.seconds_to_target,
        "seconds_per_step": typical and typical.seconds_per_step,
        "steps_to_target": typical.steps if typical and typical.reached else None,
        "final_accuracy": typical and typical.final_accuracy,
        "wan_bytes": typical and typical.wan_bytes,
        "wan_bytes_counted_by_engine": typical and typical.wan_bytes_counted_by_engine,
        "wan_bytes_with_headers": typical and typical.wan_bytes_with_headers,
        "wan_bytes_from_root": typical and typical.wan_bytes_from_root,
        "initial_bytes": typical and typical.initial_bytes,
        "cores_busy": typical and typical.cores_busy,
        "learning_rate": found.learning_rate,
        "curve": [asdict(point) for point in typical.curve] if typical else [],
        "runs": [
            {
                "learning_rate": run.learning_rate,
                "number": run.number,
                "error": run.error or None,
                **_short(run.measured),
            }
            for run in found.runs
        ],
    }


def _short(measured: Measured | None) -> dict[str, Any]:
    if measured is None:
        return {}
    return {name: value for name, value in asdict(measured).items() if name != "curve"}


def table(result: Mapping[str, Any]) -> str:
    """Returns the document as lines of text."""
    target = result["options"]["target"]
    lines = [
        f"{'system':14} {'rate':>7} {f's to {target:g}':>9} {'steps':>6} {'s/step':>8} {'accuracy':>9} "
        f"{'MB on the WAN':>14} {'own count':>10} {'MB before':>10} {'speed-up':>9} over"
    ]
    for name, row in result["systems"].items():
        cells = [
            (_number(row["learning_rate"], "g"), 7),
            (_number(row["seconds_to_target"], ".1f"), 9),
            (_number(row["steps_to_target"], "d"), 6),
            (_number(row["seconds_per_step"], ".3f"), 8),
            (_number(row["final_accuracy"], ".4f"), 9),
            (_megabytes(row["wan_bytes"]), 14),
            (_megabytes(row["wan_bytes_counted_by_engine"]), 10),
            (_megabytes(row["initial_bytes"]), 10),
            (_number(result["speed_ups"].get(name), ".2f"), 9),
        ]
        over = result["speed_up_baselines"].get(name, _NOTHING)
        lines.append(" ".join([f"{name:14}", *(f"{text:>{width}}" for text, width in cells), over]))
        lines += [
            f"  failed at {run['learning_rate']:g}: {run['error']}" for run in row["runs"] if run["error"]
        ]
    notes = [result["speed_ups_note"], *result["disagreements"], *result["too_busy"]]
    return "\n".join(lines + [f"({note})" for note in notes if note])


def plot(result: Mapping[str, Any]) -> str:
    """Returns accuracy over wall time as SVG, one line a system, from the first snapshot after a step."""
    from geokfp.components._report.plots import lines

    trained = {name: [p for p in row["curve"] if p["step"]] for name, row in result["systems"].items()}
    series = {
        name: ([point["seconds"] for point in points], [point["accuracy"] for point in points])
        for name, points in trained.items()
        if points
    }
    return lines(series, x_label="seconds of training", y_label="accuracy on test images", log_x=True)


def write(path: Path, text: str) -> None:
    """Writes a file whole, or not at all."""
    with new_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def as_json(result: Mapping[str, Any]) -> str:
    """Returns the document as text."""
    return json.dumps(result, indent=1) + "\n"


def _number(value: float | None, form: str) -> str:
    return _NOTHING if value is None else format(value, form)


def _megabytes(value: float | None) -> str:
    return _NOTHING if value is None else f"{value / 1e6:.1f}"
