"""What can go wrong between nodes: ours, the peer's, the link's.

Errors::

    GeoError
    ├── UsageError            ours: the engine was called in a way that it does not allow
    ├── KeepingError          this machine's: what it keeps cannot be written or read
    ├── NotFiniteError        the model's: values that a lossy compression cannot carry
    ├── PeerError             the peer's: it sent what it must not send
    │   ├── FrameError        bytes that are no message: magic, version, lengths, head, buffers
    │   ├── ProtocolError     a well-formed message that does not fit the rounds or the topology
    │   └── RefusedError      the peer refused what we sent, and says why
    └── LinkError             nobody's: the bytes do not come through
        ├── LinkClosedError   the connection cannot be made, or ended
        │   └── IdentityError it ended as the peer has not shown that it is a node of ours
        └── DeadlineError     a wait took too long; says for what
            └── SilenceError  a peer that should at least say that it lives said nothing

Bad options of the user are no part of this tree: they are `InputError`, raised before anything starts.
"""


class GeoError(Exception):
    """Root of the tree; the message is one line."""


class UsageError(GeoError):
    """The engine was called in a way that it does not allow: a fault of this code."""


class KeepingError(GeoError):
    """What a node keeps on disk cannot be written or read; the message says why."""


class NotFiniteError(GeoError):
    """Values to send are not finite or too large for a lossy compression; the message names the unit."""


class PeerError(GeoError):
    """The peer sent what it must not send; its connection is closed, the others live on."""


class FrameError(PeerError):
    """Bytes that are no message."""


class ProtocolError(PeerError):
    """A well-formed message that does not fit the rounds or the topology."""


class RefusedError(PeerError):
    """The peer refused what we sent; the message is the peer's reason."""


class LinkError(GeoError):
    """The bytes do not come through; trying again may help."""


class LinkClosedError(LinkError):
    """The connection cannot be made, or ended."""


class IdentityError(LinkClosedError):
    """The peer has not shown that it is a node of ours: by a certificate of another authority, or by none."""


class DeadlineError(LinkError):
    """A wait took too long; the message says for what."""


class SilenceError(DeadlineError):
    """A peer said nothing for too long: it is dead, or the link to it is cut."""
