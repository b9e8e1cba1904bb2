"""What makes a datagram known as the peer's: a check of its bytes, and secrecy where the link has it.

    link      8 bytes  which channel it belongs to
    sequence  8 bytes  its number on the channel, each way, from 0
    body               the frame, sealed; 16 bytes more than it

Both ends have the key of `Beside`, which travels over the connection that was joined. Knows no sockets.
"""

import hashlib
import hmac
import struct
from importlib.util import find_spec
from typing import Protocol

from ..._files import InputError
from ..wire.block_messages import LINK_BYTES

UP, DOWN = b"up", b"down"
SEAL_BYTES = 16
HEADER = struct.Struct(f"<{LINK_BYTES}sQ")


class Sealing(Protocol):
    """Seals what goes one way; any thread may call it."""

    def seal(self, header: bytes, frame: bytes) -> bytes:
        """Returns the body of a datagram; a header is used once."""

    def unseal(self, header: bytes, body: bytes) -> bytes | None:
        """Returns the frame, None where the body was not sealed with this key and header."""


class Authenticated:
    """Plain frames with a keyed BLAKE2 (RFC 7693): foreign and damaged datagrams are known as such.

    Args:
        key: that both ends have.
        way: `UP` or `DOWN`, so that what one end has sent is never taken for the other's.
    """

    def __init__(self, key: bytes, way: bytes) -> None:
        self._key = key
        self._way = way

    def seal(self, header: bytes, frame: bytes) -> bytes:
        """See `Sealing`."""
        return self._tag(header, frame) + frame

    def unseal(self, header: bytes, body: bytes) -> bytes | None:
        """See `Sealing`."""
        tag, frame = body[:SEAL_BYTES], body[SEAL_BYTES:]
        return frame if hmac.compare_digest(tag, self._tag(header, frame)) else None

    def _tag(self, header: bytes, frame: bytes) -> bytes:
        digest = hashlib.blake2s(header, key=self._key, digest_size=SEAL_BYTES, person=self._way)
        digest.update(frame)
        return digest.digest()


class Encrypted:
    """ChaCha20-Poly1305 (RFC 8439), with a key of its own for each way and the header as nonce.

    Args:
        key: that both ends have, from a connection that is encrypted.
        way: `UP` or `DOWN`.
    """

    def __init__(self, key: bytes, way: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

        own = hashlib.blake2s(b"datagrams", key=key, person=way).digest()
        self._cipher = ChaCha20Poly1305(own)

    def seal(self, header: bytes, frame: bytes) -> bytes:
        """See `Sealing`."""
        return self._cipher.encrypt(_nonce(header), frame, header)

    def unseal(self, header: bytes, body: bytes) -> bytes | None:
        """See `Sealing`."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(_nonce(header), body, header)
        except (InvalidTag, ValueError):
            return None


def sealing(key: bytes, way: bytes, *, secret: bool) -> Sealing:
    """Returns what seals one way of a channel.

    Args:
        key: that both ends have.
        way: `UP` or `DOWN`.
        secret: whether the connection beside it is encrypted.
    """
    return Encrypted(key, way) if secret else Authenticated(key, way)


def check_secret() -> None:
    """Called where datagrams will be sent beside an encrypted connection.

    Raises:
        InputError: they cannot be encrypted on this machine.
    """
    if find_spec("cryptography") is None:
        raise InputError(
            "transmission dgt over TLS needs the package cryptography, which is missing; allowed: with it, "
            "or without dgt"
        )


def _nonce(header: bytes) -> bytes:
    """Returns the 12 bytes of a nonce: never twice the same under one key."""
    return header[LINK_BYTES - 4 :]
