"""The partitions artifact: the parts of each site, in the format that DGL's servers read.

Drawing of the folder, for two sites of two parts each::

    partitions/
      manifest.json          kind geokfp.partitions, version 1: sites, counts, schema, quality, checksums
      site-0/                one site; nothing in it comes from another site
        graph.json           DGL's description of the set, graph name = folder name
        node_rows.npy        int64 [n]: DGL's id -> row in the graph artifact
        node_order.npy       int64 [n]: its inverse, argsort(node_rows)
        node_ids.npy         int64 or unicode [n]: DGL's id -> the user's id
        part-0/              one part: what a worker of the site holds
          graph.dgl          own nodes first, then halo nodes; every edge into an own node
          node_feat.dgl      of own nodes: features, labels, the three masks, in_degree
          edge_feat.dgl      empty
        part-1/
          graph.dgl
          node_feat.dgl
          edge_feat.dgl
      site-1/
        (as site-0)

Edges between sites are in no site's graph. Node data of a part: `features` float32 [n, F], `labels` int64
[n] (-1 = none), `train_mask`, `validation_mask`, `test_mask` uint8 [n], and `in_degree` int64 [n], the
in-degree in the whole graph of the site. Knows nothing of training.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._files import ArtifactError, read_manifest
from ..ingest.graph import Array
from .neighbourhood import Neighbourhood, read_neighbourhood

KIND = "geokfp.partitions"
VERSION = 1
MASKS = ("train_mask", "validation_mask", "test_mask")
"""Node data that marks the splits, in the order of the graph artifact's split codes 1, 2, 3."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SitePartitions:
    """One site's set of parts."""

    name: str
    """Name of the site."""
    directory: Path
    """Folder of the site."""
    num_parts: int
    """Parts, and so workers, of the site."""
    num_nodes: int
    """Nodes of the site."""
    num_edges: int
    """Directed edges inside the site."""
    num_train: int
    """Training nodes."""
    num_validation: int
    """Validation nodes."""
    num_test: int
    """Test nodes."""
    uri: str = ""
    """Of an artifact of the site alone in its own store, where its rows stay; empty when they lie here."""
    part_bytes: int = 0
    """Shared memory that the largest part of such a site takes."""

    @property
    def graph_name(self) -> str:
        """The name that DGL knows the site's graph by."""
        return self.directory.name

    @property
    def config_path(self) -> Path:
        """DGL's description of the set."""
        return self.directory / "graph.json"

    def node_rows(self) -> Array:
        """Returns int64 [num_nodes], DGL's id -> row in the graph artifact."""
        return _load(self.directory / "node_rows.npy")

    def node_ids(self) -> Array:
        """Returns the user's ids [num_nodes], by DGL's id."""
        return _load(self.directory / "node_ids.npy")

    def neighbourhood(self, num_seeds: int, num_hops: int, max_nodes: int, seed: int = 0) -> Neighbourhood:
        """Returns real nodes with everything that reaches them in `num_hops` hops.

        Args:
            num_seeds: nodes wanted, test nodes first; fewer when their neighbourhood is too large.
            num_hops: hops of in-neighbours.
            max_nodes: most nodes of the whole neighbourhood.
            seed: seed of the choice.
        """
        return read_neighbourhood(
            self.directory,
            self.node_ids(),
            num_seeds=num_seeds,
            num_hops=num_hops,
            max_nodes=max_nodes,
            seed=seed,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Partitions:
    """The whole artifact."""

    sites: tuple[SitePartitions, ...]
    """The sites, at least one."""
    num_features: int
    """Width of a node's feature row."""
    feature_names: tuple[str, ...]
    """Name of each feature column; may be empty."""
    label_names: tuple[str, ...]
    """Name of each class."""
    fingerprint: str
    """Fingerprint of the graph that was partitioned."""
    halo_hops: int
    """Hops of in-neighbours that a part knows."""
    quality: dict[str, float]
    """Edge cut, balances and the like, by name."""

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return len(self.label_names)

    @property
    def stay_at_sites(self) -> bool:
        """Whether this is a manifest alone, and all rows and features lie in the sites' own stores."""
        return any(site.uri for site in self.sites)


def read_partitions(path: Path, *, verify: bool = True, elsewhere: bool = False) -> Partitions:
    """Reads what the manifest says; the parts themselves are read by whoever holds them.

    Args:
        path: the artifact's folder.
        verify: compare every file with its checksum.
        elsewhere: whether the sites' rows may lie in their own stores.

    Raises:
        ArtifactError: not a partitions artifact of this version, a file missing or altered, or one whose rows
            lie elsewhere.
    """
    found = partitions_of(read_manifest(path, kind=KIND, version=VERSION, verify=verify), path)
    if found.stay_at_sites and not elsewhere:
        raise ArtifactError(
            f"{path}: its rows stay at its sites ({found.sites[0].uri}); only geo_train_gnn with a topology "
            "of the sites' stores, whose pods are there, can work on them"
        )
    return found


def partitions_of(document: Mapping[str, Any], path: Path) -> Partitions:
    """Returns what a manifest says.

    Args:
        document: the manifest.
        path: folder that its sites lie in.
    """
    return Partitions(
        sites=tuple(_site(path, entry) for entry in document["sites"]),
        num_features=document["features"]["width"],
        feature_names=tuple(document["features"]["names"]),
        label_names=tuple(document["labels"]["names"]),
        fingerprint=document["fingerprint"],
        halo_hops=document["halo_hops"],
        quality=document["quality"],
    )


def _site(path: Path, entry: dict[str, Any]) -> SitePartitions:
    counts = ("num_parts", "num_nodes", "num_edges", "num_train", "num_validation", "num_test")
    return SitePartitions(
        name=entry["name"],
        directory=Path(path) / entry["folder"],
        uri=entry.get("uri", ""),
        part_bytes=entry.get("part_bytes", 0),
        **{name: entry[name] for name in counts},
    )


def _load(path: Path) -> Array:
    try:
        loaded: Array = np.load(path, allow_pickle=False)
    except ValueError as error:
        raise ArtifactError(f"{path}: {error}") from error
    return loaded
