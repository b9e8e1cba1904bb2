"""Laws of the exchange that evens out training nodes."""

import numpy as np
import pytest
import scipy.sparse
from geokfp.components.partition.exchange import SLACK, even_out
from hypothesis import given, settings
from hypothesis import strategies as st


def random_graph(num_nodes: int, seed: int) -> scipy.sparse.csr_matrix:
    ends = np.random.default_rng(seed).integers(num_nodes, size=(2, 4 * num_nodes))
    return scipy.sparse.csr_matrix((np.ones(ends.shape[1]), ends), shape=(num_nodes, num_nodes))


@settings(max_examples=60, deadline=None)
@given(
    num_nodes=st.integers(8, 120),
    num_parts=st.integers(1, 7),
    share=st.floats(0, 1),
    seed=st.integers(0, 1000),
)
def test_marked_nodes_become_even_and_alike(num_nodes, num_parts, share, seed) -> None:
    generator = np.random.default_rng(seed)
    parts = generator.integers(num_parts, size=num_nodes) * generator.integers(2, size=num_nodes)
    marked = generator.random(num_nodes) < share
    after = even_out(parts, marked, random_graph(num_nodes, seed), num_parts)
    held = np.bincount(after[marked], minlength=num_parts)
    mean = marked.sum() / num_parts
    assert held.max() <= max(np.ceil(mean), mean * (1 + SLACK))
    assert held.min() >= min(np.floor(mean), mean * (1 - SLACK))
    assert np.array_equal(after, even_out(parts, marked, random_graph(num_nodes, seed), num_parts))


def test_sizes_stay_where_every_part_can_give_back() -> None:
    parts = np.repeat([0, 1], 40)
    marked = np.zeros(80, dtype=bool)
    marked[:20] = True
    after = even_out(parts, marked, random_graph(80, 3), 2)
    assert np.bincount(after).tolist() == [40, 40]
    assert np.bincount(after[marked]).tolist() == [10, 10]


@pytest.mark.parametrize("direction", [1, -1])
def test_the_node_that_cuts_least_moves(direction: int) -> None:
    # marked 0 and 1 in part 0, nodes 4 and 5 in part 1; node 1 hangs on part 1 and node 5 on part 0
    edges = np.array([[1, 1, 0, 0, 5, 4, 4], [6, 7, 2, 3, 2, 6, 7]])[::direction]
    adjacency = scipy.sparse.csr_matrix((np.ones(7), edges), shape=(8, 8))
    marked = np.array([True, True] + [False] * 6)
    after = even_out(np.array([0, 0, 0, 0, 1, 1, 1, 1]), marked, adjacency, 2)
    assert after.tolist() == [0, 1, 0, 0, 1, 0, 1, 1]
