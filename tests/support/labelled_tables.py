"""Small tables, arrays and IDX files for tests."""

import gzip
from pathlib import Path

import numpy as np


def idx_bytes(array: np.ndarray) -> bytes:
    """The IDX form of an array of bytes."""
    head = bytes([0, 0, 0x08, array.ndim])
    return head + b"".join(int(size).to_bytes(4, "big") for size in array.shape) + array.tobytes()


def write_idx(
    folder: Path, images: np.ndarray, labels: np.ndarray, *, packed: bool = False
) -> dict[str, str]:
    """Writes two IDX files and returns the options that name them."""
    options = {}
    for name, array in (("images", images), ("labels", labels)):
        data = idx_bytes(array)
        path = folder / (f"{name}.idx.gz" if packed else f"{name}.idx")
        path.write_bytes(gzip.compress(data) if packed else data)
        options[name] = str(path)
    return options


def digits(
    count: int = 40, *, height: int = 3, width: int = 2, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of four classes; the first pixels hold the row's number."""
    generator = np.random.default_rng(seed)
    images = generator.integers(0, 256, (count, height, width), dtype=np.uint8)
    images[:, 0, 0] = np.arange(count)
    return images, (np.arange(count) % 4).astype(np.uint8)
