"""Recurring runs by name: create or replace, list, pause, resume, delete.

The API has no update: a changed schedule is made anew, and the old one is deleted when the new one is there.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import Interrupted, ServerError, UsageError
from .connection import Connection, Unanswered, asking, quiet
from .interval import interval_text
from .runs import RunOptions, experiment_id
from .submission import Submission

_PAGE = 100
_MOST_AT_ONCE = 10
_EQUALS = 1

Outcome = Literal["created", "replaced", "unchanged"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Timing:
    """When a schedule starts runs."""

    cron: str | None
    """Six fields, or None with an interval."""
    interval_s: int | None
    """Seconds between starts, or None with cron."""
    max_concurrency: int
    """Runs at once, 1 to 10; a start that would be one more is put off."""
    catch_up: bool
    """Whether starts that were missed are made up for."""

    def __post_init__(self) -> None:
        if not 1 <= self.max_concurrency <= _MOST_AT_ONCE:
            raise UsageError(f"--max-concurrency {self.max_concurrency}: allowed: 1 to {_MOST_AT_ONCE}")


def put(
    connection: Connection, submission: Submission, options: RunOptions, timing: Timing, *, paused: bool
) -> tuple[Outcome, Any]:
    """Creates a schedule, or replaces the one of its name; one that is paused stays so.

    Args:
        connection: where.
        submission: what its runs are made of.
        options: its name, and how runs are run.
        timing: when.
        paused: whether it starts no run until it is resumed.

    Returns:
        What was done, and the schedule.

    Raises:
        Interrupted: Ctrl-C; says what is left.
        ServerError: the installation does not answer or refuses; a schedule that was there is there still.
        UsageError: several schedules have the name.
    """
    there = _find(connection, options.name)
    if len(there) > 1:
        raise _several(options.name, there)
    paused = paused or bool(there and is_paused(there[0]))
    experiment = experiment_id(connection, options.experiment)
    try:
        made = _make(connection, submission, options, timing, experiment=experiment, paused=paused)
        if there and _content(there[0]) == _content(made) and is_paused(there[0]) == paused:
            _remove(connection, made, options.name)  # a new interval would put off the next run
            return "unchanged", there[0]
        _supersede(connection, made, there, options.name)
    except (Unanswered, KeyboardInterrupt) as error:
        left = _undone(connection, there, options.name)
        if isinstance(error, KeyboardInterrupt):
            raise Interrupted(f"interrupted; {left}") from error
        raise Unanswered(f"{error}; {left}") from error
    return ("replaced" if there else "created"), made


def _make(
    connection: Connection,
    submission: Submission,
    options: RunOptions,
    timing: Timing,
    *,
    experiment: str,
    paused: bool,
) -> Any:
    with asking(f"schedule {options.name!r}", connection.address), quiet(), submission.file() as path:
        return connection.client.create_recurring_run(
            experiment,
            options.name,
            description=submission.package.description,
            cron_expression=timing.cron,
            interval_second=timing.interval_s,
            max_concurrency=timing.max_concurrency,
            no_catchup=not timing.catch_up,
            params=dict(submission.arguments),
            pipeline_package_path=path,
            enabled=not paused,
            **options.given(),
        )


def _supersede(connection: Connection, made: Any, there: Sequence[Any], name: str) -> None:
    """Leaves the newest schedule of a name alone: calls at the same time may have made one each.

    Raises:
        ServerError: an old schedule stays, or another call has made a newer one; the one made is gone.
    """
    old = {each.recurring_run_id for each in there}
    others = [each for each in _find(connection, name) if each.recurring_run_id != made.recurring_run_id]
    overtaken = any(each.recurring_run_id not in old and _age(each) > _age(made) for each in others)
    if overtaken:
        _remove(connection, made, name)
        raise ServerError(f"schedule {name!r}: another call has set it at the same time; that one stands")
    for each in others:
        try:
            _remove(connection, each, name)
        except Unanswered:
            raise
        except ServerError:
            _remove(connection, made, name)
            raise


def _undone(connection: Connection, there: Sequence[Any], name: str) -> str:
    """Takes back what was made of a call that did not come to its end, and returns what is left.

    Where the old schedule is gone already, the new one stays.
    """
    old = {each.recurring_run_id for each in there}
    try:
        found = _find(connection, name)
        kept = [each for each in found if each.recurring_run_id in old]
        if old and not kept:
            return f"schedule {name!r} is set all the same"
        for each in found:
            if each not in kept:
                _remove(connection, each, name)
    except ServerError:
        return f"there may be two schedules {name!r}, see `geokfp schedule list`"
    return f"schedule {name!r} is as it was" if kept else f"there is no schedule {name!r}"


def every(connection: Connection) -> list[Any]:
    """Returns all schedules of the namespace.

    Raises:
        ServerError: the installation does not answer or refuses.
    """
    return _pages(connection, None)


def pause(connection: Connection, name: str) -> None:
    """Makes a schedule start no run until it is resumed.

    Raises:
        ServerError: the installation does not answer or refuses.
        UsageError: no schedule has this name or id, or several have.
    """
    found = find_one(connection, name)
    with asking(f"pausing {name!r}", connection.address):
        connection.client.disable_recurring_run(found.recurring_run_id)


def resume(connection: Connection, name: str) -> None:
    """Makes a paused schedule start runs again.

    Raises:
        ServerError: the installation does not answer or refuses.
        UsageError: no schedule has this name or id, or several have.
    """
    found = find_one(connection, name)
    with asking(f"resuming {name!r}", connection.address):
        connection.client.enable_recurring_run(found.recurring_run_id)


def delete(connection: Connection, name: str) -> None:
    """Deletes a schedule; runs that it has started go on.

    Raises:
        ServerError: the installation does not answer or refuses.
        UsageError: no schedule has this name or id, or several have.
    """
    _delete(connection, find_one(connection, name), name)


def find_one(connection: Connection, name: str) -> Any:
    """Returns the schedule of a name, or of an id.

    Raises:
        ServerError: the installation does not answer or refuses.
        UsageError: there is none, or several have the name.
    """
    found = _find(connection, name) or [each for each in every(connection) if each.recurring_run_id == name]
    if not found:
        names = ", ".join(sorted({each.display_name for each in every(connection)})) or "none is there"
        raise UsageError(f"no schedule {name!r}; allowed: {names}")
    if len(found) > 1:
        raise _several(name, found)
    return found[0]


def is_paused(schedule: Any) -> bool:
    """Tells whether a schedule starts no runs."""
    if schedule.status in ("ENABLED", "DISABLED"):
        return bool(schedule.status == "DISABLED")
    return bool(schedule.mode == "DISABLE")


def timing_text(schedule: Any) -> str:
    """Returns when a schedule starts runs, as people read it."""
    trigger = schedule.trigger
    if trigger and trigger.cron_schedule:
        return f"cron {trigger.cron_schedule.cron}"
    if trigger and trigger.periodic_schedule:
        return f"every {interval_text(int(trigger.periodic_schedule.interval_second))}"
    return "never"


def pipeline_of(schedule: Any) -> str:
    """Returns the name of a schedule's pipeline, or the id where it was uploaded before."""
    spec = schedule.pipeline_spec
    if isinstance(spec, Mapping):
        return str(spec.get("pipeline_spec", spec).get("pipelineInfo", {}).get("name", ""))
    reference = schedule.pipeline_version_reference
    return str(reference.pipeline_id) if reference else ""


def _content(schedule: Any) -> dict[str, Any]:
    """Returns what makes two schedules the same, as the installation tells it of both."""
    own = {"recurring_run_id", "created_at", "updated_at", "status", "mode", "error"}
    return {name: value for name, value in schedule.to_dict().items() if name not in own}


def _several(name: str, found: Sequence[Any]) -> UsageError:
    ids = ", ".join(each.recurring_run_id for each in found)
    return UsageError(f"{len(found)} schedules are named {name!r}; allowed: one of their ids, {ids}")


def _delete(connection: Connection, schedule: Any, name: str) -> None:
    with asking(f"deleting schedule {name!r} ({schedule.recurring_run_id})", connection.address):
        connection.client.delete_recurring_run(schedule.recurring_run_id)


def _remove(connection: Connection, schedule: Any, name: str) -> None:
    """Deletes a schedule that another call may delete, too; an answer that is lost is no failure."""
    try:
        _delete(connection, schedule, name)
    except ServerError:
        if schedule.recurring_run_id in {each.recurring_run_id for each in _find(connection, name)}:
            raise


def _age(schedule: Any) -> tuple[str, str]:
    return str(schedule.created_at), str(schedule.recurring_run_id)


def _find(connection: Connection, name: str) -> list[Any]:
    predicate = {"operation": _EQUALS, "key": "display_name", "stringValue": name}
    return _pages(connection, json.dumps({"predicates": [predicate]}))


def _pages(connection: Connection, predicates: str | None) -> list[Any]:
    found: list[Any] = []
    token = ""
    while True:
        with asking("listing schedules", connection.address):
            page = connection.client.list_recurring_runs(
                page_token=token,
                page_size=_PAGE,
                sort_by="created_at desc",
                namespace=connection.address.namespace or None,
                filter=predicates,
            )
        found += page.recurring_runs or []
        token = page.next_page_token or ""
        if not token:
            return found
