"""IDX files read back what was written, and every damage is told before memory is asked for."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from geokfp.components._files import InputError
from geokfp.components.shard.config import ShardConfig
from geokfp.components.shard.idx import IMAGES, LABELS, read_idx
from geokfp.components.shard.source import read_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from support.labelled_tables import digits, idx_bytes, write_idx


@settings(max_examples=40, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(1, 4)),
    packed=st.booleans(),
    data=st.data(),
)
def test_what_was_written_reads_back_and_nothing_shorter_or_longer_does(
    tmp_path_factory: pytest.TempPathFactory, shape: tuple[int, ...], packed: bool, data: st.DataObject
) -> None:
    array = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    whole = idx_bytes(array)
    cut = data.draw(st.integers(0, len(whole) - 1))
    path = tmp_path_factory.mktemp("idx") / "images"
    form = gzip.compress if packed else bytes
    path.write_bytes(form(whole))
    assert np.array_equal(read_idx(str(path), IMAGES), array)
    for wrong in (whole[:cut], whole + b"\0"):
        path.write_bytes(form(wrong))
        with pytest.raises(InputError, match=r"images: "):
            read_idx(str(path), IMAGES)
    if packed:
        path.write_bytes(gzip.compress(whole)[: -1 - cut % 8])
        with pytest.raises(InputError, match=r"not a whole gzip file|0 bytes"):
            read_idx(str(path), IMAGES)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "0 bytes; the magic number 0x00000803 (images in IDX format) is needed"),
        (
            struct.pack(">II", LABELS, 4) + b"abcd",
            "magic number 0x00000801, labels; 0x00000803 (images in IDX format) is needed",
        ),
        (b"PNG\r\n\x1a\n", "magic number 0x504e470d; 0x00000803"),
        (struct.pack("<II", IMAGES, 1), "magic number 0x03080000; 0x00000803"),
        (struct.pack(">II", IMAGES, 1), "ends inside its header; 16 bytes are needed"),
        (
            struct.pack(">IIII", IMAGES, 0, 2, 2),
            "the header announces 0 x 2 x 2 bytes; at least one is needed",
        ),
        (
            struct.pack(">IIII", IMAGES, *[2**32 - 1] * 3),
            "announces 4,294,967,295 x 4,294,967,295 x 4,294,967,295 bytes, more than the file can hold",
        ),
    ],
)
def test_a_wrong_header_is_named(tmp_path: Path, content: bytes, message: str, packed: bool) -> None:
    path = tmp_path / "i.idx"
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(InputError) as caught:
        read_idx(str(path), IMAGES)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_short_packed_file_is_told_how_short(tmp_path: Path) -> None:
    path = tmp_path / "i.idx.gz"
    path.write_bytes(gzip.compress(struct.pack(">IIII", IMAGES, 2, 2, 2) + b"abc"))
    with pytest.raises(InputError, match="announces 2 x 2 x 2 bytes, the file holds 3"):
        read_idx(str(path), IMAGES)


@pytest.mark.parametrize("packed", [False, True])
def test_images_keep_their_bytes_unless_they_are_scaled(tmp_path: Path, packed: bool) -> None:
    images, labels = digits()
    options = write_idx(tmp_path, images, labels, packed=packed)
    rows = read_rows(ShardConfig(**options))
    assert rows.features.dtype == np.uint8
    assert np.array_equal(rows.features, images)
    assert rows.labels.tolist() == labels.tolist()
    assert rows.label_names == ("0", "1", "2", "3")
    scaled = read_rows(ShardConfig(**options, scale_images=True)).features
    assert scaled.dtype == np.float32
    assert np.array_equal(scaled, (images / 255).astype(np.float32))
    regression = read_rows(ShardConfig(**options, task="regression"))
    assert regression.labels.dtype == np.float32
    assert regression.label_names == ()


def test_images_and_labels_must_fit(tmp_path: Path) -> None:
    images, labels = digits()
    options = write_idx(tmp_path, images, labels[:-1])
    with pytest.raises(InputError, match=r"images.idx: 40 images; 39 are needed, one a label"):
        read_rows(ShardConfig(**options))
    exchanged = {"images": options["labels"], "labels": options["images"]}
    with pytest.raises(InputError, match=r"images.idx: magic number 0x00000803, images; 0x00000801 \(labels"):
        read_rows(ShardConfig(**exchanged))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    options = write_idx(tmp_path, *digits())
    Path(options["images"]).unlink()
    with pytest.raises(InputError, match=r"images\.idx: no such file"):
        read_rows(ShardConfig(**options))


def test_mnist_is_read(real_data: Path) -> None:
    folder = real_data / "mnist_10k"
    uris = {"images": "t10k-images-idx3-ubyte.gz", "labels": "t10k-labels-idx1-ubyte.gz"}
    rows = read_rows(ShardConfig(**{option: str(folder / name) for option, name in uris.items()}))
    assert rows.features.shape == (10_000, 28, 28)
    assert rows.labels[:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]
    assert np.bincount(rows.labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert rows.features[0].sum() == 18_454
