"""States of torch's and MXNet's optimizers as arrays and JSON: given, taken, and gone on with."""

import numpy as np
import pytest
import torch
from geokfp.components._files import ArtifactError
from geokfp.components.geo_training.checkpoints.state import State
from geokfp.components.geo_training.frameworks.torch_state import load_torch_state, torch_state

# MXNet names what NumPy has deprecated when it is imported.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def through_a_file(state, folder):
    state.write(folder / "state.safetensors")
    return State.read(folder / "state.safetensors")


def torch_model(dtype=torch.float32):
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 2)).to(
        dtype
    )


def torch_steps(model, optimizer, numbers):
    for number in numbers:
        generator = torch.Generator().manual_seed(number)
        x = torch.randn(8, 4, generator=generator).to(model[0].weight.dtype)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.param_groups[0]["lr"] *= 0.9


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {}),
        ("SGD", {"momentum": 0.9, "nesterov": True}),
        ("Adam", {"amsgrad": True}),
        ("AdamW", {"weight_decay": 0.1}),
        ("NAdam", {}),
        ("Rprop", {}),
        ("RMSprop", {"centered": True, "momentum": 0.9}),
        ("Adagrad", {}),
        ("ASGD", {}),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_torch_goes_on_bit_for_bit(tmp_path, name, options, dtype):
    straight, resumed = torch_model(dtype), torch_model(dtype)
    optimizers = [
        getattr(torch.optim, name)(model.parameters(), lr=0.05, **options) for model in (straight, resumed)
    ]
    torch_steps(straight, optimizers[0], range(4))
    load_torch_state(resumed, optimizers[1], through_a_file(torch_state(straight, optimizers[0]), tmp_path))
    for model, optimizer in zip((straight, resumed), optimizers, strict=True):
        torch_steps(model, optimizer, range(4, 8))
    for (key, tensor), again in zip(
        straight.state_dict().items(), resumed.state_dict().values(), strict=True
    ):
        assert torch.equal(tensor, again), key


def test_the_state_of_another_torch_model_is_refused():
    model, other = torch_model(), torch.nn.Linear(4, 3)
    state = torch_state(model, torch.optim.Adam(model.parameters()))
    with pytest.raises(ArtifactError, match="checkpoint is not of this model"):
        load_torch_state(other, torch.optim.Adam(other.parameters()), state)


def test_an_optimizer_that_keeps_what_no_file_holds_is_refused():
    model = torch_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.state[model[0].weight]["closure"] = print
    with pytest.raises(ArtifactError, match="optimizer keeps 'closure' of type builtin_function_or_method"):
        torch_state(model, optimizer)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("sgd", {}),
        ("sgd", {"momentum": 0.9}),
        ("adam", {}),
        ("nadam", {}),
        ("ftml", {}),
        ("rmsprop", {"centered": True}),
        ("adagrad", {}),
    ],
)
def test_mxnet_goes_on_bit_for_bit(tmp_path, name, options):
    import mxnet as mx
    from geokfp.components.geo_training.frameworks.mxnet_state import load_updater_state, updater_state

    def made():
        schedule = mx.lr_scheduler.FactorScheduler(step=2, factor=0.5, base_lr=0.1)
        optimizer = mx.optimizer.create(name, learning_rate=0.1, lr_scheduler=schedule, **options)
        weights = {key: mx.nd.array(np.linspace(-1, 1, 5 + key)) for key in range(2)}
        return mx.optimizer.get_updater(optimizer), weights

    def steps(updater, weights, numbers):
        for number in numbers:
            for key, weight in weights.items():
                updater(key, mx.nd.array(np.cos(np.arange(5 + key) + number)), weight)

    (straight, weights), (resumed, others) = made(), made()
    steps(straight, weights, range(5))
    state = through_a_file(updater_state(straight), tmp_path)
    for key, weight in weights.items():
        weight.copyto(others[key])
    load_updater_state(resumed, others, state)
    steps(straight, weights, range(5, 9))
    steps(resumed, others, range(5, 9))
    for key, weight in weights.items():
        np.testing.assert_array_equal(weight.asnumpy(), others[key].asnumpy())


def test_the_state_of_another_mxnet_optimizer_is_refused():
    import mxnet as mx
    from geokfp.components.geo_training.frameworks.mxnet_state import load_updater_state, updater_state

    weight = mx.nd.ones((3,))
    sgd, adam = (mx.optimizer.get_updater(mx.optimizer.create(name)) for name in ("sgd", "adam"))
    sgd(0, mx.nd.ones((3,)), weight)
    with pytest.raises(ArtifactError, match="checkpoint is not of this optimizer"):
        load_updater_state(adam, {0: weight}, updater_state(sgd))
