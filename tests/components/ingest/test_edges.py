"""Edges are those of a plain set, however they are cut into chunks and whenever they are merged."""

from unittest import mock

import numpy as np
from geokfp.components.ingest import edges as module
from geokfp.components.ingest.edges import EdgeCollector
from hypothesis import given
from hypothesis import strategies as st

NODES = 6
PAIRS = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), max_size=40)


@given(
    pairs=PAIRS, undirected=st.booleans(), keep=st.booleans(), size=st.integers(1, 9), at=st.integers(1, 9)
)
def test_edges_are_a_set(pairs, undirected: bool, keep: bool, size: int, at: int) -> None:
    with mock.patch.object(module, "_MERGE_AT", at):
        collector = EdgeCollector(NODES, undirected=undirected, keep_self_loops=keep)
        for first in range(0, len(pairs), size):
            part = np.array(pairs[first : first + size], dtype=np.int64)
            collector.add(part[:, 0], part[:, 1])
        found = collector.finish()
    kept = [pair for pair in pairs if keep or pair[0] != pair[1]]
    single = {(min(pair), max(pair)) if undirected else pair for pair in kept}
    both = single | {(b, a) for a, b in single} if undirected else single
    assert sorted(map(tuple, found.pairs.T.tolist())) == sorted(both)
    assert found.num_duplicates == len(kept) - len(single)
    assert found.num_self_loops == sum(a == b for a, b in pairs)
    assert found.pairs.dtype == np.int64
