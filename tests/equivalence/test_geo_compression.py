"""Compression between sites: at its neutral setting there is none; lossy, all workers hold one model."""

import numpy as np
import pytest
import torch
from geokfp.components.geo_training.errors import RefusedError
from geokfp.components.geo_training.frameworks.exchange import GeoExchange
from geokfp.components.geo_training.links.client import Terms
from geokfp.components.geo_training.synchronization import synchronization
from geokfp.components.geo_training.wire.units import TREE, Unit
from geokfp.components.geo_training.workers.plane import Members, Plane
from support.geo_tree import at_once, topology, tree
from support.memory_transport import MemoryTransport
from torch import nn

NUM_STEPS = 40
NUM_FEATURES = 30
NUM_CLASSES = 5


def model_of(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(NUM_FEATURES, 512), nn.ReLU(), nn.Linear(512, NUM_CLASSES))


def batch_of(step: int, index: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(100 * step + index)
    x = torch.randn(16, NUM_FEATURES, generator=generator)
    return x, x[:, :NUM_CLASSES].argmax(1)


def train(compression: str, num_steps: int = NUM_STEPS) -> tuple[list[nn.Module], float, tuple[int, int]]:
    """Returns the workers' models, the last steps' mean loss, and the bytes of a site's link up and down."""
    shape = topology(2, 2)
    models = {name: model_of(seed) for seed, name in enumerate(shape.workers)}
    losses: list[float] = []

    def work(name: str) -> tuple[int, int]:
        index, model = shape.workers.index(name), models[name]
        client = whole.client(name)
        members = Members(workers=shape.workers, name=name)
        exchange = GeoExchange(Plane(client, members), synchronization("fsa").worker())
        exchange.broadcast(model)
        before = client.peer_traffic()["root"]
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for step in range(num_steps):
            x, y = batch_of(step, index)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y, reduction="sum")
            loss.backward()
            exchange.step(model, optimizer, len(y))
            if step >= num_steps - 10:
                losses.append(loss.item() / len(y))
        assert exchange.sum(torch.tensor([1.0, index], dtype=torch.float64)).tolist() == [4.0, 6.0]
        after = client.peer_traffic()["root"]
        exchange.close()
        return after.sent_bytes - before.sent_bytes, after.received_bytes - before.received_bytes

    with tree(shape, MemoryTransport(), compression=compression) as whole:
        traffic = at_once(work, shape.workers)
    assert not whole.errors
    return list(models.values()), float(np.mean(losses)), traffic[shape.workers[0]]


def same(one: nn.Module, other: nn.Module) -> bool:
    return all(map(torch.equal, one.state_dict().values(), other.state_dict().values()))


@pytest.fixture(scope="module")
def plain():
    return train("none")


@pytest.mark.parametrize(
    "compression",
    [
        "none + zstd",
        "top_k(ratio=1)",
        "top_k(ratio=1, down=union) + zstd",
        "bi_sparse(ratio=1)",
        "bi_sparse(ratio=1, down=lossy)",
        "quantized(bits=2) + by_size(bound=1000000)",
        "mpq(ratio=1, bound=10)",
    ],
)
def test_at_its_neutral_setting_it_is_no_compression_bit_for_bit(plain, compression):
    sized = compression if "by_size" in compression else f"{compression} + by_size(bound=0)"
    models, loss, _ = train(sized)
    assert loss == pytest.approx(plain[1], rel=1e-12)
    for model, expected in zip(models, plain[0], strict=True):
        assert same(model, expected)


@pytest.mark.parametrize(
    ("compression", "fewer_up", "fewer_down"),
    [
        ("fp16", 1.8, 1.8),
        ("quantized(bits=8)", 3, 3),
        ("quantized(bits=4)", 5, 5),
        ("quantized(bits=2)", 7, 7),
        ("top_k(ratio=0.1, bits=4)", 10, 10),
        ("top_k(ratio=0.1, down=union)", 4, 2),
        ("bi_sparse(ratio=0.1)", 4, 2),
        ("bi_sparse(ratio=0.1, down=lossy, threshold=sampled) + zstd", 4, 4),
        ("mpq(ratio=0.1, bound=100)", 4, 2),
        ("two_bit(threshold=0.5)", 7, 1),
        ("demo(ratio=0.2, bits=8)", 5, 5),
    ],
)
def test_a_lossy_one_learns_with_fewer_bytes_and_one_model_everywhere(
    plain, compression, fewer_up, fewer_down
):
    models, loss, (sent, received) = train(compression)
    assert all(same(model, models[0]) for model in models)
    assert loss < 0.9 * np.log(NUM_CLASSES)
    assert sent * fewer_up < plain[2][0] * 1.001
    assert received * fewer_down < plain[2][1] * 1.001


@pytest.mark.parametrize(
    ("values", "where"),
    [([np.nan, np.nan], r"site-\d: gradient\[0:2000\]"), ([7e37, 7e37], r"root: gradient\[0:2000\]")],
)
def test_what_cannot_be_encoded_ends_the_run_with_its_reason_at_every_worker(values, where):
    shape = topology(2, 1)

    def work(name: str) -> None:
        client, unit = whole.client(name), Unit("gradient", 0, 2000)
        own = np.full(2000, values[shape.workers.index(name)], np.float32)
        with pytest.raises(RefusedError, match=f"{where} holds a magnitude of"):
            client.wait(client.push(client.next_round(TREE, unit), own, Terms(reduction="sum", weight=1)))
        client.close("heard it")

    with tree(shape, MemoryTransport(), compression="quantized(bits=8)") as whole:
        at_once(work, shape.workers)
    assert set(whole.errors) == {"root", "site-0", "site-1"}
