"""Requests to one API server; the only module that holds a Kubernetes client.

Objects go in and out as the documents that the server writes, whatever their kind. Knows nothing of what they
mean, and tries nothing again but once with new credentials after a 401.
"""

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import urllib3
from kubernetes import config
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject

from .._files import InputError
from .api_errors import NO_ANSWER, ApiError
from .cluster import Cluster
from .object_paths import kind_path
from .ready_request import Endpoint, ReadyRequest

CONNECT_S = 10.0
"""For a connection to be made."""
POOL_SIZE = 32
"""Connections kept for later requests; more may be open."""
_JSON = "application/json"
_MERGE_PATCH = "application/merge-patch+json"


class ApiServer:
    """One cluster's API server."""

    def __init__(self, cluster: Cluster, *, request_s: float) -> None:
        """Reads the credentials; sends nothing.

        Args:
            cluster: which one.
            request_s: seconds for an answer.

        Raises:
            InputError: the file, the context or the service account is not there.
        """
        self._cluster = cluster
        self._request_s = request_s
        self._lock = threading.Lock()
        self._streams: set[urllib3.BaseHTTPResponse] = set()
        self._closed = False
        self._configuration, self._pool = _connected(cluster)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Sends one request.

        Args:
            method: `GET`, `POST`, `PATCH` (a merge patch) or `DELETE`.
            path: from the root, such as `/api/v1/namespaces/a/pods`.
            query: parameters.
            body: a document.

        Returns:
            The answer's document.

        Raises:
            ApiError: no answer, or none that is a success.
        """
        with _answer_errors():
            answer = self._send(method, path, query, body, read_s=self._request_s)
            return dict(json.loads(answer.data))

    def text(self, path: str, *, query: Mapping[str, str] | None = None) -> str:
        """Returns the text at a path, such as a log; raises as `request` does."""
        with _answer_errors():
            answer = self._send("GET", path, query, None, read_s=self._request_s)
            return answer.data.decode("utf-8", "replace")

    def lines(self, path: str, *, query: Mapping[str, str], silent_s: float) -> Iterator[bytes]:
        """Yields lines, without their ends, for as long as the server sends and `close` is not called.

        Args:
            path: of a watch, or of a log that is followed.
            query: parameters.
            silent_s: seconds without a byte after which the connection is given up.

        Raises:
            ApiError: no answer, none that is a success, or a connection that broke.
        """
        with _answer_errors():
            answer = self._send("GET", path, query, None, read_s=silent_s)
            with self._open_stream(answer):
                pending = b""
                for data in answer.stream(1 << 16, decode_content=False):
                    *lines, pending = (pending + data).split(b"\n")
                    yield from lines
                if pending:
                    yield pending

    def ready_request(self, method: str, path: str, body: Mapping[str, Any]) -> ReadyRequest:
        """Returns a request that is complete but for its sending, over a connection of its own."""
        headers = {**self._headers(_JSON), "Connection": "close"}
        return ReadyRequest(_endpoint(self._configuration), method, path, headers, json.dumps(body).encode())

    def close(self) -> None:
        """Ends all streams, also those that other threads read; later ones end at once."""
        with self._lock:
            self._closed = True
            streams = list(self._streams)
        for stream in streams:
            with contextlib.suppress(ValueError, RuntimeError, OSError):  # it has ended meanwhile
                stream.shutdown()
        self._pool.clear()

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Mapping[str, Any] | None,
        *,
        read_s: float,
    ) -> urllib3.BaseHTTPResponse:
        answer = self._send_once(method, path, query, body, read_s)
        if answer.status == 401:
            answer.drain_conn()
            self._configuration, self._pool = _connected(self._cluster)
            answer = self._send_once(method, path, query, body, read_s)
        if not 200 <= answer.status <= 299:
            raise _refusal(answer)
        return answer

    def _send_once(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Mapping[str, Any] | None,
        read_s: float,
    ) -> urllib3.BaseHTTPResponse:
        target = f"{self._configuration.host.rstrip('/')}{path}"
        if query:
            target += "?" + urlencode(query)
        answer = self._pool.request(
            method,
            target,
            body=None if body is None else json.dumps(body).encode(),
            headers=self._headers(_MERGE_PATCH if method == "PATCH" else _JSON),
            timeout=urllib3.Timeout(connect=min(CONNECT_S, self._request_s), read=read_s),
            retries=False,
            preload_content=False,
        )
        assert isinstance(answer, urllib3.BaseHTTPResponse)
        return answer

    def _headers(self, content: str) -> dict[str, str]:
        headers = {"Accept": _JSON, "Content-Type": content, "User-Agent": "geokfp"}
        if token := self._configuration.get_api_key_with_prefix("authorization"):
            headers["Authorization"] = token
        return headers

    @contextlib.contextmanager
    def _open_stream(self, answer: urllib3.BaseHTTPResponse) -> Iterator[None]:
        with self._lock:
            self._streams.add(answer)
            closed = self._closed
        try:
            if closed:
                raise ApiError(NO_ANSWER, "", "the connection was closed")
            yield
        finally:
            with self._lock:
                self._streams.discard(answer)
            answer.close()


def unreachable(cluster: Cluster, namespace: str, timeout_s: float) -> str:
    """Returns "" when a cluster's API server takes this account's requests, else in one line why not.

    Args:
        cluster: which one.
        namespace: where pods are to run.
        timeout_s: seconds for the answer.

    Raises:
        InputError: the file, the context or the service account is not there.
    """
    api = ApiServer(cluster, request_s=timeout_s)
    try:
        api.request("GET", kind_path("v1", "Pod", namespace), query={"limit": "1"})
    except ApiError as error:
        return f"{cluster}: {error}"
    return ""


def _connected(cluster: Cluster) -> tuple[Configuration, Any]:
    """Reads the credentials anew; returns the settings and their pool of connections."""
    settings = type.__call__(Configuration)
    try:
        if cluster.in_cluster:
            config.load_incluster_config(settings)
        else:
            config.load_kube_config(
                cluster.kubeconfig or None, cluster.context or None, settings, persist_config=False
            )
    except (config.ConfigException, OSError) as error:
        raise InputError(f"{cluster}: {' '.join(str(error).split())}") from error
    settings.connection_pool_maxsize = POOL_SIZE
    settings.retries = False
    return settings, RESTClientObject(settings).pool_manager


def _endpoint(settings: Configuration) -> Endpoint:
    return Endpoint(
        url=settings.host,
        authority=settings.ssl_ca_cert or "",
        certificate=settings.cert_file or "",
        key=settings.key_file or "",
        verified=bool(settings.verify_ssl),
        server_name=getattr(settings, "tls_server_name", None) or "",
    )


@contextlib.contextmanager
def _answer_errors() -> Iterator[None]:
    try:
        yield
    except (urllib3.exceptions.HTTPError, OSError) as error:
        text = " ".join(str(error).split())
        raise ApiError(
            NO_ANSWER, type(error).__name__, f"no answer ({type(error).__name__}: {text})"
        ) from error
    except json.JSONDecodeError as error:
        raise ApiError(NO_ANSWER, "", f"the answer is not JSON ({error})") from error


def _refusal(answer: urllib3.BaseHTTPResponse) -> ApiError:
    text = answer.data.decode("utf-8", "replace")
    try:
        document = json.loads(text)
    except json.JSONDecodeError:
        document = {}
    if not isinstance(document, dict):
        document = {}
    wait = answer.headers.get("Retry-After", "")
    return ApiError(
        answer.status,
        str(document.get("reason") or answer.reason or ""),
        " ".join(str(document.get("message") or text).split())[:1000],
        retry_after_s=float(wait) if wait.isdigit() else None,
    )
