"""Which rows a worker takes, in which order, and how they enter a model."""

import shutil

import numpy as np
import pytest
from geokfp.components.ingest.graph import TRAIN, VALIDATION
from geokfp.components.shard.shards import read_shards
from geokfp.components.table_training.rows import WorkerRows, batches, entering, steps_per_epoch
from hypothesis import given
from hypothesis import strategies as st
from support.site_shards import arrays, sharded


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    x = np.arange(80, dtype=np.uint8).reshape(40, 2)
    return sharded(folder, table=arrays(folder, x, np.arange(40) % 3), num_sites=2)


@given(st.integers(1, 200), st.integers(1, 50), st.integers(0, 20), st.integers(0, 9))
def test_an_epochs_batches_hold_every_row_once_and_none_is_tiny(num_rows, batch_size, further, epoch):
    rows = np.arange(num_rows) * 3
    num_steps = steps_per_epoch([num_rows], 1, batch_size) + further
    cut = batches(rows, batch_size, num_steps, 7, 0, epoch)
    assert len(cut) == num_steps
    assert sorted(np.concatenate(cut)) == rows.tolist()
    sizes = [len(each) for each in cut if len(each)]
    assert max(sizes) <= batch_size
    assert max(sizes) - min(sizes) <= 1


@given(st.lists(st.integers(3, 400), min_size=1, max_size=4), st.integers(1, 3), st.integers(1, 50))
def test_every_share_fits_the_steps_of_an_epoch_and_the_largest_fills_them(sites, num_workers, batch_size):
    num_steps = steps_per_epoch(sites, num_workers, batch_size)
    shares = [np.arange(num)[worker::num_workers] for num in sites for worker in range(num_workers)]
    filled = [
        sum(len(rows) > 0 for rows in batches(share, batch_size, num_steps, 0, 0, 0)) for share in shares
    ]
    assert filled == [-(-len(share) // batch_size) for share in shares]
    assert max(filled) == num_steps


def test_a_small_worker_takes_its_batches_evenly_among_the_steps():
    cut = batches(np.arange(9), 3, 12, 0, 0, 0)
    assert [len(each) for each in cut] == [3, 0, 0, 0] * 3


def test_order_is_a_function_of_seed_worker_and_epoch():
    rows = np.arange(100)
    first = np.concatenate(batches(rows, 10, 10, 1, 2, 3))
    assert np.array_equal(first, np.concatenate(batches(rows, 10, 10, 1, 2, 3)))
    for other in ((0, 2, 3), (1, 0, 3), (1, 2, 0)):
        assert not np.array_equal(first, np.concatenate(batches(rows, 10, 10, *other)))


def test_workers_share_the_training_rows_and_judge_each_row_once(shards):
    site = read_shards(shards).sites[0]
    workers = [WorkerRows(site, index, 3) for index in range(3)]
    trained = np.concatenate([each.train for each in workers])
    assert sorted(trained) == np.flatnonzero(site.split() == TRAIN).tolist()
    assert sorted(np.concatenate([each.judged for each in workers])) == list(range(site.num_rows))
    for each in workers:
        assert each.validation.tolist() == np.flatnonzero(site.split() == VALIDATION).tolist()


def test_a_worker_opens_its_own_sites_folder_only(shards, tmp_path):
    copy = shutil.copytree(shards, tmp_path / "shards")
    site, other = read_shards(copy).sites
    shutil.rmtree(other.directory)
    features, labels = WorkerRows(site, 0, 1).take(np.array([0, 1]))
    np.testing.assert_array_equal(features, site.features()[:2] / np.float32(255))
    np.testing.assert_array_equal(labels, site.labels()[:2])


def test_bytes_are_scaled_and_numbers_enter_as_they_lie():
    scaled = entering(np.array([[0, 51, 255]], np.uint8))
    assert scaled.dtype == np.float32
    np.testing.assert_allclose(scaled, [[0, 0.2, 1]], rtol=1e-6)
    assert entering(np.array([[-3.5, 1000]], np.float32)).tolist() == [[-3.5, 1000]]
