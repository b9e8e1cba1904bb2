"""Scripts of torch and gluon under P3, as real processes: the weights of the same script in order."""

import numpy as np
import pytest
from support.geo_scripts import run_script

P3 = "p3(rate_mbit=2)"
"""12 kB a slice, so that the larger tensors have several."""

TORCH = """
import os

import numpy as np
import torch
from geokfp.components.geo_training.frameworks.torch_worker import join

index = int(os.environ["INDEX"])
torch.manual_seed(index)
torch.set_num_threads(1)
model = torch.nn.Sequential(
    torch.nn.Linear(30, 100), torch.nn.ReLU(), torch.nn.Linear(100, 80), torch.nn.ReLU(),
    torch.nn.Linear(80, 2),
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
geo = join(model, optimizer)
for step in range(5):
    x = torch.randn(4 + index, 30)
    optimizer.zero_grad()
    geo.backward(torch.nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long()), len(x))
    geo.step(len(x))
geo.finish()
np.savez(os.environ["RESULT"], last=np.concatenate([p.detach().numpy().ravel() for p in model.parameters()]))
"""

GLUON = """
import os

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

import geokfp.components.geo_training.frameworks.mxnet_store

np.random.seed(int(os.environ["INDEX"]))
net = gluon.nn.HybridSequential()
net.add(gluon.nn.Dense(100, in_units=30, activation="relu"), gluon.nn.BatchNorm(in_channels=100))
net.add(gluon.nn.Dense(80, in_units=100, activation="relu"), gluon.nn.Dense(2, in_units=80))
net.initialize(mx.init.Xavier())
if os.environ["HYBRID"] == "1":
    net.hybridize()
store = mx.kv.create("geokfp")
if os.environ["WATCH"] == "1":
    store.watch(net)
trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01}, kvstore=store)
loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
for step in range(5):
    x = np.random.normal(size=(8, 30)).astype("float32")
    with autograd.record():
        loss = loss_of(net(mx.nd.array(x)), mx.nd.array(x[:, 0] > 0))
    loss.backward()
    trainer.set_learning_rate(0.01 / (step + 1))
    trainer.step(16)
store.close()
last = [p.data().asnumpy().ravel() for p in net.collect_params().values()]
np.savez(os.environ["RESULT"], last=np.concatenate(last))
"""


def weights(script, folder, **choices):
    folder.mkdir()
    one, other = (result["last"] for result in run_script(script, folder, **choices).values())
    np.testing.assert_array_equal(one, other)
    return one


def test_a_torch_script_ends_with_the_same_bits(tmp_path):
    in_order = weights(TORCH, tmp_path / "fifo")
    np.testing.assert_array_equal(weights(TORCH, tmp_path / "p3", transmission=P3), in_order)


@pytest.mark.long
@pytest.mark.parametrize("hybrid", ["0", "1"], ids=["blocks", "hybridized"])
def test_a_gluon_script_whose_net_is_watched_ends_with_the_same_bits(tmp_path, monkeypatch, hybrid):
    monkeypatch.setenv("HYBRID", hybrid)
    monkeypatch.setenv("WATCH", "0")
    in_order = weights(GLUON, tmp_path / "fifo")
    monkeypatch.setenv("WATCH", "1")
    np.testing.assert_array_equal(weights(GLUON, tmp_path / "p3", transmission=P3), in_order)


@pytest.mark.long
def test_a_gluon_script_as_it_is_ends_with_the_same_bits_and_a_measured_rate(tmp_path, monkeypatch):
    monkeypatch.setenv("HYBRID", "1")
    monkeypatch.setenv("WATCH", "0")
    in_order = weights(GLUON, tmp_path / "fifo")
    np.testing.assert_array_equal(weights(GLUON, tmp_path / "p3", transmission="p3"), in_order)
