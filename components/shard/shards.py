"""The shards artifact: labelled rows, a folder a site, in plain arrays.

Drawing of the folder, for two sites::

    shards/
      manifest.json     kind geokfp.shards, version 1: task, schema, sites, counts, fingerprint, checksums
      site-0/           one site; nothing in it comes from another
        features.npy    float32 or uint8 [n, ...]: numbers, or the bytes of images as they lay
        labels.npy      int64 [n], index into the label names; float32 [n] for regression
        rows.npy        int64 [n]: row of the source from 0, ascending
        split.npy       int8 [n]: 0 none, 1 train, 2 validation, 3 test
      site-1/
        (as site-0)

Knows nothing of tables, images and training.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._files import ArtifactError, read_manifest
from ..ingest.graph import Array

KIND = "geokfp.shards"
VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class ArrayType:
    """What an array of a site holds beside its first dimension, the rows."""

    dtype: str
    """Name of the type, such as `float32`."""
    shape: tuple[int, ...]
    """Shape of one row."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SiteShard:
    """One site's rows. Arrays are mapped from disk copy-on-write: what a reader changes in them stays his."""

    name: str
    """Name of the site."""
    directory: Path
    """Folder of the site."""
    num_rows: int
    """Rows of the site, at least one."""
    num_train: int
    """Training rows, at least one."""
    num_validation: int
    """Validation rows."""
    num_test: int
    """Test rows."""
    class_counts: tuple[int, ...]
    """Rows of each class, in the order of the label names; empty for regression."""
    feature_type: ArrayType
    """Type and shape of a row's features, the same at all sites."""
    label_type: ArrayType
    """Type of a label, the same at all sites."""
    uri: str = ""
    """Of an artifact of the site alone in its own store, where its rows stay; empty when they lie here."""

    def features(self) -> Array:
        """Returns float32 or uint8 [num_rows, ...]."""
        return self._load("features.npy", self.feature_type)

    def labels(self) -> Array:
        """Returns int64 [num_rows], index into the label names; float32 [num_rows] for regression."""
        return self._load("labels.npy", self.label_type)

    def rows(self) -> Array:
        """Returns int64 [num_rows], the row of the source that each came from."""
        return self._load("rows.npy", ArrayType(dtype="int64", shape=()))

    def split(self) -> Array:
        """Returns int8 [num_rows], one of NO_SPLIT, TRAIN, VALIDATION, TEST of the graph artifact."""
        return self._load("split.npy", ArrayType(dtype="int8", shape=()))

    def _load(self, name: str, needed: ArrayType) -> Array:
        path = self.directory / name
        try:
            loaded: Array = np.load(path, mmap_mode="c", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise ArtifactError(f"{path}: {error}") from error
        shape = (self.num_rows, *needed.shape)
        if loaded.shape != shape or loaded.dtype != np.dtype(needed.dtype):
            raise ArtifactError(
                f"{path}: {loaded.dtype} {list(loaded.shape)}, {needed.dtype} {list(shape)} is needed"
            )
        return loaded


@dataclass(frozen=True, kw_only=True, slots=True)
class Shards:
    """The whole artifact."""

    sites: tuple[SiteShard, ...]
    """The sites, at least one."""
    task: str
    """`classification` or `regression`."""
    method: str
    """How the rows were divided."""
    feature_names: tuple[str, ...]
    """Name of each feature column; empty when the features came without names."""
    label_names: tuple[str, ...]
    """Name of each class; empty for regression."""
    fingerprint: str
    """Hash of all contents."""
    warnings: tuple[str, ...]
    """What was read otherwise than it may have been meant, one line each."""

    @property
    def num_rows(self) -> int:
        """Rows of all sites."""
        return sum(site.num_rows for site in self.sites)

    @property
    def num_classes(self) -> int:
        """Number of classes; 0 for regression."""
        return len(self.label_names)

    @property
    def stay_at_sites(self) -> bool:
        """Whether this is a manifest alone, and all rows lie in the sites' own stores."""
        return any(site.uri for site in self.sites)

    @property
    def feature_type(self) -> ArrayType:
        """Type and shape of a row's features."""
        return self.sites[0].feature_type

    @property
    def num_features(self) -> int:
        """Values of a row's features, all dimensions together."""
        return int(np.prod(self.feature_type.shape))


def site_folder(index: int) -> str:
    """Returns the folder's name of a site; a site's own name may hold anything."""
    return f"site-{index}"


def read_shards(path: Path, *, verify: bool = True, elsewhere: bool = False) -> Shards:
    """Reads what the manifest says; the arrays themselves are read by whoever holds them.

    Args:
        path: the artifact's folder.
        verify: compare every file with its checksum.
        elsewhere: whether the sites' rows may lie in their own stores.

    Raises:
        ArtifactError: not a shards artifact of this version, a file missing or altered, or one whose rows lie
            elsewhere.
    """
    found = shards_of(read_manifest(path, kind=KIND, version=VERSION, verify=verify), Path(path))
    if found.stay_at_sites and not elsewhere:
        raise ArtifactError(
            f"{path}: its rows stay at its sites ({found.sites[0].uri}); only geo_train with a topology of "
            "the sites' stores, whose pods are there, can work on them"
        )
    return found


def shards_of(document: dict[str, Any], path: Path) -> Shards:
    """Returns what a manifest says.

    Args:
        document: the manifest.
        path: folder that its sites lie in.

    Raises:
        ArtifactError: it lacks something.
    """
    try:
        return Shards(
            sites=tuple(_site(path, index, document) for index in range(len(document["sites"]))),
            task=document["task"],
            method=document["method"],
            feature_names=tuple(document["features"]["names"]),
            label_names=tuple(document["labels"]["names"]),
            fingerprint=document["fingerprint"],
            warnings=tuple(document["warnings"]),
        )
    except (KeyError, TypeError) as error:
        raise ArtifactError(f"{path}: the manifest lacks {error}") from error


def _site(path: Path, index: int, document: dict[str, Any]) -> SiteShard:
    entry, features = document["sites"][index], document["features"]
    counts = ("num_rows", "num_train", "num_validation", "num_test")
    return SiteShard(
        name=entry["name"],
        directory=path / site_folder(index),
        class_counts=tuple(entry["class_counts"]),
        feature_type=ArrayType(dtype=features["dtype"], shape=tuple(features["shape"])),
        label_type=ArrayType(dtype=document["labels"]["dtype"], shape=()),
        uri=entry.get("uri", ""),
        **{name: entry[name] for name in counts},
    )
