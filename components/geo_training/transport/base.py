"""What a transport is: connections that carry whole messages and count their bytes. Knows no rounds."""

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from ..._files import InputError
from ..wire.messages import Limits, Message
from ..wire.units import RoundId


@dataclass(frozen=True, slots=True)
class Address:
    """Where a node listens."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, option: str) -> "Address":
        """Reads `host:port`, where the host is a name, an IPv4 address, or an IPv6 address in brackets.

        Raises:
            InputError: it is not that; names `option`.
        """
        host, separator, port = text.rpartition(":") if isinstance(text, str) else ("", "", "")
        if not separator or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
            raise InputError(f"{option} is {text!r}, allowed: host:port with a port from 1 to 65535")
        return cls(host[1:-1] if host[0] + host[-1] == "[]" else host, int(port))

    @property
    def is_loopback(self) -> bool:
        """Whether nothing outside this machine can be meant; of a name only `localhost`."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host.lower() == "localhost"

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(slots=True)
class Traffic:
    """Bytes of all frames of a link, headers included, each way; written by the link's own threads only."""

    sent_bytes: int = 0
    received_bytes: int = 0

    def came(self, num_bytes: int, began: float, ended: float) -> None:  # noqa: ARG002
        """Counts a frame that came in.

        Args:
            num_bytes: its length.
            began: when its first byte was there, in seconds on a clock that never goes back.
            ended: when its last one was.
        """
        self.received_bytes += num_bytes

    def add(self, other: "Traffic") -> None:
        """Adds the counts of another connection of the same link."""
        self.sent_bytes += other.sent_bytes
        self.received_bytes += other.received_bytes


BeforeValues: TypeAlias = Callable[[RoundId, int], float]
"""Takes a round and the bytes of values for it; returns for how many seconds it has waited before them."""


class Connection(Protocol):
    """One connection; any thread may send, one thread receives."""

    peer: str
    """Who is at the other end, for errors and logs: its address."""

    reached: Address | None
    """Which of the addresses behind the peer's name was dialled; None where the peer has dialled."""

    limits: Limits
    """What a received frame may hold: little until the peer has joined, or we have been welcomed."""

    traffic: Traffic
    """Where the connection counts; may be replaced by the link's own before a message after `Join`."""

    silence_s: float | None
    """Seconds without a byte after which `receive` says that the peer is silent; None for never."""

    before_values: BeforeValues | None
    """Called before values of a round are read."""

    @property
    def identity(self) -> frozenset[str] | None:
        """Nodes that the peer has proved to be, none before its first message; None where none can."""

    def send(self, message: Message) -> None:
        """Sends one message whole.

        Raises:
            LinkError: the connection ended, or the peer takes no bytes for too long.
        """

    def receive(self, timeout_s: float | None = None) -> Message:
        """Waits for the next message.

        Args:
            timeout_s: how long to wait; None for as long as the connection lives. Once a frame has begun, it
                must arrive within the transport's own limit too.

        Raises:
            FrameError: the bytes are no message.
            SilenceError: no byte came for `silence_s`, while this waited for one.
            IdentityError: the peer does not show who it is.
            LinkError: the connection ended, or the time is over.
        """

    def close(self) -> None:
        """Ends the connection and wakes who waits in it; may be called twice."""


class Listener(Protocol):
    """Accepts connections at one address."""

    address: Address
    """Where it listens, with the port that it got."""

    def accept(self, timeout_s: float) -> Connection | None:
        """Returns the next connection, None when none came in time.

        Raises:
            LinkClosedError: the listener was closed.
        """

    def close(self) -> None:
        """Stops listening and wakes who waits in `accept`; connections that were accepted live on."""


class Transport(Protocol):
    """Makes connections."""

    def connect(self, address: Address, timeout_s: float) -> Connection:
        """Connects, trying once.

        Raises:
            LinkError: nobody listens there, or no answer came in time.
        """

    def listen(self, address: Address) -> Listener:
        """Listens; port 0 takes any free one.

        Raises:
            LinkClosedError: the address cannot be had.
        """
