"""The loop over doubles: no DGL servers, workers joined in one process by threads."""

import threading

import pytest
import torch
from geokfp.components.training.epochs import BestEpoch, EpochRow
from geokfp.components.training.exchange import (
    LocalExchange,
    SameWeights,
    flatten_gradients,
    restore_gradients,
)
from geokfp.components.training.loop import Hooks, fit
from support.nodes_without_edges import Nodes, config, data, flat, model

torch.set_num_threads(1)


class ThreadExchange(SameWeights):
    """Joins workers that are threads of one process."""

    def __init__(self, index, shared):
        self.index, self.size, self._shared = index, shared.size, shared

    def broadcast(self, model):
        if self.index == 0:
            self._shared.state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        self._shared.barrier.wait(20)
        model.load_state_dict(self._shared.state)
        self._shared.barrier.wait(20)

    def sum(self, values):
        self._shared.values[self.index] = values
        self._shared.barrier.wait(20)
        total = torch.stack(self._shared.values).sum(0)
        self._shared.barrier.wait(20)
        return total

    def step(self, model, optimizer, num_samples):
        flat = torch.cat([flatten_gradients(model), torch.tensor([float(num_samples)])]).double()
        total = self.sum(flat)
        restore_gradients(model, (total[:-1] / total[-1].clamp(min=1)).float())
        optimizer.step()

    def close(self):
        pass


class Shared:
    def __init__(self, size):
        self.size, self.values, self.barrier, self.state = size, [None] * size, threading.Barrier(size), None


def train_together(workers, chosen):
    shared = Shared(len(workers))
    # Each starts from other weights: they must come from worker 0.
    trained = [model(seed) for seed in range(len(workers))]
    fits = [None] * len(workers)

    def work(index):
        fits[index] = fit(workers[index], trained[index], chosen, ThreadExchange(index, shared))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(workers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(40)
    return trained, fits


@pytest.mark.parametrize("counts", [(20, 20), (33, 7), (40, 0), (1, 2, 37)])
def test_workers_together_equal_one_process_on_the_joined_batch(counts):
    features, labels = data(40)
    pieces = [torch.arange(40)[sum(counts[:i]) : sum(counts[: i + 1])] for i in range(len(counts))]
    workers = [Nodes(features[piece], labels[piece], batch_size=40) for piece in pieces]
    trained, fits = train_together(workers, config(batch_size=40, epochs=20))
    alone = model(0)
    fit(Nodes(features, labels, 40), alone, config(batch_size=40, epochs=20), LocalExchange())
    for each in trained:
        for ours, reference in zip(each.parameters(), alone.parameters(), strict=True):
            assert torch.allclose(ours, reference, atol=1e-5)
    assert all(len(each.history) == 20 for each in fits)


def test_uneven_batches_neither_hang_nor_drift():
    features, labels = data(50)
    workers = [Nodes(features[:43], labels[:43], 5), Nodes(features[43:], labels[43:], 5)]
    trained, fits = train_together(workers, config(batch_size=5, epochs=3))
    for one, two in zip(trained[0].parameters(), trained[1].parameters(), strict=True):
        assert torch.equal(one, two)
    assert fits[0].history[-1].train_loss == fits[1].history[-1].train_loss


def test_stops_early_and_returns_the_best_weights():
    features, labels = data(60)
    nodes = Nodes(features, labels, 60, validation=(0, 20))
    seen = []
    hooks = Hooks(on_best=lambda best, row: seen.append((row.epoch, flat(best))))
    trained = model()
    result = fit(nodes, trained, config(epochs=200, patience=3, learning_rate=5.0), LocalExchange(), hooks)
    assert result.best_epoch == seen[-1][0]
    assert len(result.history) - 3 <= result.best_epoch < 200
    assert torch.equal(flat(trained), seen[-1][1])
    best = max(result.history, key=lambda row: (row.val_accuracy, -row.val_loss))
    assert best.epoch == result.best_epoch


def rows(*results):
    return [
        EpochRow(epoch, 0.0, 0.0, loss, accuracy, 0.0) for epoch, (loss, accuracy) in enumerate(results, 1)
    ]


@pytest.mark.parametrize(
    ("results", "best_epoch", "progress_epoch"),
    [
        ([(1.0, 0.5), (1.0, 0.6)], 2, 2),  # more right
        ([(1.0, 0.5), (0.8, 0.5)], 2, 2),  # surer by far
        ([(1.0, 0.5), (0.95, 0.5)], 2, 1),  # a little surer: better, but not progress
        ([(1.0, 0.5), (0.95, 0.5), (0.89, 0.5)], 3, 3),  # little by little, a tenth in all
        ([(1.0, 0.5), (0.5, 0.4)], 1, 2),  # surer, though less often right
        ([(1.0, 0.5), (1.2, 0.4)], 1, 1),
    ],
)
def test_which_epoch_is_best_and_which_is_progress(results, best_epoch, progress_epoch):
    best = BestEpoch()
    for row in rows(*results):
        best.takes(row)
    assert (best.epoch, best.progress_epoch) == (best_epoch, progress_epoch)


def test_without_validation_nodes_runs_all_epochs():
    features, labels = data(10)
    result = fit(Nodes(features, labels, 4), model(), config(patience=2), LocalExchange())
    assert len(result.history) == result.best_epoch == 5
    assert "val_loss" not in result.history[0].finite()


def test_eval_every_measures_only_then_and_at_the_end():
    features, labels = data(10)
    nodes = Nodes(features, labels, 4, validation=(0, 5))
    result = fit(nodes, model(), config(eval_every=2, patience=0), LocalExchange())
    assert [row.epoch for row in result.history if "val_loss" in row.finite()] == [2, 4, 5]
