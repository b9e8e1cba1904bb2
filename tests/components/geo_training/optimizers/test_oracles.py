"""Every optimizer against its oracle, and against the same rule of torch and of MXNet."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from geokfp.components.geo_training.optimizers import OPTIMIZERS, build, parse_optimizer
from support.optimizer_oracles import EVERY_OPTION, ORACLES, new_state

MXNET_STEPS = Path(__file__).resolve().parents[3] / "support/mxnet_optimizers.py"
NUM_VALUES = 400
NUM_STEPS = 20
SITES = ("oslo", "paris", "lima")


@pytest.fixture(scope="module")
def given() -> tuple[np.ndarray, np.ndarray]:
    """Weights [n] and gradients [steps, n], of sizes from 0.1 to 10 as those of a model's layers are."""
    random = np.random.default_rng(3)
    sizes = 10 ** random.uniform(-1, 1, NUM_VALUES)
    weights = random.normal(size=NUM_VALUES) + 3.0
    gradients = random.normal(size=(NUM_STEPS, NUM_VALUES)) * sizes
    return weights.astype(np.float32), gradients.astype(np.float32)


def trace(text: str, weights: np.ndarray, gradients: np.ndarray) -> np.ndarray:
    """Returns the weights after each step [steps, n]."""
    optimizer, weights = build(parse_optimizer(text)), weights.copy()
    gradients.flags.writeable = False
    after = []
    for gradient in gradients:
        optimizer.update("key", weights, gradient)
        after.append(weights.copy())
    return np.stack(after)


def assert_agree(ours: np.ndarray, theirs: np.ndarray, relative: float = 1e-6) -> None:
    """Holds each value of [steps, n] against the other, relative to its largest size in any step."""
    errors, sizes = np.abs(ours - theirs), np.abs(theirs).max(axis=0)
    worst = np.divide(errors.max(axis=0), sizes, where=sizes > 0, out=np.zeros_like(sizes)).max()
    assert (errors <= relative * sizes).all(), f"up to {worst} apart"


def test_every_optimizer_and_option_is_held_here() -> None:
    assert {text.split("(")[0] for text in EVERY_OPTION} == set(OPTIMIZERS) == set(ORACLES)


@pytest.mark.parametrize("text", EVERY_OPTION)
def test_an_optimizer_does_what_its_oracle_does(text, given) -> None:
    (weights, gradients), spec = given, parse_optimizer(text)
    oracle, state = ORACLES[text.split("(")[0]], new_state()
    optimizer, weights, after = build(spec), weights.copy(), []
    expected, held = [weights.astype(np.float64)], {}
    for step, gradient in enumerate(gradients):
        site = SITES[step * step % 3]  # each comes after another number of the others' steps
        expected.append(oracle(expected[-1], gradient, state, spec, held.get(site, expected[-1])))
        held[site] = expected[-1]
        optimizer.update("key", weights, gradient, site)
        optimizer.pulled("key", site, weights)
        after.append(weights.copy())
    assert_agree(np.stack(after), np.stack(expected[1:]), relative=1e-5)  # FP32 against FP64


WITH_TORCH = (
    ("sgd(rate=0.1)", "SGD", {"lr": 0.1}),
    ("sgd(rate=0.1, weight_decay=0.01)", "SGD", {"lr": 0.1, "weight_decay": 0.01}),
    ("momentum(rate=0.05)", "SGD", {"lr": 0.05, "momentum": 0.9}),
    (
        "momentum(rate=0.05, momentum=0.5, weight_decay=0.01)",
        "SGD",
        {"lr": 0.05, "momentum": 0.5, "weight_decay": 0.01},
    ),
    ("nag(rate=0.05)", "SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True}),
    ("outer(weight_decay=0.01)", "SGD", {"lr": 0.7, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("adam", "Adam", {}),
    (
        "adam(rate=0.01, beta1=0.8, beta2=0.9, weight_decay=0.01)",
        "Adam",
        {"lr": 0.01, "betas": (0.8, 0.9), "weight_decay": 0.01},
    ),
    ("adagrad", "Adagrad", {"lr": 0.01}),
    ("adagrad(rate=0.1, weight_decay=0.01)", "Adagrad", {"lr": 0.1, "weight_decay": 0.01}),
    ("rmsprop", "RMSprop", {"lr": 0.001, "alpha": 0.9}),
    (
        "rmsprop(rate=0.01, momentum=0.5, centered=true, epsilon=0.01, weight_decay=0.01)",
        "RMSprop",
        {"lr": 0.01, "alpha": 0.9, "momentum": 0.5, "centered": True, "eps": 0.01, "weight_decay": 0.01},
    ),
    ("adadelta", "Adadelta", {}),
    ("adadelta(rate=0.5, weight_decay=0.01)", "Adadelta", {"lr": 0.5, "weight_decay": 0.01}),
    ("adamax", "Adamax", {}),
    ("adamax(rate=0.01, weight_decay=0.01)", "Adamax", {"lr": 0.01, "weight_decay": 0.01}),
    ("nadam", "NAdam", {}),
    (
        "nadam(rate=0.01, momentum_decay=0.1, weight_decay=0.01)",
        "NAdam",
        {"lr": 0.01, "momentum_decay": 0.1, "weight_decay": 0.01},
    ),
)


@pytest.mark.parametrize(("text", "name", "options"), WITH_TORCH, ids=[each[0] for each in WITH_TORCH])
def test_an_optimizer_agrees_with_torch(text, name, options, given) -> None:
    parameter = torch.nn.Parameter(torch.from_numpy(given[0].copy()))
    optimizer, theirs = getattr(torch.optim, name)([parameter], **options), []
    for gradient in given[1]:
        parameter.grad = torch.from_numpy(gradient.copy())
        optimizer.step()
        theirs.append(parameter.detach().numpy().copy())
    assert_agree(trace(text, *given), np.stack(theirs))


# MXNet's Adam and its kin clip the sum of gradient and decay, so that either is chosen; its RMSProp has the
# epsilon under the root, its NAG the decay beside the momentum.
WITH_MXNET = (
    ("ftrl", "Ftrl", {}),
    (
        "ftrl(rate=0.5, l1=0.1, beta=0.5, weight_decay=0.01, clip=0.5)",
        "Ftrl",
        {"learning_rate": 0.5, "lamda1": 0.1, "beta": 0.5, "wd": 0.01, "clip_gradient": 0.5},
    ),
    ("ftml", "FTML", {"learning_rate": 0.01}),
    (
        "ftml(rate=0.05, beta1=0.8, beta2=0.9, weight_decay=0.01)",
        "FTML",
        {"learning_rate": 0.05, "beta1": 0.8, "beta2": 0.9, "wd": 0.01},
    ),
    ("ftml(clip=0.5)", "FTML", {"learning_rate": 0.01, "clip_gradient": 0.5}),
    ("signum", "Signum", {}),
    ("signum(momentum=0, clip=0.5)", "Signum", {"momentum": 0.0, "clip_gradient": 0.5}),
    (
        "signum(rate=0.1, momentum=0.5, weight_decay=0.01, clip=0.5)",
        "Signum",
        {"learning_rate": 0.1, "momentum": 0.5, "wd": 0.01, "clip_gradient": 0.5},
    ),
    (
        "momentum(rate=0.05, weight_decay=0.01, clip=0.5)",
        "SGD",
        {"learning_rate": 0.05, "momentum": 0.9, "wd": 0.01, "clip_gradient": 0.5},
    ),
    (
        "sgd(rate=0.1, weight_decay=0.01, clip=0.5)",
        "SGD",
        {"learning_rate": 0.1, "wd": 0.01, "clip_gradient": 0.5},
    ),
    ("nag(rate=0.05)", "NAG", {"learning_rate": 0.05, "momentum": 0.9}),
    ("nag(rate=0.05, clip=0.5)", "NAG", {"learning_rate": 0.05, "momentum": 0.9, "clip_gradient": 0.5}),
    ("adam(rate=0.01)", "Adam", {"learning_rate": 0.01}),
    (
        "adam(rate=0.01, beta1=0.8, beta2=0.9, weight_decay=0.01)",
        "Adam",
        {"learning_rate": 0.01, "beta1": 0.8, "beta2": 0.9, "wd": 0.01},
    ),
    ("adam(rate=0.01, clip=0.5)", "Adam", {"learning_rate": 0.01, "clip_gradient": 0.5}),
    ("adamax(rate=0.01)", "Adamax", {"learning_rate": 0.01}),
    (
        "adamax(rate=0.01, beta1=0.8, beta2=0.9, weight_decay=0.01)",
        "Adamax",
        {"learning_rate": 0.01, "beta1": 0.8, "beta2": 0.9, "wd": 0.01},
    ),
    ("adamax(rate=0.01, clip=0.5)", "Adamax", {"learning_rate": 0.01, "clip_gradient": 0.5}),
    ("nadam(rate=0.01)", "Nadam", {"learning_rate": 0.01}),
    (
        "nadam(rate=0.01, beta1=0.8, beta2=0.9, momentum_decay=0.1, weight_decay=0.01)",
        "Nadam",
        {"learning_rate": 0.01, "beta1": 0.8, "beta2": 0.9, "schedule_decay": 0.1, "wd": 0.01},
    ),
    ("adagrad(rate=0.1, clip=0.5)", "AdaGrad", {"learning_rate": 0.1, "eps": 1e-10, "clip_gradient": 0.5}),
    (
        "rmsprop(rate=0.01, decay=0.8, weight_decay=0.01)",
        "RMSProp",
        {"learning_rate": 0.01, "gamma1": 0.8, "epsilon": 1e-14, "wd": 0.01},
    ),
    (
        "rmsprop(rate=0.01, clip=0.5)",
        "RMSProp",
        {"learning_rate": 0.01, "epsilon": 1e-14, "clip_gradient": 0.5},
    ),
    (
        "rmsprop(rate=0.01, centered=true, momentum=0.5)",
        "RMSProp",
        {"learning_rate": 0.01, "gamma2": 0.5, "epsilon": 1e-14, "centered": True},
    ),
    (
        "adadelta(decay=0.8, epsilon=1e-5, clip=0.5)",
        "AdaDelta",
        {"rho": 0.8, "epsilon": 1e-05, "clip_gradient": 0.5},
    ),
)
DCASGD_WITH_MXNET = (
    ("dcasgd(rate=0.05, lambda=0.04)", {"learning_rate": 0.05}),
    ("dcasgd(rate=0.05, lambda=0.5, weight_decay=0.01, clip=0.5)",
     {"learning_rate": 0.05, "lamda": 0.5, "wd": 0.01, "clip_gradient": 0.5}),
)  # fmt: skip
"""Without momentum: with it, MXNet 1.9.1 raises an error for keys of more than one value."""


@pytest.fixture(scope="module")
def of_mxnet(given, tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """The weights after each step by MXNet, by our text."""
    folder = tmp_path_factory.mktemp("mxnet")
    np.savez(folder / "given.npz", weights=given[0], gradients=given[1])
    choices = [(text, [name, options]) for text, name, options in WITH_MXNET]
    choices += [(text, ["DCASGD", options]) for text, options in DCASGD_WITH_MXNET]
    arguments = [json.dumps([each for _, each in choices]), folder / "given.npz", folder / "after.npz"]
    subprocess.run([sys.executable, MXNET_STEPS, *map(str, arguments)], check=True, capture_output=True)
    after = np.load(folder / "after.npz")
    return {text: after[str(position)] for position, (text, _) in enumerate(choices)}


@pytest.mark.parametrize("text", [each[0] for each in WITH_MXNET])
def test_an_optimizer_agrees_with_mxnet(text, given, of_mxnet) -> None:
    assert_agree(trace(text, *given), of_mxnet[text], relative=2e-6)


@pytest.mark.parametrize("text", [each[0] for each in DCASGD_WITH_MXNET])
def test_with_one_worker_a_step_behind_dcasgd_agrees_with_mxnets(text, given, of_mxnet) -> None:
    optimizer, weights, after = build(parse_optimizer(text)), given[0].copy(), []
    for gradient in given[1]:
        before = weights.copy()
        optimizer.update("key", weights, gradient, "worker")
        optimizer.pulled("key", "worker", before)
        after.append(weights.copy())
    assert_agree(np.stack(after), of_mxnet[text])
