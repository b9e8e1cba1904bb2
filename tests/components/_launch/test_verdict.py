"""Who is blamed when several end badly at nearly the same time."""

import signal
from pathlib import Path

import pytest
from geokfp.components._launch.verdict import BadEnd, describe, root_cause
from hypothesis import given
from hypothesis import strategies as st

OWN = ("ValueError: the sky fell", "killed by SIGKILL", "killed by SIGBUS", "ended with exit status 3")
LOST = (
    "RuntimeError: [pair.cc:534] Connection closed by peer [127.0.0.1]:40112",
    "ConnectionResetError: [Errno 104] Connection reset by peer",
    "LinkClosedError: the aggregator's connection ended",
)
ABORTED = "killed by SIGABRT"

ends = st.lists(
    st.builds(BadEnd, st.sampled_from("abcdef"), st.sampled_from([*OWN, *LOST, ABORTED])), min_size=1
)


@given(ends)
def test_the_first_own_end_is_blamed_and_without_one_an_abort(ends: list[BadEnd]) -> None:
    own = [end for end in ends if end.cause in OWN]
    aborted = [end for end in ends if end.cause == ABORTED]
    assert root_cause(ends) is (own or aborted or ends)[0]


@pytest.mark.parametrize("cause", OWN)
def test_an_own_end_needs_no_wait_for_others(cause: str) -> None:
    assert not BadEnd("a", cause).is_secondary()


@pytest.mark.parametrize("cause", [*LOST, ABORTED])
def test_a_lost_peer_may_have_another_cause(cause: str) -> None:
    assert BadEnd("a", cause).is_secondary()


def test_an_end_is_described() -> None:
    assert describe(3) == "ended with exit status 3"
    assert describe(-signal.SIGKILL) == "killed by SIGKILL"
    assert describe(-100) == "killed by signal 100"


def test_a_bus_error_says_how_full_shared_memory_is(tmp_path: Path) -> None:
    assert f"killed by SIGBUS ({tmp_path} has " in describe(-signal.SIGBUS, tmp_path)
    assert describe(-signal.SIGBUS, tmp_path / "missing") == "killed by SIGBUS"
