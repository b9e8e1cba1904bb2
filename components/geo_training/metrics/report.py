"""What a step's report shows of the processes' records: a timeline of the sites, and the links' rates.

Knows nothing of how they ran.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..._report import Report
from ..._report.arrows import Arrow
from ..._report.lanes import Lane, timeline
from ..._report.tree import Edge, tree
from ..topology import ROOT, Topology
from ..wire.messages import Array
from .bins import regrid
from .observer import COMPUTE, RECEIVE, SEND, TRAINING, WAIT
from .record import DOWN, UP, Record
from .relay_trees import TreeRecord

NUM_DRAWN = 240
"""Bins of the timeline."""
MOST_SITES = 24
"""Sites in the pictures; of more the first ones are drawn."""
MOST_WORKERS = 24
"""Workers in the picture of the links; of more none is drawn."""
_UP_BUSY, _DOWN_BUSY = "link up", "link down"
_STRIP = 0.22
_AGGREGATION, _DISTRIBUTION = "aggregation", "distribution"


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkRate:
    """What is known of a link, put together from both its ends."""

    lower: str
    """The end that is farther from the root."""
    upper: str
    """The other end: the one that it sent to in the last rounds."""
    up_bytes: int
    """Of whole frames."""
    down_bytes: int
    up_rate: float | None = None
    """Bytes a second while frames came in; None where none was long enough."""
    down_rate: float | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """What a report draws.

    Attributes:
        records: by process.
        topology: who was joined to whom.
        num_bytes: up and down, of whole frames, by the lower end of the link.
    """

    records: Mapping[str, Record]
    topology: Topology
    num_bytes: Mapping[str, tuple[int, int]]


def add_records(report: Report, measured: Measured) -> None:
    """Adds the sections; nothing when there are no records.

    Args:
        report: the step's report.
        measured: what is drawn.
    """
    records, topology = measured.records, measured.topology
    if not records:
        return
    sites = topology.sites[:MOST_SITES]
    report.section("What each site did")
    report.paragraph(
        "What the workers of each site did: compute; send, which is packing changes and handing them over; "
        "and wait for results. Below each, when frames came in on the site's link to the root."
    )
    if len(topology.sites) > MOST_SITES:
        report.paragraph(f"The first {MOST_SITES} of {len(topology.sites)} sites are drawn.")
    found = _lanes(records, {site.name: site.workers for site in sites})
    if found is not None:
        lanes, edges = found
        caption = "Share of each moment; several workers of a site are averaged"
        report.figure(timeline(lanes, edges, x_label="seconds", idle=WAIT), caption)
    report.section("Links")
    drawn = [site.name for site in sites]
    if len(topology.workers) <= MOST_WORKERS:
        drawn += [worker for site in sites for worker in site.workers]
    uppers = {name: name.partition("/")[0] if "/" in name else ROOT for name in drawn}
    arrows = relay_arrows(records.get(ROOT))
    add_links(report, link_rates(records, uppers, measured.num_bytes), arrows)
    if arrows and len(topology.sites) <= MOST_SITES:
        _add_trees(report, records[ROOT])


def add_links(report: Report, rates: Sequence[LinkRate], arrows: Sequence[Arrow] = ()) -> None:
    """Adds the picture of a tree: the topology's, or that of the last rounds where it changes.

    Args:
        report: the step's report.
        rates: the tree's links.
        arrows: who relayed for whom; none where nobody does.
    """
    fastest = max((rate for one in rates for rate in (one.up_rate, one.down_rate) if rate), default=0.0)
    edges = [
        Edge(
            one.lower,
            one.upper,
            f"up {_said(one.up_rate, one.up_bytes)}",
            f"down {_said(one.down_rate, one.down_bytes)}",
            _weight(one, fastest),
        )
        for one in rates
    ]
    caption = "Bytes of whole frames, and the rate at which those of 4096 bytes or more came in"
    if arrows:
        caption += (
            f". Arrows are the trees of the last round: whom each site handed its contributions to "
            f"({_AGGREGATION}), and from whom it got the results ({_DISTRIBUTION})"
        )
    report.figure(tree(edges, arrows), caption)


def relay_arrows(root: Record | None) -> list[Arrow]:
    """Returns the edges of the trees of the last round; none where sites do not relay.

    Args:
        root: what the root measured.
    """
    if root is None or not root.trees_up or not root.trees_down:
        return []
    up, down = root.trees_up[-1].parents, root.trees_down[-1].parents
    return [
        *(Arrow(_AGGREGATION, site, parent) for site, parent in up.items()),
        *(Arrow(_DISTRIBUTION, parent, site) for site, parent in down.items()),
    ]


def _add_trees(report: Report, root: Record) -> None:
    """Adds how many rounds went by each tree."""
    rows: list[list[object]] = []
    for kind, trees in ((_AGGREGATION, root.trees_up), (_DISTRIBUTION, root.trees_down)):
        rows += [[kind, _edges_said(one, kind), one.rounds] for one in reversed(trees)]
    report.table(["trees, the last one first", "edges", "rounds"], rows)


def _edges_said(one: TreeRecord, kind: str) -> str:
    ends = one.parents.items() if kind == _AGGREGATION else [(p, site) for site, p in one.parents.items()]
    return ", ".join(f"{giver} → {taker}" for giver, taker in ends)


def link_rates(
    records: Mapping[str, Record], uppers: Mapping[str, str], num_bytes: Mapping[str, tuple[int, int]]
) -> list[LinkRate]:
    """Returns what is known of some links.

    Args:
        records: by process.
        uppers: the links: the upper end by the lower one.
        num_bytes: up and down, by the lower end.
    """
    ends = [link for record in records.values() for link in record.links]
    arrived = {(link.name, link.arrives): link.rate for link in ends}
    return [
        LinkRate(
            lower=lower,
            upper=upper,
            up_bytes=num_bytes.get(lower, (0, 0))[0],
            down_bytes=num_bytes.get(lower, (0, 0))[1],
            up_rate=arrived.get((lower, UP)),
            down_rate=arrived.get((lower, DOWN)),
        )
        for lower, upper in uppers.items()
    ]


def _lanes(
    records: Mapping[str, Record], sites: Mapping[str, Sequence[str]]
) -> tuple[list[Lane], Array] | None:
    """Returns the lanes of the sites, and the edges of their bins in seconds from the first step on."""
    workers = {site: [records[name] for name in names if name in records] for site, names in sites.items()}
    spans = [_span(record) for of_site in workers.values() for record in of_site]
    spans = [span for span in spans if span[1] > span[0]]
    if not spans:
        return None
    began, ended = min(span[0] for span in spans), max(span[1] for span in spans)
    edges = np.linspace(0.0, ended - began, NUM_DRAWN + 1)
    lanes = []
    for site, of_site in workers.items():
        if of_site:
            lanes.append(Lane(site, _shares_of_workers(of_site, began, edges)))
            up = _busy(records.get(ROOT), site, began, edges)
            down = _busy(records.get(site), site, began, edges)
            lanes += [Lane("", {_UP_BUSY: up}, _STRIP), Lane("", {_DOWN_BUSY: down}, _STRIP)]
    return lanes, edges


def _span(record: Record) -> tuple[float, float]:
    """Returns when a worker trained, in seconds since 1970; waiting for the others at the end too."""
    series = record.arrays()
    used = np.flatnonzero(series.get(TRAINING, np.zeros(0)))
    if not used.size:
        return record.began_unix, record.began_unix
    last = max(np.flatnonzero(series[name])[-1] for name in (TRAINING, WAIT) if np.any(series.get(name, 0)))
    return (
        record.began_unix + float(used[0]) * record.width_s,
        record.began_unix + float(last + 1) * record.width_s,
    )


def _shares_of_workers(records: Sequence[Record], began: float, edges: Array) -> dict[str, Array]:
    total = {name: np.zeros(len(edges) - 1) for name in (COMPUTE, SEND, WAIT)}
    for record in records:
        shares = regrid(record.arrays(), record.width_s, record.began_unix - began, edges)
        nothing = np.zeros(len(edges) - 1)
        wait = np.clip(shares.get(WAIT, nothing), 0, 1)
        send = np.minimum(shares.get(SEND, nothing), 1 - wait)
        compute = np.clip(shares.get(TRAINING, nothing) - wait - send, 0, 1)
        for name, share in ((COMPUTE, compute), (SEND, send), (WAIT, wait)):
            total[name] += share / len(records)
    return total


def _busy(record: Record | None, link: str, began: float, edges: Array) -> Array:
    series = {} if record is None else record.arrays()
    name = f"{RECEIVE} {link}"
    if record is None or name not in series:
        return np.zeros(len(edges) - 1)
    return np.clip(regrid({name: series[name]}, record.width_s, record.began_unix - began, edges)[name], 0, 1)


def _said(rate: float | None, num_bytes: int) -> str:
    at = "" if rate is None else f", {rate / 1e6:.3g} MB/s"
    return f"{num_bytes / 1e6:,.2f} MB{at}"


def _weight(one: LinkRate, fastest: float) -> float:
    slower = min((rate for rate in (one.up_rate, one.down_rate) if rate), default=0.0)
    if not fastest or not slower:
        return 0.0
    return float(np.clip(1 + np.log10(slower / fastest) / 3, 0, 1))
