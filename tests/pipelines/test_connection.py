"""Reaching an installation: TLS, and answers that never come."""

import ipaddress
import re
import socket
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from geokfp.pipelines._command_line.errors import UsageError
from geokfp.pipelines._command_line.server import connection
from geokfp.pipelines._command_line.server.connection import Address, Unanswered, connect
from support.pipelines_server import serving


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificate and key of 127.0.0.1, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1)
    )
    builder = builder.add_extension(
        x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
    )
    signed = builder.sign(key, hashes.SHA256())
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(signed.public_bytes(serialization.Encoding.PEM) + secret)
    return path


def test_the_servers_certificate_is_held_against_those_given(certificate: Path, tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with serving(context) as api:
        made = connect(Address(host=api.url, ca_file=certificate))
        assert made.client.list_recurring_runs().recurring_runs == []
        with pytest.raises(Unanswered, match=f"{re.escape(api.url)}: asking for its health: .*certificate"):
            connect(Address(host=api.url))
        (tmp_path / "none.pem").write_text("no certificate")
        with pytest.raises(UsageError, match=r"--ca-file .*none.pem: allowed: certificates as PEM"):
            connect(Address(host=api.url, ca_file=tmp_path / "none.pem"))


def test_an_answer_that_does_not_come_is_waited_for_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as api, socket.create_server(("127.0.0.1", 0)) as silent:
        made = connect(Address(host=api.url))
        for name in ("HEALTH_S", "READ_S"):
            monkeypatch.setattr(connection, name, (0.05, 0.05))
        host = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(Unanswered, match=r"asking for its health: no answer in 0\.05 s$"):
            connect(Address(host=host))
        made.client.runs.api_client.configuration.host = host
        with (
            pytest.raises(Unanswered, match=r"looking: no answer in 0\.05 s$"),
            connection.asking("looking", made.address),
        ):
            made.client.get_run("one")


@pytest.mark.parametrize("option", ["token_file", "cookies_file"])
@pytest.mark.parametrize("content", [b"", b"\n", b"a\nb", b"a\x00b", b"\xff", "tök€n".encode()])
def test_what_no_header_can_hold_is_refused(option: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(content)
    says = f"^--{option.replace('_', '-')} {re.escape(str(path))}: allowed: one line of printable ASCII$"
    with pytest.raises(UsageError, match=says):
        Address(host="http://kubeflow.example.com", **{option: path})  # type: ignore[arg-type]
