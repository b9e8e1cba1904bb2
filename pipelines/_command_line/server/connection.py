"""A client of a Kubeflow Pipelines installation: address, credentials, deadlines, and errors in one line.

Knows nothing of runs and schedules.
"""

import json
import logging
import os
import re
import ssl
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..errors import ServerError, UsageError

HEALTH_S = (10, 20)
"""Seconds that connecting, and the wait for the first answer, may take: a silent host is told soon."""
READ_S = (10, 30)
"""The same of what only reads, which is tried again once."""
REQUEST_S = (10, 60)
"""The same of all else; kfp itself would wait without end."""
_TIMEOUT = re.compile(r"\((read|connect) timeout=([\d.]+)\)")
_LONGEST_MESSAGE = 400
_TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})
_HINTS = {
    401: "it does not know who asks; allowed: a valid --token-file or --cookies-file",
    403: "it does not allow this",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """Where an installation is, and who asks."""

    host: str
    """URL, with the path that leads to the API."""
    namespace: str = ""
    """Namespace of the runs; empty where all users share one."""
    token_file: Path | None = None
    """File of a bearer token, read anew for each request, as what writes it may replace it."""
    cookies_file: Path | None = None
    """File of a Cookie header's value."""
    ca_file: Path | None = None
    """Certificates that the server's is held against, in place of the public ones."""

    def __post_init__(self) -> None:
        if not _is_address(self.host):
            raise UsageError(
                f"--host {self.host!r}: allowed: a URL such as https://kubeflow.example.com/pipeline, "
                "without what the UI puts after # or ?"
            )
        for option, header in (("--token-file", self.token_file), ("--cookies-file", self.cookies_file)):
            if header is not None and not _is_header(_read(option, header)):
                raise UsageError(f"{option} {header}: allowed: one line of printable ASCII")
        if self.ca_file is not None:
            _read("--ca-file", self.ca_file)
            try:
                ssl.create_default_context(cafile=self.ca_file)
            except ssl.SSLError as error:
                raise UsageError(f"--ca-file {self.ca_file}: allowed: certificates as PEM") from error

    def run_link(self, run_id: str) -> str:
        """Returns where the UI shows a run."""
        return f"{self.host.rstrip('/')}/#/runs/details/{run_id}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Connection:
    """An installation that has answered."""

    address: Address
    """Where it is."""
    client: Any
    """Its `kfp.Client`, whose requests end as `READ_S` and `REQUEST_S` say."""


class Unanswered(ServerError):
    """The installation did not answer, or not now: to ask again may help."""


def connect(address: Address) -> Connection:
    """Makes a client, and sees that the address is that of an installation.

    Raises:
        ServerError: nothing answers there, it is something else, or it refuses.
        UsageError: the installation has several users and no namespace is given.
    """
    from kfp import Client

    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)  # it tells each try on stderr
    with asking("asking for its health", address):
        answer = _health(address)
    if answer.multi_user is None:
        raise ServerError(
            f"{address.host}: answers, but not as the API of Kubeflow Pipelines; it may lie under another "
            "path, such as /pipeline, or ask for a login: --token-file, --cookies-file"
        )
    if answer.multi_user and not address.namespace:
        raise UsageError(f"{address.host}: has several users; allowed: with --namespace NAME of your profile")
    with warnings.catch_warnings(), asking("connecting", address):
        warnings.simplefilter("ignore")  # that it is for version 2 and later
        client = Client(host=address.host, **_credentials(address), ssl_ca_cert=_ca(address))
    _give_deadlines(client.runs.api_client)
    return Connection(address=address, client=client)


@contextmanager
def asking(what: str, address: Address) -> Iterator[None]:
    """Names what is asked, and the cause, in one line when a request in the block fails.

    Raises:
        Unanswered: there was no answer, or one that says to come later.
        ServerError: the installation refuses.
    """
    from kfp_server_api import ApiException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except ApiException as error:
        kind = Unanswered if error.status in _TRANSIENT else ServerError
        raise kind(f"{address.host}: {what}: {_refusal(error)}") from error
    except HTTPError as error:
        raise Unanswered(f"{address.host}: {what}: {_no_answer(error)}") from error


@contextmanager
def quiet() -> Iterator[None]:
    """Drops what kfp prints: links, which the command shows itself."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
        yield


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port or an address of IPv6 that is none
        return False
    return whole and url.isprintable() and not any(mark in url for mark in " #?")


def _read(option: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{option} {path}: {error.strerror}; allowed: a file that can be read") from error


def _is_header(content: bytes) -> bool:
    text = content.strip()
    return text.isascii() and text.decode("ascii").isprintable() and bool(text)


def _refusal(error: Any) -> str:
    said = _message(error.body)
    if not error.status:
        return _one_line(str(error.reason))
    hint = _HINTS.get(error.status)
    return (
        f"status {error.status}: " + ": ".join(filter(None, [hint, said]))
        if hint or said
        else (f"status {error.status} {error.reason}")
    )


def _message(body: str | None) -> str:
    """Returns what the API says: a JSON object with the cause after a chain of where it came by."""
    try:
        document = json.loads(body or "")
    except ValueError:
        return ""
    if not isinstance(document, dict):
        return ""
    text = str(document.get("message") or document.get("error_message") or document.get("error") or "")
    return _one_line(text.split("\n")[0])


def _no_answer(error: Exception) -> str:
    cause = getattr(error, "reason", None) or error
    if timeout := _TIMEOUT.search(str(cause)):
        return f"{'no answer' if timeout[1] == 'read' else 'cannot be connected to'} in {timeout[2]} s"
    text = re.sub(r"^.*?(?:Connection\w*|Pool|\w+Error)\([^)]*\): ", "", str(cause))
    return _one_line(re.sub(r"^.*\[Errno -?\d+\] ", "", text).rstrip(")")) or type(cause).__name__


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_MESSAGE else f"{line[:_LONGEST_MESSAGE]} ..."


def _credentials(address: Address) -> dict[str, Any]:
    from kfp.client.set_volume_credentials import ServiceAccountTokenVolumeCredentials

    given: dict[str, Any] = {}
    if address.token_file is not None:
        given["credentials"] = ServiceAccountTokenVolumeCredentials(str(address.token_file))
    if address.cookies_file is not None:
        given["cookies"] = address.cookies_file.read_text(encoding="utf-8").strip()
    if address.namespace:
        given["namespace"] = address.namespace
    return given


def _ca(address: Address) -> str | None:
    return None if address.ca_file is None else str(address.ca_file)


def _health(address: Address) -> Any:
    """Asks as `kfp.Client` would when it is made, which asks again for half a minute when it is refused."""
    import kfp_server_api as api
    from urllib3 import Retry

    configuration = api.Configuration(host=address.host.rstrip("/"))
    configuration.retries = Retry(total=3, connect=1, read=0)
    configuration.ssl_ca_cert = _ca(address)
    given = _credentials(address)
    if "credentials" in given:
        configuration.api_key["authorization"] = "read from the file"
        configuration.api_key_prefix["authorization"] = "Bearer"
        configuration.refresh_api_key_hook = given["credentials"].refresh_api_key_hook
    client = api.ApiClient(configuration, cookie=given.get("cookies"))
    return api.HealthzServiceApi(client).healthz_service_get_healthz(_request_timeout=HEALTH_S)


def _give_deadlines(api_client: Any) -> None:
    from urllib3 import Retry

    rest = api_client.rest_client
    send = rest.request

    def request(method: str, *arguments: Any, **options: Any) -> Any:
        usual = READ_S if method == "GET" else REQUEST_S
        options["_request_timeout"] = options.get("_request_timeout") or usual
        return send(method, *arguments, **options)

    rest.request = request
    rest.pool_manager.connection_pool_kw["retries"] = Retry(total=3, connect=1, read=1)
