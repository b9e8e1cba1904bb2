"""Lines of a file, counted as an editor counts them, whatever quotes and blank lines do."""

import csv
import io

import pytest
from geokfp.components.ingest.csv_lines import (
    Ragged,
    Stray,
    Undecodable,
    find_ragged,
    find_stray,
    find_undecodable,
    header_of,
    last_line,
    line_of,
    may_be_stray,
)
from hypothesis import given
from hypothesis import strategies as st

VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\r\x00"), max_size=4)
ROWS = st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=6)


def table(rows: list[tuple[str, ...]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows([("a", "b"), *rows])
    return text.getvalue()


def lines(text: str) -> list[str]:
    return list(io.StringIO(text, newline=""))


@given(ROWS)
def test_the_line_of_a_row_is_where_it_begins(rows: list[tuple[str, str]]) -> None:
    for number in range(len(rows)):
        assert line_of(lines(table(rows)), number) == 1 + table(rows[:number]).count("\n")
    assert last_line(lines(table(rows))) == 1 + table(rows[:-1]).count("\n")


@given(ROWS, ROWS, st.sampled_from([1, 3]))
def test_the_first_row_of_another_length_is_found(
    before: list[tuple[str, str]], behind: list[tuple[str, str]], length: int
) -> None:
    assert find_ragged(lines(table(before))) is None
    text = table([*before, ("x",) * length, *behind, ("y",)])
    line = 1 + table(before).count("\n")
    assert find_ragged(lines(text)) == Ragged(line=line, found=length, wanted=2)


@pytest.mark.parametrize("text", ["", "a,b\n", "a,b\n\n1,2\n   \n", 'a,b\n1, "2,3"\n', "a\n\n1\n"])
def test_blank_lines_and_quotes_are_no_ragged_rows(text: str) -> None:
    assert find_ragged(lines(text)) is None


@given(ROWS)
def test_text_is_decodable(rows: list[tuple[str, str]]) -> None:
    assert find_undecodable(table(rows).encode().splitlines(keepends=True)) is None


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (b"id,label\n1,a\n2,\xe4\n", Undecodable(line=3, column="label", byte=0xE4)),
        (b"\xef\xbb\xbfid,label\n\xe4,\xff\n", Undecodable(line=2, column="id", byte=0xE4)),
        (b"id,label\n1,a,\xe4\n", Undecodable(line=2, column="", byte=0xE4)),
        ("id,label\n".encode("utf-16"), Undecodable(line=1, column="", byte=0xFF)),
    ],
)
def test_the_first_byte_that_is_no_text_is_found(raw: bytes, found: Undecodable) -> None:
    assert find_undecodable(raw.splitlines(keepends=True)) == found


@given(ROWS)
def test_values_in_quotes_are_not_stray(rows: list[tuple[str, str]]) -> None:
    assert find_stray(lines(table(rows))) is None
    assert header_of(lines("\n" + table(rows))) == (2, ["a", "b"])


@pytest.mark.parametrize("text", ["", 'a,b\n1,5"\n', 'a,b\n1, "2" \n', 'a,b\n1,"2\n', 'a\n"x""y\n'])
def test_quotes_that_stand_for_themselves_or_stay_open_are_not_stray(text: str) -> None:
    assert find_stray(lines(text)) is None


@given(ROWS, st.sampled_from(['"ca"t', '""t', '"c\na"t"', '"ca" t', '"ca""x"y', "x\0"]), ROWS)
def test_the_first_stray_value_is_found(
    before: list[tuple[str, str]], value: str, behind: list[tuple[str, str]]
) -> None:
    text = table(before) + f'"1",{value}\n' + table(behind)
    assert may_be_stray(text)
    line = 1 + table(before).count("\n")
    assert find_stray(lines(text)) == Stray(line=line, column="b", value=value)
