"""A torch model under P3: the same weights as in order, bit for bit, while passes and transfers overlap."""

import threading

import numpy as np
import pytest
import torch
from geokfp.components.geo_training.errors import UsageError
from geokfp.components.geo_training.frameworks.exchange import GeoExchange
from geokfp.components.geo_training.scheduling import InOrder
from geokfp.components.geo_training.scheduling.slices import ByLayer
from geokfp.components.geo_training.synchronization import synchronization
from geokfp.components.geo_training.wire.messages import Answer
from geokfp.components.geo_training.workers.plane import Members, Plane
from support.geo_tree import at_once, topology, tree
from support.memory_transport import DROP, MemoryTransport
from torch import nn

STEPS = 4


class Attending(nn.Module):
    """Small tensors, a norm that measures, a projection that nobody calls, weights used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(6, 32)
        self.norm = nn.BatchNorm1d(32)
        self.attention = nn.MultiheadAttention(32, 2, batch_first=True)
        self.wide = nn.Linear(32, 64)
        self.back = nn.Linear(64, 32)
        self.out = nn.Linear(32, 3)
        self.unused = nn.Linear(40, 40)

    def forward(self, x):
        hidden = self.norm(self.embed(x)).relu().unsqueeze(1)
        hidden, _ = self.attention(hidden, hidden, hidden)
        for _ in range(2):
            hidden = self.back(self.wide(hidden).relu())
        return self.out(hidden.squeeze(1))


def drawn(seed):
    """Returns a model of its own weights; threads share torch's generator, so that its draws are none."""
    draws, model = np.random.default_rng(seed), Attending()
    with torch.no_grad():
        for parameter in model.parameters():
            values = draws.uniform(-0.2, 0.2, size=tuple(parameter.shape)).astype(np.float32)
            parameter.copy_(torch.from_numpy(values))
    return model


class Script:
    """A training script of one worker."""

    def __init__(self, whole, shape, name, piecewise, slices, make_optimizer) -> None:
        self.index = shape.workers.index(name)
        self.model = drawn(self.index)
        self.optimizer = make_optimizer(self.model.parameters())
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 1, 0.5)
        members = Members(workers=shape.workers, name=name)
        self.client = whole.client(name)
        plane = Plane(self.client, members, slices, len(whole.roots))
        policy = synchronization("fsa").worker(piecewise=piecewise)
        self.exchange = GeoExchange(plane, policy, self.optimizer)
        self.exchange.broadcast(self.model)
        self.draws = np.random.default_rng(self.index)

    def gradients(self, num_samples, early):
        self.optimizer.zero_grad()
        x = torch.from_numpy(self.draws.normal(size=(num_samples, 6)).astype(np.float32))
        loss = self.model(x).square().mean()
        if early:
            with self.exchange.sending(num_samples):
                loss.backward()
        else:
            loss.backward()

    def step(self, num_samples, early=True):
        if num_samples:
            self.gradients(num_samples, early)
            for parameter in self.model.parameters():
                if parameter.grad is not None:
                    parameter.grad *= num_samples
        self.exchange.step(self.model, self.optimizer, num_samples)
        self.schedule.step()

    def weights(self):
        return {name: each.clone() for name, each in self.model.state_dict().items()}


OPTIMIZERS = {
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01),
    "adam": lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
}


def train(piecewise, slices, make_optimizer=OPTIMIZERS["adam"], early=True, steps=(STEPS,) * 4, **choices):
    shape = topology(2, 2, accepting=1)

    def work(name):
        script = Script(whole, shape, name, piecewise, slices, make_optimizer)
        for step in range(steps[script.index]):
            number = 0 if step == 2 else 2 + (script.index + step) % 3
            script.step(number, early)
        script.exchange.finish(script.model)
        script.exchange.close()
        return script.weights()

    with tree(shape, MemoryTransport(), **choices) as whole:
        results = at_once(work, shape.workers)
    assert not whole.errors
    return results


def same(one, other):
    return all(torch.equal(one[worker][name], other[worker][name]) for worker in one for name in one[worker])


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("early", [True, False])
def test_every_weight_is_that_of_one_transfer_at_the_end_of_a_step(optimizer, early):
    in_order = train(False, InOrder(4096), OPTIMIZERS[optimizer])
    assert same(in_order, train(True, ByLayer(4096), OPTIMIZERS[optimizer], early))


def test_with_two_roots_too():
    both = train(True, ByLayer(4096), transmission="p3 + multigps(shards=2)")
    assert same(train(False, InOrder(4096)), both)


def test_workers_that_end_earlier_stay_and_end_alike():
    steps = (STEPS, STEPS - 1, STEPS, 1)
    assert same(train(False, InOrder(), steps=steps), train(True, ByLayer(4096), steps=steps))


def test_the_last_layer_leaves_before_the_first_has_a_gradient_and_is_less_urgent():
    shape, pushed = topology(1, 1), []

    def work(name):
        script = Script(whole, shape, name, True, ByLayer(), OPTIMIZERS["adam"])
        push = script.client.push

        def note(round_id, values, terms, then=None):
            pushed.append((round_id.unit.key, terms.priority))
            return push(round_id, values, terms, then)

        script.client.push = note
        script.gradients(3, early=True)
        before = [key for key, _ in pushed]
        script.exchange.step(script.model, script.optimizer, 3)
        script.exchange.finish(script.model)
        script.exchange.close()
        return before

    with tree(shape, MemoryTransport()) as whole:
        before = at_once(work, shape.workers)["site-0/trainer-0"]
    assert before.index("gradient back.weight") < before.index("gradient attention.in_proj_weight")
    of_key = dict(pushed)
    assert of_key["gradient attention.in_proj_weight"] < of_key["gradient wide.weight"]
    assert of_key["gradient embed.weight"] == 0  # a small one, with those of all layers


def test_the_forward_pass_goes_on_while_a_deep_layer_is_still_under_way():
    shape, transport, reached = topology(1, 1), MemoryTransport(), threading.Event()

    def comes_too_early(message):
        of_wide = isinstance(message, Answer) and message.round.unit.key == "gradient wide.weight"
        return of_wide and message.round.number == 1 and not reached.is_set()

    transport.faults.add(DROP, comes_too_early, times=10**6)

    def work(name):
        script = Script(whole, shape, name, True, ByLayer(), OPTIMIZERS["adam"])
        script.step(3)
        script.step(3)
        script.model.attention.register_forward_hook(lambda *_: reached.set())
        script.step(3)  # would ask for the deep layer for ever if its first layers waited for that
        script.exchange.finish(script.model)
        script.exchange.close()

    with tree(shape, transport, retry_s=0.1, round_timeout_s=10.0) as whole:
        at_once(work, shape.workers)
    assert reached.is_set()


def test_a_second_backward_pass_is_refused():
    shape = topology(1, 1)

    def work(name):
        script = Script(whole, shape, name, True, ByLayer(), OPTIMIZERS["adam"])
        script.gradients(3, early=True)
        with pytest.raises(UsageError, match="second gradient in a step whose first was sent"):
            script.model(torch.zeros(2, 6)).sum().backward()
        script.exchange.step(script.model, script.optimizer, 3)
        script.exchange.finish(script.model)
        script.exchange.close()

    with tree(shape, MemoryTransport()) as whole:
        at_once(work, shape.workers)


def test_weights_that_are_used_outside_of_their_modules_are_refused():
    shape = topology(1, 1)

    def work(name):
        script = Script(whole, shape, name, True, ByLayer(), OPTIMIZERS["adam"])
        script.step(3)
        script.step(3)
        with pytest.raises(UsageError, match=r"parameter wide\.weight was used before its values"):
            nn.functional.linear(torch.ones(1, 32), script.model.wide.weight).sum().backward()
        script.exchange.finish(script.model)
        script.exchange.close()

    with tree(shape, MemoryTransport()) as whole:
        at_once(work, shape.workers)
