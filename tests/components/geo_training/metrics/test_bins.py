"""Bins: nothing is lost when they double, they stay as many, and another grid has the same seconds."""

import numpy as np
import pytest
from geokfp.components.geo_training.metrics.bins import FIRST_WIDTH_S, NUM_BINS, Bins, regrid
from hypothesis import given
from hypothesis import strategies as st

spans = st.lists(
    st.tuples(st.floats(0, 1000), st.floats(0, 50)).map(lambda pair: (pair[0], sum(pair))), max_size=30
)


@given(spans)
def test_every_second_is_kept_and_the_bins_stay_as_many(given_spans):
    bins = Bins(began=100.0)
    for began, ended in given_spans:
        bins.add("wait", 100.0 + began, 100.0 + ended)
    assert bins.total_s("wait") == pytest.approx(sum(ended - began for began, ended in given_spans))
    assert all(len(values) == NUM_BINS for values in bins.series.values())
    assert len(bins.to_dict()["series"].get("wait", [])) <= NUM_BINS


@given(spans)
def test_a_bin_holds_what_lies_in_it(given_spans):
    """The oracle: the overlap of every span with every bin."""
    bins = Bins(began=0.0)
    for began, ended in given_spans:
        bins.add("send", began, ended)
    edges = bins.width_s * np.arange(NUM_BINS + 1)
    expected = np.zeros(NUM_BINS)
    for began, ended in given_spans:
        expected += np.clip(np.minimum(edges[1:], ended) - np.maximum(edges[:-1], began), 0, None)
    np.testing.assert_allclose(bins.series.get("send", [0.0] * NUM_BINS), expected, atol=1e-6)


def test_bins_double_when_time_runs_on():
    bins = Bins(began=0.0)
    bins.add("wait", 0.0, NUM_BINS * FIRST_WIDTH_S)
    assert bins.width_s == FIRST_WIDTH_S
    bins.add("wait", 0.0, NUM_BINS * FIRST_WIDTH_S * 1.5)
    assert bins.width_s == 2 * FIRST_WIDTH_S


def test_what_was_before_the_first_bin_is_left_out():
    bins = Bins(began=10.0)
    bins.add("wait", 8.0, 10.5)
    bins.add("wait", 1.0, 2.0)
    assert bins.total_s("wait") == pytest.approx(0.5)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.floats(0.01, 3), st.floats(-5, 5))
def test_another_grid_has_the_same_seconds(values, width_s, shift_s):
    grid = np.linspace(shift_s - 1, shift_s + width_s * len(values) + 1, 77)
    shares = regrid({"wait": np.array(values)}, width_s, shift_s, grid)["wait"]
    assert (shares * np.diff(grid)).sum() == pytest.approx(sum(values), abs=1e-9)
