"""Reading on in a log after its connection was cut; the end of a log."""

from geokfp.components._launch.log_reader import LAST_LINES
from geokfp.components._launch.pod_logs import LogCursor
from hypothesis import given
from hypothesis import strategies as st

Line = tuple[str, str]


def served(log: list[Line], query: dict[str, str]) -> list[bytes]:
    """What a server sends: all lines from the whole second that is asked for on."""
    since = query.get("sinceTime", "")[:19]
    return [f"{time} {text}".encode() for time, text in log if time[:19] >= since]


@given(
    steps=st.lists(st.integers(0, 1_500_000_000), min_size=1, max_size=30),
    cuts=st.lists(st.integers(0, 30), max_size=6),
)
def test_however_it_is_cut_each_line_comes_once(steps: list[int], cuts: list[int]) -> None:
    log, now_ns = [], 0
    for number, step in enumerate(steps):
        now_ns += step
        seconds, fraction = divmod(now_ns, 10**9)
        digits = f".{fraction:09d}".rstrip("0").rstrip(".")  # as a server writes it
        log.append((f"2026-01-01T00:{seconds // 60:02d}:{seconds % 60:02d}{digits}Z", f"line {number}"))
    cursor, got = LogCursor("main"), []
    for cut in [*cuts, len(log)]:
        for raw in served(log, cursor.query())[:cut]:
            got.append(cursor.accept(raw))
    for raw in served(log, cursor.query()):
        got.append(cursor.accept(raw))
    assert [text for text in got if text is not None] == [text for _, text in log]


def test_it_asks_for_one_container_and_for_the_times() -> None:
    cursor = LogCursor("main")
    assert cursor.query() == {"container": "main", "follow": "true", "timestamps": "true"}
    cursor.accept(b"2026-01-01T00:00:07.25Z words")
    assert cursor.query()["sinceTime"] == "2026-01-01T00:00:07Z"


def test_the_last_lines_are_kept_without_blank_ones() -> None:
    cursor = LogCursor("main")
    for number in range(LAST_LINES + 5):
        cursor.accept(f"2026-01-01T00:00:{number:02d}Z line {number}\r".encode())
        cursor.accept(f"2026-01-01T00:00:{number:02d}Z  ".encode())
    assert tuple(cursor.last_lines) == tuple(f"line {number}" for number in range(5, LAST_LINES + 5))
