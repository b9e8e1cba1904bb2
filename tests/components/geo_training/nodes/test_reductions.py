"""Laws of the named reductions: merging along any tree gives what merging all at once gives."""

import numpy as np
import pytest
from geokfp.components.geo_training.nodes.reductions import REDUCTIONS
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

COUNT = 6
whole_numbers = hnp.arrays(np.int64, COUNT, elements=st.integers(-1000, 1000))
contributions = st.lists(whole_numbers, min_size=2, max_size=6)


@pytest.mark.parametrize("name", sorted(REDUCTIONS))
@given(contributions, st.integers(1, 5))
def test_a_tree_gives_what_one_node_gives(name, values, cut):
    reduction = REDUCTIONS[name]
    cut = min(cut, len(values) - 1)
    at_once = reduction.merge(values, COUNT)
    sites = [reduction.merge(values[:cut], COUNT), reduction.merge(values[cut:], COUNT)]
    np.testing.assert_array_equal(reduction.merge(sites, COUNT), at_once)
    assert not reduction.keeps_count or at_once.size == COUNT


@pytest.mark.parametrize("name", sorted(REDUCTIONS))
@given(contributions.flatmap(lambda values: st.tuples(st.just(values), st.permutations(values))))
def test_it_is_the_same_whichever_site_brings_which_values(name, values_and_permuted):
    values, permuted = values_and_permuted
    merge = REDUCTIONS[name].merge
    np.testing.assert_array_equal(merge(permuted, COUNT), merge(values, COUNT))


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(-100, 100)), min_size=2, max_size=6), st.integers(1, 5)
)
def test_a_weighted_mean_over_a_tree_is_that_over_all_samples(sites, cut):
    cut, mean = min(cut, len(sites) - 1), REDUCTIONS["mean"]
    brought = [np.full(3, weight * value, np.float64) for weight, value in sites]
    merged = [mean.merge(brought[:cut], 3), mean.merge(brought[cut:], 3)]
    result = mean.settle(mean.merge(merged, 3), float(sum(weight for weight, _ in sites)))
    samples = [value for weight, value in sites for _ in range(weight)]
    np.testing.assert_allclose(result, np.mean(samples), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", sorted(REDUCTIONS))
@given(contributions)
def test_contributions_are_left_as_they_are(name, values):
    before = [value.copy() for value in values]
    REDUCTIONS[name].merge(values, COUNT)
    for value, copy in zip(values, before, strict=True):
        np.testing.assert_array_equal(value, copy)


@given(contributions)
def test_each_against_its_definition(values):
    stacked = np.stack(values)
    np.testing.assert_array_equal(REDUCTIONS["sum"].merge(values, COUNT), stacked.sum(0))
    np.testing.assert_array_equal(REDUCTIONS["max"].merge(values, COUNT), stacked.max(0))
    np.testing.assert_array_equal(
        REDUCTIONS["k_smallest"].merge(values, COUNT), np.sort(stacked, axis=None)[:COUNT]
    )
    assert set(REDUCTIONS["union"].merge(values, COUNT)) == set(stacked.ravel())


def test_the_mean_divides_by_the_samples_and_is_zero_without_any():
    total = np.array([6.0, 3.0], np.float32)
    mean = REDUCTIONS["mean"].settle(total, 3.0)
    np.testing.assert_array_equal(mean, np.array([2.0, 1.0], np.float32))
    assert mean.dtype == np.float32
    np.testing.assert_array_equal(REDUCTIONS["mean"].settle(total, 0.0), np.zeros(2, np.float32))
