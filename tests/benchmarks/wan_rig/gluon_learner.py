"""The shared model trained through `gluon.Trainer`, with any key-value store.

A store that is not MXNet's own is registered by importing `plugin`; it then offers `barrier()` and may offer
`wan_bytes()`, the bytes that it counted on its site's wide-area links so far, both ways, and
`agreed_weights()`, the weights that all sites last agreed on, by key: these are judged, not a site's own.
"""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mxnet as mx
import numpy as np

from . import cnn, gluon_cnn
from .mnist import Samples
from .worker_job import JOINED, WorkerJob

_LOSS = mx.gluon.loss.SoftmaxCrossEntropyLoss()


@contextmanager
def join(job: WorkerJob) -> Iterator["GluonLearner"]:
    """Yields the learner of a job, as `worker.FRAMEWORKS` says."""
    exchange = job.exchange
    if exchange.plugin:
        importlib.import_module(exchange.plugin)
    store = None if exchange.name == JOINED else mx.kv.create(exchange.name)
    if exchange.compression:
        _separate(store)
    net = gluon_cnn.build(cnn.initial_weights(job.seed))
    _compute(net, Samples.blank(job.batch))  # sets the framework up, outside the clock
    getattr(store, "watch", lambda _net: None)(net)
    trainer = mx.gluon.Trainer(
        net.collect_params(),
        "adam",
        # The store's sum is over the workers' sums: with `step(1)` this makes it a mean over all images.
        {"learning_rate": job.learning_rate, "rescale_grad": 1 / (job.batch * exchange.num_workers)},
        kvstore=store,
        compression_params=dict(exchange.compression) or None,
    )
    # Else the first step distributes the initial weights, inside the clock.
    trainer._init_kvstore()
    trainer._init_params()
    mx.nd.waitall()
    if store is not None:
        (getattr(store, "barrier", None) or store._barrier)()
    yield GluonLearner(net, trainer, store)


def _compute(net: Any, batch: Samples) -> None:
    """Computes the gradients of one batch; they take the place of any before."""
    with mx.autograd.record():
        loss = _LOSS(net(mx.nd.array(batch.images)), mx.nd.array(batch.labels))
    loss.backward()


def _separate(store: Any) -> None:
    """Has the trainer push, then pull: what does both at once refuses compression in MXNet 1.9.1."""

    def push_and_pull(key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        store.push(key, value, priority)
        store.pull(key, value if out is None else out, priority)

    store.pushpull = push_and_pull


class GluonLearner:
    """See `worker.Learner`.

    Args:
        net: the model.
        trainer: of the model's parameters, through the store.
        store: the key-value store; None for one process.
    """

    def __init__(self, net: Any, trainer: Any, store: Any) -> None:
        self._net, self._trainer, self._store = net, trainer, store

    def compute(self, batch: Samples) -> None:
        """See `worker.Learner`."""
        _compute(self._net, batch)

    def step(self) -> None:
        """See `worker.Learner`."""
        self._trainer.step(1)

    def settle(self) -> None:
        """See `worker.Learner`."""
        mx.nd.waitall()

    def snapshot(self) -> tuple[Any, int | None]:
        """See `worker.Learner`."""
        count = getattr(self._store, "wan_bytes", lambda: None)
        return self._judged(), count()

    def _judged(self) -> Any:
        """Returns the weights that count: what all sites last agreed on, where each trains by itself."""
        if not hasattr(self._store, "agreed_weights"):
            return gluon_cnn.weights(self._net)
        by_key = self._store.agreed_weights()
        key_of = {parameter.name: key for key, parameter in enumerate(self._trainer._params)}  # by name
        return np.concatenate([by_key[key_of[name]] for name in self._net.collect_params()])
