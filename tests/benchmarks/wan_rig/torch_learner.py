"""The shared model trained with torch: through the tree, by torch's own DistributedDataParallel, or alone.

Adam is torch's, which adds its epsilon after the correction of the second moment where MXNet's adds it
before; else the two are alike.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from geokfp.components.geo_training.frameworks.torch_worker import GeoOptimizer
from geokfp.components.geo_training.frameworks.torch_worker import join as join_tree
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from . import cnn, torch_cnn
from .mnist import Samples
from .worker_job import DDP, JOINED, TREE, WorkerJob


@contextmanager
def join(job: WorkerJob) -> Iterator["TorchLearner"]:
    """Yields the learner of a job, as `worker.FRAMEWORKS` says."""
    net = torch_cnn.build(cnn.initial_weights(job.seed))
    _compute(net, Samples.blank(job.batch))  # sets the framework up, outside the clock
    learner = _LEARNERS[job.exchange.name](job, net)
    yield learner
    learner.finish()


def _compute(net: nn.Module, batch: Samples) -> None:
    """Computes the gradients of one batch; they take the place of any before."""
    net.zero_grad()
    found = net(torch.from_numpy(batch.images))
    nn.functional.cross_entropy(found, torch.from_numpy(batch.labels).long()).backward()


class TorchLearner:
    """See `worker.Learner`; of one process that trains by itself.

    Args:
        job: the worker's.
        net: the model.
    """

    def __init__(self, job: WorkerJob, net: nn.Module) -> None:
        self._net = net
        self._optimizer = torch.optim.Adam(net.parameters(), lr=job.learning_rate)
        self._num_images = 0

    def compute(self, batch: Samples) -> None:
        """See `worker.Learner`."""
        _compute(self._net, batch)
        self._num_images = len(batch.labels)

    def step(self) -> None:
        """See `worker.Learner`."""
        self._optimizer.step()

    def settle(self) -> None:
        """See `worker.Learner`; on processors torch has always finished."""

    def snapshot(self) -> tuple[Any, int | None]:
        """See `worker.Learner`."""
        return torch_cnn.flat(self._net.parameters()), None

    def finish(self) -> None:
        """Ends together with the other workers."""


class _TreeLearner(TorchLearner):
    """Of a worker that joins the tree by its two lines."""

    def __init__(self, job: WorkerJob, net: nn.Module) -> None:
        super().__init__(job, net)
        self._geo: GeoOptimizer = join_tree(net, self._optimizer)
        self._geo.barrier()

    def compute(self, batch: Samples) -> None:
        self._optimizer.zero_grad()
        found = self._net(torch.from_numpy(batch.images))
        loss = nn.functional.cross_entropy(found, torch.from_numpy(batch.labels).long())
        self._num_images = len(batch.labels)
        self._geo.backward(loss, self._num_images)

    def step(self) -> None:
        self._geo.step(self._num_images)

    def snapshot(self) -> tuple[Any, int | None]:
        agreed = self._geo.agreed_weights()
        return torch_cnn.flat(agreed[name] for name, _ in self._net.named_parameters()), self._geo.wan_bytes()

    def finish(self) -> None:
        self._geo.finish()


class _DdpLearner(TorchLearner):
    """Of a rank of DistributedDataParallel, which exchanges gradients while it computes others."""

    def __init__(self, job: WorkerJob, net: nn.Module) -> None:
        distributed.init_process_group("gloo")
        super().__init__(job, DistributedDataParallel(net))
        distributed.barrier()

    def finish(self) -> None:
        distributed.barrier()  # the first rank holds the store through which all of them meet
        distributed.destroy_process_group()


_LEARNERS: Mapping[str, Callable[[WorkerJob, nn.Module], TorchLearner]] = {
    JOINED: TorchLearner,
    TREE: _TreeLearner,
    DDP: _DdpLearner,
}
