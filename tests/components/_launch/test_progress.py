"""Progress lines, and logs that are read while they are written."""

from pathlib import Path

import pytest
from geokfp.components._launch import parse_progress, progress
from geokfp.components._launch.log_reader import LAST_LINES, LogReader
from geokfp.components._launch.progress import print_progress
from hypothesis import given
from hypothesis import strategies as st


def test_a_line_gives_its_message_back(capsys: pytest.CaptureFixture[str]) -> None:
    progress("epoch 3 [of 10] took 1.2 s] loss 0.41")
    print_progress("epoch 4", replica="site-0/trainer-1")
    mine, other = capsys.readouterr().out.splitlines()
    assert parse_progress(mine) == "epoch 3 [of 10] took 1.2 s] loss 0.41"
    assert parse_progress(other) == "site-0/trainer-1: epoch 4"


def test_a_message_of_several_lines_becomes_one(capsys: pytest.CaptureFixture[str]) -> None:
    progress("one\ntwo")
    assert parse_progress(capsys.readouterr().out) == "one two"


@pytest.mark.parametrize("line", ["", "epoch 3", "[geokfp] hello", "[geokfp 1 s]", "[other 1.0 s] hello"])
def test_chatter_is_no_progress(line: str) -> None:
    assert parse_progress(line) is None


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_however_a_log_grows_each_message_is_read_once(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes]
) -> None:
    log = tmp_path_factory.mktemp("log") / "a.log"
    reader = LogReader(log)
    assert reader.new_progress() == []
    whole = b"".join(b"[geokfp     1.0 s] %d\nchatter\xff\n" % i for i in range(len(chunks)))
    messages = []
    with log.open("ab", buffering=0) as stream:
        for i, chunk in enumerate(chunks):
            end = len(whole) if i == len(chunks) - 1 else len(chunk)
            stream.write(whole[:end])
            whole = whole[end:]
            messages += reader.new_progress()
    assert messages == [str(i) for i in range(len(chunks))]


def test_the_last_lines_are_the_last(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("".join(f"{i}\n\n" for i in range(100)) + "unfinished")
    assert LogReader(log).last_lines() == (*(str(i) for i in range(101 - LAST_LINES, 100)), "unfinished")
    assert LogReader(tmp_path / "missing.log").last_lines() == ()
