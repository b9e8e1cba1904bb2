"""What a node has answered since the last checkpoints, for a child that is started again.

A child is a site to the root, where all of its processes are started again, and a worker to its site's node.
It goes on from its own last checkpoint and takes the same steps once more. What it brings to rounds that are
finished was counted, or left out, when they were: it is answered what everybody was, in the place of being
counted. So it comes to where the others wait, and nothing counts twice: replay of logged messages (Strom and
Yemini, *Optimistic Recovery in Distributed Systems*, 1985)::

    <checkpoint_folder>/answers/root/
      0            answers before the first change of weights: kept to the end
      4, 5         those of the last two checkpoints that all children had a part in, and what follows each
    <checkpoint_folder>/answers/node-0/

Where that is more than there is room for, none are kept any more, and no child can come back. Nothing of it
outlives the node's process: a root that is killed takes all sites with it, a site's node its workers.
"""

import errno
import os
import shutil
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from ..._launch import progress
from ..errors import KeepingError, ProtocolError
from ..synchronization.base import CHECKPOINT
from ..wire.messages import Answer, Join, Limits, Message, Pull, Push, encode, read_message
from ..wire.units import CHANGES, RoundId, shard_of
from .journal import frame_reader

ANSWERS = "answers"
"""Folder in the training's folder of checkpoints."""
KEPT = 2
"""Checkpoints since which answers are kept: a child may have died before it had kept the last one whole."""
MOST_BYTES = 4 << 30
"""Bytes that all nodes of a tree keep at once."""
_LIMITS = Limits(head_bytes=1 << 24, body_bytes=1 << 32)


@dataclass(frozen=True, slots=True)
class _Place:
    segment: int
    offset: int
    length: int
    order: int


class Answers:
    """The answers of one node. Any thread may call it.

    Args:
        folder: where they lie; emptied.
        send: answers a child.
        children: those that are answered.
        most_bytes: kept at once.

    Raises:
        KeepingError: nothing can be written there.
    """

    def __init__(
        self,
        folder: Path,
        send: Callable[[str, Answer], None],
        children: frozenset[str],
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._folder = folder
        self._send = send
        self._children = children
        self._lock = threading.Lock()
        self._places: dict[RoundId, _Place] = {}
        self._segments: dict[int, int] = {}
        self._count = self._kept_bytes = 0
        self._most_bytes = most_bytes
        self._given_up = ""
        self._has_begun = False
        self._incarnations: dict[str, int] = {}
        self._came_back: dict[str, int] = {}
        self._behind: set[str] = set()
        try:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            self._open(0)
        except OSError as error:
            raise KeepingError(f"{folder}: answers cannot be kept: {error.strerror}") from error

    def admit(self, join: Join) -> None:
        """Notes who comes in: another process than before that says it has begun has come back.

        Raises:
            ProtocolError: it needs answers that are not kept.
        """
        with self._lock:
            before = self._incarnations.get(join.sender, join.incarnation)
            if before < join.incarnation and join.has_begun:
                if self._given_up:
                    raise ProtocolError(f"{join.sender} cannot come back: {self._given_up}")
                self._came_back[join.sender] = self._count
                self._behind.add(join.sender)
            self._incarnations[join.sender] = max(before, join.incarnation)

    def note(self, answer: Answer, receivers: Collection[str]) -> None:
        """Keeps an answer, before anybody is sent it.

        Args:
            answer: of a round that ends here.
            receivers: the children that took part.
        """
        with self._lock:
            role = answer.round.unit.role
            if self._given_up:
                return
            try:
                if role in CHANGES and not self._has_begun:
                    self._has_begun = True
                    self._open(1)
                is_last = role == CHECKPOINT and not shard_of(answer.round.scope)  # of all roots
                if is_last and self._children <= set(receivers):
                    self._open(max(self._segments) + 1)
                    self._drop(*sorted(segment for segment in self._segments if segment)[:-KEPT])
                self._append(answer)
            except OSError as error:
                self._give_up(f"its answers since the last checkpoints cannot be kept: {error.strerror}")

    def behind(self) -> frozenset[str]:
        """Returns the children that have come back, and not yet to a round that is not finished."""
        with self._lock:
            return frozenset(self._behind)

    def take(self, child: str, message: Message) -> bool:
        """Answers a child that has come back, where it repeats what is finished.

        Args:
            child: who sends.
            message: what it sends.

        Returns:
            Whether it was that, and needs nothing more.
        """
        if not isinstance(message, Push | Pull):
            return False
        with self._lock:
            since = self._came_back.get(child)
            place = None if since is None else self._places.get(message.round)
            if since is None or place is None or not (place.order < since or child in self._behind):
                if isinstance(message, Push):
                    self._behind.discard(child)
                return False
            answer = self._read(place)
        self._send(child, answer)
        return True

    def forget(self) -> None:
        """Removes all, once nobody needs it."""
        with self._lock:
            self._drop(*self._segments)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _give_up(self, why: str) -> None:
        self._given_up = why
        self._drop(*list(self._segments))
        progress(f"who is killed cannot come back any more: {why}")

    def _append(self, answer: Answer) -> None:
        segment = max(self._segments)
        file, offset = self._segments[segment], os.lseek(self._segments[segment], 0, os.SEEK_END)
        frame = memoryview(b"".join(bytes(piece) for piece in encode(answer)))
        if self._kept_bytes + frame.nbytes > self._most_bytes:
            raise OSError(errno.EFBIG, f"they are more than {self._most_bytes >> 20} MiB")
        place = _Place(segment, offset, frame.nbytes, self._count)
        while frame.nbytes:
            frame = frame[os.write(file, frame) :]
        self._places[answer.round] = place
        self._kept_bytes += place.length
        self._count += 1

    def _read(self, place: _Place) -> Answer:
        frame = os.pread(self._segments[place.segment], place.length, place.offset)
        answer, _ = read_message(frame_reader(frame), _LIMITS)
        assert isinstance(answer, Answer)  # we wrote it
        return answer

    def _open(self, segment: int) -> None:
        path = self._folder / str(segment)
        self._segments[segment] = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)

    def _drop(self, *segments: int) -> None:
        for segment in segments:
            os.close(self._segments.pop(segment))
            (self._folder / str(segment)).unlink(missing_ok=True)
        dropped = set(segments)
        self._places = {
            round_id: place for round_id, place in self._places.items() if place.segment not in dropped
        }
        self._kept_bytes = sum(place.length for place in self._places.values())
