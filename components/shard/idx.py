"""Arrays of bytes in the IDX format that MNIST is published in (LeCun, Cortes & Burges 1998).

Drawing of a file, which gzip may have packed::

    0      two bytes 0, 0x08 for unsigned bytes, the number of dimensions: the magic number
    4      each dimension, a big-endian uint32
    ...    the bytes, the last dimension fastest

A file is held against its header before memory is asked for: a header may announce anything. Knows nothing of
what the bytes mean.
"""

import gzip
import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

import numpy as np

from .._files import InputError, local_file
from ..ingest.graph import Array

IMAGES = 0x00000803
LABELS = 0x00000801
_NAMES = {IMAGES: "images", LABELS: "labels"}
_GZIP_MAGIC = b"\x1f\x8b"
_MOST_INFLATION = 1032
"""Bytes that one byte of deflated data can stand for at most (RFC 1951: 258 bytes in two bits)."""


def read_idx(uri: str, magic: int, *, num_rows: int | None = None) -> Array:
    """Reads one file.

    Args:
        uri: where it is; whether gzip packed it, its first bytes say.
        magic: what it must hold, `IMAGES` or `LABELS`.
        num_rows: how many there must be.

    Returns:
        uint8 [n, height, width] or [n].

    Raises:
        InputError: another magic number, sizes that do not fit `num_rows` or the file, a damaged file.
    """
    with local_file(uri) as path, _unpacked(path) as (stream, most_bytes):
        try:
            shape = _read_header(stream, uri, magic)
            if num_rows is not None and shape[0] != num_rows:
                raise InputError(f"{uri}: {shape[0]:,} {_NAMES[magic]}; {num_rows:,} are needed, one a label")
            needed = math.prod(shape)
            if needed > most_bytes:
                raise InputError(
                    f"{uri}: the header announces {_shown(shape)} bytes, more than the file can hold"
                )
            array = np.empty(shape, dtype=np.uint8)
            found = _fill(stream, array.reshape(-1).data)
            rest = stream.read(1)  # at the end, gzip compares its checksum too
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise InputError(f"{uri}: not a whole gzip file ({error})") from error
    if found < needed or rest:
        held = f"{found:,}" if found < needed else "more"
        raise InputError(f"{uri}: the header announces {_shown(shape)} bytes, the file holds {held}")
    return array


@contextmanager
def _unpacked(path: Path) -> Iterator[tuple[IO[bytes], int]]:
    """Yields the stream of bytes and the most that there can be."""
    with path.open("rb") as file:
        packed = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
        file.seek(0)
        size = path.stat().st_size
        if packed:
            with gzip.GzipFile(fileobj=file) as stream:
                yield cast(IO[bytes], stream), size * _MOST_INFLATION
        else:
            yield file, size


def _read_header(stream: IO[bytes], uri: str, magic: int) -> tuple[int, ...]:
    needed = f"0x{magic:08x} ({_NAMES[magic]} in IDX format)"
    head = stream.read(4)
    if len(head) < 4:
        raise InputError(f"{uri}: {len(head)} bytes; the magic number {needed} is needed")
    found = int.from_bytes(head, "big")
    if found != magic:
        swapped = f", {_NAMES[found]}" if found in _NAMES else ""
        raise InputError(f"{uri}: magic number 0x{found:08x}{swapped}; {needed} is needed")
    dimensions = magic & 0xFF
    sizes = stream.read(4 * dimensions)
    if len(sizes) < 4 * dimensions:
        raise InputError(f"{uri}: ends inside its header; {4 + 4 * dimensions} bytes are needed")
    shape = tuple(int(size) for size in np.frombuffer(sizes, dtype=">u4"))
    if 0 in shape:
        raise InputError(f"{uri}: the header announces {_shown(shape)} bytes; at least one is needed")
    return shape


def _fill(stream: IO[bytes], target: memoryview) -> int:
    filled = 0
    while filled < len(target):
        count = stream.readinto(target[filled : filled + (1 << 20)])  # type: ignore[attr-defined]
        if not count:
            break
        filled += count
    return filled


def _shown(shape: tuple[int, ...]) -> str:
    return " x ".join(f"{size:,}" for size in shape)
