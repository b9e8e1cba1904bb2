"""Loses datagrams on their way out, as a script says."""

from collections.abc import Callable

from geokfp.components.geo_training.transport.datagram import DatagramSocket


class Loss:
    """Called for each datagram; counts those that it lost.

    Args:
        is_lost: takes the number of the datagram, from 0, and its bytes.
    """

    def __init__(self, is_lost: Callable[[int, bytes], bool]) -> None:
        self.sent = self.lost = 0
        self._is_lost = is_lost

    def install(self, monkeypatch) -> "Loss":
        send = DatagramSocket._send

        def send_or_lose(own: DatagramSocket, link: bytes, datagram: bytes, tos: int) -> None:
            number, self.sent = self.sent, self.sent + 1
            if self._is_lost(number, datagram):
                self.lost += 1
            else:
                send(own, link, datagram, tos)

        monkeypatch.setattr(DatagramSocket, "_send", send_or_lose)
        return self
