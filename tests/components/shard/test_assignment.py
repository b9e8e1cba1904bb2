"""Laws of every method: each row has one site, no site is without a row, and sizes are as promised."""

import numpy as np
import pytest
from geokfp.components._files import InputError
from geokfp.components.ingest.graph import TEST, TRAIN, VALIDATION
from geokfp.components.shard.assignment import Assignment, assign
from geokfp.components.shard.config import METHODS, ShardConfig
from geokfp.components.shard.rows import Rows
from geokfp.components.shard.skew import class_counts, distances, label_skew, variance_between
from geokfp.components.shard.split import by_fractions
from hypothesis import given, settings
from hypothesis import strategies as st

LABELS = st.lists(st.integers(0, 5), min_size=6, max_size=80).map(lambda drawn: [*range(6), *drawn])


def rows_of(labels: list[int] | np.ndarray, sites: np.ndarray | None = None) -> Rows:
    values = np.asarray(labels, dtype=np.int64)
    return Rows(
        source="rows.csv",
        features=np.arange(len(values), dtype=np.float32)[:, np.newaxis],
        labels=values,
        label_names=tuple("abcdef"[: values.max() + 1]),
        sites=sites,
        site_names=() if sites is None else tuple(f"town-{i}" for i in range(sites.max() + 1)),
    )


def assigned(rows: Rows, seed: int = 0, **options) -> Assignment:
    if options.get("method") == "by_column":
        options |= {"table": rows.source, "site_column": "town"}
    return assign(rows, ShardConfig(seed=seed, **options), np.random.default_rng(seed))


@settings(max_examples=120, deadline=None)
@given(
    labels=LABELS,
    method=st.sampled_from(METHODS),
    num_sites=st.integers(1, 6),
    alpha=st.sampled_from([1e-3, 0.1, 1.0, 1e6]),
    seed=st.integers(0, 9),
)
def test_every_row_has_one_site_and_no_site_is_empty(
    labels: list[int], method: str, num_sites: int, alpha: float, seed: int
) -> None:
    rows = rows_of(labels, sites=np.arange(len(labels)) % num_sites)
    options = {"method": method, "num_sites": num_sites, "alpha": alpha}
    found = assigned(rows, seed, **options)
    assert len(found.site_names) == num_sites
    assert found.sites.shape == (rows.num_rows,)
    assert found.sites.dtype == np.int64
    sizes = np.bincount(found.sites, minlength=num_sites)
    assert len(sizes) == num_sites
    assert sizes.min() >= 1
    counts = class_counts(found.sites, rows.labels, num_sites, 6)
    assert counts.sum(axis=0).tolist() == np.bincount(labels, minlength=6).tolist()
    assert counts.sum(axis=1).tolist() == sizes.tolist()
    assert np.array_equal(found.sites, assigned(rows, seed, **options).sites)


@settings(max_examples=60, deadline=None)
@given(labels=LABELS, num_sites=st.integers(1, 6), seed=st.integers(0, 9))
def test_iid_sizes_differ_by_at_most_one(labels: list[int], num_sites: int, seed: int) -> None:
    sizes = np.bincount(assigned(rows_of(labels), seed, method="iid", num_sites=num_sites).sites)
    assert sizes.max() - sizes.min() <= 1


def test_iid_follows_the_seed() -> None:
    rows = rows_of([0, 1] * 50)
    assert not np.array_equal(assigned(rows, 0, method="iid").sites, assigned(rows, 1, method="iid").sites)


@settings(max_examples=60, deadline=None)
@given(labels=LABELS, num_sites=st.integers(1, 6))
def test_by_class_keeps_classes_whole_and_deals_them_evenly(labels: list[int], num_sites: int) -> None:
    rows = rows_of(labels)
    sites = assigned(rows, method="by_class", num_sites=num_sites).sites
    counts = class_counts(sites, rows.labels, num_sites, 6)
    assert ((counts > 0).sum(axis=0) == 1).all()
    largest = np.bincount(labels).max()
    bound = max(rows.num_rows / num_sites, largest)
    assert counts.sum(axis=1).max() <= bound + largest


def test_by_class_is_greedy() -> None:
    labels = np.repeat([0, 1, 2, 3], [50, 30, 20, 15])
    sites = assigned(rows_of(labels), method="by_class", num_sites=2).sites
    held = [sorted(set(labels[sites == site])) for site in range(2)]
    assert held == [[0, 3], [1, 2]]


def test_dirichlet_goes_from_one_site_a_class_to_even_shares() -> None:
    rows = rows_of(np.arange(6000) % 6)
    skews = []
    for alpha in (1e-3, 0.1, 1.0, 10.0, 1e6):
        sites = assigned(rows, method="dirichlet", num_sites=4, alpha=alpha).sites
        skews.append(label_skew(class_counts(sites, rows.labels, 4, 6)))
    assert skews == sorted(skews, reverse=True)
    assert skews[0] > 0.6
    assert skews[-1] < 0.01


def test_named_sites_are_kept() -> None:
    sites = np.array([2, 0, 1, 1, 0, 2])
    found = assigned(rows_of([0, 1] * 3, sites), method="by_column", num_sites=0)
    assert found.site_names == ("town-0", "town-1", "town-2")
    assert found.sites.tolist() == sites.tolist()
    named = assigned(rows_of([0, 1] * 3), num_sites=2, site_names=["Köln", "東京"])
    assert named.site_names == ("Köln", "東京")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_sites": 9}, "num_sites is 9 but rows.csv has 6 rows; allowed: at most 6"),
        (
            {"num_sites": 3, "method": "by_class"},
            "num_sites is 3 but rows.csv has 2 classes; allowed with method 'by_class': at most 2",
        ),
        (
            {"num_sites": 2, "method": "by_column"},
            "num_sites is 2 but 'town' names 3 sites (town-0, town-1, town-2); allowed with method "
            "'by_column': 3, or 0 for as many as there are",
        ),
    ],
)
def test_what_cannot_be_divided_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        assigned(rows_of([0, 1] * 3, np.arange(6) % 3), **options)
    assert str(caught.value) == message


FRACTIONS = st.tuples(st.integers(1, 20), st.integers(0, 20)).filter(lambda pair: sum(pair) <= 20)


@settings(max_examples=150, deadline=None)
@given(
    cells=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=120),
    twentieths=FRACTIONS,
    seed=st.integers(0, 9),
    known=st.booleans(),
)
def test_each_site_and_each_of_its_classes_is_divided_by_the_fractions(
    cells: list[tuple[int, int]], twentieths: tuple[int, int], seed: int, known: bool
) -> None:
    sites, classes = np.array(cells, dtype=np.int64).T
    train, validation = (part / 20 for part in twentieths)
    given_classes = classes if known else None
    split = by_fractions(sites, given_classes, train, validation, np.random.default_rng(seed))
    assert split.dtype == np.int8
    assert set(split) <= {TRAIN, VALIDATION, TEST}
    for site in set(sites.tolist()):
        own = split[sites == site]
        assert (own == TRAIN).sum() == np.ceil(round(twentieths[0] * len(own) / 20, 9))
        assert abs((own == VALIDATION).sum() - validation * len(own)) <= 1.000001
        for label in set(classes[sites == site].tolist()) if known else ():
            cell = split[(sites == site) & (classes == label)]
            assert abs((cell == TRAIN).sum() - train * len(cell)) <= 1.000001
            assert abs((cell == VALIDATION).sum() - validation * len(cell)) <= 2.000001


def test_fractions_are_met_exactly_where_they_can_be_and_follow_the_seed() -> None:
    sites, classes = np.arange(400) % 2, np.arange(400) // 2 % 5
    first, second = (by_fractions(sites, classes, 0.6, 0.2, np.random.default_rng(i)) for i in (0, 1))
    for site in range(2):
        assert np.bincount(first[sites == site]).tolist() == [0, 120, 40, 40]
    assert not np.array_equal(first, second)


def test_skew_is_counted_right() -> None:
    counts = np.array([[10, 0], [0, 30]])
    assert distances(counts).tolist() == [0.75, 0.25]
    assert label_skew(counts) == pytest.approx(0.375)
    assert label_skew(np.array([[5, 5], [10, 10]])) == 0
    sites = np.array([0, 0, 1, 1])
    assert variance_between(sites, np.array([1, 1, 3, 3], np.float32)) == 1
    assert variance_between(sites, np.array([1, 3, 1, 3], np.float32)) == 0
    assert variance_between(sites, np.full(4, 0.1, np.float32)) == 0
    assert variance_between(sites, np.array([0, 2, 2, 4], np.float32)) == pytest.approx(0.5)
