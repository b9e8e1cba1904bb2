"""What the component `open_window` does: the URIs of a run's window, and the champion of the moment."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from .._files import new_file
from .._launch import progress
from .champions import Champions
from .config import WindowConfig
from .windows import fill, window_of


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Where the step's outputs go, each as text."""

    window: Path
    """The window's start."""
    nodes: Path
    """URI of its nodes."""
    edges: Path
    """URI of its edges."""
    features: Path
    """URI of its features."""
    champion: Path
    """URI of the champion's trained GNN; empty where there is none."""
    start: Path
    """The same where the training is to go on from it, else empty."""


def run(config: WindowConfig, outputs: Outputs, now: datetime) -> dict[str, float]:
    """Says what a run reads, and what it is held against.

    Args:
        config: the patterns of the URIs, the moment, and the folder of the champions.
        outputs: where to write.
        now: the present.

    Returns:
        Finite metrics by name.

    Raises:
        InputError: the folder of the champions cannot be read.
    """
    window = window_of(config.time, config.scheduled_time, config.window_s, now)
    champions = Champions(config.champions)
    record = champions.newest()
    champion = "" if record is None else champions.trained_uri(record)
    known = "no champion yet" if record is None else f"champion of {record.window}, {record.score:.4f}"
    progress(f"window {window.name} to {window.end:%Y-%m-%dT%H:%M:%SZ}; {known}")
    texts = {
        outputs.window: window.name,
        outputs.nodes: fill(config.nodes, window.start),
        outputs.edges: fill(config.edges, window.start),
        outputs.features: fill(config.features, window.start),
        outputs.champion: champion,
        outputs.start: champion if config.warm_start else "",
    }
    for path, text in texts.items():
        with new_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return {
        "window_start": window.start.timestamp(),
        "champion_generation": 0.0 if record is None else float(record.generation),
    }
