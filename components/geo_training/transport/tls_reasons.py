"""Why a handshake failed, in plain words: OpenSSL's own name its source files and hide whose fault it is."""

import ssl
from pathlib import Path

_OTHER_AUTHORITY = frozenset((2, 7, 18, 19, 20, 21))
"""Codes of X509_verify_cert for chains that do not end at an authority of ours."""

_VERIFIED = {9: "is not yet valid", 10: "has expired"}

_REASONS = {
    "UNKNOWN_CA": "refuses our certificate: it is not of its authority, see ca.crt at both ends",
    "CERTIFICATE_EXPIRED": "refuses our certificate: it has expired there, or is not yet valid",
    "BAD_CERTIFICATE": "refuses our certificate",
    "CERTIFICATE_UNKNOWN": "refuses our certificate",
    "DECRYPT_ERROR": "refuses our certificate: its authority has the name of the other's but another key",
    "CERTIFICATE_REQUIRED": "wants a certificate of us",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "shows no certificate",
    "WRONG_VERSION_NUMBER": "does not speak TLS",
    "UNSUPPORTED_PROTOCOL": "does not speak TLS 1.3",
    "PROTOCOL_VERSION": "does not speak TLS 1.3",
    "HTTP_REQUEST": "speaks HTTP",
}
"""By what OpenSSL's reason ends with; alerts are the peer's word, the others our own finding."""


def handshake_reason(error: ssl.SSLError) -> str:
    """Returns what a peer did, or what is wrong with its certificate, as the end of a sentence about it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        code = error.verify_code
        wrong = "is not of an authority in ca.crt" if code in _OTHER_AUTHORITY else error.verify_message
        return f"its certificate is refused, it {_VERIFIED.get(code, wrong)}"
    reason = (error.reason or "").rpartition("ALERT_")[2]
    words = reason.replace("_", " ").lower() or error.strerror or str(error)
    return _REASONS.get(reason, f"TLS ended: {words}")


def own_reason(error: OSError) -> str:
    """Returns what is wrong with our own files, found by `check_files` or in a handshake with ourselves."""
    if isinstance(error, ssl.SSLCertVerificationError):
        is_others = error.verify_code in _OTHER_AUTHORITY
        return "tls.crt is not of an authority in ca.crt" if is_others else error.verify_message
    if isinstance(error, ssl.SSLError):
        return handshake_reason(error)
    return error.strerror or str(error)


def check_files(certificate: Path, key: Path, authority: Path) -> None:
    """Holds three files against what OpenSSL reads, which itself does not say which one is wrong.

    Raises:
        OSError: one cannot be read, is no PEM, or the key is of another certificate; names the file.
    """
    for path in (authority, certificate):
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
        except ssl.SSLError as error:
            raise OSError(f"{path.name} holds no certificate in PEM") from error
    lines = [line for line in key.read_bytes().splitlines() if line.startswith(b"-----BEGIN")]
    if not any(line.endswith(b"PRIVATE KEY-----") for line in lines):
        raise OSError(f"{key.name} holds no key in PEM")
    if b"ENCRYPTED" in key.read_bytes():
        raise OSError(f"{key.name} has a passphrase, allowed: a key without one")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(certificate, key, password="")
    except ssl.SSLError as error:
        raise OSError(f"{key.name} is not the key of the certificate in {certificate.name}") from error
