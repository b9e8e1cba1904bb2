"""What all systems of `wan.py` share: images, model, and the processes that each plans."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from benchmarks.wan_rig import cnn, links, mnist
from benchmarks.wan_rig.network import addresses
from benchmarks.wan_rig.systems import SYSTEMS, Setting
from benchmarks.wan_rig.systems.tree import OURS, TORCH_OURS
from benchmarks.wan_rig.worker_job import WorkerJob
from geokfp.components._files import InputError

TWO_SITES = links.endpoints(2)


@pytest.mark.parametrize("split", mnist.SPLITS)
@pytest.mark.parametrize(("sites", "workers"), [(2, 2), (4, 1)])
def test_workers_share_all_images_and_no_image_twice(split, sites, workers):
    labels = np.random.default_rng(3).integers(10, size=8000).astype(np.float32)
    shares = [
        mnist.share(labels, split, (site, sites), (worker, workers))
        for site in range(sites)
        for worker in range(workers)
    ]
    assert sorted(np.concatenate(shares)) == list(range(8000))
    for number, own in enumerate(shares):
        classes = set(labels[own].astype(int))
        site = number // workers
        expected = set(range(10)) if split == "iid" else {c for c in range(10) if c % sites == site}
        assert classes == expected


def test_batches_are_whole_and_each_epoch_has_every_image_once():
    samples = mnist.Samples(np.arange(64), np.arange(64))
    source = mnist.batches(samples, 32, seed=1)
    epochs = [np.concatenate([next(source).labels, next(source).labels]) for _ in range(2)]
    for labels in epochs:
        assert sorted(labels) == list(range(64))
    assert list(epochs[0]) != list(epochs[1])


def test_real_images_are_read(real_data):
    train, test = mnist.read(real_data / "mnist_10k")
    assert train.images.shape == (8000, 1, 28, 28)
    assert test.images.shape == (2000, 1, 28, 28)
    assert (train.images.min(), train.images.max()) == (0, 1)
    assert set(test.labels) == set(range(10))


def test_damaged_images_are_refused(tmp_path):
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(b"no gzip")
    with pytest.raises(InputError, match="--data has no readable t10k-images"):
        mnist.read(tmp_path)


def test_the_model_has_the_parameters_of_the_example_and_takes_its_weights_back():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of MXNet's own, at its import
        from benchmarks.wan_rig import gluon_cnn

    vector = cnn.initial_weights(seed=1)
    assert vector.shape == (cnn.NUM_PARAMETERS,) == (178_762,)
    assert vector.dtype == np.float32
    assert np.array_equal(vector, cnn.initial_weights(seed=1))
    net = gluon_cnn.build(cnn.initial_weights(seed=2))
    assert not np.array_equal(vector, gluon_cnn.weights(net))
    gluon_cnn.load(net, vector)
    assert np.array_equal(vector, gluon_cnn.weights(net))


def test_ranks_meet_at_the_first_site_and_talk_through_their_own_wire(tmp_path):
    setting = setting_in(tmp_path)
    planned = SYSTEMS["torch_ddp"].plan(setting)
    ranks = {process.environment["RANK"]: process.endpoint for process in planned}
    assert ranks == {"0": "site-0", "1": "site-0", "2": "site-1", "3": "site-1"}
    for process in planned:
        assert process.environment["MASTER_ADDR"] == setting.addresses["site-0"]
        assert process.environment["GLOO_SOCKET_IFNAME"] == "wan0"
        assert process.environment["WORLD_SIZE"] == "4"


def test_every_system_of_the_tree_has_its_twin_with_torch(tmp_path):
    assert OURS.keys() == {name.removeprefix("torch_") for name in TORCH_OURS}
    trees = []
    for name in ("hfa", "torch_hfa"):
        folder = tmp_path / name
        folder.mkdir()
        SYSTEMS[name].plan(setting_in(folder))
        trees.append({**json.loads((folder / "tree.json").read_text()), "run_id": ""})
        job = WorkerJob.read(folder / "site-0-worker-1.json")
        assert job.exchange.framework == ("torch" if name == "torch_hfa" else "gluon")
    assert trees[0] == trees[1]


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_every_system_plans_all_workers_and_one_recorder_a_site(name, tmp_path):
    setting = setting_in(tmp_path)
    planned = SYSTEMS[name].plan(setting)
    assert len({process.name for process in planned}) == len(planned)
    assert {process.endpoint for process in planned} <= set(TWO_SITES)
    assert sum(process.finishes for process in planned) == (1 if SYSTEMS[name].one_process else 4)
    jobs = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("*-worker-*.json"))]
    folders = [job["records"] for job in jobs if job["records"]]
    assert folders == [str(setting.records / site) for site in SYSTEMS[name].recording(setting.sites)]


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_every_system_slows_the_workers_of_the_slow_site_only(name, tmp_path):
    SYSTEMS[name].plan(setting_in(tmp_path, slow_sites={"site-1": 3.0}))
    jobs = [json.loads(path.read_text()) for path in tmp_path.glob("*-worker-*.json")]
    assert jobs
    assert {(job["site"][0], job["slow_factor"]) for job in jobs} <= {(0, 0.0), (1, 3.0)}


def setting_in(folder: Path, **others) -> Setting:
    values = {
        "data": Path("images"),
        "addresses": addresses(links.Links(endpoints=TWO_SITES, schedule=links.uniform(TWO_SITES, None))),
        "sites": TWO_SITES[1:],
        "workers": 2,
        "split": "iid",
        "batch": 32,
        "learning_rate": 1e-3,
        "seed": 0,
        "steps": 20,
        "every": 5,
        **others,
    }
    return Setting(folder=folder, **values)
