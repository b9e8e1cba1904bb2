"""Makes what a node needs where sites relay for each other, of a tree's topology and the user's options."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random

from ..errors import GeoError
from ..links.children import Children, Door
from ..links.client import Client
from ..links.heartbeats import Silence
from ..links.link import Ends
from ..metrics import UNOBSERVED, Observer
from ..nodes.route import TreeRouter
from ..scheduling.relay import Coordinator, TsEngine
from ..topology import ROOT, Topology
from ..transport.base import Connection, Listener, Traffic
from ..wire.messages import Join, Message
from ..wire.relay_messages import Trees
from ..wire.units import RoundId
from .peers import RECONNECT_S, Peers
from .plans import Plans
from .root import RootRelaying
from .site import STALLED_S, SiteRelay


@dataclass(frozen=True, kw_only=True, slots=True)
class Reach:
    """How a site and others reach each other."""

    dial: Callable[[str], Connection]
    """Makes a connection to a site that accepts, trying once."""

    listener: Listener | None
    """Where other sites come in; None where the site accepts nobody."""

    stalled_s: float = STALLED_S
    """Seconds without a receipt after which a link that carries something is gone round."""

    observer: Observer = UNOBSERVED
    """Is told what comes and goes between sites."""

    silence: Silence = field(default_factory=Silence)
    """How long others may say nothing."""


class _Inside:
    """See `Parent` and `Register`; of those that dial a relay, which is made after the door they come by."""

    def __init__(self) -> None:
        self.relay: SiteRelay | None = None

    def take(self, peer: str, message: Message) -> bool:
        return self.relay is None or self.relay.take(peer, message)

    def left(self, peer: str) -> None:
        pass

    def admit(self, join: Join) -> int | None:  # noqa: ARG002
        return None

    def lost(self, peer: str, *, was_silent: bool) -> None:
        pass

    def wait_for_room(self, peer: str, round_id: RoundId, num_bytes: int) -> float:  # noqa: ARG002
        return 0.0

    def failed(self, error: GeoError) -> None:
        pass

    def traffic(self) -> dict[str, Traffic]:
        return {} if self.relay is None else self.relay.links()


def site_relay(name: str, run: str, topology: Topology, client: Client, reach: Reach) -> SiteRelay:
    """Returns a site's way to the root.

    Args:
        name: the site.
        run: the run.
        topology: all sites.
        client: the site's end of its link to the root.
        reach: how the site and others reach each other.
    """
    others = [site.name for site in topology.sites if site.name != name]
    dials = {s.name: partial(reach.dial, s.name) for s in topology.accepting if s.name != name}
    inside, children = _Inside(), None
    if reach.listener is not None:
        door = Door(
            name=name, run=run, children=frozenset(others), observer=reach.observer, silence=reach.silence
        )
        children = Children(door, reach.listener, inside, inside)
    plans = Plans(topology, TreeRouter(topology))
    ends = Ends(
        name=name, peer=name, run=run, reconnect_s=RECONNECT_S, observer=reach.observer, silence=reach.silence
    )
    inside.relay = SiteRelay(name, client, plans, Peers(ends, dials, children), reach.stalled_s)
    return inside.relay


def root_relaying(
    run: str,
    topology: Topology,
    options: TsEngine,
    send: Callable[[str, Message, int], None],
    used: Callable[[Trees], None] | None = None,
) -> RootRelaying:
    """Returns what the root does beside its rounds.

    Args:
        run: the run; the same one has the same chances.
        topology: all sites.
        options: what the user chose.
        send: sends to a site in the message's turn.
        used: is told the trees that rounds went by; see `RootRelaying`.
    """
    coordinator = Coordinator(
        ROOT,
        [site.name for site in topology.sites],
        [site.name for site in topology.accepting],
        explore=options.explore,
        expires=options.expires,
    )
    return RootRelaying(coordinator, Plans(topology, TreeRouter(topology)), Random(run), send, used)
