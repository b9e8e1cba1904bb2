"""Edges from a table, in chunks, as rows of nodes: each once, or once in each direction."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from .._files import InputError
from .graph import Array
from .identifiers import Rows
from .tables import CHUNK_ROWS, Chunk, Table, load_npz

_MERGE_AT = 1 << 20
"""Fewest edges worth merging before the end."""


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
    """Gathers edges chunk by chunk at eight bytes each; those given again are merged on the way.

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
        self._num_merged = 0
        self._num_pending = 0
        self._num_self_loops = 0
        self._num_duplicates = 0

    def add(self, source: Array, destination: Array) -> None:
        """Adds edges between rows, int64 [n] each."""
        loops = source == destination
        self._num_self_loops += int(loops.sum())
        if not self._keep_self_loops and loops.any():
            source, destination = source[~loops], destination[~loops]
        if self._undirected:
            source, destination = np.minimum(source, destination), np.maximum(source, destination)
        self._keys.append(source * self._num_nodes + destination)
        self._num_pending += len(source)
        if self._num_pending >= max(_MERGE_AT, self._num_merged):
            self._merge()

    def finish(self) -> Edges:
        """Returns the edges, ordered by source and destination; undirected ones once in each direction."""
        self._merge()
        (keys,) = self._keys
        self._keys.clear()
        if self._undirected:
            pairs = self._both_directions(keys)
        else:
            pairs = np.empty((2, len(keys)), dtype=np.int64)
            np.divmod(keys, self._num_nodes, out=(pairs[0], pairs[1]))
        return Edges(pairs=pairs, num_self_loops=self._num_self_loops, num_duplicates=self._num_duplicates)

    def _both_directions(self, keys: Array) -> Array:
        count = len(keys)
        loops = int((keys % (self._num_nodes + 1) == 0).sum()) if self._keep_self_loops else 0
        pairs = np.empty((2, 2 * count - loops), dtype=np.int64)
        source, destination = pairs[0, :count], pairs[1, :count]
        np.divmod(keys, self._num_nodes, out=(source, destination))
        turned = source != destination if loops else slice(None)
        pairs[0, count:], pairs[1, count:] = destination[turned], source[turned]
        return pairs

    def _merge(self) -> None:
        keys = np.concatenate([np.empty(0, dtype=np.int64), *self._keys])
        self._keys.clear()
        keys.sort()
        fresh = np.ones(len(keys), dtype=bool)
        np.not_equal(keys[1:], keys[:-1], out=fresh[1:])
        total = len(keys)
        if not fresh.all():
            keys = keys[fresh]
        self._num_duplicates += total - len(keys)
        self._num_merged, self._num_pending = len(keys), 0
        self._keys.append(keys)


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
    for chunk in _chunks(table, columns, as_text=columns if rows.text else ()):
        collector.add(rows.find(table, chunk, columns[0]), rows.find(table, chunk, columns[1]))
    edges = collector.finish()
    if edges.pairs.shape[1] == 0:
        raise InputError(f"{uri}: no edges between different nodes; at least one is needed")
    return edges


def _chunks(table: Table, columns: tuple[str, str], *, as_text: tuple[str, ...]) -> Iterator[Chunk]:
    pairs = edge_index(table.uri, load_npz(table.uri)) if table.format == ".npz" else None
    if pairs is None:
        table.require(*columns)
        yield from table.chunks(list(columns), as_text=as_text)
        return
    for first in range(0, pairs.shape[1], CHUNK_ROWS):
        part = pairs[:, first : first + CHUNK_ROWS]
        yield Chunk(first_row=first, rows=pd.DataFrame(dict(zip(columns, part, strict=True))))


def edge_index(uri: str, arrays: Mapping[str, Array]) -> Array | None:
    """Returns the array [2, e] named `edge_index` or `edges`, if there is one.

    Raises:
        InputError: it has another shape.
    """
    found = arrays.get("edge_index", arrays.get("edges"))
    if found is not None and (found.ndim != 2 or found.shape[0] != 2):
        raise InputError(f"{uri}: edge_index has shape {list(found.shape)}; [2, number of edges] is needed")
    return found
