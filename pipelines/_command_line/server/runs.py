"""One run on an installation: start it, watch it, say why it failed."""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import Interrupted, ServerError, StillRunning, UsageError
from ..failure import last_error
from ..options import in_pipeline_words
from ..package import Package
from .connection import READ_S, Connection, Unanswered, asking, quiet
from .run_states import ENDED, StepState, first_failure, read_steps, run_error
from .submission import Submission

WEEK_S = 604_800.0
"""Seconds that a run is waited for: steps have limits of their own, a run that no one starts has not."""
PATIENCE_S = 120.0
"""Seconds that an installation may be away while a run is watched."""
_LOG_PATHS = tuple(
    f"/apis/{version}/runs/{{run_id}}/nodes/{{node_id}}/log" for version in ("v2beta1", "v1alpha1")
)
_TAIL_BYTES = 1 << 16
_ACCOUNT = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
_ROOT = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/]\S*")


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOptions:
    """How an installation runs a pipeline; empty is its own default."""

    experiment: str = "Default"
    """Name of the experiment; made when it is not there."""
    name: str = ""
    """Name of the run or schedule."""
    service_account: str = ""
    """Of the steps' pods."""
    pipeline_root: str = ""
    """URI under which steps write their artifacts."""
    no_cache: bool = False
    """Whether steps that the package caches run all the same."""

    def __post_init__(self) -> None:
        for option, text in (("--name", self.name), ("--experiment", self.experiment)):
            if not text.strip() or not text.isprintable():
                raise UsageError(f"{option} {text!r}: allowed: text on one line")
        if self.service_account and not _ACCOUNT.fullmatch(self.service_account):
            raise UsageError(
                f"--service-account {self.service_account}: allowed: small letters, digits, - and ."
            )
        if self.pipeline_root and not _ROOT.fullmatch(self.pipeline_root):
            raise UsageError(f"--pipeline-root {self.pipeline_root}: allowed: a URI such as s3://bucket/runs")

    def given(self) -> dict[str, Any]:
        """Returns what kfp's client takes of it."""
        return {
            "service_account": self.service_account or None,
            "pipeline_root": self.pipeline_root or None,
            "enable_caching": False if self.no_cache else None,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiting:
    """How a run is waited for."""

    poll_s: float = 5.0
    """Seconds between two looks."""
    timeout_s: float = WEEK_S
    """Seconds after which no one waits any longer."""
    now: Callable[[], float] = time.monotonic
    """Seconds of a clock that never goes back."""
    sleep: Callable[[float], None] = time.sleep
    """Waits for seconds."""


def experiment_id(connection: Connection, name: str) -> str:
    """Returns the id of an experiment, which is made when it is not there.

    Raises:
        ServerError: the installation does not answer or refuses.
    """
    with asking(f"experiment {name!r}", connection.address), quiet():
        made = connection.client.create_experiment(name, namespace=connection.address.namespace or None)
        return str(made.experiment_id)


def start(connection: Connection, submission: Submission, options: RunOptions) -> str:
    """Starts a run and returns its id.

    Raises:
        Interrupted: Ctrl-C, when it is not known whether the run was started.
        ServerError: the installation does not answer or refuses.
    """
    experiment = experiment_id(connection, options.experiment)
    perhaps = f"run {options.name!r} may have been started: {connection.address.host.rstrip('/')}/#/runs"
    try:
        with asking("starting the run", connection.address), quiet(), submission.file() as path:
            run = connection.client.run_pipeline(
                experiment,
                options.name,
                pipeline_package_path=path,
                params=dict(submission.arguments),
                **options.given(),
            )
    except Unanswered as error:
        raise Unanswered(f"{error}; {perhaps}") from error
    except KeyboardInterrupt as interrupt:
        raise Interrupted(f"interrupted; {perhaps}") from interrupt
    return str(run.run_id)


def watch(
    connection: Connection,
    run_id: str,
    package: Package,
    show: Callable[[Mapping[str, StepState]], None],
    waiting: Waiting,
) -> Any:
    """Looks at a run until it has ended, and returns the last answer.

    Args:
        connection: where it runs.
        run_id: the run.
        package: its pipeline.
        show: called after each look with the state of each step.
        waiting: how long, and how often.

    Raises:
        ServerError: the installation refuses, or has been away for `PATIENCE_S`.
        StillRunning: it has not ended within the time to wait.
    """
    began = heard = waiting.now()
    states: Mapping[str, StepState] = {}
    while True:
        try:
            with asking(f"looking at run {run_id}", connection.address):
                run = connection.client.get_run(run_id)
            heard = waiting.now()
            states = read_steps(run, package.steps)
            show(states)
            if run.state in ENDED:
                return run
        except Unanswered:
            if waiting.now() - heard > PATIENCE_S:
                raise
        if waiting.now() - began >= waiting.timeout_s:
            where = connection.address.run_link(run_id)
            at = ", ".join(name for name, state in states.items() if state.kind == "started") or "no step"
            raise StillRunning(
                f"run {run_id} still goes on after {waiting.timeout_s:g} s, {at} running: {where}"
            )
        waiting.sleep(min(waiting.poll_s, began + waiting.timeout_s - waiting.now()))


def terminate(connection: Connection, run_id: str) -> None:
    """Asks the installation to stop a run.

    Raises:
        ServerError: the installation does not answer or refuses.
    """
    with asking(f"terminating run {run_id}", connection.address):
        connection.client.terminate_run(run_id)


def why_it_ended(connection: Connection, run: Any, package: Package) -> str:
    """Returns, in one line, what became of a run that did not succeed.

    Args:
        connection: where it ran.
        run: the last answer.
        package: its pipeline.
    """
    states = read_steps(run, package.steps)
    step = first_failure(states)
    if step is None:
        return f"the run {run.state.lower()}: {run_error(run)}".removesuffix(": ")
    state = states[step]
    cause = _cause(connection, run.run_id, state) or run_error(run)
    renamed = next(each.inputs.renamed for each in package.steps if each.name == step)
    if cause:
        return f"{step} failed: {in_pipeline_words(cause, renamed)}"
    pod = f"; the log of pod {state.pods[0]} may tell it" if state.pods else ""
    return f"{step} failed: the installation tells no cause{pod}"


def _cause(connection: Connection, run_id: str, state: StepState) -> str:
    """The step's own last error says more than the installation, which knows exit codes at best."""
    for pod in state.pods:
        found = last_error(_log_tail(connection, run_id, pod))
        if found:
            return found
    return state.error


def _log_tail(connection: Connection, run_id: str, pod: str) -> list[str]:
    """Returns the last lines of a pod's log, none when it cannot be had: it is a help, not the outcome."""
    for path in _LOG_PATHS:
        try:
            with asking(f"reading the log of {pod}", connection.address):
                answer = connection.client.runs.api_client.call_api(
                    path,
                    "GET",
                    path_params={"run_id": run_id, "node_id": pod},
                    auth_settings=["Bearer"],
                    _preload_content=False,
                    _request_timeout=READ_S,
                )
                tail = b""
                for chunk in answer.stream(_TAIL_BYTES):
                    tail = (tail + chunk)[-_TAIL_BYTES:]
        except ServerError:
            continue
        return tail.decode("utf-8", errors="replace").splitlines()
    return []
