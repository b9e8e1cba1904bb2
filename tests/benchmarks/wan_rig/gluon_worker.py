"""One worker of any system that is a key-value store of MXNet: trains the shared model through
`gluon.Trainer`.

    python -m wan_rig.gluon_worker JOB.json

A store that is not MXNet's own is registered by importing `plugin`; it then offers `barrier()` and may offer
`wan_bytes()`, the bytes that it counted on its site's wide-area links so far, both ways, and
`agreed_weights()`, the weights that all sites last agreed on, by key: these are judged, not a site's own.
"""

import importlib
import sys
from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np

from . import cnn, mnist
from .gluon_job import GluonJob
from .records import Recorder


def main(path: Path) -> None:
    """Trains as the job says."""
    job = GluonJob.read(path)
    if job.plugin:
        importlib.import_module(job.plugin)
    store = mx.kv.create(job.store)
    if job.compression:
        _separate(store)
    net = cnn.build(job.seed)
    trainer = mx.gluon.Trainer(
        net.collect_params(),
        "adam",
        # The store's sum is over the workers' sums: with `step(1)` this makes it a mean over all images.
        {"learning_rate": job.learning_rate, "rescale_grad": 1 / (job.batch * job.num_workers)},
        kvstore=store,
        compression_params=job.compression or None,
    )
    # Else the first step distributes the initial weights, inside the clock.
    trainer._init_kvstore()
    trainer._init_params()
    mx.nd.waitall()
    train(job, net, trainer, store)


def _separate(store: Any) -> None:
    """Has the trainer push, then pull: what does both at once refuses compression in MXNet 1.9.1."""

    def push_and_pull(key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        store.push(key, value, priority)
        store.pull(key, value if out is None else out, priority)

    store.pushpull = push_and_pull


def train(job: GluonJob, net: Any, trainer: Any, store: Any) -> None:
    """Trains from the barrier on, and leaves records."""
    recorder = Recorder(Path(job.records), waits=job.waits) if job.records else None
    everything, _ = mnist.read(Path(job.data))
    own = everything.of(mnist.share(everything.labels, job.split, job.site, job.worker))
    number = job.site[0] * job.worker[1] + job.worker[0]
    source = mnist.batches(own, job.batch, seed=1000 * job.seed + number)
    loss_of = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    count = getattr(store, "wan_bytes", lambda: None)
    (getattr(store, "barrier", None) or store._barrier)()
    if recorder:
        recorder.start(_judged(store, net, trainer), count())
    for step in range(1, job.steps + 1):
        batch = next(source)
        with mx.autograd.record():
            loss = loss_of(net(mx.nd.array(batch.images)), mx.nd.array(batch.labels))
        loss.backward()
        trainer.step(1)
        if step % job.every == 0:
            mx.nd.waitall()  # all workers do, or some would run ahead of the snapshots
            if recorder:
                recorder.save(step, _judged(store, net, trainer), count())


def _judged(store: Any, net: Any, trainer: Any) -> Any:
    """Returns the weights that count: what all sites last agreed on, where each trains by itself."""
    if not hasattr(store, "agreed_weights"):
        return cnn.weights(net)
    by_key = store.agreed_weights()
    key_of = {parameter.name: key for key, parameter in enumerate(trainer._params)}  # sorted by name
    return np.concatenate([by_key[key_of[name]] for name in net.collect_params()])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
