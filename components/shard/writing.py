"""Writes the shards artifact: one site after the other, whole or not at all."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from .._files import new_directory, write_manifest
from .._launch import progress
from ..ingest.graph import TEST, TRAIN, VALIDATION, Array
from .assignment import Assignment
from .config import ShardConfig
from .rows import Rows
from .shards import KIND, VERSION, site_folder
from .skew import class_counts


def write_shards(rows: Rows, assignment: Assignment, split: Array, config: ShardConfig, path: Path) -> str:
    """Writes the artifact.

    Args:
        rows: all rows.
        assignment: the site of each.
        split: int8 [n], the split of each.
        config: how they were divided, for the manifest.
        path: the artifact's folder; an older one is replaced.

    Returns:
        The fingerprint: a hash over all arrays and names.
    """
    digest = hashlib.sha256()
    num_sites = len(assignment.site_names)
    members = np.split(
        np.argsort(assignment.sites, kind="stable"),
        np.bincount(assignment.sites, minlength=num_sites)[:-1].cumsum(),
    )
    with new_directory(path) as folder:
        sites = []
        for index, (name, own) in enumerate(zip(assignment.site_names, members, strict=True)):
            arrays = {
                "features": np.ascontiguousarray(rows.features[own]),
                "labels": rows.labels[own],
                "rows": own.astype(np.int64, copy=False),
                "split": split[own],
            }
            _write_site(folder / site_folder(index), arrays, digest)
            sites.append({"name": name, **_counts(arrays, len(rows.label_names))})
            progress(f"wrote {name}: {len(own):,} rows, {sites[-1]['num_train']:,} of them to train on")
        schema = _schema(rows, config)
        digest.update(repr((schema, assignment.site_names)).encode())
        body = {**schema, "method": config.method, "seed": config.seed, "num_rows": rows.num_rows}
        body |= {"fingerprint": digest.hexdigest(), "warnings": list(rows.warnings), "sites": sites}
        write_manifest(folder, kind=KIND, version=VERSION, body=body)
    return digest.hexdigest()


def _write_site(folder: Path, arrays: dict[str, Array], digest: Any) -> None:
    folder.mkdir()
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)


def _counts(arrays: dict[str, Array], num_classes: int) -> dict[str, Any]:
    labels, split = arrays["labels"], arrays["split"]
    counts = class_counts(np.zeros_like(labels), labels, 1, num_classes)[0].tolist() if num_classes else []
    return {
        "num_rows": len(labels),
        "num_train": int((split == TRAIN).sum()),
        "num_validation": int((split == VALIDATION).sum()),
        "num_test": int((split == TEST).sum()),
        "class_counts": counts,
    }


def _schema(rows: Rows, config: ShardConfig) -> dict[str, Any]:
    features = {"dtype": rows.features.dtype.name, "shape": list(rows.features.shape[1:])}
    return {
        "task": config.task,
        "features": {**features, "names": list(rows.feature_names)},
        "labels": {"dtype": rows.labels.dtype.name, "names": list(rows.label_names)},
    }
