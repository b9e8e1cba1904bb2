"""Makes a shards artifact of a table or images: read, assign, divide into splits, write, report."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .._files import InputError, new_file
from .._launch import progress
from ..ingest.graph import TEST, TRAIN, VALIDATION, Array
from .assignment import Assignment, assign
from .config import ShardConfig
from .report import write_report
from .rows import Rows
from .skew import class_counts, label_skew, variance_between
from .source import read_rows
from .split import by_fractions
from .writing import write_shards


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardResult:
    """What the step did."""

    metrics: dict[str, float]
    """Counts and skew by name."""
    fingerprint: str
    """Hash of the shards' contents."""


def run(config: ShardConfig, *, shards: Path, report: Path, fingerprint: Path) -> ShardResult:
    """Writes the shards artifact, its report and its fingerprint.

    Args:
        config: where the rows are and how they are divided.
        shards: where the shards artifact goes.
        report: where the HTML report goes.
        fingerprint: where the fingerprint goes, as text.

    Raises:
        InputError: the first thing found wrong with the input; nothing is written then.
    """
    return shard(read_rows(config), config, shards=shards, report=report, fingerprint=fingerprint)


def shard(rows: Rows, config: ShardConfig, *, shards: Path, report: Path, fingerprint: Path) -> ShardResult:
    """Divides rows that have been read; see `run`."""
    progress(f"dividing {rows.num_rows:,} rows by {config.method}")
    assign_seed, split_seed = np.random.SeedSequence(config.seed).spawn(2)
    assignment = assign(rows, config, np.random.default_rng(assign_seed))
    split = _split(rows, assignment, config, np.random.default_rng(split_seed))
    _check_training(rows, assignment, split)
    rows = dataclasses.replace(rows, warnings=(*rows.warnings, *_warnings(assignment, split)))
    for warning in rows.warnings:
        progress(f"note: {warning}")
    metrics = _metrics(rows, assignment)
    found = write_shards(rows, assignment, split, config, shards)
    write_report(rows, assignment, split, config, report, metrics)
    with new_file(fingerprint) as temporary:
        temporary.write_text(found, encoding="ascii")
    return ShardResult(metrics=metrics, fingerprint=found)


def _split(rows: Rows, assignment: Assignment, config: ShardConfig, generator: np.random.Generator) -> Array:
    if rows.split is not None:
        return rows.split
    classes = rows.labels if rows.label_names else None
    fractions = (config.train_fraction, config.validation_fraction)
    return by_fractions(assignment.sites, classes, *fractions, generator)


def _check_training(rows: Rows, assignment: Assignment, split: Array) -> None:
    trained = np.bincount(assignment.sites[split == TRAIN], minlength=len(assignment.site_names))
    idle = np.flatnonzero(trained == 0)
    if len(idle):
        size = int((assignment.sites == idle[0]).sum())
        raise InputError(
            f"{rows.source}: none of the {size:,} rows of site {assignment.site_names[idle[0]]!r} is to "
            "train on; every site needs one: give fewer sites, or another split"
        )


def _warnings(assignment: Assignment, split: Array) -> list[str]:
    found = []
    for code, name in ((VALIDATION, "validation"), (TEST, "test")):
        held = np.bincount(assignment.sites[split == code], minlength=len(assignment.site_names))
        without = [assignment.site_names[i] for i in np.flatnonzero(held == 0)]
        if without:
            shown = ", ".join(without[:8]) + (", ..." if len(without) > 8 else "")
            found.append(f"No {name} row at {len(without):,} of {len(held):,} sites: {shown}.")
    return found


def _metrics(rows: Rows, assignment: Assignment) -> dict[str, float]:
    num_sites, num_classes = len(assignment.site_names), len(rows.label_names)
    sizes = np.bincount(assignment.sites, minlength=num_sites)
    if num_classes:
        skew = label_skew(class_counts(assignment.sites, rows.labels, num_sites, num_classes))
    else:
        skew = variance_between(assignment.sites, rows.labels)
    return {
        "num_rows": float(rows.num_rows),
        "num_sites": float(num_sites),
        "num_classes": float(num_classes),
        "num_features": float(np.prod(rows.features.shape[1:])),
        "row_balance": float(sizes.max() / sizes.mean()),
        "label_skew": skew,
        **{f"rows_site_{i}": float(size) for i, size in enumerate(sizes)},
    }
