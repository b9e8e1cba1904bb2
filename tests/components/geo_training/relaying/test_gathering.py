"""Laws of what relays hand on: every contribution is merged once, whatever way and order it comes in."""

from geokfp.components.geo_training.nodes.rounds import Contribution, Finished, Rounds
from geokfp.components.geo_training.nodes.rules import All
from geokfp.components.geo_training.relaying.gathering import HOLDS, REMEMBERED, Gathering
from geokfp.components.geo_training.relaying.meter import Meter
from geokfp.components.geo_training.scheduling.trees import joined
from geokfp.components.geo_training.wire.units import RoundId, Unit
from hypothesis import given
from hypothesis import strategies as st

ROOT = "root"
SITES = ("a", "b", "c", "d")
EVERYONE = frozenset(SITES)
STAR = dict.fromkeys(SITES, ROOT)
wanted = st.lists(st.tuples(st.sampled_from(SITES), st.sampled_from(SITES)), max_size=8)


def round_id(number: int) -> RoundId:
    return RoundId("tree", Unit("gradient", 0, 4), number)


def contribution(sender: str, covers=(), wait_s: float = 10.0) -> Contribution:
    return Contribution(sender, frozenset(covers or sender), float(len(covers or sender)), wait_s, None)


def below(tree, site):
    children = [child for child, parent in tree.items() if parent == site]
    return frozenset(site).union(*(below(tree, child) for child in children))


class Net:
    """Sites, a root, and messages on their way, which arrive, are lost or are doubled as a test decides."""

    def __init__(self, tree) -> None:
        self.tree = tree
        self.sites = {site: Gathering(site) for site in SITES}
        self.root = Rounds(lambda _round: All())
        self.way: list[tuple[str, Contribution]] = []
        self.sent: dict[str, Contribution] = {}
        self.finished: list[Finished] = []

    def hand_on(self, site: str, event) -> None:
        if isinstance(event, Finished):
            assert site not in self.sent, "handed on twice"
            whole = Contribution(site, frozenset(event.covers), event.weight, 10.0, None)
            self.sent[site] = whole
            self.way.append((self.tree[site], whole))

    def begin(self, site: str) -> None:
        event = self.sites[site].own(round_id(0), contribution(site), below(self.tree, site), 0.0)
        self.hand_on(site, event)

    def arrive(self, to: str, what: Contribution) -> None:
        if to == ROOT:
            event = self.root.offer(round_id(0), what, EVERYONE, 0.0)
            if isinstance(event, Finished):
                self.finished.append(event)
            return
        event = self.sites[to].offer(round_id(0), what, 0.0)
        if event is False:
            self.way.append((ROOT, what))
        self.hand_on(to, event)

    def deliver(self, at: int, fate: str) -> None:
        to, what = self.way.pop(at)
        if fate != "lost":
            self.arrive(to, what)
        if fate == "twice":
            self.arrive(to, what)
        if fate in ("lost", "both ways"):  # who sent it goes round the relay
            self.way.append((ROOT, what))

    def end(self) -> None:
        """Lets relays wait no longer, and all arrive."""
        for site, gathering in self.sites.items():
            for late in gathering.tick(1e9):
                self.hand_on(site, late)
        while self.way:
            self.deliver(-1, "arrives")


@given(wanted, st.permutations(SITES), st.data())
def test_every_contribution_counts_once_whatever_is_lost_doubled_or_late(links, order, data):
    net, begin = Net(joined(links, STAR, ROOT)), list(order)
    fates = st.sampled_from(["arrives", "arrives", "lost", "twice", "both ways"])
    for _ in range(60):
        if begin and (not net.way or data.draw(st.booleans())):
            net.begin(begin.pop())
        elif net.way:
            net.deliver(data.draw(st.integers(0, len(net.way) - 1)), data.draw(fates))
    for site in begin:
        net.begin(site)
    net.end()
    (finished,) = net.finished
    assert finished.covers == SITES
    assert finished.weight == float(len(SITES))
    assert sum(len(one.covers) for one in finished.contributions) == len(SITES)


def test_a_relay_waits_for_whom_the_plan_sends_and_then_hands_on_once():
    gathering = Gathering("a")
    assert gathering.own(round_id(0), contribution("a"), frozenset("abc"), 0.0) is None
    assert gathering.offer(round_id(0), contribution("b"), 0.0) is True
    assert gathering.offer(round_id(0), contribution("b"), 0.0) is True
    gathered = gathering.offer(round_id(0), contribution("c"), 0.0)
    assert isinstance(gathered, Finished)
    assert gathered.covers == ("a", "b", "c")
    assert gathered.weight == 3.0
    assert gathering.offer(round_id(0), contribution("c"), 0.0) is True
    assert gathering.offer(round_id(0), contribution("d"), 0.0) is False


def test_what_comes_before_our_own_is_kept_for_it():
    gathering = Gathering("a")
    assert gathering.offer(round_id(0), contribution("b"), 0.0) is True
    gathered = gathering.own(round_id(0), contribution("a"), frozenset("a"), 5.0)
    assert isinstance(gathered, Finished)
    assert gathered.covers == ("a", "b")


def test_who_goes_another_way_is_not_waited_for():
    gathering = Gathering("a")
    gathering.own(round_id(0), contribution("a"), frozenset("abc"), 0.0)
    gathering.offer(round_id(0), contribution("b"), 0.0)
    gathered = gathering.excuse(round_id(0), frozenset("c"), 0.0)
    assert isinstance(gathered, Finished)
    assert gathered.covers == ("a", "b")
    assert gathering.excuse(round_id(0), frozenset("b"), 0.0) is None
    assert gathering.excuse(round_id(1), frozenset("b"), 0.0) is None
    assert isinstance(gathering.own(round_id(1), contribution("a"), frozenset("ab"), 0.0), Finished)


def test_a_relay_waits_no_longer_than_its_share_of_what_the_round_may_wait():
    gathering = Gathering("a")
    gathering.own(round_id(0), contribution("a", wait_s=10.0), frozenset("ab"), 100.0)
    assert gathering.tick(100.0 + HOLDS * 10.0 - 0.1) == []
    (gathered,) = gathering.tick(100.0 + HOLDS * 10.0)
    assert gathered.covers == ("a",)


def test_what_is_far_behind_goes_another_way():
    gathering = Gathering("a")
    gathering.own(round_id(REMEMBERED), contribution("a"), frozenset("a"), 0.0)
    assert gathering.offer(round_id(0), contribution("b"), 0.0) is False


def test_a_meter_counts_from_when_something_is_on_the_way():
    meter = Meter()
    meter.sent(1, 100, 10.0)
    meter.sent(2, 100, 10.5)
    meter.received(1, 12.0)
    meter.received(2, 13.0)
    assert not meter.waits
    meter.sent(3, 50, 20.0)
    assert meter.waits
    meter.received(3, 20.5)
    meter.received(3, 21.0)
    assert meter.take() == (250, 3.5)
    assert meter.take() == (0, 0.0)
