"""When schedules start runs: cron expressions, intervals, and texts that are filled in then."""

import pytest
from geokfp.pipelines import compiled_package
from geokfp.pipelines._command_line.errors import UsageError
from geokfp.pipelines._command_line.package import Package, read_package
from geokfp.pipelines._command_line.server.cron import six_fields
from geokfp.pipelines._command_line.server.interval import interval_text, seconds_of
from geokfp.pipelines._command_line.server.macros import check_macros
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("expression", "six"),
    [
        ("0 3 * * *", "0 0 3 * * *"),
        ("*/15 8-18/2 1,15 JAN-mar Mon-FRI", "0 */15 8-18/2 1,15 JAN-mar Mon-FRI"),
        ("30 0 3 ? * 2-6", "30 0 3 ? * 2-6"),
        ("  5   4 * * sun ", "0 5 4 * * sun"),
        ("0 0 * * 7", "0 0 0 * * 0"),
        ("0 0 * * 5-7", "0 0 0 * * 0,5,6"),
        ("0 0 * * 1/2", "0 0 0 * * 1/2"),
        ("0 0 * * 1,7/2", "0 0 0 * * 0,1"),
        ("0 0 * * 1-7/5", "0 0 0 * * 1,6"),
        ("0 0 * * MON-SUN", "0 0 0 * * 0,1,2,3,4,5,6"),
        ("0 0 * * sun-tue", "0 0 0 * * sun-tue"),
        ("*/60 */24 * * *", "0 */60 */24 * * *"),
        ("0 0 * * */7", "0 0 0 * * */7"),
        ("0 0 31 2 FRI", "0 0 0 31 2 FRI"),
        ("0 0 29 2 *", "0 0 0 29 2 *"),
    ],
)
def test_five_fields_become_six(expression: str, six: str) -> None:
    assert six_fields(expression) == six


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("", "has 0 fields; allowed: 5 (minute, hour, day of month, month, day of week), or 6"),
        ("0 3 * *", "has 4 fields; allowed: 5"),
        ("@daily", "has 1 fields; allowed: 5"),
        ("0 0 3 * * * 2027", "has 7 fields"),
        ("60 3 * * *", "minute '60'; allowed: 0 to 59"),
        ("61 0 3 * * *", "second '61'; allowed: 0 to 59"),
        ("0 24 * * *", "hour '24'; allowed: 0 to 23"),
        ("0 0 0 * *", "day of month '0'; allowed: 1 to 31"),
        ("0 0 1 13 *", "month '13'; allowed: 1 to 12, or JAN to DEC"),
        ("0 0 * * 8", "day of week '8'; allowed: 0 to 7, or SUN to SAT"),
        ("0 0 * * MONDAY", "day of week 'MONDAY'; allowed: 0 to 7, or SUN to SAT"),
        ("0 18-8 * * *", "hour '18-8'; allowed: a range that rises, as 8-18"),
        ("*/0 * * * *", "minute '*/0'; allowed: a step of 1 to 60"),
        ("*/x * * * *", "minute '*/x'; allowed: a step of 1 to 60"),
        ("*/90 * * * *", "minute '*/90'; allowed: a step of 1 to 60"),
        ("0 */99999999999999999999 * * *", "'; allowed: a step of 1 to 24"),
        pytest.param(f"{'9' * 5000} * * * *", "'; allowed: 0 to 59", id="longer than Python counts"),
        ("0 0 * * FRI-MON", "day of week 'FRI-MON'; allowed: a range that rises, as 1-5"),
        ("? * * * *", "minute '?'; allowed: ? only in the two fields of days"),
        ("1, * * * *", "minute ''; allowed: a value, a range a-b, * or one of them with /step, by commas"),
        ("*-5 * * * *", "minute '*-5'; allowed: a value, a range"),
        ("-5 * * * *", "minute '-5'; allowed: a value, a range"),
        ("٣ 0 * * *", "minute '٣'; allowed: a value"),
        ("0 0 31 2,4 *", "no month of '2,4' has a day 31; allowed: real dates"),
        ("0 0 30 FEB ?", "no month of 'FEB' has a day 30"),
    ],
)
def test_a_field_that_is_wrong_is_named(expression: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        six_fields(expression)
    assert str(caught.value).startswith(f"--cron {expression!r}: ")
    assert says in str(caught.value)


@given(st.lists(st.integers(0, 7), min_size=1, max_size=4), st.integers(0, 59), st.integers(0, 23))
def test_days_of_the_week_stay_the_same_days(days: list[int], minute: int, hour: int) -> None:
    *time, weekdays = six_fields(f"{minute} {hour} * * {','.join(map(str, days))}").split()
    assert time == ["0", str(minute), str(hour), "*", "*"]
    assert {int(day) for day in weekdays.split(",")} == {day % 7 for day in days}


@given(st.integers(1, 10**9))
def test_an_interval_reads_as_it_is_written(seconds: int) -> None:
    assert seconds_of(interval_text(seconds)) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"), [("6h", 21_600), ("1d12h", 129_600), ("90M", 5_400), ("2w", 1_209_600)]
)
def test_intervals_have_units(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "6", "0h", "h", "6x", "12h1d", "-6h", "1.5h", "6 h", "5001w", f"{'9' * 5000}s"]
)
def test_other_intervals_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="allowed: numbers with w, d, h, m or s, such as 6h or 1d12h"):
        seconds_of(text)


@pytest.fixture(scope="module")
def package() -> Package:
    return read_package(compiled_package("cross_site"))


@pytest.mark.parametrize(
    "text",
    [
        "s3://b/[[ScheduledTime.2006-01-02]]/n.csv",
        "[[ScheduledTime]]-[[RunUUID]]",
        "[[CurrentTime.Jan 2, 2006 at 15:04]]",
        "[[ScheduledTime.20060102T150405Z]]",
        "{{$.scheduledTime.strftime('%Y-%m-%d')}}",
        '{{$.currentTime.strftime("%Y")}}',
    ],
)
def test_macros_of_schedules_are_found(package: Package, text: str) -> None:
    assert check_macros(package, {"nodes": text, "edges": "e.csv", "epochs": 3}, scheduled=True) == {"nodes"}


@pytest.mark.parametrize("text", ["[[1, 2], [3, 4]]", "a[[]]", "{{name}}", "[ScheduledTime]"])
def test_other_texts_are_no_macros(package: Package, text: str) -> None:
    assert check_macros(package, {"nodes": text}, scheduled=True) == frozenset()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            {"nodes": "[[ScheduleTime]]"},
            "nodes=[[ScheduleTime]]: [[ScheduleTime]] is no macro; allowed: [[Sch",
        ),
        ({"nodes": "[[Index]]"}, "[[Index]] is not filled in for pipelines of version 2"),
        ({"nodes": "[[ScheduledTime.%Y-%m-%d]]"}, "[[ScheduledTime.%Y-%m-%d]]; allowed: a layout of Go's"),
        (
            {"nodes": "[[ScheduledTime.YYYY-MM-DD]]"},
            "[[ScheduledTime.YYYY-MM-DD]]; allowed: a layout of Go's",
        ),
        ({"nodes": "[[ScheduledTime.]]"}, "allowed: a layout of Go's"),
        ({"nodes": "[[RunUUID.2006]]"}, "[[RunUUID.2006]]; allowed: [[RunUUID]]"),
        ({"nodes": "[[ScheduledTime ]]"}, "[[ScheduledTime ]] is no macro"),
        ({"nodes": "[[Scheduled-Time]]"}, "[[Scheduled-Time]] is no macro"),
        ({"nodes": "[[ScheduledTime:2006]]"}, "[[ScheduledTime:2006]] is no macro"),
        (
            {"nodes": "{{ $.scheduledTime.strftime('%d') }}"},
            "{{ $.scheduledTime.strftime('%d') }} is no macro",
        ),
        ({"nodes": "{{$scheduledTime}}"}, "{{$scheduledTime}} is no macro"),
        ({"nodes": "{{$.scheduledTime}}"}, "{{$.scheduledTime}} is no macro"),
        ({"nodes": "{{$.pipeline_job_name}}"}, "{{$.pipeline_job_name}} is no macro"),
        ({"topology": {"root": "[[RunUUID]]:1"}}, "[[RunUUID]] in a dict; allowed: in text parameters only"),
        ({"export_formats": ["[[RunUUID]]"]}, "[[RunUUID]] in a list; allowed: in text parameters only"),
    ],
)
def test_macros_that_nothing_fills_in_are_refused(
    package: Package, arguments: dict[str, object], says: str
) -> None:
    with pytest.raises(UsageError) as caught:
        check_macros(package, arguments, scheduled=True)
    assert says in str(caught.value)


def test_a_run_alone_has_no_scheduled_time(package: Package) -> None:
    assert check_macros(package, {"nodes": "[[CurrentTime]]"}, scheduled=False) == {"nodes"}
    for text in ("[[ScheduledTime]]", "{{$.scheduledTime.strftime('%d')}}"):
        with pytest.raises(UsageError, match="in a run that no schedule starts"):
            check_macros(package, {"nodes": text}, scheduled=False)
