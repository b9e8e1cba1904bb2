"""Edges from a table, in chunks, as rows of nodes: each once, or once in each direction."""

from dataclasses import dataclass

import numpy as np

from .._files import InputError
from .graph import Array
from .identifiers import Rows
from .tables import Chunk, Table, load_npz


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Edges:
    """The edges and what was dropped on the way."""

    pairs: Array
    """int64 [2, num_edges], source row and destination row."""
    num_self_loops: int
    """Edges from a node to itself that the table had."""
    num_duplicates: int
    """Edges given more than once, in either direction when undirected."""


class EdgeCollector:
    """Gathers edges chunk by chunk at eight bytes each.

    Args:
        num_nodes: number of nodes.
        undirected: whether both directions are one edge.
        keep_self_loops: whether an edge from a node to itself stays.
    """

    def __init__(self, num_nodes: int, *, undirected: bool, keep_self_loops: bool) -> None:
        self._num_nodes = num_nodes
        self._undirected = undirected
        self._keep_self_loops = keep_self_loops
        self._keys: list[Array] = []
        self._num_self_loops = 0

    def add(self, source: Array, destination: Array) -> None:
        """Adds edges between rows, int64 [n] each."""
        loops = source == destination
        self._num_self_loops += int(loops.sum())
        if not self._keep_self_loops and loops.any():
            source, destination = source[~loops], destination[~loops]
        if self._undirected:
            source, destination = np.minimum(source, destination), np.maximum(source, destination)
        self._keys.append(source * self._num_nodes + destination)

    def finish(self) -> Edges:
        """Returns the edges, ordered by source and destination; undirected ones once in each direction."""
        keys = np.concatenate(self._keys) if self._keys else np.empty(0, dtype=np.int64)
        self._keys.clear()
        total = len(keys)
        keys.sort()
        if total:
            first = np.concatenate([[True], keys[1:] != keys[:-1]])
            keys = keys[first]
        duplicates = total - len(keys)
        source, destination = np.divmod(keys, self._num_nodes)
        del keys
        turned = np.flatnonzero(source != destination) if self._undirected else np.empty(0, dtype=np.int64)
        pairs = np.empty((2, len(source) + len(turned)), dtype=np.int64)
        pairs[0, : len(source)], pairs[1, : len(source)] = source, destination
        pairs[0, len(source) :], pairs[1, len(source) :] = destination[turned], source[turned]
        return Edges(pairs=pairs, num_self_loops=self._num_self_loops, num_duplicates=duplicates)


def read_edges(uri: str, columns: tuple[str, str], rows: Rows, collector: EdgeCollector) -> Edges:
    """Reads a table of edges.

    Args:
        uri: the table; an `.npz` may also hold one array `edge_index` or `edges` [2, e].
        columns: names of the source and the destination column.
        rows: finds the row of an id.
        collector: what gathers them.

    Raises:
        InputError: a column is missing, or an edge names a node that there is not.
    """
    table = Table(uri)
    if table.format == ".npz" and (pairs := _pairs(uri)) is not None:
        _add_pairs(table, pairs, columns, rows, collector)
    else:
        table.require(*columns)
        as_text = columns if rows.text else ()
        for chunk in table.chunks(list(columns), as_text=as_text):
            collector.add(rows.find(table, chunk, columns[0]), rows.find(table, chunk, columns[1]))
    edges = collector.finish()
    if edges.pairs.shape[1] == 0:
        raise InputError(f"{uri}: no edges between different nodes; at least one is needed")
    return edges


def _pairs(uri: str) -> Array | None:
    arrays = load_npz(uri)
    found: Array | None = arrays.get("edge_index", arrays.get("edges"))
    if found is not None and (found.ndim != 2 or found.shape[0] != 2):
        raise InputError(f"{uri}: edge_index has shape {list(found.shape)}; [2, number of edges] is needed")
    return found


def _add_pairs(
    table: Table, pairs: Array, columns: tuple[str, str], rows: Rows, collector: EdgeCollector
) -> None:
    import pandas as pd

    chunk = Chunk(first_row=0, rows=pd.DataFrame(dict(zip(columns, pairs, strict=True))))
    collector.add(rows.find(table, chunk, columns[0]), rows.find(table, chunk, columns[1]))
