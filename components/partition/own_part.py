"""One part of a partitions artifact, for a machine that holds no more than it.

The artifact may lie on a path that the machine sees, where it is read in place, or in an object store, from
which the machine copies its own part. Knows nothing of DGL.
"""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from .._files import ArtifactError, Folder, local_path, sha256
from .._files.manifest import NAME, parsed_manifest
from ..ingest.graph import Array
from .partitions import KIND, VERSION, Partitions, SitePartitions, partitions_of

NODE_IDS = "node_ids.npy"
_HEAD_BYTES = 4096
"""More than what describes an array of one dimension."""


def partitions_at(uri: str) -> Partitions:
    """Reads what the manifest of an artifact says, wherever it lies.

    Args:
        uri: its path or URI; `directory` of a site is where it lies only when this is a path.

    Raises:
        ArtifactError: not a partitions artifact of this version.
        InputError: it cannot be read.
    """
    return partitions_of(_manifest(uri), local_path(uri) or Path())


def open_part(uri: str, site: str, part: int, target: Path) -> SitePartitions:
    """Returns a site of which only one part can be read: the own one, held against its checksums.

    Args:
        uri: path or URI of the artifact.
        site: folder of the site in it.
        part: number of the part.
        target: local folder that the part is copied to when it is not on a path.

    Raises:
        ArtifactError: a file is missing or altered.
        InputError: it cannot be read.
    """
    document = _manifest(uri)
    here = local_path(uri)
    root = here or target
    wanted = (f"{site}/graph.json", f"{site}/part-{part}/")
    for name, checksum in document["files"].items():
        if not name.startswith(wanted):
            continue
        if here is None:
            Folder(uri).get_file(name, root / name)
        elif not (root / name).is_file():
            raise ArtifactError(f"{root / name}: listed in {NAME} but missing")
        if sha256(root / name) != checksum:
            raise ArtifactError(f"{uri}/{name}: checksum differs from {NAME}; it was altered or cut short")
    found = [one for one in partitions_of(document, root).sites if one.directory.name == site]
    if not found:
        raise ArtifactError(f"{uri}: has no site {site!r}")
    return found[0]


def own_node_ids(uri: str, site: SitePartitions, part: int) -> Array:
    """Returns the user's ids of a part's own nodes, in DGL's order; no more of the site's is read.

    Args:
        uri: path or URI of the artifact.
        site: what `open_part` returned.
        part: number of the part.

    Raises:
        ArtifactError: there are none.
        InputError: they cannot be read.
    """
    ranges = json.loads(site.config_path.read_text(encoding="utf-8"))["node_map"]["_N"]
    start, stop = ranges[part]
    folder, name = Folder(uri), f"{site.graph_name}/{NODE_IDS}"
    head = io.BytesIO(folder.read_range(name, 0, _HEAD_BYTES))
    try:
        np.lib.format.read_magic(head)  # type: ignore[no-untyped-call]
        shape, _, dtype = np.lib.format.read_array_header_1_0(head)  # type: ignore[no-untyped-call]
    except ValueError as error:
        raise ArtifactError(f"{uri}/{name}: {error}") from error
    first = head.tell()
    content = folder.read_range(name, first + start * dtype.itemsize, first + stop * dtype.itemsize)
    if shape != (site.num_nodes,) or len(content) != (stop - start) * dtype.itemsize:
        raise ArtifactError(f"{uri}/{name}: does not hold the ids of {site.num_nodes} nodes")
    return np.frombuffer(content, dtype)


def _manifest(uri: str) -> dict[str, Any]:
    return parsed_manifest(Folder(uri).read(NAME), f"{uri}/{NAME}", kind=KIND, version=VERSION)
