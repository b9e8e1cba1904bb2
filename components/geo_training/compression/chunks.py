"""Values seen as rows of one chunk each, a cache's worth of rows at a time."""

from collections.abc import Iterator

from ..wire.messages import Array

_VALUES_AT_ONCE = 1 << 18


def num_chunks(count: int, chunk: int) -> int:
    """Returns the chunks of so many values; the last one may be shorter."""
    return -(-count // chunk)


def rows_of(values: Array, chunk: int) -> Iterator[tuple[int, Array]]:
    """Yields views of shape (rows, chunk), last (1, rest) of a shorter one, after their first chunk's number.

    Args:
        values: one-dimensional and contiguous.
        chunk: values in a chunk.
    """
    whole = values.size // chunk
    rows = values[: whole * chunk].reshape(whole, chunk)
    step = max(1, _VALUES_AT_ONCE // chunk)
    for start in range(0, whole, step):
        yield start, rows[start : start + step]
    if whole * chunk < values.size:
        yield whole, values[whole * chunk :].reshape(1, -1)
