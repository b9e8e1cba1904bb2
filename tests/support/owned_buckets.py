"""An S3 service whose buckets have an owner each, and what stands for the kubelet that hands out secrets."""

import io
import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import boto3
import pytest
from geokfp.components._launch.as_processes import run_as_processes
from geokfp.components._launch.cluster import Placed
from geokfp.components._launch.pods import PodGroup
from moto import settings
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server

REGION = "us-east-1"
KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


@dataclass(frozen=True)
class Request:
    """What came to the service.

    Attributes:
        user: whose key it was signed with.
        bucket: the bucket.
        method: of HTTP.
        status: of the answer.
        body: what was sent.
    """

    user: str
    bucket: str
    method: str
    status: int
    body: bytes


@dataclass
class OwnedBuckets:
    """The service.

    Attributes:
        url: its address.
        keys: access key and secret of each user, as variables of its processes.
        requests: all that came since access is checked.
    """

    url: str
    keys: Mapping[str, Mapping[str, str]]
    requests: list[Request] = field(default_factory=list)

    def client(self, user: str) -> Any:
        """Returns a client that signs as a user."""
        key, secret = (self.keys[user][name] for name in KEYS)
        return _client("s3", self.url, key, secret)


@contextmanager
def owned_buckets(
    monkeypatch: pytest.MonkeyPatch, opens: Mapping[str, Sequence[str]]
) -> Iterator[OwnedBuckets]:
    """Runs the service; each user may do anything in its buckets and nothing elsewhere.

    Args:
        monkeypatch: makes the service check access until the test ends.
        opens: buckets of each user.
    """
    whole, log = DomainDispatcherApplication(create_backend_app), _Log()
    server = make_server("127.0.0.1", 0, log.around(whole), threaded=True, request_handler=MotoRequestHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        found = OwnedBuckets(url, _users(url, opens), log.requests)
        log.users.update({keys[KEYS[0]]: user for user, keys in found.keys.items()})
        log.requests.clear()
        monkeypatch.setattr(settings, "INITIAL_NO_AUTH_ACTION_COUNT", 0.0)
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class PodsWithSecrets:
    """A `PodRunner`: pods are processes here, with the secrets that their variables name."""

    def __init__(self, secrets: Mapping[str, Mapping[str, str]]) -> None:
        """Takes the secrets of the cluster by name."""
        self._secrets = secrets

    def __call__(self, placed: Sequence[Placed], **told: Callable[..., None]) -> None:
        """See `PodRunner`."""
        run_as_processes([self._with_secrets(one) for one in placed], **told)

    def _with_secrets(self, one: Placed) -> Placed:
        groups = tuple(self._group(group) for group in one.launch.groups)
        return replace(one, launch=replace(one.launch, groups=groups))

    def _group(self, group: PodGroup) -> PodGroup:
        env = tuple(self._variable(variable) for variable in group.settings.env)
        return replace(group, settings=replace(group.settings, env=env))

    def _variable(self, variable: Mapping[str, Any]) -> Mapping[str, Any]:
        if "valueFrom" not in variable:
            return variable
        reference = variable["valueFrom"]["secretKeyRef"]
        return {"name": variable["name"], "value": self._secrets[reference["name"]][reference["key"]]}


def from_secret(name: str) -> list[dict[str, Any]]:
    """Returns variables of a pod with the keys that a secret holds."""
    return [{"name": key, "valueFrom": {"secretKeyRef": {"name": name, "key": key}}} for key in KEYS]


class _Log:
    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.users: dict[str, str] = {}

    def around(self, application: Any) -> Callable[..., Iterable[bytes]]:
        def logged(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            environ["wsgi.input"] = io.BytesIO(body)
            key = re.search(r"Credential=([^/]+)/", environ.get("HTTP_AUTHORIZATION", ""))
            user = self.users.get(key[1], key[1]) if key else "nobody"
            bucket = environ["PATH_INFO"].split("/")[1]

            def answered(status: str, *rest: Any) -> Any:
                code = int(status.split()[0])
                self.requests.append(Request(user, bucket, environ["REQUEST_METHOD"], code, body))
                return start_response(status, *rest)

            return application(environ, answered)

        return logged


def _users(url: str, opens: Mapping[str, Sequence[str]]) -> dict[str, dict[str, str]]:
    iam, store, keys = _client("iam", url), _client("s3", url), {}
    for bucket in {bucket for buckets in opens.values() for bucket in buckets}:
        store.create_bucket(Bucket=bucket)
    for user, buckets in opens.items():
        own = [f"arn:aws:s3:::{bucket}{inside}" for bucket in buckets for inside in ("", "/*")]
        allowed = {"Effect": "Allow", "Action": "s3:*", "Resource": own}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
        iam.create_user(UserName=user)
        iam.put_user_policy(UserName=user, PolicyName="own", PolicyDocument=policy)
        made = iam.create_access_key(UserName=user)["AccessKey"]
        keys[user] = dict(zip(KEYS, (made["AccessKeyId"], made["SecretAccessKey"]), strict=True))
    return keys


def _client(service: str, url: str, key: str = "none", secret: str = "none") -> Any:
    return boto3.client(
        service,
        endpoint_url=url,
        region_name=REGION,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
    )
