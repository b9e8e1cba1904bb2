"""Blocks are ranked as ten lines of numpy rank them; each is in exactly one channel."""

import numpy as np
import pytest
from geokfp.components.geo_training.scheduling.importance import Cut, Ranking, Share, split
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

whole_numbers = st.integers(-8, 8).map(float)


def rounds_of(count: int):
    return st.lists(hnp.arrays(np.float32, count, elements=whole_numbers), min_size=1, max_size=4)


@given(
    st.integers(1, 40).flatmap(rounds_of),
    st.integers(1, 9),
    st.floats(0, 1),
    st.integers(1, 5),
    st.sampled_from([0.0, 0.25, 0.5]),
)
def test_blocks_are_ranked_as_by_an_oracle(rounds, block, fraction, num_channels, alpha):
    cut = Cut(rounds[0].size, block)
    ranking = Ranking(cut, alpha)
    expected = np.zeros(cut.num_blocks)
    for values in rounds:
        present = ranking.update(values)
        blocks = [values[start : start + block] for start in range(0, values.size, block)]
        expected = alpha * expected + (1 - alpha) * np.array([np.abs(b).mean(dtype=float) for b in blocks])
        assert np.array_equal(present, [b.any() for b in blocks])
        found = split(ranking.contributions, present, fraction, num_channels)
    assert np.allclose(ranking.contributions, expected, rtol=1e-12, atol=0)
    ranked = sorted(np.flatnonzero(present), key=lambda number: (-ranking.contributions[number], number))
    assert [*found.important, *(number for channel in found.channels for number in channel)] == ranked
    assert abs(len(found.important) - fraction * len(ranked)) <= 0.5
    sizes = [len(channel) for channel in found.channels]
    assert len(sizes) == num_channels
    assert max(sizes) - min(sizes) <= 1


def test_all_blocks_are_important_at_one_and_none_at_zero():
    contributions, present = np.array([1.0, 3.0, 2.0]), np.array([True, True, True])
    assert split(contributions, present, 1.0, 3).important == (1, 2, 0)
    assert split(contributions, present, 0.0, 3).channels == ((1,), (2,), (0,))


@given(st.integers(1, 1000), st.integers(1, 100))
def test_blocks_cover_the_values_once(count, block):
    cut = Cut(count, block)
    spans = [cut.span(number) for number in range(cut.num_blocks)]
    assert [i for span in spans for i in range(span.start, span.stop)] == list(range(count))
    assert cut.sizes(range(cut.num_blocks)) == [span.stop - span.start for span in spans]
    assert all(size >= 1 for size in cut.sizes(range(cut.num_blocks)))


@pytest.mark.parametrize(
    ("measure", "expected"),
    [(4.0, 0.8), (2.0, 0.4), (0.1, 0.2), (8.0, 0.8), (float("nan"), 0.8)],
)
def test_the_share_falls_with_the_measure_between_its_bounds(measure, expected):
    share = Share(fraction=0.8, min_fraction=0.2, adaptive=True)
    assert share.of(measure, 4.0) == pytest.approx(expected)


def test_a_share_that_is_fixed_or_knows_no_first_measure_stays():
    assert Share(fraction=0.8, min_fraction=0.2, adaptive=False).of(1.0, 4.0) == 0.8
    assert Share(fraction=0.8, min_fraction=0.2, adaptive=True).of(1.0, 0.0) == 0.8
    assert Share(fraction=0.1, min_fraction=0.2, adaptive=True).of(0.0, 1.0) == 0.1
