"""Which values are sent: against a stable sort, with many values of one magnitude among them."""

from math import ceil

import numpy as np
import pytest
from geokfp.components.geo_training.compression.selection import largest, largest_per_chunk, share
from geokfp.components.geo_training.errors import NotFiniteError
from geokfp.components.geo_training.wire.units import Unit
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

few_magnitudes = hnp.arrays(
    np.float32, st.integers(1, 60), elements=st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, -3.0])
)


def unit_of(values: np.ndarray) -> Unit:
    return Unit("gradient", 0, values.size)


def by_sorting(values: np.ndarray, kept: int) -> np.ndarray:
    """Returns the places of the largest magnitudes, of equal ones the first, ascending."""
    return np.sort(np.argsort(-np.abs(values), kind="stable")[:kept])


@given(few_magnitudes, st.integers(1, 70))
def test_the_largest_of_all_are_the_first_of_a_stable_sort_but_never_a_zero(values, kept):
    found = largest(unit_of(values), values, kept)
    np.testing.assert_array_equal(found, [i for i in by_sorting(values, kept) if values[i] != 0])


@given(few_magnitudes, st.integers(1, 70), st.sampled_from([0.5, 1.0, 2.5, 9.0]))
def test_none_is_sent_below_a_floor(values, kept, floor):
    found = largest(unit_of(values), values, kept, floor)
    np.testing.assert_array_equal(found, [i for i in by_sorting(values, kept) if abs(values[i]) >= floor])


@given(few_magnitudes, st.integers(1, 16).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n))))
def test_every_chunk_gives_its_share_of_the_largest(values, chunk_and_kept):
    chunk, kept = chunk_and_kept
    expected = [
        start + by_sorting(part, ceil(kept * part.size / chunk))
        for start in range(0, values.size, chunk)
        for part in [values[start : start + chunk]]
    ]
    found = largest_per_chunk(unit_of(values), values, chunk, kept)
    np.testing.assert_array_equal(found, np.concatenate(expected))
    assert found.dtype == np.int64


@pytest.mark.parametrize(("width", "expected"), [(4096, 62), (1, 1), (2048, 31), (2049, 32)])
def test_a_shorter_chunk_gives_its_share_rounded_up(width, expected):
    assert share(62, 4096, width) == expected


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e38])
@pytest.mark.parametrize("kept", [1, 3, 5])
def test_what_is_not_finite_is_refused_wherever_it_is(bad, kept):
    for place in range(5):
        values = np.ones(5, np.float32)
        values[place] = bad
        for select in (
            lambda v: largest(unit_of(v), v, kept),
            lambda v: largest_per_chunk(unit_of(v), v, 5, kept),
        ):
            with pytest.raises(NotFiniteError, match="holds a magnitude of"):
                select(values)
