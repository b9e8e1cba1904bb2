"""Full synchronisation with dense FP32 over the tree equals one process on the joined batch."""

import pytest
import torch
from geokfp.components._launch import free_ports
from geokfp.components.geo_training.frameworks.exchange import GeoExchange
from geokfp.components.geo_training.scheduling import InOrder
from geokfp.components.geo_training.synchronization import synchronization
from geokfp.components.geo_training.transport.tcp import TcpTransport
from geokfp.components.geo_training.workers.plane import Members, Plane
from support.geo_tree import at_once, topology, tree
from torch import nn

NUM_STEPS = 20
NUM_FEATURES = 12
NUM_CLASSES = 4


def model_of(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(NUM_FEATURES, 16), nn.BatchNorm1d(16).eval(), nn.ReLU(), nn.Linear(16, NUM_CLASSES)
    )


def optimizer_of(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-3)


def batches_of(step: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """One batch a worker, unequal in size; worker 3 has nothing in the last steps."""
    generator = torch.Generator().manual_seed(1000 + step)
    sizes = [5, 9, 2, 7 if step < NUM_STEPS - 3 else 0]
    return [
        (
            torch.randn(size, NUM_FEATURES, generator=generator),
            torch.randint(NUM_CLASSES, (size,), generator=generator),
        )
        for size in sizes
    ]


def loss_of(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(model(x), y, reduction="sum")


def joined() -> dict[str, torch.Tensor]:
    model = model_of(0)
    optimizer = optimizer_of(model)
    for step in range(NUM_STEPS):
        batches = batches_of(step)
        x, y = torch.cat([b[0] for b in batches]), torch.cat([b[1] for b in batches])
        optimizer.zero_grad()
        (loss_of(model, x, y) / len(y)).backward()
        optimizer.step()
    return model.state_dict()


@pytest.mark.parametrize("slice_bytes", [4 << 20, 100])
def test_two_sites_of_two_workers_equal_one_process(slice_bytes):
    shape = topology(2, 2, free_ports(3))
    models = {name: model_of(seed) for seed, name in enumerate(shape.workers)}

    def work(name: str) -> dict[str, torch.Tensor]:
        index, model = shape.workers.index(name), models[name]
        members = Members(workers=shape.workers, name=name)
        plane = Plane(whole.client(name), members, InOrder(slice_bytes))
        exchange = GeoExchange(plane, synchronization("fsa").worker())
        assert (exchange.index, exchange.size) == (index, 4)
        exchange.broadcast(model)
        optimizer = optimizer_of(model)
        for step in range(NUM_STEPS):
            x, y = batches_of(step)[index]
            optimizer.zero_grad()
            if len(y):
                loss_of(model, x, y).backward()
            exchange.step(model, optimizer, len(y))
        assert exchange.sum(torch.tensor([1.0, index], dtype=torch.float64)).tolist() == [4.0, 6.0]
        exchange.close()
        return model.state_dict()

    with tree(shape, TcpTransport()) as whole:
        states = at_once(work, shape.workers)
    assert not whole.errors
    expected = joined()
    for state in states.values():
        for key, tensor in state.items():
            torch.testing.assert_close(tensor, expected[key], rtol=0, atol=1e-5)
            assert torch.equal(tensor, states[shape.workers[0]][key])
