"""A wire between real processes that can be cut: it hands on bytes until a test says that it does not."""

import contextlib
import socket
import threading


class Wire:
    """Listens in the place of a port, and hands on to it; ends with the `with` block."""

    def __init__(self, listens: int, leads_to: int) -> None:
        self._leads_to = ("127.0.0.1", leads_to)
        self._up = threading.Event()
        self._up.set()
        self._ended = False
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", listens))

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._ended = True
        self._up.set()
        for one in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def cut(self):
        """Hands nothing on, and tells nobody."""
        self._up.clear()

    def mend(self):
        self._up.set()

    def _accept(self):
        while not self._ended:
            try:
                one, _ = self._listener.accept()
                self._sockets.append(one)
                self._up.wait()
                other = socket.create_connection(self._leads_to, 5.0)
            except OSError:
                continue  # nobody listens there now, or the end: whoever dialled sees it
            other.settimeout(None)
            self._sockets.append(other)
            for ends in ((one, other), (other, one)):
                threading.Thread(target=self._hand_on, args=ends, daemon=True).start()

    def _hand_on(self, one, other):
        with contextlib.suppress(OSError):
            while piece := one.recv(1 << 16):
                self._up.wait()
                other.sendall(piece)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
