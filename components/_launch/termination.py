"""SIGTERM: one deletion a cluster, all at once, then the end of this process; within half a second in all.

A step that is told to end lives for some tenths of a second more. So the requests are ready beforehand, are
sent by threads that wait for nothing else, and the signal reaches them by a pipe that the interpreter writes
to at once, whatever its main thread is doing::

    kernel ── wake-up pipe ── this module's thread ── one thread a cluster ── DELETE
"""

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType

from .api_errors import Stopped
from .ready_request import ReadyRequest

RENEW_S = 20.0
"""Age at which a ready connection is made anew: servers close those that say nothing for half a minute."""
ANSWER_SHARE = 0.6
"""Of the time to the end: for a creation under way to be answered before the deletion is sent."""
_EXIT_STATUS = 128 + signal.SIGTERM


class Deletion:
    """The deletion of one owner, ready to be sent."""

    def __init__(self, make: Callable[[], ReadyRequest]) -> None:
        """Takes what makes the request, with the credentials of that moment."""
        self._make = make
        self._lock = threading.Lock()
        self._fired = False
        self._armed = False
        self._idle = threading.Event()
        self._idle.set()
        self._ready: ReadyRequest | None = None
        self._made_s = 0.0

    @contextlib.contextmanager
    def creating(self) -> Iterator[None]:
        """Holds while it is found out whether there is an owner of this run; the deletion waits for that."""
        self._idle.clear()
        try:
            yield
        finally:
            self._idle.set()

    def posting(self) -> None:
        """Called before each request that creates the owner: it may be there from now on.

        Raises:
            Stopped: this process is ending.
        """
        self.renew()
        with self._lock:
            if self._fired:
                raise Stopped
            self._armed = True

    def conflicted(self) -> None:
        """Called when an object of the owner's name was there before, perhaps another run's."""
        self._armed = False

    def adopted(self) -> None:
        """Called when it is this run's."""
        self._armed = True

    def renew(self) -> None:
        """Makes the request and its connection anew when they have aged; a failure leaves the old ones."""
        if self._ready is not None and time.monotonic() - self._made_s < RENEW_S:
            return
        ready = self._make()
        with contextlib.suppress(OSError):  # then it is tried when it is needed
            ready.connect(2.0)
        with self._lock:
            if self._fired:  # what is being sent is not replaced
                ready.close()
                return
            old, self._ready, self._made_s = self._ready, ready, time.monotonic()
        if old is not None:
            old.close()

    def disarm(self) -> None:
        """Says that the owner is gone."""
        self._armed = False

    def close(self) -> None:
        """Closes the connection; when all is over."""
        if self._ready is not None:
            self._ready.close()

    def send(self, timeout_s: float) -> None:
        """Sends it, if there is something to delete, within `timeout_s` seconds."""
        until = time.monotonic() + timeout_s
        with self._lock:
            self._fired = True
        self._idle.wait(timeout_s * ANSWER_SHARE)
        request = self._ready
        if self._armed and request is not None:
            with contextlib.suppress(OSError):
                request.send(max(0.05, until - time.monotonic()))


class Termination:
    """While it holds, SIGTERM sends the deletions and ends this process."""

    def __init__(self, deletions: Sequence[Deletion], *, within_s: float) -> None:
        self._deletions = deletions
        self._within_s = within_s
        self._told = [threading.Event() for _ in deletions]
        self._done = [threading.Event() for _ in deletions]
        self._over = False
        self._threads: list[threading.Thread] = []
        self._here, self._there = socket.socketpair()

    def __enter__(self) -> "Termination":
        """Takes the signal over; only a main thread can, another leaves it as it is."""
        self._in_main = threading.current_thread() is threading.main_thread()
        if not self._in_main:
            return self
        self._there.setblocking(False)
        targets = [(self._listen, ())] + [(self._send, (i,)) for i in range(len(self._deletions))]
        self._threads = [
            threading.Thread(target=target, args=args, name="termination", daemon=True)
            for target, args in targets
        ]
        for thread in self._threads:
            thread.start()
        self._old_wakeup = signal.set_wakeup_fd(self._there.fileno(), warn_on_full_buffer=False)
        self._old_handler = signal.signal(signal.SIGTERM, lambda number, frame: None)  # noqa: ARG005
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Gives the signal back."""
        if self._in_main:
            signal.signal(signal.SIGTERM, self._old_handler or signal.SIG_DFL)
            signal.set_wakeup_fd(self._old_wakeup)
        self._over = True
        self._there.close()
        for event in self._told:
            event.set()
        for thread in self._threads:
            thread.join(self._within_s * 2)
        self._here.close()

    def _listen(self) -> None:
        """Waits for the signal; other signals come by the same way."""
        while data := self._here.recv(64):
            if signal.SIGTERM in data:
                break
        else:
            return
        until = time.monotonic() + self._within_s
        for event in self._told:
            event.set()
        for event in self._done:
            event.wait(max(0.0, until - time.monotonic()))
        os._exit(_EXIT_STATUS)

    def _send(self, number: int) -> None:
        self._told[number].wait()
        if not self._over:
            self._deletions[number].send(self._within_s)
        self._done[number].set()
