"""Writes one site's parts in DGL's own format.

DGL divides the structure, by our assignment; features are written here, part by part, so that a sparse
matrix is never dense as a whole.
"""

import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dgl
import numpy as np
import torch
from dgl.data.utils import save_tensors

from .._files import InputError
from ..ingest.graph import Array, Graph
from .partitions import MASKS


def write_site(
    graph: Graph, rows: Array, parts: Array, folder: Path, *, num_parts: int, halo_hops: int
) -> int:
    """Writes the parts of one site.

    Args:
        graph: the whole graph.
        rows: int64 [n], the site's rows in it, ascending.
        parts: int64 [n], the part of each of them.
        folder: the site's folder, empty; its name becomes DGL's graph name.
        num_parts: number of parts.
        halo_hops: hops of in-neighbours that a part knows.

    Returns:
        The number of directed edges inside the site.

    Raises:
        InputError: no edge leads into a part; DGL cannot write such a part.
    """
    edges = _inside(graph, rows)
    _check_edges(edges, parts, num_parts, folder.name)
    structure = dgl.graph((torch.from_numpy(edges[0]), torch.from_numpy(edges[1])), num_nodes=len(rows))
    with _assigned(parts), contextlib.redirect_stdout(io.StringIO()):
        original, _ = dgl.distributed.partition_graph(
            structure,
            folder.name,
            num_parts,
            str(folder),
            num_hops=halo_hops,
            part_method="metis",
            return_mapping=True,
        )
    order = original.numpy()
    _rewrite_description(folder, num_parts)
    node_rows = rows[order]
    np.save(folder / "node_rows.npy", node_rows)
    np.save(folder / "node_order.npy", np.argsort(node_rows))
    np.save(folder / "node_ids.npy", np.asarray(graph.node_ids)[node_rows])
    degrees = structure.in_degrees().numpy()[order]
    description = json.loads((folder / "graph.json").read_text(encoding="utf-8"))
    for part, (start, stop) in enumerate(description["node_map"]["_N"]):
        data = _node_data(graph, node_rows[start:stop], degrees[start:stop])
        save_tensors(str(folder / f"part-{part}" / "node_feat.dgl"), data)
    return int(edges.shape[1])


def _inside(graph: Graph, rows: Array) -> Array:
    if len(rows) == graph.num_nodes:
        return np.array(graph.edges)
    place = np.full(graph.num_nodes, -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    ends = place[graph.edges]
    inside: Array = ends[:, (ends >= 0).all(axis=0)]
    return inside


def _check_edges(edges: Array, parts: Array, num_parts: int, site: str) -> None:
    edgeless = np.flatnonzero(np.bincount(parts[edges[1]], minlength=num_parts) == 0)
    if len(edgeless):
        raise InputError(
            f"num_parts is {num_parts} but no edge of {site} ({len(parts)} nodes, {edges.shape[1]} edges) "
            f"leads into its part {edgeless[0]}; allowed: so few parts that each has edges"
        )


@contextlib.contextmanager
def _assigned(parts: Array) -> Iterator[None]:
    """Lets DGL's partition_graph use an assignment of ours, which it has no argument for.

    Its peeks at the memory in use, which leave a file open each, are left out.
    """
    replaced: list[tuple[Any, str, Any]] = [
        (dgl.distributed.partition, "metis_partition_assignment", lambda *_, **__: torch.from_numpy(parts)),
        (dgl.distributed.partition, "get_peak_mem", lambda: 0.0),
        (dgl.partition, "get_peak_mem", lambda: 0.0),
    ]
    before = [getattr(module, name) for module, name, _ in replaced]
    for module, name, ours in replaced:
        setattr(module, name, ours)
    try:
        yield
    finally:
        for (module, name, _), theirs in zip(replaced, before, strict=True):
            setattr(module, name, theirs)


def _rewrite_description(folder: Path, num_parts: int) -> None:
    """Renames what DGL wrote to the drawing's names, with paths relative to the description."""
    for part in range(num_parts):
        written, wanted = folder / f"part{part}", folder / f"part-{part}"
        if written.exists():
            written.rename(wanted)
    path = folder / f"{folder.name}.json"
    description = json.loads(path.read_text(encoding="utf-8"))
    for part in range(num_parts):
        files = description[f"part-{part}"]
        for name, file in files.items():
            files[name] = f"part-{part}/{Path(file).name}"
    path.unlink()
    (folder / "graph.json").write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")


def _node_data(graph: Graph, rows: Array, degrees: Array) -> dict[str, torch.Tensor]:
    split = np.asarray(graph.split)[rows]
    data = {
        "_N/features": torch.from_numpy(graph.dense_features(rows)),
        "_N/labels": torch.from_numpy(np.asarray(graph.labels)[rows]),
        "_N/in_degree": torch.from_numpy(degrees),
    }
    for code, mask in enumerate(MASKS, start=1):
        data[f"_N/{mask}"] = torch.from_numpy((split == code).astype(np.uint8))
    return data
