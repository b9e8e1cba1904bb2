"""Trees between sites: each spans all, trials really happen, and the chosen tree is near the best one."""

from itertools import product
from random import Random

import pytest
from geokfp.components.geo_training.scheduling.rates import Rates
from geokfp.components.geo_training.scheduling.relay import Coordinator, links
from geokfp.components.geo_training.scheduling.trees import joined, quickest, seconds, way
from hypothesis import given, settings
from hypothesis import strategies as st

ROOT = "root"
SITES = tuple(f"site-{number}" for number in range(4))
EXPIRES = 5
SOME = settings(deadline=None, max_examples=25)
"""For what plans many rounds."""
RATE = st.floats(min_value=1e4, max_value=1e8)


def coordinator(sites=SITES, relays=SITES, explore=0.1, expires=EXPIRES) -> Coordinator:
    return Coordinator(ROOT, sites, relays, explore=explore, expires=expires)


def used(trees):
    return {*trees.up.items(), *((parent, site) for site, parent in trees.down.items())}


def run(chosen: Coordinator, true, numbers, random: Random, blocked=frozenset()):
    """Plans rounds and measures what they use; yields (number, planned) of each."""
    for number in numbers:
        planned = chosen.plan(number, pieces=8, random=random)
        yield number, planned
        for link in used(planned.best) | (used(planned.trial) if planned.trial else set()):
            if link in blocked:
                chosen.rates.failed(link, number)
            else:
                chosen.rates.measured(link, 10_000, 10_000 / true[link], number)


def every_tree(sites, parents):
    for choice in product(parents, repeat=len(sites)):
        tree = dict(zip(sites, choice, strict=True))
        try:
            for site in sites:
                way(tree, site, ROOT)
        except ValueError:
            continue
        yield tree


@st.composite
def networks(draw, sites=SITES):
    every = links(ROOT, sites, sites)
    return dict(zip(every, draw(st.lists(RATE, min_size=len(every), max_size=len(every))), strict=True))


@SOME
@given(networks(), st.sets(st.sampled_from(SITES)), st.integers(0, 99), st.sets(st.integers(0, 27)))
def test_every_tree_spans_all_sites_once_over_links_that_exist(true, relays, seed, blocked_at):
    every = links(ROOT, SITES, relays)
    blocked = {every[at] for at in blocked_at if at < len(every) and ROOT not in every[at]}
    for _, planned in run(coordinator(relays=relays), true, range(1, 40), Random(seed), blocked):
        for trees in filter(None, (planned.best, planned.trial)):
            assert set(trees.up) == set(trees.down) == set(SITES)
            assert used(trees) <= set(every)
            for tree in (trees.up, trees.down):
                assert all(way(tree, site, ROOT)[-1] == ROOT for site in SITES)
                assert all(parent == ROOT or parent in relays for parent in tree.values())


@SOME
@given(networks(), st.integers(0, 99))
def test_with_stable_rates_the_tree_comes_near_the_best_of_all(true, seed):
    *_, (_, planned) = run(coordinator(), true, range(1, 120), Random(seed))
    for tree, cost in (
        (planned.best.up, lambda site, parent: 1 / true[site, parent]),
        (planned.best.down, lambda site, parent: 1 / true[parent, site]),
    ):
        best = min(seconds(each, ROOT, cost, 8) for each in every_tree(SITES, (ROOT, *SITES)))
        assert seconds(tree, ROOT, cost, 8) <= 1.25 * best


@given(networks(), st.integers(1, 16))
def test_the_quickest_tree_of_known_links_is_within_a_tenth_of_the_best(true, pieces):
    def cost(site, parent):
        return 1 / true[site, parent]

    best = min(seconds(each, ROOT, cost, pieces) for each in every_tree(SITES, (ROOT, *SITES)))
    assert seconds(quickest(SITES, ROOT, cost, pieces), ROOT, cost, pieces) <= 1.1 * best


@SOME
@given(networks(), st.integers(0, 99), st.sampled_from([0.05, 0.1, 0.5, 1.0]))
def test_what_is_unknown_is_tried_in_bounded_rounds(true, seed, explore):
    chosen, every, gap = coordinator(explore=explore), links(ROOT, SITES, SITES), round(1 / explore)
    tried = dict.fromkeys(every, 0)
    for number, planned in run(chosen, true, range(1, 2 * len(every) + 8 * gap), Random(seed)):
        for link in used(planned.best) | (used(planned.trial) if planned.trial else set()):
            assert number - tried[link] <= len(every) * gap + EXPIRES
            tried[link] = number
        if number == len(every):
            assert not chosen.rates.never()
    assert all(number - at <= len(every) * gap + EXPIRES for at in tried.values())


def test_trials_happen_about_as_often_as_asked_when_all_was_tried():
    chosen, true = coordinator(explore=0.3), dict.fromkeys(links(ROOT, SITES, SITES), 1e6)
    rounds = list(run(chosen, true, range(1, 1001), Random(7)))[100:]
    trials = sum(planned.trial is not None for _, planned in rounds)
    assert 0.25 < trials / len(rounds) < 0.5


def test_a_slow_link_to_the_root_is_gone_round_and_left_when_it_is_quick_again():
    true = dict.fromkeys(links(ROOT, SITES, SITES), 2e6)
    true["site-2", ROOT] = 1e5
    chosen = coordinator()
    *_, (_, planned) = run(chosen, true, range(1, 40), Random(0))
    assert planned.best.up["site-2"] != ROOT
    assert planned.best.down["site-2"] == ROOT
    true["site-2", ROOT], true["site-2", planned.best.up["site-2"]] = 2e6, 1e5
    *_, (_, planned) = run(chosen, true, range(40, 160), Random(1))
    assert "site-2" not in (planned.best.up[site] for site in SITES)
    assert planned.best.up["site-2"] == ROOT or true["site-2", planned.best.up["site-2"]] == 2e6


def test_a_link_over_which_nothing_comes_is_in_no_tree_while_that_is_known():
    true = dict.fromkeys(links(ROOT, SITES, SITES), 1e6) | {("site-0", ROOT): 1e4, ("site-0", "site-1"): 1e9}
    blocked = {("site-0", "site-1")}
    plans = list(run(coordinator(), true, range(1, 100), Random(0), blocked))
    assert all(planned.best.up["site-0"] != "site-1" for _, planned in plans)
    assert any(planned.trial and planned.trial.up["site-0"] == "site-1" for _, planned in plans[30:])


def test_where_nobody_relays_all_stay_at_the_root():
    true = dict.fromkeys(links(ROOT, SITES, ()), 1e6) | {("site-0", ROOT): 1e3}
    for _, planned in run(coordinator(relays=()), true, range(1, 30), Random(0)):
        assert set(planned.best.up.values()) == set(planned.best.down.values()) == {ROOT}


def test_one_measurement_expires_and_a_newer_one_weighs_half():
    rates = Rates([("a", "b")], expires=5)
    rates.measured(("a", "b"), 100, 1.0, number=3)
    rates.measured(("a", "b"), 300, 1.0, number=4)
    assert rates.known(9) == {("a", "b"): 200.0}
    assert rates.known(10) == {}
    rates.measured(("a", "b"), 100, 1.0, number=10)
    assert rates.known(10) == {("a", "b"): 100.0}


def test_the_time_of_a_tree_is_that_of_its_pieces_one_by_one():
    costs = {("a", "b"): 4.0, ("b", "c"): 1.0, ("c", ROOT): 3.0, ("d", "c"): 5.0}
    tree = {"a": "b", "b": "c", "c": ROOT, "d": "c"}
    pieces = 7
    ready = {node: [0.0] * pieces for node in (*tree, ROOT)}
    for child in ("a", "b", "d", "c"):
        free = 0.0
        for piece in range(pieces):
            free = max(free, ready[child][piece]) + costs[child, tree[child]] / pieces
            ready[tree[child]][piece] = max(ready[tree[child]][piece], free)
    assert seconds(tree, ROOT, lambda s, p: costs[s, p], pieces) == pytest.approx(ready[ROOT][-1])


@given(st.lists(st.tuples(st.sampled_from(SITES), st.sampled_from((ROOT, *SITES)))), st.integers(0, 124))
def test_wanted_links_are_in_the_tree_as_far_as_they_fit(wanted, at):
    rest = list(every_tree(SITES, (ROOT, *SITES)))[at]
    tree = joined(wanted, rest, ROOT)
    assert all(way(tree, site, ROOT) for site in SITES)
    first = next(((site, parent) for site, parent in wanted if site != parent), None)
    assert first is None or tree[first[0]] == first[1]
