"""Arrays of MXNet as flat vectors, for the policies. For MXNet 1.9.1."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import mxnet as mx
import numpy as np

from ..synchronization.base import BUFFERS
from ..wire.messages import Array
from ..wire.units import WEIGHTS
from ..workers.plane import SMALL, Layout, Plane


class MxnetReplica:
    """See `Replica`; of the same arrays on each worker, each with its copies on other devices, if any.

    Large arrays come first, in their order, then the small ones, which travel together.

    Args:
        learned: arrays with a gradient, by key.
        measured: those without.

    Attributes:
        keys: of the learned arrays, in the order of the flat vector.
    """

    def __init__(self, learned: Mapping[Any, Sequence[Any]], measured: Sequence[Sequence[Any]]) -> None:
        self.keys = sorted(learned, key=lambda key: learned[key][0].size < SMALL)  # sorting keeps their order
        self._learned = [learned[key] for key in self.keys]
        self._measured = measured
        self.layout = Layout.of([(str(key), learned[key][0].size) for key in self.keys])
        self.statistics_layout = Layout.of([(str(i), each[0].size) for i, each in enumerate(measured)])

    def weights(self) -> Array:
        """See `Replica`."""
        return _flat([each[0] for each in self._learned])

    def set_weights(self, weights: Array) -> None:
        """See `Replica`."""
        _spread(weights, self._learned)

    def statistics(self) -> Array:
        """See `Replica`."""
        return _flat([each[0] for each in self._measured])

    def set_statistics(self, statistics: Array) -> None:
        """See `Replica`."""
        _spread(statistics, self._measured)

    def take_first(self, plane: Plane) -> None:
        """Takes over the first worker's weights and statistics, once tensors have their roots."""
        plane.place(self.layout)
        self.set_weights(plane.first(WEIGHTS, self.layout, self.weights()))
        self.set_statistics(plane.first(BUFFERS, self.statistics_layout, self.statistics()))

    def gradients(self) -> list[Any]:
        """Returns the gradient of each array."""
        return [each[0].grad for each in self._learned]

    def gradient(self) -> Array:
        """Returns the gradients, float32 [layout.count]."""
        return _flat(self.gradients())

    def by_piece(self) -> list[list[Any]]:
        """Returns the keys of each piece of the layout."""
        pieces: list[list[Any]] = [[] for _ in self.layout.pieces]
        index, offset = 0, 0
        for key, (first, *_) in zip(self.keys, self._learned, strict=True):
            piece = self.layout.pieces[index]
            if offset >= piece.start + piece.count:
                index += 1
            pieces[index].append(key)
            offset += first.size
        return pieces

    def cut_keys(self, flat: Array, keys: Sequence[Any]) -> Iterator[tuple[Any, Array]]:
        """Yields each of some keys with its part of a flat vector of theirs, in the array's shape."""
        arrays = [self._learned[self.keys.index(key)] for key in keys]
        for key, (part, _) in zip(keys, _parts(flat, arrays), strict=True):
            yield key, part

    def cut(self, flat: Array) -> Iterator[tuple[Any, Array]]:
        """Yields each key with its part of a flat vector, in the array's shape."""
        for key, (part, _) in zip(self.keys, _parts(flat, self._learned), strict=True):
            yield key, part


def _flat(arrays: Sequence[Any]) -> Array:
    if not arrays:
        return np.zeros(0, np.float32)
    flat: Array = np.concatenate([array.asnumpy().reshape(-1).astype(np.float32) for array in arrays])
    return flat


def _spread(flat: Array, arrays: Sequence[Sequence[Any]]) -> None:
    for part, copies in _parts(flat, arrays):
        for array in copies:
            # Not `array[:] =`, which fails where an inference has laid the array out for its convolution.
            mx.nd.array(part).copyto(array)


def _parts(flat: Array, arrays: Sequence[Sequence[Any]]) -> Iterator[tuple[Array, Sequence[Any]]]:
    offset = 0
    for copies in arrays:
        size = copies[0].size
        yield flat[offset : offset + size].reshape(copies[0].shape), copies
        offset += size
