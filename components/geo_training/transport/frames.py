"""Frames over a stream of bytes: deadlines, counts, one sender a time. Knows nothing of sockets."""

import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from ..errors import DeadlineError, IdentityError, LinkClosedError, SilenceError
from ..wire.messages import Limits, Message, encode, read_message
from ..wire.units import RoundId
from .base import Address, BeforeValues, Traffic

FRAME_TIMEOUT_S = 60.0
SLOWEST_BYTES_PER_S = 8192.0
"""A frame that has begun must have come in `FRAME_TIMEOUT_S`, and what it lasts at this rate."""


class UnknownPeer(OSError):
    """The peer does not show that it is a node of ours; the message is the end of a sentence about it."""


class Stream(Protocol):
    """Bytes both ways; one thread reads while another sends. `OSError` says that it has ended."""

    @property
    def identity(self) -> frozenset[str] | None:
        """See `Connection`."""

    def recv_into(self, memory: memoryview) -> int:
        """Fills the beginning of `memory` and returns how much, 0 at the end of the stream.

        Raises:
            BlockingIOError: nothing came within a moment, or too little to tell what it is.
            UnknownPeer: the peer does not show who it is.
            OSError: the stream has ended.
        """

    def send(self, pieces: Sequence[memoryview]) -> int:
        """Sends the beginning of some pieces and returns how many bytes; without any progress not at all.

        Raises:
            BlockingIOError: the peer took nothing within a moment; the same pieces must be given again.
            OSError: the stream has ended.
        """

    def close(self) -> None:
        """Ends it and wakes who waits in it; may be called twice."""


class FramedConnection:
    """See `Connection`.

    Args:
        stream: what carries the bytes.
        peer: whom errors name.
        limits: what a received frame may hold.
    """

    def __init__(self, stream: Stream, peer: str, limits: Limits) -> None:
        self.limits = limits
        self.reached: Address | None = None
        self.traffic = Traffic()
        self.silence_s: float | None = None
        self.before_values: BeforeValues | None = None
        self._stream = stream
        self.peer = peer
        self._send_lock = threading.Lock()

    @property
    def identity(self) -> frozenset[str] | None:
        """See `Connection`."""
        return self._stream.identity

    def send(self, message: Message) -> None:
        """See `Connection`."""
        pieces = [memoryview(piece) for piece in encode(message)]
        num_bytes = sum(piece.nbytes for piece in pieces)
        with self._send_lock:
            # Counted first: the peer may have the message, and ask for the count, before this thread goes on.
            self.traffic.sent_bytes += num_bytes
            self._send_all(pieces)

    def receive(self, timeout_s: float | None = None) -> Message:
        """See `Connection`."""
        reading = _Reading(self._stream, self.peer, timeout_s, self.silence_s)
        message, num_bytes = read_message(
            reading.read_into, self.limits, partial(reading.wait_for_room, self.before_values)
        )
        self.traffic.came(num_bytes, reading.began, time.monotonic())
        return message

    def close(self) -> None:
        """See `Connection`."""
        self._stream.close()

    def _send_all(self, pieces: list[memoryview]) -> None:
        deadline = time.monotonic() + FRAME_TIMEOUT_S
        while pieces:
            try:
                count = self._stream.send(pieces)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise DeadlineError(f"{self.peer} took no bytes for {FRAME_TIMEOUT_S:.0f} s") from None
                continue
            except OSError as error:
                raise _closed(self.peer, error) from error
            deadline = time.monotonic() + FRAME_TIMEOUT_S
            while pieces and count >= pieces[0].nbytes:
                count -= pieces.pop(0).nbytes
            if count:
                pieces[0] = pieces[0][count:]


class _Reading:
    """The reading of one frame. Its time is asked after every piece: some peers send a byte now and then."""

    def __init__(self, stream: Stream, peer: str, timeout_s: float | None, silence_s: float | None) -> None:
        self._stream, self._peer, self._silence_s = stream, peer, silence_s
        self._heard = time.monotonic()
        self._deadline = None if timeout_s is None else self._heard + timeout_s
        self._whole: float | None = None
        self.began = 0.0

    def read_into(self, memory: memoryview) -> None:
        if self._whole is not None:
            self._whole += memory.nbytes / SLOWEST_BYTES_PER_S
        while memory.nbytes:
            try:
                count = self._stream.recv_into(memory)
            except BlockingIOError:
                self._check_silence()
                self._check_time()
                continue
            except OSError as error:
                raise _closed(self._peer, error) from error
            if count == 0:
                raise LinkClosedError(f"{self._peer} closed the connection")
            if self._whole is None:
                self.began = time.monotonic()
                self._whole = self.began + FRAME_TIMEOUT_S
            memory, self._heard = memory[count:], time.monotonic()
            if memory.nbytes:
                self._check_time()

    def wait_for_room(self, before: BeforeValues | None, round_id: RoundId, num_bytes: int) -> None:
        if before is None:
            return
        waited_s = before(round_id, num_bytes)
        if not waited_s:
            return
        self._heard, self.began = time.monotonic(), self.began + waited_s  # we did not listen
        if self._whole is not None:
            self._whole += waited_s
        if self._deadline is not None:
            self._deadline += waited_s

    def _check_silence(self) -> None:
        if self._silence_s is not None and time.monotonic() - self._heard > self._silence_s:
            raise SilenceError(f"{self._peer} was silent for {self._silence_s:g} s")

    def _check_time(self) -> None:
        now = time.monotonic()
        if any(end is not None and now > end for end in (self._deadline, self._whole)):
            raise DeadlineError(f"no whole message from {self._peer} in time")


def _closed(peer: str, error: OSError) -> LinkClosedError:
    kind = IdentityError if isinstance(error, UnknownPeer) else LinkClosedError
    return kind(f"connection to {peer}: {error.strerror or error}")
