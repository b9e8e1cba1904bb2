"""Documents of an API server double: versions, owners, labels, logs; what has no owner is collected."""

import copy
import json
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Document = dict[str, Any]


class Refusal(Exception):
    """An answer that is not a success."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason

    def document(self) -> Document:
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "message": str(self),
            "reason": self.reason,
            "code": self.status,
        }


class ObjectStore:
    """All objects of a cluster, by the path of their collection and their name."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.oldest = 0
        """Versions before it are forgotten: nobody can watch from there."""
        self.collects = True
        """Whether objects without owners are collected."""
        self.on_create: Callable[[str, Document], None] = lambda key, document: None
        """Called with each new object: what a controller does."""
        self._version = 0
        self._objects: dict[tuple[str, str], Document] = {}
        self._history: list[tuple[int, str, str, str]] = []
        self._logs: dict[str, list[tuple[str, str]]] = {}

    def create(self, key: str, document: Document) -> Document:
        with self.changed:
            name = document["metadata"]["name"]
            if (key, name) in self._objects:
                raise Refusal(409, "AlreadyExists", f'{key.rsplit("/", 1)[1]} "{name}" already exists')
            made = copy.deepcopy(document)
            made["metadata"]["uid"] = str(uuid.uuid4())
            self._put("ADDED", key, made)
            self.on_create(key, made)
            return self.get(key, name)

    def get(self, key: str, name: str) -> Document:
        with self.changed:
            if (key, name) not in self._objects:
                raise Refusal(404, "NotFound", f'{key.rsplit("/", 1)[1]} "{name}" not found')
            return copy.deepcopy(self._objects[key, name])

    def patch(self, key: str, name: str, patch: Document) -> Document:
        with self.changed:
            self._put("MODIFIED", key, merged(self.get(key, name), patch))
            return self.get(key, name)

    def change(self, key: str, name: str, change: Callable[[Document], None]) -> None:
        """Changes an object in place."""
        with self.changed:
            document = self.get(key, name)
            change(document)
            self._put("MODIFIED", key, document)

    def delete(self, key: str, name: str) -> Document:
        with self.changed:
            document = self.get(key, name)
            del self._objects[key, name]
            self._record("DELETED", key, document)
            return {"kind": "Status", "apiVersion": "v1", "status": "Success"}

    def listed(self, key: str, query: Mapping[str, str]) -> Document:
        with self.changed:
            items = [
                copy.deepcopy(document)
                for (collection, _), document in self._objects.items()
                if collection == key and fits(document, query)
            ]
            return {"kind": "List", "metadata": {"resourceVersion": str(self._version)}, "items": items}

    def everything(self) -> list[Document]:
        with self.changed:
            return [copy.deepcopy(document) for document in self._objects.values()]

    def forget_versions(self) -> None:
        """Makes watches from any version so far impossible."""
        with self.changed:
            self._version += 1
            self.oldest = self._version

    def event(
        self, key: str, query: Mapping[str, str], since: int, position: int, over: Callable[[], bool]
    ) -> Document | None:
        """Returns the event of a watch at a position, once it is there; None when it is over."""
        with self.changed:
            while True:
                found = [
                    (kind, json.loads(text))
                    for version, kind, collection, text in self._history
                    if version > since and collection == key
                ]
                found = [event for event in found if fits(event[1], query)]
                if over():
                    return None
                if len(found) > position:
                    kind, document = found[position]
                    return {"type": kind, "object": document}
                self.changed.wait(1)

    def log_of(self, name: str) -> list[tuple[str, str]] | None:
        with self.changed:
            return self._logs.get(name)

    def log(self, name: str, time: str, text: str = "") -> None:
        """Adds a line to a pod's log; without a text, only begins the log."""
        with self.changed:
            lines = self._logs.setdefault(name, [])
            if text:
                lines.append((time, text))
            self.changed.notify_all()

    def log_lines(
        self, name: str, query: Mapping[str, str], over: Callable[[], bool]
    ) -> Iterator[tuple[str, str]]:
        """Yields a pod's log; the time asked for is of whole seconds."""
        since = query.get("sinceTime", "").rstrip("Z")
        position = 0
        while True:
            with self.changed:
                lines = self._logs.get(name, [])
                while len(lines) <= position and not over() and self._runs(name):
                    self.changed.wait(1)
                if over() or len(lines) <= position:
                    return
                time, text = lines[position]
            position += 1
            if time[:19] >= since:
                yield time, text

    def collect_garbage(self, closed: threading.Event) -> None:
        """Deletes objects whose owners are all gone, until closed."""
        with self.changed:
            while not closed.is_set():
                while self.collects and self._collect_one():
                    pass
                self.changed.wait(0.5)

    def _collect_one(self) -> bool:
        uids = {document["metadata"]["uid"] for document in self._objects.values()}
        for (key, name), document in self._objects.items():
            owners = document["metadata"].get("ownerReferences") or []
            if owners and not any(owner["uid"] in uids for owner in owners):
                self.delete(key, name)
                return True
        return False

    def _runs(self, name: str) -> bool:
        for (key, other), document in self._objects.items():
            if key.endswith("/pods") and other == name:
                return (document.get("status") or {}).get("phase") == "Running"
        return False

    def _put(self, kind: str, key: str, document: Document) -> None:
        self._record(kind, key, document)
        self._objects[key, document["metadata"]["name"]] = document

    def _record(self, kind: str, key: str, document: Document) -> None:
        self._version += 1
        document["metadata"]["resourceVersion"] = str(self._version)
        self._history.append((self._version, kind, key, json.dumps(document)))
        self.changed.notify_all()


def merged(document: Any, patch: Any) -> Any:
    """Returns a document after a merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def fits(document: Document, query: Mapping[str, str]) -> bool:
    labels = document["metadata"].get("labels") or {}
    wanted = dict(pair.split("=", 1) for pair in query.get("labelSelector", "").split(",") if pair)
    if any(labels.get(name) != value for name, value in wanted.items()):
        return False
    for pair in filter(None, query.get("fieldSelector", "").split(",")):
        path, value = pair.split("=", 1)
        found: Any = document
        for part in path.split("."):
            found = (found or {}).get(part)
        if found != value:
            return False
    return True
