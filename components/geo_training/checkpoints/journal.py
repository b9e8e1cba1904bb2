"""What the root has merged since its last checkpoint, written before anybody is answered it.

A root that is killed loses its memory, while its sites live on with the results that it gave them. Whatever
it does with a merged round (optimizer, momentum, what a compression keeps) depends on the merged values
alone, so that from the checkpoint and the rounds since, in their order, all is made again bit for bit:
write-ahead logging of logical records (Mohan et al., *ARIES*, 1992), each round one record::

    record  length u32, checksum u32 (CRC-32 of all that follows), then a frame
    frame   of a `Push` that the root might have had from a single site: what was merged, and who brought it

A record that was not written whole, at the end, is as if its round had not been: nobody was answered it. What
a process wrote outlives it; a machine that loses its power may lose the last records.
"""

import io
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import FrameError, KeepingError, LinkClosedError
from ..wire.messages import NOTHING, Array, Limits, Payload, Push, encode, read_message
from ..wire.units import RoundId

_RECORD = struct.Struct("<II")
_LIMITS = Limits(head_bytes=1 << 24, body_bytes=1 << 32)
_FILES, _AGAIN = "journal-*.gkj", "-again"
_DENSE, _LATE = "dense", "late"
_PARTED = "/"
"""No name of a node: stands between senders and workers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """A round that the root has merged, or a contribution that came too late and counts in the next."""

    round: RoundId
    """The round."""
    reduction: str
    """Name of the rule that merged."""
    weight: float
    """Samples behind the values."""
    senders: tuple[str, ...]
    """Who brought it, and is told the result."""
    covers: tuple[str, ...]
    """The workers that are counted in it."""
    values: Array | None
    """Merged, as they were before the root made anything of them."""
    priority: int = 0
    """How urgent the round is."""
    is_late: bool = False
    """Whether it is a contribution that came too late."""


class Journal:
    """The records of one root, in files named by the checkpoint that they follow. One thread at a time.

    Args:
        folder: where; made if it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: io.FileIO | None = None

    def begin(self, checkpoint: int, *, of_all_again: bool = False) -> None:
        """Begins, or goes on with, the records that follow a checkpoint; those before the one before it go.

        Args:
            checkpoint: its number; 0 for the start.
            of_all_again: whether all have started again from it, and begin as at the start.

        Raises:
            KeepingError: the file cannot be made.
        """
        self.close()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            numbers = sorted(int(path.stem.split("-")[1]) for path in self._folder.glob(_FILES))
            for number in [number for number in numbers if number < checkpoint][:-1]:
                self._path(number, "").unlink(missing_ok=True)
                self._path(number, _AGAIN).unlink(missing_ok=True)
            self._file = self._path(checkpoint, _AGAIN if of_all_again else "").open("ab", buffering=0)
        except OSError as error:
            raise self._error(error) from error

    def append(self, record: Record) -> None:
        """Writes a record whole.

        Raises:
            KeepingError: it cannot be written.
        """
        assert self._file is not None  # `begin` was called
        frame = b"".join(bytes(piece) for piece in encode(_to_push(record)))
        whole = memoryview(_RECORD.pack(len(frame), zlib.crc32(frame)) + frame)
        try:
            while whole.nbytes:
                whole = whole[self._file.write(whole) :]
        except OSError as error:
            raise self._error(error) from error

    def records(self, checkpoint: int) -> Iterator[Record]:
        """Yields the whole records that follow a checkpoint, and cuts off one that is not; before `begin`."""
        path = self._path(checkpoint, _AGAIN if self.is_of_all_again(checkpoint) else "")
        if not path.exists():
            return
        with path.open("r+b") as file:
            while True:
                start = file.tell()
                record = _read_record(file)
                if record is None:
                    file.truncate(start)
                    return
                yield record

    def exists(self, checkpoint: int) -> bool:
        """Tells whether any record may follow a checkpoint."""
        return self._path(checkpoint, "").exists() or self.is_of_all_again(checkpoint)

    def is_of_all_again(self, checkpoint: int) -> bool:
        """Tells whether all have started again from a checkpoint."""
        return self._path(checkpoint, _AGAIN).exists()

    def forget(self) -> None:
        """Removes all records."""
        self.close()
        for path in self._folder.glob(_FILES):
            path.unlink(missing_ok=True)
        with suppress(OSError):  # it is not there, or holds checkpoints
            self._folder.rmdir()

    def close(self) -> None:
        """Closes the file; may be called twice."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _path(self, checkpoint: int, suffix: str) -> Path:
        return self._folder / f"journal-{checkpoint}{suffix}.gkj"

    def _error(self, error: OSError) -> KeepingError:
        return KeepingError(f"{self._folder}: the journal cannot be written: {error.strerror}")


def _to_push(record: Record) -> Push:
    values = record.values
    kind = _LATE if record.is_late else _DENSE
    payload = NOTHING if values is None else Payload(kind, values.dtype.newbyteorder("<").str, (values,))
    return Push(
        sender=kind,
        round=record.round,
        reduction=record.reduction,
        weight=record.weight,
        wait_s=0.0,
        covers=(*record.senders, _PARTED, *record.covers),
        payload=payload,
        priority=record.priority,
    )


def _read_record(file: io.BufferedRandom) -> Record | None:
    head = file.read(_RECORD.size)
    if len(head) < _RECORD.size:
        return None
    length, checksum = _RECORD.unpack(head)
    frame = file.read(length)
    if len(frame) < length or zlib.crc32(frame) != checksum:
        return None
    try:
        push, _ = read_message(frame_reader(frame), _LIMITS)
    except (FrameError, LinkClosedError):
        return None
    if not isinstance(push, Push):
        return None
    parted = push.covers.index(_PARTED)
    return Record(
        round=push.round,
        reduction=push.reduction,
        weight=push.weight,
        senders=push.covers[:parted],
        covers=push.covers[parted + 1 :],
        values=None if push.payload is NOTHING or not push.payload.buffers else push.payload.buffers[0],
        priority=push.priority,
        is_late=push.sender == _LATE,
    )


def frame_reader(frame: bytes) -> Callable[[memoryview], None]:
    """Returns what `read_message` reads a frame with that is in memory."""
    left = memoryview(frame)

    def read_into(memory: memoryview) -> None:
        nonlocal left
        if memory.nbytes > left.nbytes:
            raise LinkClosedError("the record ends within its frame")
        memory[:] = left[: memory.nbytes]
        left = left[memory.nbytes :]

    return read_into
