"""What a user writes as a choice, and the one line that says what is wrong with it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from geokfp.components._files import InputError
from geokfp.components.geo_training.spec import (
    Interval,
    Nested,
    OneOf,
    check,
    parse,
    parse_with_rules,
    render,
)
from hypothesis import given
from hypothesis import strategies as st


@dataclass(frozen=True, kw_only=True, slots=True)
class Leaf:
    count: Annotated[int, Interval(low=0, high=9)]
    share: Annotated[float, Interval(low=0, with_low=False, high=1)] = 0.5
    is_on: bool = False
    label: str = ""
    bits: Annotated[int, OneOf((2, 4, 8))] = 8
    class_: Annotated[str, OneOf(("a", "b"))] = "a"
    free: float = 0.0

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class Empty:
    pass


LEAVES: Mapping[str, type[Any]] = {"leaf": Leaf, "empty": Empty}


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    inner: Annotated[Leaf | Empty, Nested(LEAVES)] = field(default_factory=Empty)
    other: Annotated[Leaf | Empty | None, Nested(LEAVES)] = None
    height: float = 1.0

    def __post_init__(self) -> None:
        check(self)


TABLE: Mapping[str, type[Any]] = {"tree": Tree, "leaf": Leaf, "empty": Empty}


def read(text: str) -> Any:
    return parse(text, "option", TABLE)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("empty", Empty()),
        (" empty ( ) ", Empty()),
        ("leaf(count=3)", Leaf(count=3)),
        ("leaf( count = 3 ,share=1)", Leaf(count=3, share=1.0)),
        ("leaf(count=+3, free=-1e-3)", Leaf(count=3, free=-0.001)),
        ("leaf(count=0, free=-inf)", Leaf(count=0, free=float("-inf"))),
        ("leaf(count=1, is_on=true, class=b)", Leaf(count=1, is_on=True, class_="b")),
        ("leaf(count=1, is_on=False, label=8)", Leaf(count=1, label="8")),
        ('leaf(count=1, label="a, (b)=\\"c\\"")', Leaf(count=1, label='a, (b)="c"')),
        ("tree(inner=leaf(count=2), height=3)", Tree(inner=Leaf(count=2), height=3.0)),
        ("tree(inner=empty)", Tree()),
        ("tree(other=leaf(count=2))", Tree(other=Leaf(count=2))),
    ],
)
def test_a_choice_is_read_and_written_back(text, value):
    assert read(text) == value
    assert read(render(value, TABLE)) == value


def test_the_canonical_text_has_every_option():
    value = Tree(inner=Leaf(count=2, label="two words"))
    leaf = 'leaf(count=2, share=0.5, is_on=false, label="two words", bits=8, class=a, free=0.0)'
    assert render(value, TABLE) == f"tree(inner={leaf}, height=1.0)"
    assert render(Tree(), TABLE) == "tree(inner=empty, height=1.0)"
    with pytest.raises(KeyError):
        render(Leaf(count=1), {"tree": Tree})


leaves = st.builds(
    Leaf,
    count=st.integers(0, 9),
    share=st.floats(0, 1, exclude_min=True),
    is_on=st.booleans(),
    label=st.text(),
    bits=st.sampled_from([2, 4, 8]),
    class_=st.sampled_from("ab"),
    free=st.floats(allow_nan=False),
)


@given(
    st.builds(
        Tree, inner=leaves | st.builds(Empty), other=st.none() | leaves, height=st.floats(allow_nan=False)
    )
)
def test_any_value_comes_back_and_its_text_is_stable(value):
    text = render(value, TABLE)
    assert read(text) == value
    assert render(read(text), TABLE) == text


WRONG = {
    "": "a name or value is expected at column 1, as in name(option=value, ...)",
    "empty)": "the end is expected at column 6",
    "leaf(count=1": "',' or ')' is expected at column 13",
    "leaf(count 1)": "'=' is expected at column 12",
    "leaf(count=)": "a name or value is expected at column 12",
    "leaf(,)": "the name of an option is expected at column 6",
    "leaf(count=1,)": "the name of an option is expected at column 14",
    "leaf(count=1, count=2)": "count is given twice, allowed: once",
    '"leaf"(count=1)': "the end is expected at column 7",
    '"leaf"': "'leaf' is quoted, allowed: a name",
    'leaf(count=1, label="\\q")': "is not a string of JSON",
    "Leef(count=1)": "name is 'Leef', allowed: empty, leaf, tree; nearest: leaf",
    "q": "name is 'q', allowed: empty, leaf, tree",
    "empty(x=1)": "option of empty is 'x', allowed: none",
    "leaf(coutn=1)": "option of leaf is 'coutn', allowed: bits, class, count, free, is_on, label, share; "
    "nearest: count",
    "leaf(class_=a, count=1)": "option of leaf is 'class_', allowed: bits, class",
    "leaf": "leaf needs count=",
    "leaf(count=10)": "count is 10, allowed: a whole number at least 0 and at most 9",
    "leaf(count=1.5)": "count is '1.5', allowed: a whole number at least 0 and at most 9",
    'leaf(count="1")': "count is '1', allowed: a whole number",
    "leaf(count=1, share=0)": "share is 0.0, allowed: a number above 0 and at most 1",
    "leaf(count=1, share=nan)": "share is nan, allowed: a number above 0",
    "leaf(count=1, free=nan)": "free is nan, allowed: a number",
    "leaf(count=1, is_on=yes)": "is_on is 'yes', allowed: true or false",
    "leaf(count=1, bits=3)": "bits is 3, allowed: one of 2, 4, 8",
    "leaf(count=1, class=c)": "class is 'c', allowed: one of a, b",
    "leaf(count=leaf(count=1))": "count is 'leaf(...)', allowed: a whole number",
    "tree(inner=leaf(count=10))": "inner: count is 10, allowed: a whole number at least 0",
    "tree(inner=tree)": "inner: name is 'tree', allowed: empty, leaf",
    "tree(inner=" + 99 * "tree(inner=": "nested 16 deep at column",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_one_line_with_what_is_allowed(text):
    with pytest.raises(InputError) as caught:
        read(text)
    assert str(caught.value).startswith(f"option {text!r}: ")
    assert WRONG[text] in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "chosen", "rules"),
    [
        ("empty", Empty(), {}),
        ("leaf(count=1) + empty", Leaf(count=1), {"empty": Empty()}),
        (" leaf( count=1,free=1e+3 )+tree(height=+2)+ empty() ", Leaf(count=1, free=1000.0),
         {"tree": Tree(height=2.0), "empty": Empty()}),
        ('leaf(count=1, label="a + b")+tree(inner=leaf(count=+2))', Leaf(count=1, label="a + b"),
         {"tree": Tree(inner=Leaf(count=2))}),
    ],
)  # fmt: skip
def test_rules_follow_a_choice_after_plus_signs(text, chosen, rules):
    assert parse_with_rules(text, "option", TABLE, TABLE) == (chosen, rules)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("empty +", "a name is expected at column 8"),
        ("+ empty", "a name is expected at column 1"),
        ("empty, leaf", "'+' or the end is expected at column 6"),
        ("empty + empty + empty", "rule empty is given twice, allowed: once"),
        ("empty + tre", "rule is 'tre', allowed: empty, leaf, tree; nearest: tree"),
        ("empty + leaf(count=10)", "count is 10, allowed: a whole number at least 0 and at most 9"),
        ('empty + "leaf"', "a name is expected at column 9"),
    ],
)
def test_what_is_wrong_with_a_rule_is_one_line_too(text, says):
    with pytest.raises(InputError) as caught:
        parse_with_rules(text, "option", TABLE, TABLE)
    assert str(caught.value).startswith(f"option {text!r}: {says}")
    assert len(str(caught.value).splitlines()) == 1


def test_a_rule_in_the_place_of_a_name_is_told_where_it_belongs():
    with pytest.raises(InputError) as caught:
        parse_with_rules("leaf(count=2)", "option", {"tree": TABLE["tree"]}, {"leaf": TABLE["leaf"]})
    assert str(caught.value) == "option 'leaf(count=2)': rule leaf follows a name, as in tree + leaf"


@pytest.mark.parametrize("value", [3, None, ["empty"]])
def test_what_is_no_text_is_refused_by_name(value):
    for reader in (read, lambda text: parse_with_rules(text, "option", TABLE, TABLE)):
        with pytest.raises(InputError, match=r"^option is .*, allowed: text, as in name"):
            reader(value)


@given(st.text(alphabet='leaftrcount(=,)"\\ \n1.', max_size=30) | st.text(max_size=20))
def test_any_text_is_read_or_refused_in_one_line(text):
    message = "option "
    try:
        value = read(text)
    except InputError as error:
        message = str(error)
    else:
        assert read(render(value, TABLE)) == value
    assert len(message.splitlines()) == 1
    assert message.startswith("option ")


@pytest.mark.parametrize("value", ["1", True, 1.0, None])
def test_a_value_of_another_type_is_refused_in_code_too(value):
    with pytest.raises(InputError, match=r"count is .*, allowed: a whole number"):
        Leaf(count=value)


def test_only_what_the_table_has_may_be_nested():
    with pytest.raises(InputError, match=r"inner is .*, allowed: one of empty, leaf"):
        Tree(inner=Tree())  # type: ignore[arg-type]
