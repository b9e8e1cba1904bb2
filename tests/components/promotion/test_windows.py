"""Windows by the moment of a run, and URIs by their start."""

from datetime import UTC, datetime, timedelta

import pytest
from geokfp.components._files import InputError
from geokfp.components.promotion.config import EvaluationConfig, PromotionConfig, WindowConfig
from geokfp.components.promotion.windows import check_pattern, fill, window_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

NOW = datetime(2026, 11, 30, 6, 30, 15, 5, tzinfo=UTC)
DAY_S = 86400


@pytest.mark.parametrize(
    ("time", "scheduled", "length", "name"),
    [
        ("2026-11-30T06:00Z", "", DAY_S, "2026-11-29T06:00:00Z"),
        ("2026-11-30T06:00+02:00", "2020-01-01", DAY_S, "2026-11-29T04:00:00Z"),
        ("2026-03-01", "", DAY_S, "2026-02-28T00:00:00Z"),
        ("", "2026-11-30T00:00:00Z", 3600, "2026-11-29T23:00:00Z"),
        ("1764460800", "", 0, "2025-11-30T00:00:00Z"),
        ("20261130061500", "2020-01-01", 0, "2026-11-30T06:15:00Z"),
        ("", "", 0, "2026-11-30T06:30:15Z"),
        ("", "{{$.pipeline_job_schedule_time_utc}}", 0, "2026-11-30T06:30:15Z"),
        ("[[ScheduledTime]]", "2026-11-30T00:00:00Z", 0, "2026-11-30T00:00:00Z"),
    ],
)
def test_a_window_ends_at_the_moment_of_the_run(time: str, scheduled: str, length: int, name: str) -> None:
    window = window_of(time, scheduled, length, NOW)
    assert window.name == name
    assert window.end - window.start == timedelta(seconds=length)


SECONDS = st.integers(1_000_000_000, 253_000_000_000)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SECONDS, SECONDS)
def test_later_windows_have_greater_names(first: int, second: int) -> None:
    names = [window_of(str(each), "", 0, NOW).name for each in (first, second)]
    assert (names[0] < names[1]) == (first < second)


@pytest.mark.parametrize(
    ("pattern", "uri"),
    [
        ("s3://b/%Y/%m/%d/nodes.parquet", "s3://b/2026/03/07/nodes.parquet"),
        ("%Y-%j-%H%M%S.csv", "2026-066-040900.csv"),
        ("%G-W%V.csv", "2026-W10.csv"),
        ("file:///no%20blank/%C3%A4/%Y.csv", "file:///no%20blank/%C3%A4/2026.csv"),
        ("100%%/%d.csv", "100%/07.csv"),
        ("plain.csv", "plain.csv"),
        ("", ""),
    ],
)
def test_fields_are_those_of_the_start(pattern: str, uri: str) -> None:
    check_pattern("nodes", pattern)
    assert fill(pattern, datetime(2026, 3, 7, 4, 9, tzinfo=UTC)) == uri


GOOD = {"champions": "kept"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "champions '': must be the path or URI of a folder that stays"),
        (GOOD | {"nodes": "a/%y.csv"}, "nodes 'a/%y.csv': '%y' is no field; allowed: %Y, %m, "),
        (GOOD | {"edges": "a%"}, "edges 'a%': '%' is no field"),
        (GOOD | {"time": "noon"}, "time 'noon': must be a moment of the years 1970 to 9998 such as 2026"),
        (GOOD | {"time": "0999-01-01"}, "time '0999-01-01': must be a moment of the years 1970 to 9998"),
        (GOOD | {"time": "20261330061500"}, "time '20261330061500': must be a moment"),
        (GOOD | {"scheduled_time": "2026-13-01"}, "scheduled_time '2026-13-01': must be a moment"),
        (GOOD | {"window_s": -1}, "window_s -1: must be 0 to "),
    ],
)
def test_a_wrong_window_is_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        WindowConfig(**values)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"metric": "recall"}, "metric 'recall': must be one of accuracy, macro_f1"),
        ({"margin": -0.1}, "margin -0.1: must be at least 0 and below 1"),
        ({"margin": float("nan")}, "margin nan: must be"),
        ({"least_score": 1.5}, "least_score 1.5: must be 0 to 1"),
    ],
)
def test_a_wrong_criterion_is_refused(values: dict[str, object], message: str) -> None:
    for make in (
        EvaluationConfig,
        lambda **more: PromotionConfig(champions="a", window="2026-01-01", **more),
    ):
        with pytest.raises(InputError) as caught:
            make(**values)
        assert str(caught.value).startswith(message)


def test_a_promotion_needs_its_window() -> None:
    for window in ("", "{{$.x}}"):
        with pytest.raises(InputError, match=r"window '.*': must be a start such as 2026-11-30T00:00:00Z"):
            PromotionConfig(champions="kept", window=window)
