"""The file that a process leaves of what it measured: typed, of bounded size, read by the step's report."""

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..._files import ArtifactError, new_file
from ..transport.base import Traffic
from ..wire.messages import Array
from .bins import NUM_BINS
from .recorder import LinkCounts, Recorder
from .relay_trees import TreeRecord

VERSION = 1
UP, DOWN = "up", "down"
"""Directions of a link: towards the root, and away from it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkRecord:
    """One link, seen from one of its ends."""

    name: str
    """Its lower end."""
    rounds: int
    """Rounds that were answered."""
    staleness: int
    """Rounds that it is behind the link that is farthest on."""
    up_bytes: int
    """Of whole frames."""
    down_bytes: int
    up_dense_bytes: int
    """Of gradients and changes of weights as FP32, and as they travelled: in the next field."""
    up_wire_bytes: int
    down_dense_bytes: int
    down_wire_bytes: int
    arrives: str
    """The direction in which frames come in at this end: `up` or `down`."""
    arrived_bytes: int
    """Of the frames of 4096 bytes or more that came in, in `arriving_s`."""
    arriving_s: float
    outstanding_s: float
    """Seconds in which the lower end waited for an answer."""

    @property
    def ratio(self) -> float:
        """Dense bytes by those that travelled, both ways; 1 where none did."""
        return _ratio(self.up_dense_bytes + self.down_dense_bytes, self.up_wire_bytes + self.down_wire_bytes)

    @property
    def ratios(self) -> dict[str, float]:
        """Dense bytes by those that travelled, by direction; 1 where none did."""
        return {
            UP: _ratio(self.up_dense_bytes, self.up_wire_bytes),
            DOWN: _ratio(self.down_dense_bytes, self.down_wire_bytes),
        }

    @property
    def bytes(self) -> dict[str, int]:
        """Bytes of whole frames by direction."""
        return {UP: self.up_bytes, DOWN: self.down_bytes}

    @property
    def rate(self) -> float | None:
        """Bytes a second in the direction `arrives`; None where no frame is long enough."""
        return self.arrived_bytes / self.arriving_s if self.arriving_s > 0 else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """What one process measured."""

    process: str
    """Its name in the tree."""
    began_unix: float
    """When it began, in seconds since 1970."""
    elapsed_s: float
    """How long it had been measured when the record was made."""
    steps: int
    """Steps that it took; 0 at a node."""
    links: tuple[LinkRecord, ...]
    """Its links, by name."""
    width_s: float
    """Of a bin of `series`, whose first begins with the record."""
    series: Mapping[str, list[float]]
    """Seconds by activity and bin; at most 256 bins. `receive LINK` names the link."""
    trees_up: tuple[TreeRecord, ...] = ()
    """Where sites relay, at the root: the trees that contributions went by; that of the last round last."""
    trees_down: tuple[TreeRecord, ...] = ()
    """The same of results."""

    def arrays(self) -> dict[str, Array]:
        """Returns the series as float64 arrays."""
        return {name: np.array(values, np.float64) for name, values in self.series.items()}

    def write(self, path: Path) -> None:
        """Writes the record whole, in the place of an older one."""
        document = {"version": VERSION, **asdict(self)}
        with new_file(path) as temporary:
            temporary.write_text(json.dumps(document), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> "Record":
        """Reads what `write` wrote.

        Raises:
            ArtifactError: it is not that.
        """
        try:
            document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if document.pop("version") != VERSION:
                raise ValueError(f"another version than {VERSION}")
            links = tuple(LinkRecord(**link) for link in document.pop("links"))
            up, down = (
                tuple(TreeRecord(**tree) for tree in document.pop(name, ()))
                for name in ("trees_up", "trees_down")
            )
            record = cls(links=links, trees_up=up, trees_down=down, **document)
            if any(len(values) > NUM_BINS for values in record.series.values()):
                raise ValueError(f"more than {NUM_BINS} bins")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ArtifactError(f"{path}: not a record of a process ({error})") from error
        return record


def record_of(
    process: str, recorder: Recorder, traffic: Mapping[str, Traffic], children: Collection[str]
) -> Record:
    """Returns what a process has measured until now.

    Args:
        process: its name in the tree.
        recorder: what it was told.
        traffic: bytes of each of its links, by the node at the other end.
        children: which of these nodes are farther from the root than the process.
    """
    counts, staleness = recorder.links(), recorder.staleness()
    links = []
    for peer, bytes_ in sorted(traffic.items()):
        below = peer in children
        name = peer if below else process
        up, down = bytes_.sent_bytes, bytes_.received_bytes
        if below:
            up, down = down, up
        counted = counts.get(name, LinkCounts())
        links.append(
            LinkRecord(
                name=name,
                rounds=counted.rounds,
                staleness=staleness.get(name, 0),
                up_bytes=up,
                down_bytes=down,
                up_dense_bytes=counted.up_dense_bytes,
                up_wire_bytes=counted.up_wire_bytes,
                down_dense_bytes=counted.down_dense_bytes,
                down_wire_bytes=counted.down_wire_bytes,
                arrives=UP if below else DOWN,
                arrived_bytes=counted.arrived_bytes,
                arriving_s=counted.arriving_s,
                outstanding_s=counted.outstanding_s,
            )
        )
    timeline: Any = recorder.timeline()
    trees_up, trees_down = recorder.trees()
    return Record(
        process=process,
        began_unix=recorder.began_unix,
        elapsed_s=recorder.elapsed_s,
        steps=recorder.steps,
        links=tuple(links),
        width_s=timeline["width_s"],
        series=timeline["series"],
        trees_up=trees_up,
        trees_down=trees_down,
    )


def _ratio(dense: int, wire: int) -> float:
    return dense / wire if wire else 1.0
