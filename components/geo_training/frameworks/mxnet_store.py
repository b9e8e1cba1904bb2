"""MXNet's key-value store over the tree, for `gluon.Trainer` and for scripts that `push` and `pull`.

    trainer = gluon.Trainer(net.collect_params(), "adam", kvstore=mx.kv.create("geokfp"))

The optimizer acts on the worker, or in its place that of the root where the tree's synchronisation names one;
what the workers exchange, and when, the policy says. A step begins with the push of a first key and ends with
that of the last, as gluon's Trainer pushes every parameter in each step; what is pulled meanwhile comes at
its end. As in `dist_sync` a worker's optimizer is given the SUM of the workers' gradients, or where each
worker steps by itself what stands for it, so that `rescale_grad` means the same; the root's gets the mean.
Parameters without a gradient (running means and variances) are averaged as statistics. For MXNet 1.9.1.
"""

from collections.abc import Mapping
from typing import Any

import mxnet as mx
import numpy as np
from mxnet.kvstore import KVStoreBase

from ..errors import UsageError
from ..synchronization import ServedWorker
from ..synchronization.fsa import FullAtWorker
from ..synchronization.piecewise import Piecewise
from ..wire.messages import Array
from ..workers.place import Place
from .geomx import check_compression
from .mxnet_overlap import MxnetOverlap
from .mxnet_replica import MxnetReplica


@KVStoreBase.register
class GeoKfp(KVStoreBase):  # type: ignore[misc]
    """The store; `mx.kv.create("geokfp")` makes it.

    The worker finds its place in the environment (`place`).

    Raises:
        InputError: a variable is missing, or names no worker of the tree.
        GeoError: the site's aggregator cannot be reached.
    """

    def __init__(self) -> None:
        self._place = Place.from_environment()
        self._plane, self._policy = self._place.plane, self._place.policy
        self._arrays: dict[Any, list[Any]] = {}
        self._tensors: MxnetReplica | None = None
        self._updater: Any = None
        self._root_scale = np.float32(1)
        self._pushed: dict[Any, list[Any]] = {}
        self._buffers: dict[Any, list[Any]] = {}
        self._sums: dict[Any, Array] = {}
        self._pulled: dict[Any, list[Any]] = {}
        self._overlap: MxnetOverlap | None = None
        self._watched: Any = None
        self._options: dict[str, Any] = {}

    @property
    def type(self) -> str:
        """The name in MXNet's way; `dist` tells gluon that there are other workers."""
        return "dist_geokfp"

    @property
    def rank(self) -> int:
        """Number of this worker."""
        return self._plane.index

    @property
    def num_workers(self) -> int:
        """Workers of all sites; `num_all_workers` of GeoMX."""
        return self._plane.size

    @property
    def num_all_workers(self) -> int:
        """As `num_workers`."""
        return self._plane.size

    @property
    def is_master_worker(self) -> bool:
        """Whether this worker only gives the first weights, as one of GeoMX's does; here none does."""
        return False

    @property
    def rounds_before(self) -> int:
        """Rounds of a tensor behind the first weights; 0 but from a checkpoint, or where others had begun."""
        return self._place.rounds_before

    def is_capable(self, capability: str) -> bool:
        """Tells whether the store lets an optimizer act."""
        return bool(capability.lower() == KVStoreBase.OPTIMIZER)

    def set_optimizer(self, optimizer: Any) -> None:
        """Takes over the optimizer, which acts on this worker; of one at the root it says the scale only."""
        self._updater = mx.optimizer.get_updater(optimizer)
        if isinstance(self._policy, ServedWorker):
            self._root_scale = np.float32(optimizer.rescale_grad * self.num_workers)

    def watch(self, net: Any) -> None:
        """Lets a step return before its values have come: each block of the net waits for its own.

        With `p3` and an optimizer of the store; without them there is no difference.

        Args:
            net: a gluon block; all blocks that use the store's arrays are in it. One that is hybridized waits
                for all that it holds.
        """
        self._watched = net

    def set_gradient_compression(self, compression_params: Any) -> None:
        """Holds what is asked for against the tree's own compression, which its job says, for all workers.

        Raises:
            InputError: they do not agree.
        """
        check_compression(compression_params, self._place.compression)

    def init(self, key: Any, value: Any) -> None:
        """Names arrays of the model; all of them before the first push."""
        for each, array in zip(_listed(key), _listed(value), strict=True):
            self._name(each, [array])

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:  # noqa: ARG002
        """Names an array of the model, which `out` then has the first worker's values of."""
        self._name(key, _listed(out))

    def push(self, key: Any, value: Any, priority: int = 0) -> None:  # noqa: ARG002
        """Brings gradients; the last key of the model ends the step.

        Raises:
            UsageError: a key comes twice in a step or was not named; or no optimizer is there, but the tree's
                synchronisation needs one.
        """
        tensors = self._begin()
        if not self._gives_sums and self._updater is None and not isinstance(self._policy, ServedWorker):
            raise UsageError("the tree's synchronisation steps by the store's optimizer: set_optimizer first")
        for each, array in zip(_listed(key), _grouped(key, value), strict=True):
            if each in self._pushed or each not in self._arrays:
                raise UsageError(f"key {each!r} is pushed twice in a step, or was not named before")
            self._pushed[each] = self._kept(each, array)
        if len(self._pushed) == len(tensors.keys):
            self._step()

    def pull(self, key: Any, out: Any, priority: int = 0, ignore_sparse: bool = True) -> None:  # noqa: ARG002
        """Copies weights into `out`: at once, or at the end of the step that the key was pushed in.

        Without an optimizer it is the sum of what was pushed last, once there is one.

        Raises:
            UsageError: a sum is asked for before all keys were pushed, or in the place of weights.
        """
        self._begin()
        for each, arrays in zip(_listed(key), _grouped(key, out), strict=True):
            if self._overlap is not None and any(array is not self._arrays[each][0] for array in arrays):
                self._overlap.take(each)
            if self._gives_sums and (each in self._pushed or each in self._sums):
                self._check_sum(each, arrays)
            if each in self._pushed:
                self._pulled[each] = arrays
            else:
                self._copy(each, arrays)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Brings a gradient and takes the new weights; without an optimizer the sum, by default in its place.

        Raises:
            UsageError: see `push`; or weights are to be taken, but no optimizer acts.
        """
        if not self._gives_sums:
            if out is None:
                raise UsageError("an optimizer acts, and gives weights: update_on_kvstore=True")
            self.push(key, value, priority)
            self.pull(key, out, priority)
            return
        for each, arrays in zip(_listed(key), _grouped(key, value if out is None else out), strict=True):
            self._check_not_weights(each, arrays)
            self._pulled[each] = arrays
        self.push(key, value, priority)

    def barrier(self) -> None:
        """Waits until all workers have come here; the model has the first worker's weights then."""
        if self._arrays:
            self._begin()
        self._plane.total(np.zeros(1))

    def wan_bytes(self) -> int:
        """Returns the bytes on this site's link to the root so far, both ways, as its node counts them."""
        return self._place.wan_bytes()

    def agreed_weights(self) -> dict[Any, Array]:
        """Returns the weights that all workers last agreed on, flat, by key."""
        tensors = self._begin()
        agreed = self._policy.agreed()
        flat = tensors.weights() if agreed is None else agreed
        return {key: part.reshape(-1) for key, part in tensors.cut(flat)}

    def close(self) -> None:
        """Ends together with the other workers, with the same weights; called when the program ends."""
        self._place.finish()

    @property
    def _gives_sums(self) -> bool:
        return self._updater is None and isinstance(self._policy, FullAtWorker | Piecewise)

    def _check_sum(self, key: Any, arrays: list[Any]) -> None:
        if key in self._pushed:
            raise UsageError(f"key {key!r} is pulled before all were pushed: its sum comes with the last")
        self._check_not_weights(key, arrays)

    def _check_not_weights(self, key: Any, arrays: list[Any]) -> None:
        if any(array is own for array in arrays for own in self._arrays.get(key, ())):
            raise UsageError(
                f"weights of key {key!r} are pulled, but no optimizer acts: set_optimizer, or name one of "
                "the root's in the tree's synchronisation"
            )

    def _name(self, key: Any, arrays: list[Any]) -> None:
        if self._tensors is not None:
            raise UsageError(f"key {key!r} comes after the first push or pull")
        self._arrays[key] = arrays

    def _begin(self) -> MxnetReplica:
        if self._tensors is None:
            learned = {key: each for key, each in self._arrays.items() if each[0].grad is not None}
            measured = [each for key, each in self._arrays.items() if learned and key not in learned]
            self._tensors = tensors = MxnetReplica(learned or self._arrays, measured)
            tensors.take_first(self._plane)
            self._place.begin(lambda: self._policy.begin(tensors, self._plane, self._update))
            if isinstance(self._policy, Piecewise):
                self._overlap = MxnetOverlap(tensors, self._policy, self._update_late)
                if self._watched is not None and self._updater is not None:
                    self._overlap.watch(self._watched, self._key_of)
        return self._tensors

    def flat(self) -> Array:
        """See `Gradient`."""
        tensors = self._begin()
        pushed = (sum(one.asnumpy().reshape(-1) for one in self._pushed[key]) for key in tensors.keys)
        flat: Array = np.concatenate([values.astype(np.float32, copy=False) for values in pushed])
        return flat if self._root_scale == 1 else flat * self._root_scale

    def apply(self, num_samples: int) -> None:  # noqa: ARG002
        """See `Gradient`; stands for the sum of all workers', which `rescale_grad` divides by all."""
        if any(len(pushed) > 1 for pushed in self._pushed.values()):
            self._update(self.flat())
            return
        optimizer = self._updater.optimizer
        given = optimizer.rescale_grad
        optimizer.rescale_grad = given * self.num_workers
        for key, (gradient,) in self._pushed.items():
            self._updater(key, gradient, self._arrays[key][0])
        optimizer.rescale_grad = given  # the trainer holds it against its own

    def _kept(self, key: Any, arrays: list[Any]) -> list[Any]:
        """Returns copies, as the script may go on with its own before the step; each key has its buffers."""
        buffers = self._buffers.setdefault(key, [])
        buffers += [mx.nd.empty(one.shape, one.context, one.dtype) for one in arrays[len(buffers) :]]
        return [one.copyto(buffer) for one, buffer in zip(arrays, buffers, strict=False)]

    def _step(self) -> None:
        if self._overlap is None:
            self._policy.step(self, 1)
        else:
            self._options = {} if self._updater is None else _options(self._updater.optimizer)
            self._sums.clear()
            self._overlap.step(self._flat_of)
        self._plane.stepped()
        self._pushed.clear()
        pulled, self._pulled = self._pulled, {}
        for key, arrays in pulled.items():
            if self._overlap is not None and any(array is not self._arrays[key][0] for array in arrays):
                self._overlap.take(key)
            self._copy(key, arrays)

    def _flat_of(self, key: Any) -> Array:
        flat: Array = sum(one.asnumpy().reshape(-1) for one in self._pushed[key])
        return flat.astype(np.float32, copy=False)

    def _key_of(self, parameter: Any) -> Any:
        own = parameter.list_data()[0]
        return next((key for key, arrays in self._arrays.items() if arrays[0] is own), None)

    def _update_late(self, means: Mapping[Any, Array]) -> None:
        """Steps some keys, by the optimizer as it was when their step was taken."""
        sums = {key: mean * np.float32(self.num_workers) for key, mean in means.items()}
        if self._gives_sums:
            self._sums.update(sums)
            return
        optimizer = self._updater.optimizer
        now = _options(optimizer)
        _set(optimizer, self._options)
        self._step_keys(sums)
        _set(optimizer, now)

    def _update(self, mean: Array) -> None:
        sums = dict(self._begin().cut(mean * np.float32(self.num_workers)))
        if self._gives_sums:
            self._sums = sums
            return
        self._step_keys(sums)

    def _step_keys(self, sums: Mapping[Any, Array]) -> None:
        for key, gradient in sums.items():
            for array in self._arrays[key]:
                self._updater(key, mx.nd.array(gradient, ctx=array.context), array)

    def _copy(self, key: Any, arrays: list[Any]) -> None:
        own = mx.nd.array(self._sums[key]) if key in self._sums else self._arrays[key][0]
        for array in arrays:
            if array is not own:
                own.copyto(array)


def _options(optimizer: Any) -> dict[str, Any]:
    return {name: getattr(optimizer, name) for name in ("lr", "rescale_grad")}


def _set(optimizer: Any, options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        setattr(optimizer, name, value)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _grouped(key: Any, value: Any) -> list[list[Any]]:
    """Returns the arrays of each key: one, or one a device."""
    if isinstance(key, list | tuple):
        return [_listed(each) for each in value]
    return [_listed(value)]
