"""A double of the Kubeflow Pipelines REST API on loopback: strict about what it is sent, and scripted.

It knows experiments, runs and recurring runs, one user or several, tokens and cookies. A run goes on by one
entry of `script` each time that it is looked at.
"""

import json
import re
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from google.protobuf.json_format import ParseError
from support.pipelines_messages import Wrong, check_filter, check_message, check_recurring, check_work

Answer = tuple[int, Any]
_PREFIX = "/apis/v2beta1"
_LISTS = {"page_token", "page_size", "sort_by", "namespace", "filter", "experiment_id"}


class PipelinesServer:
    """What the API holds, and how it behaves; tests read and write the attributes."""

    def __init__(self) -> None:
        self.multi_user = False
        self.token = ""
        self.cookie = ""
        self.faults: dict[tuple[str, str], deque[Answer]] = {}
        self.script: list[dict[str, Any]] = [{"state": "SUCCEEDED", "finished_at": "2100-01-01T00:00:00Z"}]
        self.logs: dict[str, str] = {}
        self.experiments: list[dict[str, Any]] = []
        self.runs: list[dict[str, Any]] = []
        self.recurring: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.wrong: list[str] = []
        self.looked = threading.Event()
        self.url = ""
        self._looks = 0
        self._ids = 0

    def fail(self, method: str, path: str, *statuses: int, message: str = "told so") -> None:
        """Answers the next requests of a path (after `/apis/v2beta1`) with statuses."""
        answers = self.faults.setdefault((method, path), deque())
        answers.extend((status, {"error": message, "code": 13, "message": message}) for status in statuses)

    def answer(self, method: str, target: str, body: Any, headers: Any) -> Answer:
        """Returns status and content for one request."""
        path = unquote(urlsplit(target).path)
        query = {key: values[0] for key, values in parse_qs(urlsplit(target).query).items()}
        self.asked.append(f"{method} {path.removeprefix(_PREFIX)}")
        if self.token and headers.get("authorization") != f"Bearer {self.token}":
            return 401, {"message": "Request header error: there is no user identity header"}
        if self.cookie and headers.get("Cookie") != self.cookie:
            return 200, "<html>log in</html>"
        scripted = self.faults.get((method, path.removeprefix(_PREFIX)))
        if scripted:
            return scripted.popleft()
        try:
            return self._route(method, path, query, body)
        except (Wrong, ParseError, ValueError, KeyError) as error:
            self.wrong.append(f"{method} {path}: {error!r}")
            return 400, {"message": f"InvalidInputError: {error}", "code": 3}

    def _route(self, method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        log = re.fullmatch(r"/apis/v1alpha1/runs/([^/]+)/nodes/([^/]+)/log", path)
        if log and log[2] in self.logs:
            return 200, self.logs[log[2]]
        if path == f"{_PREFIX}/healthz":
            return 200, {"multi_user": self.multi_user, "pipeline_store": "database"}
        match = re.fullmatch(rf"{_PREFIX}/(\w+)(?:/([^/:]+))?(?::(\w+))?", path)
        routes: dict[tuple[str, str, bool, str | None], Callable[..., Answer]] = {
            ("GET", "experiments", False, None): self._list_experiments,
            ("POST", "experiments", False, None): self._create_experiment,
            ("POST", "runs", False, None): self._create_run,
            ("GET", "runs", True, None): self._get_run,
            ("POST", "runs", True, "terminate"): self._terminate,
            ("GET", "recurringruns", False, None): self._list_recurring,
            ("POST", "recurringruns", False, None): self._create_recurring,
            ("DELETE", "recurringruns", True, None): self._delete_recurring,
            ("POST", "recurringruns", True, "disable"): self._set_status,
            ("POST", "recurringruns", True, "enable"): self._set_status,
        }
        route = routes.get((method, match[1], match[2] is not None, match[3])) if match else None
        if route is None or match is None:
            return 404, {"message": "Not Found"}
        return route(query=query, body=body, of=match[2], verb=match[3])

    def _new_id(self, kind: str) -> str:
        self._ids += 1
        return f"{kind}-{self._ids}"

    def _namespaced(self, namespace: str | None) -> None:
        if self.multi_user and not namespace:
            raise Wrong("a namespace is needed in multi-user mode")
        if namespace and not self.multi_user:
            raise Wrong("in single-user mode nothing is filtered by namespace")

    def _page(self, query: dict[str, str], entries: list[dict[str, Any]], key: str) -> Answer:
        if not set(query) <= _LISTS:
            raise Wrong(f"query {query}")
        if "filter" in query:
            name = check_filter(query["filter"])
            entries = [entry for entry in entries if entry["display_name"] == name]
        first, size = int(query.get("page_token") or 0), int(query.get("page_size") or 10)
        page = {key: entries[first : first + size], "total_size": len(entries)}
        rest = {"next_page_token": str(first + size)} if first + size < len(entries) else {}
        return 200, {**page, **rest}

    def _list_experiments(self, query: dict[str, str], **_: Any) -> Answer:
        self._namespaced(query.get("namespace"))
        return self._page(query, self.experiments, "experiments")

    def _create_experiment(self, body: Any, **_: Any) -> Answer:
        check_message(body, "V2beta1Experiment", "experiment")
        self._namespaced(body.get("namespace"))
        self.experiments.append({**body, "experiment_id": self._new_id("experiment")})
        return 200, self.experiments[-1]

    def _known_experiment(self, body: dict[str, Any]) -> Answer | None:
        known = {each["experiment_id"] for each in self.experiments}
        if body.get("experiment_id") in known:
            return None
        return 404, {"message": f"Experiment {body.get('experiment_id')} not found.", "code": 5}

    def _create_run(self, body: Any, **_: Any) -> Answer:
        check_message(body, "V2beta1Run", "run")
        check_work(body, "run")
        run = {**body, "run_id": self._new_id("run"), "created_at": _now(), "state": "PENDING"}
        refused = self._known_experiment(body)
        if refused is None:
            self.runs.append(run)
        return refused or (200, run)

    def _get_run(self, of: str, **_: Any) -> Answer:
        found = [run for run in self.runs if run["run_id"] == of]
        if not found:
            return 404, {"message": f"Run {of} not found."}
        step = self.script[min(self._looks, len(self.script) - 1)]
        self._looks += 1
        found[0].update(step)
        check_message(found[0], "V2beta1Run", "script")
        self.looked.set()
        return 200, found[0]

    def _terminate(self, of: str, **_: Any) -> Answer:
        self.script = [{"state": "CANCELED"}]
        return 200, {}

    def _list_recurring(self, query: dict[str, str], **_: Any) -> Answer:
        self._namespaced(query.get("namespace"))
        return self._page(query, self.recurring, "recurringRuns")

    def _create_recurring(self, body: Any, **_: Any) -> Answer:
        check_message(body, "V2beta1RecurringRun", "recurring_run")
        check_work(body, "recurring_run")
        check_recurring(body, "recurring_run")
        own = {"recurring_run_id": self._new_id("schedule"), "created_at": _now()}
        made = {**body, **own, "max_concurrency": str(body["max_concurrency"])}
        made["status"] = f"{body['mode']}D"
        for periodic in filter(None, [body["trigger"].get("periodic_schedule")]):
            periodic["interval_second"] = str(periodic["interval_second"])
        refused = self._known_experiment(body)
        if refused is None:
            self.recurring.append(made)
        return refused or (200, made)

    def _delete_recurring(self, of: str, query: dict[str, str], **_: Any) -> Answer:
        self.recurring.remove(next(each for each in self.recurring if each["recurring_run_id"] == of))
        return 200, {}

    def _set_status(self, of: str, verb: str, **_: Any) -> Answer:
        found = next(each for each in self.recurring if each["recurring_run_id"] == of)
        found["status"] = f"{verb.upper()}D"
        found["mode"] = verb.upper()
        return 200, {}


def _now() -> str:
    return datetime.now(UTC).isoformat()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        status, content = self.server.api.answer(self.command, self.path, body, self.headers)  # type: ignore[attr-defined]
        text = content if isinstance(content, str) else json.dumps(content)
        self.send_response(status)
        kind = "text/html" if text.startswith("<") else "application/json"
        self.send_header(
            "Content-Type", kind if status != 200 or text.startswith(("<", "{")) else "text/plain"
        )
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    do_GET = do_POST = do_DELETE = _serve  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[PipelinesServer]:
    """Yields an API that listens on loopback while the block lasts."""
    api = PipelinesServer()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.api = api  # type: ignore[attr-defined]
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    api.url = f"{'https' if context else 'http'}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
