"""Whether a launch runs on, has succeeded or has failed and why: a pure state machine over its documents.

What it is given: the launch's objects (None for one that is gone), its pods, and the time. What it remembers:
how long a state has lasted by the caller's clock, as the cluster's may differ.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .cluster import Document, WatchSettings
from .object_paths import is_ending
from .pod_states import (
    NEVER,
    PULLING,
    bad_end,
    ended_at,
    has_started,
    is_replica,
    phase,
    replica_name,
    unschedulable,
    waiting,
)
from .pods import PodLaunch
from .verdict import BadEnd, root_cause


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What is to be done about a launch."""

    state: Literal["running", "succeeded", "failed"]
    """Whether to wait, and how it ended."""
    replica: str = ""
    """The replica that failed, as `group/index`; or the object."""
    cause: str = ""
    """One line."""
    pod: str = ""
    """Name of that replica's pod, or ""."""
    look_again: bool = False
    """Whether something is about to be decided: the next look should come soon."""


RUNNING = Verdict(state="running")
SUCCEEDED = Verdict(state="succeeded")


@dataclass
class Judge:
    """Judges one launch, look after look."""

    launch: PodLaunch
    """What was started."""
    kind: str
    """What kind of objects it became."""
    settings: WatchSettings
    """How patient to be."""
    started_s: float
    """When its objects were created, by the clock of the later looks."""
    _started: set[str] = field(default_factory=set)
    _complete: set[str] = field(default_factory=set)
    _since_s: dict[tuple[str, ...], float] = field(default_factory=dict)
    _known: dict[str, tuple[str, str]] = field(default_factory=dict)
    _succeeded: set[str] = field(default_factory=set)

    def verdict(
        self, objects: Mapping[str, Document | None], pods: Sequence[Document], now_s: float
    ) -> Verdict:
        """Judges what one look has found.

        Args:
            objects: by what they are called (`label`); the owner first; None for one that is not there.
            pods: all that carry the launch's label; looked up after the objects.
            now_s: the time.
        """
        replicas = [pod for pod in pods if is_replica(pod)]
        self._note(replicas)
        owner, *others = objects
        if (found := objects[owner]) is None or is_ending(found):
            return _failed(owner, "its owner object was deleted by somebody else")
        if failed := self._hopeless(replicas, now_s) or self._ended_badly(replicas, now_s):
            return failed
        if self._all_complete({name: objects[name] for name in others}):
            return SUCCEEDED
        return (
            self._object_failed({name: objects[name] for name in others}, now_s)
            or self._vanished(replicas, now_s)
            or self._late(replicas, now_s)
            or RUNNING
        )

    def _note(self, replicas: Iterable[Document]) -> None:
        for pod in replicas:
            name = replica_name(pod)
            self._known[pod["metadata"]["uid"]] = (name, pod["metadata"]["name"])
            if has_started(pod):
                self._started.add(name)
            if phase(pod) == "Succeeded":
                self._succeeded.add(name)

    def _lasted_s(self, now_s: float, *what: str) -> float:
        return now_s - self._since_s.setdefault(what, now_s)

    def _hopeless(self, replicas: Iterable[Document], now_s: float) -> Verdict | None:
        """A container that waits for what does not come."""
        for pod in replicas:
            reason, words = waiting(pod)
            pulling = ("pulling", pod["metadata"]["uid"])
            if reason not in PULLING:
                self._since_s.pop(pulling, None)
            if reason in NEVER or (
                reason in PULLING and self._lasted_s(now_s, *pulling) >= self.settings.pull_patience_s
            ):
                return _failed(replica_name(pod), f"{reason}: {words}".rstrip(": "), pod)
        return None

    def _ended_badly(self, replicas: Iterable[Document], now_s: float) -> Verdict | None:
        """The first bad end that no other one explains."""
        bad = sorted((pod for pod in replicas if bad_end(pod)), key=ended_at)
        if not bad:
            return None
        pods = {replica_name(pod): pod for pod in reversed(bad)}
        end = root_cause([BadEnd(replica_name(pod), bad_end(pod)) for pod in bad])
        if end.is_secondary() and self._lasted_s(now_s, "secondary") < self.settings.others_s:
            return Verdict(state="running", look_again=True)
        return _failed(end.name, end.cause, pods[end.name])

    def _all_complete(self, objects: Mapping[str, Document | None]) -> bool:
        for name, document in objects.items():
            if document is not None and outcome(document)[0] == "complete":
                self._complete.add(name)
        if self.kind != "dgljob":
            return set(objects) <= self._complete
        # Its phase is that of one pod of several, and of none where there is one only.
        return len(self._succeeded) >= _num_pods(self.launch)

    def _object_failed(self, objects: Mapping[str, Document | None], now_s: float) -> Verdict | None:
        """An object that says that it failed, once its pods had time to say why, or one that is gone."""
        for name, document in objects.items():
            if name in self._complete:
                continue
            if document is None or is_ending(document):
                return _failed(name, "it was deleted by somebody else")
            state, cause = outcome(document)
            if state == "failed":
                if self._lasted_s(now_s, "failed", name) >= self.settings.others_s or "Deadline" in cause:
                    return _failed(name, cause)
                return Verdict(state="running", look_again=True)
        return None

    def _vanished(self, replicas: Sequence[Document], now_s: float) -> Verdict | None:
        """A pod that was there and is not, without having ended: no other can take its place in a group."""
        present = {pod["metadata"]["uid"] for pod in replicas}
        for uid, (replica, pod) in self._known.items():
            if uid in present or replica in self._succeeded:
                continue
            if self._lasted_s(now_s, "vanished", uid) >= self.settings.others_s:
                return Verdict(
                    state="failed",
                    replica=replica,
                    cause=f"its pod {pod} was deleted (its node drained, lost, or needed for another)",
                )
            return Verdict(state="running", look_again=True)
        return None

    def _late(self, replicas: Sequence[Document], now_s: float) -> Verdict | None:
        """Pods that have not started in time."""
        if len(self._started) >= _num_pods(self.launch):
            return None
        if now_s - self.started_s < self.settings.start_timeout_s:
            return None
        after = f"after {self.settings.start_timeout_s:g} s"
        for pod in replicas:
            if has_started(pod):
                continue
            reason, words = waiting(pod)
            why = unschedulable(pod) or f"{reason}: {words}".strip(": ") or phase(pod)
            return _failed(replica_name(pod), f"it has not started {after}; {why}", pod)
        return _failed(
            self.launch.name,
            f"{len(replicas)} of its {_num_pods(self.launch)} pods exist {after}; "
            f"is a controller for {self.kind} running in the cluster, and does a quota allow the pods?",
        )


def outcome(document: Document) -> tuple[str, str]:
    """Returns what an object says of its end: `complete`, `failed` or "", and in one line why."""
    status: Mapping[str, Any] = document.get("status") or {}
    if document["kind"] == "DGLJob":
        return _PHASES.get(str(status.get("phase", "")), ""), f"its phase is {status.get('phase')}"
    for condition in status.get("conditions") or []:
        if condition.get("status") == "True" and condition.get("type") in _CONDITIONS:
            words = [str(condition.get(key) or "") for key in ("reason", "message")]
            return _CONDITIONS[condition["type"]], " ".join(": ".join(filter(None, words)).split())[:500]
    return "", ""


_CONDITIONS = {"Complete": "complete", "Completed": "complete", "Failed": "failed"}
_PHASES = {
    "Completed": "complete",
    "Succeed": "complete",
    "Succeeded": "complete",
    "Failed": "failed",
    "Evicted": "failed",
}


def _num_pods(launch: PodLaunch) -> int:
    return sum(group.num_pods for group in launch.groups)


def _failed(replica: str, cause: str, pod: Document | None = None) -> Verdict:
    return Verdict(
        state="failed", replica=replica, cause=cause, pod=str(pod["metadata"]["name"]) if pod else ""
    )
