"""A tree of scripts whose root is killed, and which is started again: it goes on from the checkpoint."""

import threading

import numpy as np
import pytest
from geokfp.components._files import InputError
from geokfp.components.geo_training.compression import compression
from geokfp.components.geo_training.errors import RefusedError
from geokfp.components.geo_training.links.client import Client, ClientSettings, Terms
from geokfp.components.geo_training.nodes.aggregator import Aggregator, AggregatorSettings
from geokfp.components.geo_training.nodes.route import TreeRouter
from geokfp.components.geo_training.synchronization import synchronization
from geokfp.components.geo_training.topology import ROOT
from geokfp.components.geo_training.tree_job import TreeJob
from geokfp.components.geo_training.wire.units import TREE, RoundId, Unit
from support.geo_scripts import run_script
from support.geo_tree import topology
from support.memory_transport import MemoryTransport

KILL_ROOT = """
import os
import signal

import psutil


def kill_root():
    for process in psutil.process_iter():
        if process.pid != os.getpid() and process.cmdline()[-2:] == ["root", os.environ["GEOKFP_TREE"]]:
            process.send_signal(signal.SIGKILL)


mark = os.environ["RESULT"].replace("result-0.npz", "mark")
"""

TORCH = (
    KILL_ROOT
    + """
import numpy as np
import torch
from geokfp.components.geo_training.frameworks.torch_worker import join

index = int(os.environ["INDEX"])
torch.manual_seed(index)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2))
geo = join(model, torch.optim.SGD(model.parameters(), lr=0.1))
before = geo.rounds_before
for step in range(before * STEPS_A_ROUND, 12):
    if step == 11 and os.path.exists(mark):
        os.unlink(mark)
        kill_root()
    x = torch.randn(8, 4, generator=torch.Generator().manual_seed(100 * index + step))
    loss = torch.nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long())
    for parameter in model.parameters():
        parameter.grad = None
    loss.backward()
    geo.step(len(x))
geo.finish()
last = torch.cat([p.detach().flatten() for p in model.parameters()]).numpy()
np.savez(os.environ["RESULT"], last=last, before=before)
"""
)

PUSH_AND_PULL = (
    KILL_ROOT
    + """
import mxnet as mx
import numpy as np

import geokfp.components.geo_training.frameworks.mxnet_store

index = int(os.environ["INDEX"])
store = mx.kv.create("geokfp")
store.set_optimizer(mx.optimizer.SGD(rescale_grad=1 / store.num_workers))
weights = [mx.nd.full((3,), 1.0 + index), mx.nd.full((2, 2), 5.0 + index)]
for key, weight in enumerate(weights):
    store.init(key, weight)
for key, weight in enumerate(weights):
    store.pull(key, out=weight)
before = store.rounds_before
for step in range(before * STEPS_A_ROUND, 12):
    if step == 11 and os.path.exists(mark):
        os.unlink(mark)
        kill_root()
    for key, gradient in enumerate([weight - 2 * index - step for weight in weights]):
        store.push(key, gradient, priority=-key)
        store.pull(key, out=weights[key], priority=-key)
    mx.nd.waitall()
store.close()
last = np.concatenate([weight.asnumpy().ravel() for weight in weights])
np.savez(os.environ["RESULT"], last=last, before=before)
"""
)

UNIT = Unit("gradient w", 0, 3)


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("script", "chosen", "steps_a_round", "rounds"),
    [
        (TORCH, "fsa(optimizer=adam(rate=0.05))", 1, 8),
        pytest.param(TORCH, "hfa(k1=2) + outer(rate=0.9, momentum=0.5)", 2, 4, marks=pytest.mark.long),
        pytest.param(PUSH_AND_PULL, "fsa(optimizer=adam(rate=0.05))", 1, 8, marks=pytest.mark.long),
    ],
)
def test_started_again_by_the_same_commands_it_ends_as_one_run(
    tmp_path, script, chosen, steps_a_round, rounds
):
    code = script.replace("STEPS_A_ROUND", str(steps_a_round))
    for name in ("straight", "killed"):
        (tmp_path / name).mkdir()
    straight = run_script(code, tmp_path / "straight", synchronization=chosen)
    folder, kept = tmp_path / "killed", tmp_path / "kept"
    options = {
        "synchronization": chosen,
        "checkpoint_folder": str(kept),
        "checkpoint_every": 4 // steps_a_round,
    }
    (folder / "mark").touch()
    with pytest.raises(AssertionError, match=r"^root: "):
        run_script(code, folder, **options)
    (tree,) = kept.iterdir()
    assert sorted(path.name for path in tree.iterdir())[-1] == f"round-{rounds}"
    resumed = run_script(code, folder, **options)
    for name, one in straight.items():
        assert resumed[name]["before"] == rounds
        np.testing.assert_allclose(resumed[name]["last"], one["last"], rtol=0, atol=1e-6)
    assert list(kept.iterdir()) == []


def test_a_root_in_mid_training_refuses_who_does_not_start_again_and_serves_who_does():
    shape, transport = topology(1, 1), MemoryTransport()
    root = Aggregator(
        AggregatorSettings(name=ROOT, run="run", children=frozenset(["site-0"])),
        transport.listen(shape.root),
        TreeRouter(shape),
        synchronization("fsa(optimizer=sgd(rate=1))").root(),
        compression("none").down(),
        {},
    )
    root.begin_again()
    serving = threading.Thread(target=root.serve)
    serving.start()

    def push(client, role, number, value):
        values, terms = np.full(3, value, np.float32), Terms(reduction="mean", weight=1, covers=shape.workers)
        round_id = RoundId(TREE, Unit(f"{role} w", 0, 3), number)
        return client.wait(client.push(round_id, values, terms)).values

    def client():
        settings = ClientSettings(name="site-0", peer=ROOT, run="run")
        return Client(settings, lambda: transport.connect(shape.root, 5.0), compression("none").up())

    old = client()
    with pytest.raises(
        RefusedError, match="goes on from a checkpoint: sites and workers must start again too"
    ):
        push(old, "gradient", 57, 1)
    old.close()
    new = client()
    np.testing.assert_array_equal(push(new, "weights", 0, 5), np.full(3, 5, np.float32))
    np.testing.assert_array_equal(push(new, "gradient", 0, 2), np.full(3, -2, np.float32))
    new.close()
    serving.join(20.0)
    assert not serving.is_alive()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            {"checkpoint_every": 5},
            "checkpoint_every is 5, allowed: 1 or more with a checkpoint_folder, else 0",
        ),
        ({"checkpoint_every": -1, "checkpoint_folder": "kept"}, "checkpoint_every is -1, allowed: 1 or more"),
        (
            {"checkpoint_every": 5, "checkpoint_folder": "kept"},
            "checkpoint_every is 5, allowed with synchronization 'fsa': 0, as the root does not have",
        ),
    ],
)
def test_checkpoints_that_cannot_be_kept_are_refused(options, reason):
    with pytest.raises(InputError, match=reason):
        TreeJob(run_id="run", workers={"site-0": 1}, topology=topology(1, 1), **options)
