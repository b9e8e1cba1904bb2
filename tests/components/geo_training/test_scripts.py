"""Scripts of torch and MXNet that join by one or two lines, as real processes."""

import numpy as np
import pytest
from support.geo_scripts import run_script

TORCH = """
import os

import numpy as np
import torch
from geokfp.components.geo_training.frameworks.torch_worker import join

index = int(os.environ["INDEX"])
torch.manual_seed(index)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
geo = join(model, optimizer)
first = torch.cat([p.detach().flatten() for p in model.parameters()]).numpy()
generator = torch.Generator().manual_seed(index)
wan_bytes = [geo.wan_bytes()]
for _ in range(6 + index):
    x = torch.randn(8, 4, generator=generator)
    loss = torch.nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long())
    optimizer.zero_grad()
    loss.backward()
    geo.step(len(x))
wan_bytes.append(geo.wan_bytes())
geo.finish()
last = torch.cat([p.detach().flatten() for p in model.parameters()]).numpy()
mean = model[1].running_mean.numpy()
np.savez(os.environ["RESULT"], first=first, last=last, mean=mean, wan_bytes=np.array(wan_bytes))
"""

DGL = """
import os

import dgl
import numpy as np
import torch
from dgl.nn import SAGEConv
from geokfp.components.geo_training.frameworks.torch_worker import join

index = int(os.environ["INDEX"])
torch.manual_seed(index)
torch.set_num_threads(1)
graph = dgl.add_self_loop(dgl.rand_graph(60, 240))
graph.ndata["x"] = torch.randn(60, 5)
graph.ndata["y"] = (dgl.khop_adj(graph, 1) @ graph.ndata["x"][:, :1] > 0).long().squeeze()


class Sage(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([SAGEConv(5, 16, "mean"), SAGEConv(16, 2, "mean")])

    def forward(self, blocks, x):
        return self.layers[1](blocks[1], self.layers[0](blocks[0], x).relu())


model = Sage()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
sampler = dgl.dataloading.NeighborSampler([5, 5])
batches = dgl.dataloading.DataLoader(graph, torch.arange(60), sampler, batch_size=20, shuffle=True)
geo = join(model, optimizer)
losses = []
for epoch in range(12 + index):
    for _, _, blocks in batches:
        labels = blocks[-1].dstdata["y"]
        loss = torch.nn.functional.cross_entropy(model(blocks, blocks[0].srcdata["x"]), labels)
        optimizer.zero_grad()
        loss.backward()
        geo.step(len(labels))
        losses.append(loss.item())
geo.finish()
last = torch.cat([p.detach().flatten() for p in model.parameters()]).numpy()
np.savez(os.environ["RESULT"], last=last, losses=np.array(losses))
"""

GLUON = """
import os

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

import geokfp.components.geo_training.frameworks.mxnet_store

index = int(os.environ["INDEX"])
mx.random.seed(index)
np.random.seed(index)
net = gluon.nn.HybridSequential()
net.add(gluon.nn.Dense(3, in_units=4), gluon.nn.BatchNorm(in_channels=3), gluon.nn.Dense(2, in_units=3))
net.initialize(mx.init.Xavier())
store = mx.kv.create("geokfp")
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore=store)
loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
for _ in range(6 + index):
    x = np.random.normal(size=(8, 4)).astype("float32")
    with autograd.record():
        loss = loss_of(net(mx.nd.array(x)), mx.nd.array(x[:, 0] > 0))
    loss.backward()
    trainer.step(8 * store.num_workers)
store.close()
learned = [p.data() for p in net.collect_params().values() if p.grad_req != "null"]
flat = np.concatenate([array.asnumpy().ravel() for array in learned])
mean = net[1].running_mean.data().asnumpy()
np.savez(os.environ["RESULT"], last=flat, mean=mean, rank=np.array([store.rank, store.num_workers]))
"""

CONVOLUTIONS = """
import os

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

import geokfp.components.geo_training.frameworks.mxnet_store

index = int(os.environ["INDEX"])
net = gluon.nn.HybridSequential()
net.add(gluon.nn.Conv2D(16, 5, in_channels=1, activation="relu"), gluon.nn.MaxPool2D(2))
net.add(gluon.nn.Conv2D(32, 5, in_channels=16, activation="relu"), gluon.nn.MaxPool2D(2))
net.add(gluon.nn.Dense(256, in_units=512), gluon.nn.Dense(128, in_units=256))
net.add(gluon.nn.Dense(10, in_units=128))
mx.random.seed(index)
np.random.seed(index)
net.initialize(mx.init.Xavier())
net.hybridize()
store = mx.kv.create("geokfp")
trainer = gluon.Trainer(net.collect_params(), "adam", kvstore=store)
loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
for _ in range(6):
    x = mx.nd.array(np.random.normal(size=(8, 1, 28, 28)))
    with autograd.record():
        loss = loss_of(net(x), mx.nd.array(np.arange(8)))
    loss.backward()
    trainer.step(8 * store.num_workers)
    net(x).wait_to_read()  # an inference, which lays weights out for it
store.close()
parameters = net.collect_params().values()
assert sum(p.data().size for p in parameters) == 178_762
np.savez(os.environ["RESULT"], last=np.concatenate([p.data().asnumpy().ravel() for p in parameters]))
"""

PUSH_AND_PULL = """
import os

import mxnet as mx
import numpy as np

import geokfp.components.geo_training.frameworks.mxnet_store

index = int(os.environ["INDEX"])
store = mx.kv.create("geokfp")
store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5, rescale_grad=1 / store.num_workers))
weights = [mx.nd.full((3,), 1.0 + index), mx.nd.full((2, 2), 5.0 + index)]
for key, weight in enumerate(weights):
    store.init(key, weight)
for key, weight in enumerate(weights):
    store.pull(key, out=weight)
begun = np.concatenate([w.asnumpy().ravel() for w in weights])
for _ in range(3):
    gradients = [weight - 2 * index for weight in weights]
    for key, gradient in enumerate(gradients):
        store.push(key, gradient, priority=-key)
        store.pull(key, out=weights[key], priority=-key)
    mx.nd.waitall()
store.close()
np.savez(os.environ["RESULT"], begun=begun, last=np.concatenate([w.asnumpy().ravel() for w in weights]))
"""

OWN_OPTIMIZER = """
import os

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

import geokfp.components.geo_training.frameworks.mxnet_store
from geokfp.components.geo_training.errors import UsageError

index, by_trainer = int(os.environ["INDEX"]), os.environ["WAY"] == "trainer"
mx.random.seed(index)
net = gluon.nn.HybridSequential()
net.add(gluon.nn.Dense(3, in_units=4), gluon.nn.Dense(1, in_units=3))
net.initialize(mx.init.Constant(0.25))
store = mx.kv.create("geokfp")
kvstore = store if by_trainer else None
options = {"learning_rate": 0.05, "momentum": 0.9}
trainer = gluon.Trainer(net.collect_params(), "sgd", options, kvstore=kvstore, update_on_kvstore=False)
parameters, said = list(net.collect_params().values()), ""
if not by_trainer:
    for key, parameter in enumerate(parameters):
        store.init(key, parameter.data())
    for key, parameter in enumerate(parameters):
        store.pull(key, parameter.data())
random = np.random.RandomState(index)
for _ in range(4):
    x = mx.nd.array(random.normal(size=(6, 4)))
    with autograd.record():
        loss = gluon.loss.L2Loss()(net(x), x.sum(axis=1))
    loss.backward()
    if not by_trainer:
        for key, parameter in enumerate(parameters):
            store.push(key, parameter.grad(), priority=-key)
            if key == 0:
                try:
                    store.pull(key, parameter.grad())
                except UsageError as error:
                    said = str(error)
        for key, parameter in enumerate(parameters):
            sum_of_all = mx.nd.zeros(parameter.shape)
            store.pull(key, sum_of_all, priority=-key)
            parameter.grad()[:] = sum_of_all
    trainer.step(6 * store.num_workers)
first = min(parameters, key=lambda parameter: parameter.name) if by_trainer else parameters[0]
try:
    store.pull(0, first.data())
except UsageError as error:
    said = said + "; " + str(error)
store.close()
last = np.concatenate([parameter.data().asnumpy().ravel() for parameter in parameters])
np.savez(os.environ["RESULT"], last=last, said=np.array(said))
"""

ASKS_FOR_COMPRESSION = """
import os

import mxnet as mx
import numpy as np

import geokfp.components.geo_training.frameworks.mxnet_store
from geokfp.components._files import InputError

store = mx.kv.create("geokfp")
store.set_gradient_compression({"type": "bsc", "threshold": 0.01})
try:
    store.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    said = ""
except InputError as error:
    said = str(error)
store.close()
np.savez(os.environ["RESULT"], said=np.array(said))
"""


def same(results, name):
    first, *others = (one[name] for one in results.values())
    assert np.isfinite(first).all()
    for other in others:
        np.testing.assert_array_equal(other, first)
    return first


@pytest.mark.parametrize(
    "synchronization",
    [
        "fsa",
        *(pytest.param(text, marks=pytest.mark.long) for text in ("hfa(k1=2) + outer", "nbsync(steps=2)")),
    ],
)
def test_a_torch_script_trains_with_two_lines(tmp_path, synchronization):
    results = run_script(TORCH, tmp_path, synchronization=synchronization)
    assert not np.array_equal(same(results, "last"), same(results, "first"))
    assert np.abs(same(results, "mean")).max() > 0
    for one in results.values():
        before, after = one["wan_bytes"]
        assert after - before > 2 * one["last"].nbytes  # at least one exchange, up and down


@pytest.mark.parametrize(
    ("synchronization", "compression"),
    [
        pytest.param("fsa", "none", marks=pytest.mark.long),
        ("hfa(k1=2) + outer(rate=1, momentum=0.3)", "top_k(ratio=0.2)"),
    ],
)
def test_a_script_of_dgl_trains_with_two_lines(tmp_path, synchronization, compression):
    results = run_script(DGL, tmp_path, synchronization=synchronization, compression=compression)
    same(results, "last")
    for one in results.values():
        assert one["losses"][-6:].mean() < 0.9 * one["losses"][:6].mean()


@pytest.mark.parametrize(
    ("synchronization", "compression"),
    [
        pytest.param("fsa", "none", marks=pytest.mark.long),
        pytest.param("hfa(k1=3)", "none", marks=pytest.mark.long),
        ("fsa", "top_k(bits=4)"),
    ],
)
def test_a_gluon_trainer_trains_with_one_line(tmp_path, synchronization, compression):
    results = run_script(GLUON, tmp_path, synchronization=synchronization, compression=compression)
    same(results, "last")
    assert np.abs(same(results, "mean")).max() > 0
    assert sorted(one["rank"].tolist() for one in results.values()) == [[0, 2], [1, 2]]


def test_the_network_of_geomx_trains_over_two_sites_with_inferences_between(tmp_path):
    same(run_script(CONVOLUTIONS, tmp_path, synchronization="hfa(k1=2)"), "last")


@pytest.mark.parametrize("synchronization", ["fsa", "fsa(optimizer=sgd(rate=0.5))"])
def test_a_script_that_pushes_and_pulls_follows_the_mean_gradient(tmp_path, synchronization):
    results = run_script(PUSH_AND_PULL, tmp_path, synchronization=synchronization)
    assert same(results, "begun").tolist() == [1.0] * 3 + [5.0] * 4
    expected = np.array([1.0] * 3 + [5.0] * 4)
    for _ in range(3):
        expected = expected - 0.5 * np.mean([expected, expected - 2], axis=0)
    np.testing.assert_allclose(same(results, "last"), expected, rtol=1e-6)


def of_one_process():
    """The weights of `OWN_OPTIMIZER` after the same steps on the joined batches, by numpy."""
    weights = [np.full((3, 4), 0.25), np.zeros(3), np.full((1, 3), 0.25), np.zeros(1)]
    randoms, velocities = [np.random.RandomState(i) for i in range(2)], [np.zeros_like(w) for w in weights]
    for _ in range(4):
        x = np.concatenate([random.normal(size=(6, 4)) for random in randoms])
        hidden = x @ weights[0].T + weights[1]
        error = (hidden @ weights[2].T + weights[3]).ravel() - x.sum(axis=1)
        back = error[:, None] * weights[2]
        gradients = [back.T @ x, back.sum(axis=0), error[None] @ hidden, error.sum(keepdims=True)]
        for weight, velocity, gradient in zip(weights, velocities, gradients, strict=True):
            velocity[:] = 0.9 * velocity - 0.05 * gradient / 12
            weight += velocity
    return np.concatenate([weight.ravel() for weight in weights])


@pytest.mark.parametrize("way", ["trainer", "push and pull"])
def test_a_script_with_an_optimizer_of_its_own_is_given_the_sum_of_the_gradients(tmp_path, monkeypatch, way):
    monkeypatch.setenv("WAY", way)
    results = run_script(OWN_OPTIMIZER, tmp_path, compression="bi_sparse(ratio=1) + by_size(bound=0)")
    np.testing.assert_allclose(same(results, "last"), of_one_process(), rtol=1e-4, atol=1e-6)
    for one in results.values():
        before, _, weights = str(one["said"]).partition("; ")
        assert ("key 0 is pulled before all were pushed" in before) is (way != "trainer")
        assert "weights of key 0 are pulled, but no optimizer acts: set_optimizer" in weights


def test_a_script_may_ask_for_the_compression_that_its_tree_has_and_for_no_other(tmp_path):
    results = run_script(ASKS_FOR_COMPRESSION, tmp_path, compression="bi_sparse(ratio=0.01) + zstd")
    for one in results.values():
        assert "the tree's compression is 'bi_sparse(ratio=0.01) + zstd'" in str(one["said"])
