"""A double of a Kubernetes API server: a threaded HTTP server on loopback over a store of documents.

Serves what the launcher asks for: list, watch, get, create, merge patch and delete of any kind, pod logs,
events; with resource versions, 401, 403, 404, 409, 410 and whatever a script of faults adds. Objects whose
owners are all gone are collected.
"""

import itertools
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from .object_store import ObjectStore, Refusal

COLLECTION = re.compile(
    r"/(?:api/(?P<core>v1)|apis/(?P<group>[^/]+/[^/]+))/namespaces/(?P<namespace>[^/]+)/(?P<plural>[a-z]+)"
    r"(?:/(?P<name>[^/]+))?(?:/(?P<part>log))?"
)


@dataclass
class Fault:
    """What happens to some requests instead of their answer."""

    method: str
    path: str
    """Searched for in the path, as a regular expression."""
    times: int = 1
    status: int = 0
    """Of the answer; 0 cuts the connection without one."""
    reason: str = "Fault"
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    """Before the answer."""
    carried_out: bool = False
    """Whether the request takes effect all the same."""
    watches: bool = False
    """Whether it is for watches; others leave them alone."""


@dataclass(frozen=True)
class Request:
    """A request as it came in."""

    method: str
    path: str
    query: Mapping[str, str]
    body: Any
    came_s: float
    """When, by the monotonic clock that all processes of the machine share."""
    status: int
    """Of the answer."""


class ApiServerDouble:
    """The server; a context manager."""

    def __init__(self, *, token: str = "first") -> None:
        self.store = ObjectStore()
        self.token = token
        self.requests: list[Request] = []
        self.faults: list[Fault] = []
        self.rules: list[dict[str, Any]] | None = None
        """Rules of a Role; None allows everything."""
        self.checks: list[Callable[[dict[str, Any]], None]] = []
        """Called with each created document; raise ValueError for one that the server would refuse."""
        self.unknown_plurals: set[str] = set()
        self.gone_as_event = True
        """Whether a watch from an old version is told so by an event, or by the HTTP status."""
        self.epoch = 0
        """Raised to cut all streams."""
        self.on_request: Callable[[int], None] = lambda number: None
        """Called with the number of each request as it comes in, from 1."""
        self.numbers = itertools.count(1)
        self.closed = threading.Event()
        handler = type("Handler", (_Handler,), {"double": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        self._threads = [
            threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True),
            threading.Thread(target=self.store.collect_garbage, args=(self.closed,), daemon=True),
        ]

    def __enter__(self) -> "ApiServerDouble":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *args: object) -> None:
        self.closed.set()
        self.cut_streams()
        self._http.shutdown()
        self._http.server_close()
        for thread in self._threads:
            thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def kubeconfig(self, folder: Path) -> str:
        """Writes a file with this server and a token file; returns its path."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "token").write_text(self.token, encoding="utf-8")
        user = {"name": "user", "user": {"tokenFile": str(folder / "token")}}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "double", "cluster": {"server": self.url}}],
            "users": [user],
            "contexts": [{"name": "double", "context": {"cluster": "double", "user": "user"}}],
            "current-context": "double",
        }
        path = folder / "kubeconfig"
        path.write_text(json.dumps(document), encoding="utf-8")
        return str(path)

    def cut_streams(self) -> None:
        """Ends all watches and logs that are followed, in the middle."""
        with self.store.changed:
            self.epoch += 1
            self.store.changed.notify_all()

    def fail(self, method: str, path: str, **fault: Any) -> None:
        """Adds a fault for the next requests that it fits."""
        self.faults.append(Fault(method, path, **fault))

    def asked(self, method: str, path: str = "", **query: str) -> list[Request]:
        """Returns the requests so far that fit."""
        return [
            request
            for request in list(self.requests)
            if request.method == method
            and re.search(path, request.path)
            and all(request.query.get(name) == value for name, value in query.items())
        ]

    def take_fault(self, method: str, path: str, *, is_watch: bool) -> Fault | None:
        for fault in self.faults:
            if fault.method == method and re.search(fault.path, path) and fault.watches == is_watch:
                fault.times -= 1
                if not fault.times:
                    self.faults.remove(fault)
                return fault
        return None

    def allows(self, verb: str, group: str, resource: str) -> bool:
        return self.rules is None or any(
            group in rule["apiGroups"] and resource in rule["resources"] and verb in rule["verbs"]
            for rule in self.rules
        )


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    double: ApiServerDouble
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_PATCH(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def _serve(self) -> None:
        came_s = time.monotonic()
        self.double.on_request(next(self.double.numbers))
        split = urlsplit(self.path)
        query = dict(parse_qsl(split.query))
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else None
        fault = self.double.take_fault(self.command, split.path, is_watch=query.get("watch") == "true")
        if fault:
            self.double.closed.wait(fault.delay_s)
        try:
            if fault and not fault.carried_out and (fault.status or not fault.delay_s):
                raise Refusal(fault.status, fault.reason, "as the script says")
            answer = self._answer(split.path, query, body)
            if fault and (fault.status or fault.carried_out):
                raise Refusal(fault.status, fault.reason, "as the script says")
        except Refusal as refusal:
            self._note(split.path, query, body, came_s, refusal.status)
            return self._refuse(refusal, fault.headers if fault else {})
        self._note(split.path, query, body, came_s, 200)
        if isinstance(answer, dict):
            return self._send(200, json.dumps(answer).encode(), {})
        return self._stream(answer)

    def _note(self, path: str, query: Mapping[str, str], body: Any, came_s: float, status: int) -> None:
        self.double.requests.append(Request(self.command, path, query, body, came_s, status))

    def _answer(self, path: str, query: Mapping[str, str], body: Any) -> dict[str, Any] | Iterator[bytes]:
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        if (scheme.lower(), token) != ("bearer", self.double.token):  # in a cluster clients write it small
            raise Refusal(401, "Unauthorized", "Unauthorized")
        found = COLLECTION.fullmatch(path)
        if not found or found["plural"] in self.double.unknown_plurals:
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        self._check_allowed(found, query)
        key, name, store = path[: found.end("plural")], found["name"], self.double.store
        if self.command == "POST":
            return self._create(key, body)
        if self.command == "PATCH":
            return store.patch(key, name, body)
        if self.command == "DELETE":
            return store.delete(key, name)
        if found["part"]:
            return self._log(name, query)
        if query.get("watch") == "true":
            return self._watch(key, query)
        return store.get(key, name) if name else store.listed(key, query)

    def _create(self, key: str, body: Any) -> dict[str, Any]:
        for check in self.double.checks:
            try:
                check(body)
            except ValueError as error:
                raise Refusal(422, "Invalid", str(error)) from error
        return self.double.store.create(key, body)

    def _check_allowed(self, found: re.Match[str], query: Mapping[str, str]) -> None:
        verbs = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}
        verb = verbs.get(self.command) or ("get" if found["name"] else "list")
        if query.get("watch") == "true":
            verb = "watch"
        group = (found["group"] or "").partition("/")[0]
        resource = found["plural"] + (f"/{found['part']}" if found["part"] else "")
        if not self.double.allows(verb, group, resource):
            raise Refusal(403, "Forbidden", f"cannot {verb} resource {resource!r} in API group {group!r}")

    def _watch(self, key: str, query: Mapping[str, str]) -> Iterator[bytes]:
        since = int(query["resourceVersion"])
        store, epoch = self.double.store, self.double.epoch
        if since < store.oldest:
            gone = Refusal(410, "Expired", "too old resource version")
            if not self.double.gone_as_event:
                raise gone
            return iter([json.dumps({"type": "ERROR", "object": gone.document()}).encode() + b"\n"])
        return self._events(key, query, since, epoch)

    def _events(self, key: str, query: Mapping[str, str], since: int, epoch: int) -> Iterator[bytes]:
        for position in itertools.count():
            event = self.double.store.event(key, query, since, position, lambda: self._over(epoch))
            if event is None:
                return
            yield json.dumps(event).encode() + b"\n"

    def _log(self, name: str, query: Mapping[str, str]) -> Iterator[bytes]:
        epoch, store = self.double.epoch, self.double.store
        if store.log_of(name) is None:
            raise Refusal(400, "BadRequest", "container is waiting to start: ContainerCreating")
        lines = store.log_lines(name, query, lambda: self._over(epoch))
        return (f"{time} {text}\n".encode() for time, text in lines)

    def _over(self, epoch: int) -> bool:
        return self.double.epoch != epoch or self.double.closed.is_set()

    def _refuse(self, refusal: Refusal, headers: Mapping[str, str]) -> None:
        if not refusal.status:  # cut
            self.close_connection = True
            return
        self._send(refusal.status, json.dumps(refusal.document()).encode(), headers)

    def _send(self, status: int, data: bytes, headers: Mapping[str, str]) -> None:
        try:
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:
            self.close_connection = True

    def _stream(self, chunks: Iterator[bytes]) -> None:
        epoch = self.double.epoch
        try:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for chunk in chunks:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            if self._over(epoch):  # cut: without the last chunk
                self.close_connection = True
            else:
                self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True
