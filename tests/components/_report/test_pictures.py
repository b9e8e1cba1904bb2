"""Timelines and trees: each one SVG, whatever is drawn; a tree's places lie where they belong."""

import re
from itertools import combinations

import numpy as np
import pytest
from geokfp.components._report.arrows import Arrow, lanes_of
from geokfp.components._report.lanes import Lane, timeline
from geokfp.components._report.tree import Edge, positions, tree
from hypothesis import given
from hypothesis import strategies as st


def edge(lower: str, upper: str) -> Edge:
    return Edge(lower, upper, "up 1 MB", "down <2> MB", 0.5)


def assert_is_one(svg: str) -> None:
    assert svg.startswith("<svg")
    assert svg.count("<svg") == 1
    assert "NaN" not in svg


def test_a_timeline_is_one_svg_with_its_lanes_and_things():
    shares = {"compute": np.array([0.5, 1.0, 2.0]), "wait": np.array([0.5, 0.0, 0.0])}
    lanes = [Lane("site <0>", shares), Lane("", {"link": np.zeros(3)}, 0.2), Lane("site-1", {})]
    svg = timeline(lanes, np.linspace(0, 3, 4), x_label="seconds", idle="wait")
    assert_is_one(svg)
    for name in ("site &lt;0&gt;", "site-1", "compute", "wait", "link"):
        assert name in svg


@pytest.mark.parametrize("num_sites", [1, 3, 24])
def test_a_tree_is_one_svg(num_sites):
    edges = [edge(f"site-{index}", "root") for index in range(num_sites)]
    edges += [edge(f"site-{index}/trainer-0", f"site-{index}") for index in range(num_sites)]
    svg = tree(edges)
    assert_is_one(svg)
    assert f"site-{num_sites - 1}" in svg
    assert "down &lt;2&gt; MB" in svg


def test_arrows_are_named_and_of_two_kinds():
    edges = [edge(name, "root") for name in ("a", "b <&>", "c")]
    up = [Arrow("up", "b <&>", "a"), Arrow("up", "a", "root"), Arrow("up", "c", "nowhere")]
    svg = tree(edges, [*up, Arrow("down", "root", "c"), Arrow("down", "c", "a")])
    assert_is_one(svg)
    assert set(re.findall(r'id="f[0-9a-f]{8}-((?:up|down)-[^"]*)"', svg)) == {
        "up-b--to-a",
        "up-a-to-root",
        "down-root-to-c",
        "down-c-to-a",
    }
    assert "stroke-dasharray" in svg
    for kind in ("up", "down"):
        assert re.search(rf">{kind}</text>", svg)


def test_a_tree_without_arrows_is_as_it_was():
    edges = [edge(name, "root") for name in ("a", "b")]
    svgs = [tree(edges, arrows) for arrows in ((), [Arrow("up", "a", "nowhere")])]
    plain, other = (re.sub(r"f[0-9a-f]{8}-\w+", "id", svg) for svg in svgs)
    assert other == plain
    assert "stroke-dasharray" not in plain


spans = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12)


@given(spans)
def test_spans_of_a_lane_touch_nowhere(given_spans):
    lanes = lanes_of(given_spans)
    for (one, lane), (other, other_lane) in combinations(zip(given_spans, lanes, strict=True), 2):
        if lane == other_lane:
            assert max(one) < min(other) or max(other) < min(one)


def test_places_lie_by_depth_and_amid_those_below():
    found = positions([edge("a", "root"), edge("b", "root"), edge("c", "a"), edge("d", "a"), edge("e", "d")])
    assert {name: place[0] for name, place in found.items()} == {
        "root": 0,
        "a": 1,
        "b": 1,
        "c": 2,
        "d": 2,
        "e": 3,
    }
    assert [found[name][1] for name in ("c", "e", "b")] == [0, 1, 2]
    assert found["a"][1] == 0.5
    assert found["root"][1] == 1.25


@pytest.mark.parametrize(
    ("edges", "what"),
    [
        ([edge("a", "root"), edge("a", "b")], "two links"),
        ([edge("a", "root"), edge("b", "c"), edge("c", "b")], "above itself"),
    ],
)
def test_what_is_no_tree_is_refused(edges, what):
    with pytest.raises(ValueError, match=what):
        positions(edges)
