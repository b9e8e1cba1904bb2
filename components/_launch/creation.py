"""Creates a launch's objects at one cluster, or adopts those that an earlier try of the same run has left.

Who owns what::

    the step's pod ── Service (the owner object) ── all other objects ── their pods

An object of the same name is adopted when it carries the same run, and its owner is the one that is there:
one that names an owner which is gone is about to be collected, and is waited for.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from .api_errors import ApiError, Stopped, tried
from .cluster import Cluster, Document, WatchSettings
from .errors import ClusterFailed
from .manifests import RUN_LABEL, owned
from .object_paths import collection_path, is_ending, is_job, label, object_path, owner_uids


class Api(Protocol):
    """What is asked of an API server; `kubernetes.ApiServer` is one."""

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Sends one request; raises ApiError when it is not a success."""


class Guard(Protocol):
    """Knows whether there may be an owner of this run; `termination.Deletion` is one."""

    def creating(self) -> AbstractContextManager[None]:
        """Entered while that is found out."""

    def posting(self) -> None:
        """Called before each request that creates it; raises Stopped when none may be sent any more."""

    def conflicted(self) -> None:
        """Called when an object of that name was there."""

    def adopted(self) -> None:
        """Called when that is this run's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Created:
    """A launch's objects as the server has them, the owner first."""

    objects: tuple[Document, ...]
    """In the order of their creation."""
    adopted: bool
    """Whether what starts pods was there already; where nothing does, whether the owner was."""

    @property
    def owner(self) -> Document:
        """The object that all others name as their owner."""
        return self.objects[0]


class Creation:
    """Creates objects at one cluster."""

    def __init__(self, api: Api, cluster: Cluster, settings: WatchSettings, stop: threading.Event) -> None:
        self._api = api
        self._cluster = cluster
        self._settings = settings
        self._stop = stop

    def create(self, objects: Sequence[Document], guard: Guard) -> Created:
        """Creates all of a launch's objects.

        Args:
            objects: the owner first.
            guard: entered for each try to create the owner.

        Raises:
            ClusterFailed: the server refuses, or holds another run's object of the same name.
            Stopped: told to.
        """
        first, *others = objects
        with guard.creating():
            owner, adopted = self._create(first, owner_uid="", guard=guard)
        uid = str(owner["metadata"]["uid"])
        found = [self._create(owned(dict(other), dict(owner)), owner_uid=uid) for other in others]
        jobs = [there for document, there in found if is_job(document)]
        return Created(
            objects=(owner, *(document for document, _ in found)), adopted=any(jobs) if jobs else adopted
        )

    def free(self, owner: Document) -> bool:
        """Deletes the owner, and so all that it owns.

        Returns:
            Whether nothing of this run is left, or soon will be; False when the object is another run's.

        Raises:
            ApiError: the server did not accept it.
        """
        never = threading.Event()
        path = object_path(owner)
        try:
            there = tried(lambda: self._api.request("GET", path), for_s=self._settings.reach_s, stop=never)
            if _run_of(there) != _run_of(owner):
                return False
            tried(
                lambda: self._api.request("DELETE", path, body=DELETION),
                for_s=self._settings.reach_s,
                stop=never,
            )
        except ApiError as error:
            if error.status != 404:
                raise
        return True

    def _create(
        self, document: Document, owner_uid: str, guard: Guard | None = None
    ) -> tuple[Document, bool]:
        """Returns the object at the server, and whether it was there."""
        until = time.monotonic() + self._settings.gone_s
        while True:
            try:
                return self._post(document, guard), False
            except ApiError as error:
                if error.status != 409:
                    raise self._refused(document, error) from error
            if guard:
                guard.conflicted()
            there = self._there(document)
            if there is None:
                continue
            self._check_run(document, there)
            if not is_ending(there) and (not owner_uid or owner_uid in owner_uids(there)):
                if guard:
                    guard.adopted()
                return self._with_owners(document, there), True
            if time.monotonic() > until:
                raise self._failed(
                    f"{label(document)} of an earlier try is still there after {self._settings.gone_s:g} s"
                )
            if self._stop.wait(min(1.0, self._settings.poll_s)):
                raise Stopped

    def _post(self, document: Document, guard: Guard | None) -> Document:
        def once() -> Document:
            if guard:
                guard.posting()
            return self._api.request("POST", collection_path(document), body=document)

        return tried(once, for_s=self._settings.reach_s, stop=self._stop)

    def _there(self, document: Document) -> Document | None:
        try:
            return tried(
                lambda: self._api.request("GET", object_path(document)),
                for_s=self._settings.reach_s,
                stop=self._stop,
            )
        except ApiError as error:
            if error.status == 404:
                return None
            raise self._refused(document, error) from error

    def _check_run(self, document: Document, there: Document) -> None:
        ours, theirs = _run_of(document), _run_of(there)
        if ours != theirs:
            raise self._failed(
                f"{label(document)} is there already, of {f'run {theirs!r}' if theirs else 'no run'}; "
                f"this is run {ours!r}: delete it, or wait until that run has ended"
            )

    def _with_owners(self, document: Document, there: Document) -> Document:
        """Adds the owners that the adopted object does not name yet: this try's own pod."""
        missing = [
            owner
            for owner in document["metadata"].get("ownerReferences") or []
            if owner["uid"] not in owner_uids(there)
        ]
        if not missing:
            return there
        owners = [*(there["metadata"].get("ownerReferences") or []), *missing]
        try:
            return tried(
                lambda: self._api.request(
                    "PATCH", object_path(there), body={"metadata": {"ownerReferences": owners}}
                ),
                for_s=self._settings.reach_s,
                stop=self._stop,
            )
        except ApiError as error:
            raise self._refused(document, error) from error

    def _refused(self, document: Document, error: ApiError) -> ClusterFailed:
        hint = ""
        if error.status == 403:
            hint = "; give the account that launches the Role that `geokfp manifests` writes"
        if error.status == 404:
            hint = f"; does the cluster know the kind {document['kind']} of {document['apiVersion']}?"
        return self._failed(f"{label(document)} cannot be created: {error}{hint}")

    def _failed(self, cause: str) -> ClusterFailed:
        return ClusterFailed(str(self._cluster), cause, self._cluster.name)


DELETION: Mapping[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
"""The owner goes at once, what it owns is collected after it."""


def _run_of(document: Document) -> str:
    return str((document["metadata"].get("labels") or {}).get(RUN_LABEL, ""))
