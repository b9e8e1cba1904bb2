"""What an installation's answer says of a run: its steps, and where the failed one's log is.

Pure: an answer in, values out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..package import Step

ENDED = frozenset({"SUCCEEDED", "SKIPPED", "FAILED", "CANCELED"})
"""States of a run that never change."""
_KINDS = {
    "RUNNING": "started",
    "PAUSED": "started",
    "CANCELING": "started",
    "SUCCEEDED": "succeeded",
    "SKIPPED": "skipped",
    "FAILED": "failed",
    "CANCELED": "canceled",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class StepState:
    """One step, as the installation last told."""

    kind: str = "waiting"
    """waiting, started, succeeded, skipped, failed or canceled."""
    seconds: float | None = None
    """How long it took; None while it has not ended."""
    error: str = ""
    """What the installation says of its failure; often nothing."""
    pods: tuple[str, ...] = ()
    """Pods that failed under it, the last try first."""


def read_steps(run: Any, steps: Sequence[Step]) -> Mapping[str, StepState]:
    """Returns the state of each step, by the step's name.

    Args:
        run: the answer, a `V2beta1Run`.
        steps: the pipeline's steps.
    """
    details = _details(run)
    return {step.name: _read(_of_step(step, details), details) for step in steps}


def first_failure(states: Mapping[str, StepState]) -> str | None:
    """Returns the step that failed, None when no step did: the others were never started, or end with it."""
    return next((name for name, state in states.items() if state.kind == "failed"), None)


def run_error(run: Any) -> str:
    """Returns what the installation says of the run as a whole; often nothing."""
    return _message(run)


def _details(run: Any) -> list[Any]:
    return (run.run_details.task_details if run.run_details else None) or []


def _of_step(step: Step, details: Sequence[Any]) -> Any | None:
    """A step has one node of its name; a loop's iterations have several, of which the latest counts."""
    names = {step.name.replace("_", "-"), step.display_name}
    found = [detail for detail in details if detail.display_name in names]
    return max(found, key=lambda detail: str(detail.create_time), default=None)


def _read(detail: Any | None, details: Sequence[Any]) -> StepState:
    if detail is None:
        return StepState()
    kind = _KINDS.get(detail.state, "waiting")
    if kind in ("waiting", "started"):
        return StepState(kind=kind)
    pods = tuple(_failed_pods(detail, details, depth=8)) if kind == "failed" else ()
    return StepState(kind=kind, seconds=_seconds(detail), error=_message(detail), pods=pods)


def _seconds(detail: Any) -> float | None:
    if detail.start_time is None or detail.end_time is None or detail.end_time < detail.start_time:
        return None  # an end that is not known yet is 1970
    return float((detail.end_time - detail.start_time).total_seconds())


def _message(detail: Any) -> str:
    history = detail.state_history or []
    told = [detail.error, *(entry.error for entry in reversed(history))]
    return next((" ".join(error.message.split()) for error in told if error and error.message), "")


def _failed_pods(detail: Any, details: Sequence[Any], *, depth: int) -> Iterator[str]:
    """A node names its children by pod, whose names end as the ids of their nodes do."""
    by_ending = {str(each.task_id).rsplit("-", 1)[-1]: each for each in details}
    for child in reversed(detail.child_tasks or []):
        node = by_ending.get(str(child.pod_name).rsplit("-", 1)[-1])
        if node is None or node.state == "FAILED":
            if node is not None and depth > 0:
                yield from _failed_pods(node, details, depth=depth - 1)
            if child.pod_name:
                yield child.pod_name
