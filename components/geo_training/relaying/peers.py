"""A site's links to other sites: it dials all that accept, and is dialled by all where it accepts itself.

Contributions go up a link that the site dials; results come down the same link. A link that cannot be made,
or is lost, is tried again for ever in a thread of its own: it is never needed, as all can go to the root.
Knows nothing of rounds.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from ..errors import GeoError, LinkError
from ..links.children import Children
from ..links.link import Ends, Link
from ..transport.base import Connection, Traffic
from ..transport.outbox import LAST
from ..wire.messages import Leave, Message

RECONNECT_S = 2.0
"""Seconds in which a lost link must be there again, before what was sent over it goes another way."""
_PAUSE_S = 2.0
_PARTING_S = 1.0
"""Seconds for a thread that dials to end; one that waits for a peer just then ends with the process."""


class Hearing(Protocol):
    """What links to other sites tell; called in their threads."""

    def heard(self, peer: str, message: Message) -> None:
        """Called with what a relay sends that the site dialled.

        Raises:
            PeerError: it must not send this.
        """

    def cut(self, peer: str, *, back: bool) -> None:
        """Called when the link to a relay was lost: what was under way is gone.

        Args:
            peer: the relay.
            back: whether the link is there again.
        """


class Peers:
    """The links of one site.

    Args:
        ends: of all links, but for the peer.
        dials: makes a connection to each site that accepts, trying once.
        children: those that dial this site; None where it accepts nobody.
    """

    def __init__(
        self, ends: Ends, dials: Mapping[str, Callable[[], Connection]], children: Children | None
    ) -> None:
        self._ends = ends
        self._name = ends.name
        self._dials = dials
        self._children = children
        self._lock = threading.Lock()
        self._links: dict[str, Link] = {}
        self._over: dict[str, threading.Event] = {}
        self._earlier: dict[str, Traffic] = {}
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []

    def begin(self, hearing: Hearing) -> None:
        """Dials, and lets others in, from now on; called once."""
        if self._children is not None:
            self._children.begin()
        for peer in self._dials:
            link = threading.Thread(
                target=self._keep, args=(peer, hearing), name=f"{self._name} dials {peer}"
            )
            link.daemon = True
            link.start()
            self._threads.append(link)

    def linked(self, peer: str) -> bool:
        """Tells whether there is a link to a relay."""
        with self._lock:
            return peer in self._links

    def send_up(self, peer: str, message: Message, priority: int) -> bool:
        """Sends to a relay in the message's turn; returns whether there is a link to it."""
        with self._lock:
            link = self._links.get(peer)
        if link is not None:
            link.send(message, priority)
        return link is not None

    def send_down(self, peer: str, message: Message, priority: int) -> bool:
        """Sends to a site that dialled this one; returns whether it is connected. If not it asks the root."""
        if self._children is None or peer not in self._children.present():
            return False
        self._children.send(peer, message, priority)
        return True

    def traffic(self) -> dict[str, Traffic]:
        """Returns the bytes of all links so far, both directions of dialling together, by site."""
        total: dict[str, Traffic] = {}
        with self._lock:
            dialled = [(peer, link.traffic) for peer, link in self._links.items()]
            earlier = list(self._earlier.items())
        accepted = [] if self._children is None else list(self._children.traffic().items())
        for peer, traffic in (*dialled, *earlier, *accepted):
            total.setdefault(peer, Traffic()).add(traffic)
        return total

    def close(self) -> None:
        """Ends all links."""
        self._closing.set()
        with self._lock:
            links = list(self._links.values())
        for link in links:
            link.part(Leave(self._name), LAST)
        for over in list(self._over.values()):
            over.set()
        if self._children is not None:
            self._children.end()
        for thread in self._threads:
            thread.join(_PARTING_S)

    def _keep(self, peer: str, hearing: Hearing) -> None:
        ends = replace(self._ends, peer=peer)
        while not self._closing.is_set():
            try:
                link = Link(ends, self._dials[peer])
            except LinkError:
                self._closing.wait(_PAUSE_S)
                continue
            except GeoError:
                return  # it wants no part of us
            over = threading.Event()
            with self._lock:
                self._links[peer] = link
                self._over[peer] = over
            if self._closing.is_set():
                link.close()
                return
            link.read(_Heard(peer, hearing, over))
            over.wait()  # as long as the link lives, or until we close
            self._forget(peer, link)

    def _forget(self, peer: str, link: Link) -> None:
        with self._lock:
            del self._links[peer]
            self._earlier.setdefault(peer, Traffic()).add(link.traffic)


class _Heard:
    """See `Listening`."""

    def __init__(self, peer: str, hearing: Hearing, over: threading.Event) -> None:
        self._peer = peer
        self._hearing = hearing
        self._over = over

    def take(self, message: Message) -> None:
        self._hearing.heard(self._peer, message)

    def rejoined(self) -> None:
        self._hearing.cut(self._peer, back=True)

    def lost(self, error: GeoError) -> None:  # noqa: ARG002
        self._over.set()
        self._hearing.cut(self._peer, back=False)
