"""Full synchronisation of two workers at each of two sites equals one process on the joined batches."""

import numpy as np
import torch
from geokfp.components.shard.shards import read_shards
from geokfp.components.table_training.config import GeoTableConfig
from geokfp.components.table_training.rows import WorkerRows, batches, steps_per_epoch
from geokfp.components.table_training.run import run
from geokfp.components.table_training.trained_model import read_trained_model
from geokfp.components.table_training.worker import seed_draws
from support.site_shards import outputs_in, sharded

USER_CODE = """
import torch
from torch import nn


def build(feature_shape, num_classes):
    model = nn.Sequential(nn.Linear(feature_shape[0], 16), nn.Tanh(), nn.Linear(16, num_classes))
    return model, nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
"""
SEED, EPOCHS, BATCH_SIZE = 5, 3, 40


def by_one_process(shards, source):
    """Trains on the batches that all workers would take, in the same order."""
    workers = [WorkerRows(site, index, 2) for site in shards.sites for index in range(2)]
    num_steps = steps_per_epoch([site.num_train for site in shards.sites], 2, BATCH_SIZE)
    seed_draws(SEED)
    built = source.build()
    streams = [
        [
            each.take(rows)
            for epoch in range(1, EPOCHS + 1)
            for rows in batches(each.train, BATCH_SIZE, num_steps, SEED, index, epoch)
        ]
        for index, each in enumerate(workers)
    ]
    for taken in zip(*streams, strict=True):
        features, labels = (torch.from_numpy(np.concatenate(each)) for each in zip(*taken, strict=True))
        built.optimizer.zero_grad()
        built.loss(built.model(features), labels).backward()
        built.optimizer.step()
    return built.model


def test_the_weights_are_those_of_one_process(tmp_path):
    code = tmp_path / "model_of_equality_test.py"
    code.write_text(USER_CODE)
    folder = sharded(tmp_path / "in", method="dirichlet", alpha=2.0, seed=1)
    config = GeoTableConfig(
        entry_point="model_of_equality_test:build",
        user_code=str(code),
        num_workers=2,
        epochs=EPOCHS,
        batch_size=BATCH_SIZE,
        seed=SEED,
    )
    run(config, folder, outputs_in(tmp_path / "out"))
    trained = read_trained_model(tmp_path / "out" / "model")
    shards = read_shards(folder)
    assert len({site.num_train for site in shards.sites}) == 2
    alone = by_one_process(shards, trained.source).state_dict()
    for name, tensor in trained.build().state_dict().items():
        torch.testing.assert_close(tensor, alone[name], rtol=0, atol=1e-5)
