"""A real API server (Kubernetes 1.20.2) with RBAC, etcd, and the controllers of Jobs and of garbage.

All on loopback, and without nodes: pods get no further than the test takes them. The programs are built from
Debian's source packages once and kept outside of the checkout, by a checksum of how they are built.
"""

import contextlib
import datetime
import hashlib
import ipaddress
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from geokfp.components._launch.api_errors import ApiError
from geokfp.components._launch.cluster import Cluster
from geokfp.components._launch.kubernetes import ApiServer

BUILD = Path(__file__).with_name("build_kubernetes.sh")
BUILD_S = 3600
START_S = 120.0
ADMINISTRATOR = "administrator"


def programs() -> Path:
    """Returns the folder of the programs; builds them where they are not there yet.

    Raises:
        subprocess.CalledProcessError: the build failed; what it said comes before.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "geokfp-tests"
    folder = cache / f"kubernetes-{hashlib.sha256(BUILD.read_bytes()).hexdigest()[:12]}"
    if not folder.is_dir():
        if os.geteuid() != 0 or not shutil.which("apt-get"):
            raise RuntimeError(f"{folder} is not there, and building it needs root and apt-get")
        subprocess.run(["bash", str(BUILD), str(folder)], check=True, timeout=BUILD_S)
    return folder


@dataclass(frozen=True)
class RealCluster:
    """The server."""

    url: str
    authority: Path
    folder: Path
    accounts: dict[str, str]
    """Tokens by user."""

    def cluster(self, user: str, name: str = "") -> Cluster:
        """Returns the cluster as a user sees it; `system:serviceaccount:NAMESPACE:NAME` is an account."""
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "real",
                    "cluster": {"server": self.url, "certificate-authority": str(self.authority)},
                }
            ],
            "users": [{"name": "user", "user": {"token": self.accounts[user]}}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": "user"}}],
            "current-context": "real",
        }
        path = self.folder / f"{user.replace(':', '-')}.kubeconfig"
        path.write_text(json.dumps(document), encoding="utf-8")
        return Cluster(name=name, kubeconfig=str(path))

    def api(self, user: str = ADMINISTRATOR) -> ApiServer:
        return ApiServer(self.cluster(user), request_s=30)


@contextlib.contextmanager
def real_cluster(folder: Path, users: list[str]) -> Iterator[RealCluster]:
    """Runs etcd, the API server and the controllers until the block ends.

    Args:
        folder: for data, certificates and logs.
        users: who gets a token beside the administrator.
    """
    built = programs()
    etcd_port, peer_port, port = _free_ports(3)
    write_certificates(folder)
    accounts = {user: f"token-{number}" for number, user in enumerate([ADMINISTRATOR, *users])}
    rows = [
        f"{token},{user},{user}" + (',"system:masters"' if user == ADMINISTRATOR else "")
        for user, token in accounts.items()
    ]
    (folder / "tokens.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    cluster = RealCluster(f"https://127.0.0.1:{port}", folder / "authority.crt", folder, accounts)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_running(_etcd(built, folder, etcd_port, peer_port), folder / "etcd.log"))
        server = stack.enter_context(
            _running(_api_server(built, folder, etcd_port, port), folder / "api.log")
        )
        api = cluster.api()
        wait_for(lambda: _answers(api, server), "the API server", START_S)
        controllers = _controllers(built, folder, cluster.cluster(ADMINISTRATOR).kubeconfig)
        stack.enter_context(_running(controllers, folder / "controllers.log"))
        yield cluster
        api.close()


def wait_for(condition: Callable[[], Any], what: str, within_s: float = 60.0) -> Any:
    """Returns what a condition gives once that is true."""
    until = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < until, f"waited {within_s:g} s for {what}"
        time.sleep(0.05)
    return found


def _answers(api: ApiServer, process: "subprocess.Popen[bytes]") -> bool:
    assert process.poll() is None, "the API server has ended"
    try:
        api.request("GET", "/api/v1/namespaces/default")
    except ApiError:
        return False
    return True


def _etcd(built: Path, folder: Path, port: int, peer_port: int) -> list[str]:
    return [
        str(built / "etcd"),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls=http://127.0.0.1:{port}",
        f"--advertise-client-urls=http://127.0.0.1:{port}",
        f"--listen-peer-urls=http://127.0.0.1:{peer_port}",
        "--unsafe-no-fsync",
    ]


def _api_server(built: Path, folder: Path, etcd_port: int, port: int) -> list[str]:
    return [
        str(built / "kube-apiserver"),
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={folder / 'server.crt'}",
        f"--tls-private-key-file={folder / 'server.key'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={folder / 'server.key'}",
        f"--service-account-key-file={folder / 'server.key'}",
        "--service-cluster-ip-range=10.96.0.0/24",
        "--endpoint-reconciler-type=none",
        "--disable-admission-plugins=ServiceAccount",  # no controller makes the accounts' tokens here
    ]


def _controllers(built: Path, folder: Path, kubeconfig: str) -> list[str]:
    return [
        str(built / "kube-controller-manager"),
        f"--kubeconfig={kubeconfig}",
        "--controllers=garbagecollector,job",
        "--leader-elect=false",
        "--port=0",
        "--secure-port=0",
        f"--cert-dir={folder}",
    ]


@contextlib.contextmanager
def _running(command: list[str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            yield process
        finally:
            process.kill()


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in held]


def write_certificates(folder: Path) -> None:
    """Writes an authority, and the server's certificate and key."""
    authority_key, server_key = (rsa.generate_private_key(65537, 2048) for _ in range(2))
    authority = _certificate("authority", authority_key, "authority", authority_key, is_authority=True)
    server = _certificate("server", server_key, "authority", authority_key, is_authority=False)
    for name, found in (("authority.crt", authority), ("server.crt", server)):
        (folder / name).write_bytes(found.public_bytes(serialization.Encoding.PEM))
    (folder / "server.key").write_bytes(
        server_key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )


def _certificate(
    name: str, key: rsa.RSAPrivateKey, issuer: str, issuer_key: rsa.RSAPrivateKey, *, is_authority: bool
) -> x509.Certificate:
    def named(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(named(name))
        .issuer_name(named(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
    )
    return builder.sign(issuer_key, hashes.SHA256())
