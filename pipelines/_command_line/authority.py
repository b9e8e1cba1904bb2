"""A certificate authority of a few nodes: keys on the curve P-256, certificates of X.509 (RFC 5280)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_CLOCKS_DIFFER = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Issues certificates of nodes.

    Args:
        days: for which it and all that it issues are valid.
        now: the moment from which they are.
    """

    def __init__(self, days: int, now: datetime | None = None) -> None:
        self._from = (now or datetime.now(UTC)) - _CLOCKS_DIFFER
        self._until = self._from + timedelta(days=days) + _CLOCKS_DIFFER
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named("geokfp test authority")
        usage = _usage(key_cert_sign=True, crl_sign=True)
        builder = self._builder(self._name, self._key.public_key())
        self._certificate = (
            builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def issued(self) -> Issued:
        """Its own certificate and key."""
        return _issued(self._certificate, self._key)

    def issue(self, name: str, uris: Iterable[str]) -> Issued:
        """Returns a certificate for both ends of connections.

        Args:
            name: shown to people, at most 64 characters of it.
            uris: the alternative names.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        ends = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        of_authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        names = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri) for uri in uris])
        certificate = (
            self._builder(_named(name), key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(digital_signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage(ends), critical=False)
            .add_extension(of_authority, critical=False)
            .add_extension(names, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return _issued(certificate, key)

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._from)
            .not_valid_after(self._until)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])


def _usage(**allowed: bool) -> x509.KeyUsage:
    usages = dict.fromkeys(
        (
            "digital_signature",
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "key_cert_sign",
            "crl_sign",
            "encipher_only",
            "decipher_only",
        ),
        False,
    )
    return x509.KeyUsage(**{**usages, **allowed})


def _issued(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Issued:
    encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    written = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain)
    return Issued(certificate.public_bytes(encoding), written)
