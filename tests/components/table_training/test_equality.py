"""Full synchronisation of two workers at each of two sites equals one process on the joined batches."""

import numpy as np
import pytest
import torch
from geokfp.components.shard.shards import read_shards
from geokfp.components.table_training.config import GeoTableConfig
from geokfp.components.table_training.rows import WorkerRows, batches, steps_per_epoch
from geokfp.components.table_training.run import run
from geokfp.components.table_training.trained_model import read_trained_model
from geokfp.components.table_training.worker import seed_draws
from support.site_shards import outputs_in, sharded

# MXNet names what NumPy has deprecated when it is imported.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

TORCH = """
import torch
from torch import nn


def build(feature_shape, num_classes):
    model = nn.Sequential(nn.Linear(feature_shape[0], 16), nn.Tanh(), nn.Linear(16, num_classes))
    return model, nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
"""
GLUON = """
import mxnet as mx
from mxnet import gluon


def build(feature_shape, num_classes):
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(16, activation="tanh"), gluon.nn.Dense(num_classes))
    net.initialize(mx.init.Xavier())
    sgd = mx.optimizer.SGD(learning_rate=0.2, momentum=0.9, wd=1e-3)
    return net, gluon.loss.SoftmaxCrossEntropyLoss(), sgd
"""
SEED, EPOCHS, BATCH_SIZE = 5, 3, 40


def joined_batches(shards):
    """Returns features and labels of each step, of all workers together."""
    workers = [WorkerRows(site, index, 2) for site in shards.sites for index in range(2)]
    num_steps = steps_per_epoch([site.num_train for site in shards.sites], 2, BATCH_SIZE)
    streams = [
        [
            each.take(rows)
            for epoch in range(1, EPOCHS + 1)
            for rows in batches(each.train, BATCH_SIZE, num_steps, SEED, index, epoch)
        ]
        for index, each in enumerate(workers)
    ]
    for taken in zip(*streams, strict=True):
        yield tuple(np.concatenate(each) for each in zip(*taken, strict=True))


def trained(folder, framework, code):
    """Returns the trained model and the shards that it was trained on."""
    module = f"{framework}_of_equality_test"
    (folder / f"{module}.py").write_text(code)
    shards = sharded(folder / "in", method="dirichlet", alpha=2.0, seed=1)
    config = GeoTableConfig(
        entry_point=f"{module}:build",
        user_code=str(folder / f"{module}.py"),
        synchronization="fsa",
        num_workers=2,
        epochs=EPOCHS,
        batch_size=BATCH_SIZE,
        seed=SEED,
    )
    run(config, shards, outputs_in(folder / "out"))
    read = read_shards(shards)
    assert len({site.num_train for site in read.sites}) == 2
    return read_trained_model(folder / "out" / "model"), read


def test_the_weights_of_torch_are_those_of_one_process(tmp_path):
    model, shards = trained(tmp_path, "torch", TORCH)
    seed_draws(SEED)
    built = model.source.build()
    for features, labels in joined_batches(shards):
        built.optimizer.zero_grad()
        built.loss(built.model(torch.from_numpy(features)), torch.from_numpy(labels)).backward()
        built.optimizer.step()
    alone = built.model.state_dict()
    for name, tensor in model.build().state_dict().items():
        torch.testing.assert_close(tensor, alone[name], rtol=0, atol=1e-5)


def test_the_weights_of_gluon_are_those_of_its_own_trainer(tmp_path):
    import mxnet as mx

    model, shards = trained(tmp_path, "gluon", GLUON)
    seed_draws(SEED)
    built = model.source.build()
    trainer = mx.gluon.Trainer(built.model.collect_params(), built.optimizer)
    for features, labels in joined_batches(shards):
        with mx.autograd.record():
            loss = built.loss(built.model(mx.nd.array(features)), mx.nd.array(labels))
        loss.backward()
        trainer.step(len(labels))
    written = {array.shape: array.asnumpy() for array in mx.nd.load(str(model.weights[1])).values()}
    alone = {each.shape: each.data().asnumpy() for each in built.model.collect_params().values()}
    assert set(written) == set(alone) == {(16, 64), (16,), (10, 16), (10,)}
    for shape, array in written.items():
        np.testing.assert_allclose(array, alone[shape], rtol=0, atol=1e-5)
