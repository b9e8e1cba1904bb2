"""What a step does to run in pods: start them, show their lines, live for them to see, tell why they failed.

Knows nothing of what they do, nor of Kubernetes: who runs the launches is given.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from .._files import InputError, new_file
from .cluster import Cluster, Placed, WatchSettings
from .environment import own_namespace
from .errors import ProcessFailed
from .failure import FailureRecord
from .hand_over import HandOver
from .launch_options import LaunchOptions, own_pod, settings_of
from .leftovers import remove_dead_beside
from .pod import forget_failures_of_pods, read_failures_of_pods
from .pods import PodSettings
from .progress import print_progress, progress
from .verdict import BadEnd, root_cause

Options = TypeVar("Options", bound=LaunchOptions)


class PodRunner(Protocol):
    """Runs launches to their end: `run_on_clusters`, or `run_as_processes` without a cluster."""

    def __call__(
        self,
        placed: Sequence[Placed],
        *,
        on_line: Callable[[str, str], None],
        beat: Callable[[], None],
        on_created: Callable[[dict[str, Any]], None],
    ) -> None:
        """Returns when all have ended well; raises `ProcessFailed` otherwise. See `run_on_clusters`."""


class PortOpener(Protocol):
    """Opens a port of a launch that is not there yet, where its Service alone tells where it is reached."""

    def __call__(self, placed: Placed, group: str) -> AbstractContextManager[tuple[str, int]]:
        """Yields host and port of a group; the launch is run in the block. See `opened_port`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """What a step that may start pods has from where it runs."""

    settings: PodSettings = field(default_factory=PodSettings)
    """Of the pods."""
    uris: Mapping[str, str] = field(default_factory=dict)
    """URIs of artifacts by name: of inputs, which pods read themselves from an object store, and of the main
    output."""
    run_id: str = ""
    """The pipeline run that the step's own pod belongs to; empty outside of one."""
    job_resource: Path | None = None
    """File to which the reference of what was started goes, before it is waited for."""
    run: PodRunner | None = None
    """Who runs launches; None is their cluster."""
    open_port: PortOpener | None = None
    """Who opens ports; None is the launch's cluster."""

    def in_run(self, options: Options) -> Options:
        """Returns a step's options, with its own pod's run where they name none and pods are to be started.

        Raises:
            InputError: neither tells the run.
        """
        if options.run_id or not options.launches_pods:
            return options
        if not self.run_id:
            raise InputError(
                f"run_id '': must be given with launcher {options.launcher!r}: a text that tells this run "
                "from others, in a pipeline dsl.PIPELINE_JOB_ID_PLACEHOLDER"
            )
        return replace(options, run_id=self.run_id)

    def tell_created(self, references: Sequence[Mapping[str, Any]]) -> None:
        """Writes the references of what was started: one as itself, several as a list, `{}` for none."""
        if self.job_resource is not None:
            document = references[0] if len(references) == 1 else list(references) or {}
            with new_file(self.job_resource) as temporary:
                temporary.write_text(json.dumps(document), encoding="utf-8")


def surroundings_of(
    options: LaunchOptions, task_config: Any, uris: Mapping[str, str], job_resource: Path
) -> Surroundings:
    """Returns what a component's surroundings are.

    Args:
        options: the component's.
        task_config: its `dsl.TaskConfig`, or None.
        uris: see `Surroundings`.
        job_resource: path of its output of that name.

    Raises:
        InputError: pods are to be started, and the step's own pod cannot be read.
    """
    settings, run_id = settings_of(task_config, options), ""
    pod = own_pod() if options.launches_pods else None
    if pod is not None:
        from .own_pod import read_own_pod  # it takes a second to load the client

        own = read_own_pod(Cluster(), own_namespace(), pod.name)
        settings, run_id = own.images_in(settings), own.run_id
    return Surroundings(settings=settings, uris=uris, run_id=run_id, job_resource=job_resource)


@contextmanager
def freed(hand_over: HandOver) -> Iterator[None]:
    """Removes a launch's hand-over in the end, however it ends; what cannot be removed is told and left.

    Those of dead launches beside it are removed before.
    """
    try:
        remove_dead_beside(hand_over.uri, now_s=time.time())
        yield
    finally:
        try:
            hand_over.remove()
        except InputError as error:  # it hides no failure, and spoils no success
            progress(f"what was handed over stays: {error}")


def run_launches(
    launches: Sequence[tuple[Placed, HandOver]], options: LaunchOptions, surroundings: Surroundings
) -> None:
    """Runs launches to their end, all together.

    Args:
        launches: each with its hand-over, which is left as it is when they have ended.
        options: the step's.
        surroundings: the step's.

    Raises:
        InputError: a hand-over cannot be written.
        ProcessFailed: why the first of them failed, as its pods told.
    """
    created: list[Mapping[str, Any]] = []

    def note(reference: dict[str, Any]) -> None:
        created.append(reference)
        surroundings.tell_created(created)
        progress(f"created {reference.get('kind')} {reference.get('namespace')}/{reference.get('name')}")

    def beat_all() -> None:
        for beat in beats:
            beat()

    run = surroundings.run or _on_clusters(options)
    beats = [_Beat(hand_over) for _, hand_over in launches]
    for _, hand_over in launches:
        forget_failures_of_pods(hand_over)
    try:
        run(
            [placed for placed, _ in launches],
            on_line=lambda name, text: print_progress(text, replica=name),
            beat=beat_all,
            on_created=note,
        )
    except ProcessFailed as error:
        raise _told_by_pods(error, launches) from error


def opened(
    placed: Placed, group: str, options: LaunchOptions, surroundings: Surroundings
) -> AbstractContextManager[tuple[str, int]]:
    """Returns what yields host and port at which a group will be reached; its launch is run in that block.

    Args:
        placed: the launch.
        group: name of the group, which has a `service` whose address is not known.
        options: the step's.
        surroundings: the step's.

    Raises:
        ProcessFailed: on entry: the cluster gives no address in time.
    """
    if surroundings.open_port is not None:
        return surroundings.open_port(placed, group)
    from .opened import opened_port

    return opened_port(placed, group, _patience(options))


def _patience(options: LaunchOptions) -> WatchSettings:
    return WatchSettings(
        start_timeout_s=float(options.start_timeout_s), beat_s=min(10.0, options.orphan_timeout_s / 4)
    )


def _on_clusters(options: LaunchOptions) -> PodRunner:
    from .cluster_run import run_on_clusters

    return partial(run_on_clusters, settings=_patience(options))


class _Beat:
    """Beats in a hand-over; one that cannot be written is told once, as the pods will end by themselves."""

    def __init__(self, hand_over: HandOver) -> None:
        self._hand_over = hand_over
        self._failing = False

    def __call__(self) -> None:
        try:
            self._hand_over.beat()
        except InputError as error:
            if not self._failing:
                progress(f"cannot show the pods that the step lives: {error}")
            self._failing = True
        else:
            self._failing = False


def _told_by_pods(error: ProcessFailed, launches: Sequence[tuple[Placed, HandOver]]) -> ProcessFailed:
    """Returns the first cause among what was seen from outside and what the pods left themselves."""
    told: list[ProcessFailed] = []
    for placed, hand_over in launches:
        site = f"{placed.cluster.name}/" if len(launches) > 1 and placed.cluster.name else ""
        told += [
            ProcessFailed(f"{site}{record.replica}", record.cause, record.last_lines)
            for record in _failures(hand_over, placed)
        ]
    # The pod itself knows better than whoever saw it end.
    seen = [] if any(f"{one.replica}/".startswith(f"{error.replica}/") for one in told) else [error]
    found = [*seen, *told]
    return found[int(root_cause([BadEnd(str(i), one.cause) for i, one in enumerate(found)]).name)]


def _failures(hand_over: HandOver, placed: Placed) -> list[FailureRecord]:
    try:
        return read_failures_of_pods(
            hand_over, {group.name: group.num_pods for group in placed.launch.groups}
        )
    except InputError:  # what was seen from outside is then all that is known
        return []
