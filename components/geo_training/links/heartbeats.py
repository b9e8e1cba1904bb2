"""Words that say no more than that a process lives, sent by a thread of its own while others compute.

Heard of is who has sent any byte: a connection that brings nothing for its `silence_s` is as good as ended,
though TCP would not notice a cut link for minutes.
"""

import threading
from dataclasses import dataclass

from ..transport.base import Connection
from ..transport.outbox import Outbox
from ..wire.messages import Heartbeat

BEATS = 4.0
"""Heartbeats in the time after which a silent peer is given up: some may be late."""


@dataclass(frozen=True, slots=True)
class Silence:
    """How long a peer may say nothing.

    Attributes:
        seconds: without a byte after which its connection is closed; None for as long as it likes.
    """

    seconds: float | None = None

    def watch(self, connection: Connection, outbox: Outbox, name: str) -> threading.Event:
        """Says on a connection that we live until it ends, and lets it end where the peer is silent.

        Args:
            connection: it has just been joined.
            outbox: of the connection.
            name: of the node that lives here.

        Returns:
            What ends the thread, to be set when the connection has ended.
        """
        connection.silence_s = self.seconds
        ended = threading.Event()
        if self.seconds is not None:
            arguments = (outbox, ended, self.seconds / BEATS)
            threading.Thread(target=_beat, args=arguments, name=f"{name} beats", daemon=True).start()
        return ended


def _beat(outbox: Outbox, ended: threading.Event, every_s: float) -> None:
    while not ended.wait(every_s):
        outbox.post(Heartbeat())  # behind a message that is being sent, whose bytes say the same
