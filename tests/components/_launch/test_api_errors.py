"""How long a request is tried again, and from where a watch goes on; no server."""

import threading

import pytest
from geokfp.components._launch.api_errors import (
    FIRST_DELAY_S,
    MAX_DELAY_S,
    NO_ANSWER,
    ApiError,
    Stopped,
    next_delay_s,
    tried,
)
from geokfp.components._launch.object_watch import WatchState
from hypothesis import given
from hypothesis import strategies as st


def error(status: int, wait_s: float | None = None) -> ApiError:
    return ApiError(status, "Reason", "words", retry_after_s=wait_s)


@given(
    attempt=st.integers(1, 40),
    jitter=st.floats(0, 1, exclude_max=True),
    status=st.sampled_from([NO_ANSWER, 429, 500, 502, 503, 504]),
)
def test_the_wait_grows_to_a_bound(attempt: int, jitter: float, status: int) -> None:
    delay_s = next_delay_s(error(status), attempt, float("inf"), jitter)
    assert delay_s is not None
    assert FIRST_DELAY_S / 2 <= delay_s <= MAX_DELAY_S
    assert delay_s <= FIRST_DELAY_S * 2 ** (attempt - 1)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 422])
def test_what_stays_wrong_is_not_tried_again(status: int) -> None:
    assert next_delay_s(error(status), 1, float("inf"), 0.5) is None


def test_a_server_may_ask_for_a_longer_wait() -> None:
    assert next_delay_s(error(429, 7.0), 1, 10, 0.5) == 7.0


def test_no_wait_is_longer_than_what_is_left() -> None:
    assert next_delay_s(error(429, 7.0), 1, 6.9, 0.5) is None


def test_a_wait_ends_when_the_run_does() -> None:
    stop = threading.Event()
    stop.set()

    def fail() -> None:
        raise error(429, 60)

    with pytest.raises(Stopped):
        tried(fail, for_s=600, stop=stop)


def event(kind: str, version: int, **rest: object) -> dict[str, object]:
    return {"type": kind, "object": {"metadata": {"resourceVersion": str(version)}, **rest}}


def test_a_watch_goes_on_from_the_last_version() -> None:
    state = WatchState()
    state.listed({"metadata": {"resourceVersion": "5"}})
    assert state.told(event("MODIFIED", 7))
    assert not state.told(event("BOOKMARK", 9))
    assert state.version == "9"


def test_a_watch_that_is_told_its_version_is_gone_lists_again_at_once() -> None:
    state = WatchState()
    state.listed({"metadata": {"resourceVersion": "5"}})
    with pytest.raises(ApiError) as caught:
        state.told({"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "too old"}})
    assert state.failed(caught.value, 0.5) == 0.0
    assert state.version == ""


def test_watches_that_fail_wait_longer_and_longer_until_one_brings_something() -> None:
    state = WatchState()
    state.listed({"metadata": {"resourceVersion": "5"}})
    waits_s = [state.failed(error(status), 0.5) for status in (NO_ANSWER, 500, 400, 401)]
    assert waits_s == sorted(waits_s)
    assert waits_s[0] < waits_s[-1]
    assert state.version == "5"
    state.told(event("ADDED", 6))
    assert state.failed(error(NO_ANSWER), 0.5) == waits_s[0]
