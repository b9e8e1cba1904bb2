"""Values that need not be in memory now: in a file that has no name, so that nothing is left of it.

It is made when it is first needed, in the system's folder for temporary files. What nobody refers to any more
gives its place to others. Where nothing can be written values stay in memory, which is said once.
"""

import errno
import os
import tempfile
import threading
import weakref
from collections import defaultdict, deque
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ..._launch import progress
from ..errors import KeepingError
from ..wire.messages import Answer, Array

_LEAST_BYTES = 4096
"""Places are of this size or a power of two above it: units recur, and fit where earlier ones were."""


@dataclass(frozen=True, eq=False)
class Shelved:
    """A one-dimensional array on a shelf."""

    shelf: "Shelf" = field(repr=False)
    offset: int
    dtype: str
    count: int

    def read(self) -> Array:
        """Returns a copy of the array.

        Raises:
            KeepingError: the file cannot be read.
        """
        return self.shelf.read(self)


@dataclass(frozen=True, eq=False)
class ShelvedAnswer:
    """An answer whose values are on a shelf."""

    answer: Answer
    buffers: tuple[Shelved, ...]

    def read(self) -> Answer:
        """Returns the answer as it was."""
        buffers = tuple(buffer.read() for buffer in self.buffers)
        return replace(self.answer, payload=replace(self.answer.payload, buffers=buffers))


class Shelf:
    """One node's; any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file: int | None = None
        self._end = 0
        # Written to wherever the last reference goes, even under the lock: so without it.
        self._free: defaultdict[int, deque[int]] = defaultdict(deque)
        self._said = False

    @property
    def num_bytes(self) -> int:
        """How far the file reaches."""
        return self._end

    def put(self, values: Array) -> Shelved | None:
        """Keeps a copy of a one-dimensional array; None where it cannot be written."""
        size = max(_LEAST_BYTES, 1 << max(values.nbytes - 1, 0).bit_length())
        offset = None
        try:
            with self._lock:
                number, offset = self._opened(), self._place(size)
            _write(number, np.ascontiguousarray(values), offset)
        except OSError as error:
            if offset is not None:
                self._free[size].append(offset)
            self._say(error)
            return None
        shelved = Shelved(self, offset, values.dtype.str, values.size)
        weakref.finalize(shelved, self._free[size].append, offset).atexit = False
        return shelved

    def put_answer(self, answer: Answer) -> ShelvedAnswer | None:
        """Keeps a copy of an answer; None where it cannot be written."""
        buffers: list[Shelved] = []
        for buffer in answer.payload.buffers:
            shelved = self.put(buffer)
            if shelved is None:
                return None
            buffers.append(shelved)
        return ShelvedAnswer(replace(answer, payload=replace(answer.payload, buffers=())), tuple(buffers))

    def read(self, shelved: Shelved) -> Array:
        """See `Shelved`."""
        values = np.empty(shelved.count, np.dtype(shelved.dtype))
        left, offset = _bytes_of(values), shelved.offset
        assert self._file is not None  # there is what was put
        try:
            while left.nbytes:
                count = os.preadv(self._file, [left], offset)
                if not count:
                    raise OSError(errno.EIO, "it ends too soon")
                left, offset = left[count:], offset + count
        except OSError as error:
            raise KeepingError(f"what was put by cannot be read: {error.strerror}") from error
        return values

    def _opened(self) -> int:
        if self._file is None:
            self._file, path = tempfile.mkstemp(prefix="geokfp-")
            weakref.finalize(self, os.close, self._file).atexit = False
            Path(path).unlink()
        return self._file

    def _place(self, size: int) -> int:
        try:
            return self._free[size].popleft()
        except IndexError:
            offset, self._end = self._end, self._end + size
            return offset

    def _say(self, error: OSError) -> None:
        with self._lock:
            said, self._said = self._said, True
        if not said:
            progress(f"what late ones need stays in memory: {tempfile.gettempdir()}: {error.strerror}")


def in_memory(result: Answer | ShelvedAnswer) -> Answer:
    """Returns an answer with its values, wherever they are."""
    return result.read() if isinstance(result, ShelvedAnswer) else result


def _write(number: int, values: Array, offset: int) -> None:
    left = _bytes_of(values)
    while left.nbytes:
        count = os.pwrite(number, left, offset)
        left, offset = left[count:], offset + count


def _bytes_of(values: Array) -> memoryview:
    return values.data.cast("B") if values.size else memoryview(b"")
