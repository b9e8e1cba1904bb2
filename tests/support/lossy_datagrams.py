"""Loses datagrams on their way out, as a script says."""

import threading
from collections.abc import Callable

from geokfp.components.geo_training.transport.datagram import DatagramLink, DatagramSocket

WAIT_S = 20.0


class Loss:
    """Counts the datagrams sent and those of them that it lost.

    Args:
        is_lost: takes the number of the datagram, from 0, and its bytes.
    """

    def __init__(self, is_lost: Callable[[int, bytes], bool]) -> None:
        self.sent = self.lost = 0
        self._is_lost = is_lost
        self._open: set[DatagramLink] = set()
        self._opened = threading.Condition()

    def install(self, monkeypatch) -> "Loss":
        send, received = DatagramSocket._send, DatagramLink.received

        def send_or_lose(own: DatagramSocket, link: bytes, datagram: bytes, tos: int) -> None:
            number, self.sent = self.sent, self.sent + 1
            if self._is_lost(number, datagram):
                self.lost += 1
            else:
                send(own, link, datagram, tos)

        def received_and_told(own: DatagramLink, frame: bytes, num_bytes: int) -> None:
            received(own, frame, num_bytes)
            if own.is_open:
                with self._opened:
                    self._open.add(own)
                    self._opened.notify_all()

        monkeypatch.setattr(DatagramSocket, "_send", send_or_lose)
        monkeypatch.setattr(DatagramLink, "received", received_and_told)
        return self

    def wait_until_open(self, ends: int) -> None:
        """Waits until so many ends of links know that datagrams come through; all is sent reliably before."""
        with self._opened:
            assert self._opened.wait_for(lambda: len(self._open) >= ends, WAIT_S), self._open
