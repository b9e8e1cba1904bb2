"""What holds for every optimizer, and what each is at its neutral settings, bit for bit."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from geokfp.components.geo_training.errors import UsageError
from geokfp.components.geo_training.optimizers import OPTIMIZERS, Optimizer, build, parse_optimizer
from geokfp.components.geo_training.optimizers.keyed import BLOCK
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.optimizer_oracles import EVERY_OPTION

values = hnp.arrays(np.float32, 6, elements=st.floats(-(2.0**50), 2.0**50, width=32))
numbers = st.floats(-(2.0**50), 2.0**50, width=32)
rates = st.floats(1e-6, 10)
shares = st.floats(0, 0.99)


def optimizer(text: str) -> Optimizer:
    return build(parse_optimizer(text))


def draw(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def stepped(text: str, weights: np.ndarray, gradients: np.ndarray) -> np.ndarray:
    stepping, weights = optimizer(text), weights.copy()
    for gradient in gradients:
        stepping.update("key", weights, gradient)
    return weights


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_a_key_is_stepped_in_place_and_its_gradient_left_alone(name):
    weights, gradient = draw(0, 50), draw(1, 50)
    held, before, given_gradient = weights, weights.copy(), gradient.copy()
    gradient.flags.writeable = False
    optimizer(name).update("key", weights, gradient, "oslo")
    assert weights is held
    assert weights.dtype == np.float32
    assert (weights != before).all()
    np.testing.assert_array_equal(gradient, given_gradient)


@pytest.mark.parametrize("text", EVERY_OPTION)
def test_a_long_key_is_stepped_as_its_pieces_are(text):
    weights, gradients = draw(0, 2 * BLOCK + 7), draw(1, 3, 2 * BLOCK + 7)
    pieces = [slice(0, 5), slice(5, BLOCK + 1), slice(BLOCK + 1, None)]
    in_pieces = [stepped(text, weights[piece], gradients[:, piece]) for piece in pieces]
    np.testing.assert_array_equal(stepped(text, weights, gradients), np.concatenate(in_pieces))


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_keys_do_not_touch_one_another_also_when_stepped_at_once(name):
    gradients, keys = draw(1, 5, 40), [f"key {i}" for i in range(6)]
    shared, weights = optimizer(name), {key: draw(i, 40) for i, key in enumerate(keys)}
    alone = {key: stepped(name, weights[key], gradients) for key in keys}

    def step(key: str) -> None:
        for gradient in gradients:
            shared.update(key, weights[key], gradient)

    with ThreadPoolExecutor(len(keys)) as threads:
        list(threads.map(step, keys))
    for key in keys:
        np.testing.assert_array_equal(weights[key], alone[key])


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_a_key_without_values_is_stepped(name):
    nothing = np.zeros(0, np.float32)
    stepping = optimizer(name)
    stepping.update("key", nothing, nothing, "oslo")
    stepping.pulled("key", "oslo", nothing)
    assert all(array.size <= 1 for array in stepping.state().values())


@pytest.mark.parametrize("name", sorted(set(OPTIMIZERS) - {"dcasgd"}))
def test_only_delay_compensation_asks_where_a_gradient_comes_from(name):
    stepping, weights, gradients = optimizer(name), draw(0, 20), draw(1, 6, 20)
    before = weights.copy()
    for step, gradient in enumerate(gradients):
        stepping.pulled("key", f"site {step % 2}", weights)
        stepping.update("key", weights, gradient, f"site {step % 3}")
    np.testing.assert_array_equal(weights, stepped(name, before, gradients))


@pytest.mark.parametrize("name", sorted(set(OPTIMIZERS) - {"outer"}))
def test_an_optimizer_comes_closer_to_the_least_loss(name):
    weights, aim, stepping = np.zeros(30, np.float32), draw(2, 30), optimizer(f"{name}(rate=0.05)")
    for _ in range(200):
        stepping.update("key", weights, weights - aim, "oslo")
        stepping.pulled("key", "oslo", weights)
    assert np.square(weights - aim).sum() < np.square(aim).sum()


READ_ONLY = np.zeros(4, np.float32)
READ_ONLY.flags.writeable = False
BAD = {
    "read-only weights": (READ_ONLY, np.zeros(4, np.float32), "weights of 'key' are read-only"),
    "FP64 weights": (np.zeros(4), np.zeros(4, np.float32), "weights of 'key' are float64"),
    "weights of two axes": (
        np.zeros((2, 2), np.float32),
        np.zeros((2, 2), np.float32),
        r"float32 \[2, 2\], needed: float32 \[n\]",
    ),
    "weights with gaps": (np.zeros(8, np.float32)[::2], np.zeros(4, np.float32), "in one piece"),
    "FP16 gradient": (np.zeros(4, np.float32), np.zeros(4, np.float16), "gradient of 'key' is float16"),
    "short gradient": (np.zeros(4, np.float32), np.zeros(1, np.float32), r"is float32 \[1\], needed"),
    "longer than before": (np.zeros(5, np.float32), np.zeros(5, np.float32), "are 5, those before were 4"),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_what_does_not_fit_is_a_usage_error_that_changes_nothing(case):
    weights, gradient, message = BAD[case]
    stepping = optimizer("adam")
    stepping.update("key", draw(0, 4), draw(1, 4))
    before = stepping.state()
    with pytest.raises(UsageError, match=message):
        stepping.update("key", weights, gradient)
    assert not weights.any()
    for name, array in stepping.state().items():
        np.testing.assert_array_equal(array, before[name])


def test_a_site_cannot_be_given_weights_of_another_size():
    stepping = optimizer("dcasgd")
    stepping.pulled("key", "oslo", draw(0, 4))
    with pytest.raises(UsageError, match="are 5, those before were 4"):
        stepping.pulled("key", "paris", draw(0, 5))


@given(values, rates)
def test_without_gradient_and_decay_sgd_leaves_weights(weights, rate):
    after = stepped(f"sgd(rate={rate})", weights, np.zeros((3, 6), np.float32))
    assert after.tobytes() == weights.tobytes()


@pytest.mark.parametrize("name", ["momentum", "nag", "outer", "dcasgd"])
@given(values, values, rates)
def test_without_momentum_it_is_sgd(name, weights, gradient, rate):
    neutral = stepped(f"{name}(rate={rate}, momentum=0)", weights, gradient[None])
    assert neutral.tobytes() == stepped(f"sgd(rate={rate})", weights, gradient[None]).tobytes()


@given(values, values, st.floats(1e-3, 1e3))
def test_a_clipped_gradient_is_the_gradient_clipped(weights, gradient, clip):
    clipped = np.clip(gradient, -clip, clip).astype(np.float32)
    np.testing.assert_array_equal(
        stepped(f"sgd(clip={clip})", weights, gradient[None]), stepped("sgd", weights, clipped[None])
    )


@given(values, values)
def test_with_rate_1_and_no_momentum_the_outer_update_is_the_mean_delta(weights, delta):
    after = stepped("outer(rate=1, momentum=0)", weights, np.stack([delta, delta]))
    assert after.tobytes() == (weights - delta - delta).tobytes()


@given(values, hnp.arrays(np.float32, (5, 6), elements=numbers), shares, st.booleans(), st.floats(0, 10))
def test_with_one_site_delay_compensation_is_momentum(weights, gradients, momentum, adaptive, strength):
    options = f"rate=0.1, momentum={momentum}, weight_decay=0.01"
    late = optimizer(f"dcasgd({options}, lambda={strength}, adaptive={adaptive})")
    plain = stepped(f"momentum({options})", weights, gradients)
    late.pulled("key", "oslo", weights)
    for gradient in gradients:
        late.update("key", weights, gradient, "oslo")
        late.pulled("key", "oslo", weights)
    np.testing.assert_array_equal(weights, plain)


@given(values, hnp.arrays(np.float32, (5, 6), elements=numbers), st.booleans())
def test_with_lambda_0_delay_compensation_is_sgd_for_any_number_of_sites(weights, gradients, adaptive):
    late = optimizer(f"dcasgd(rate=0.1, lambda=0, adaptive={adaptive})")
    plain = stepped("sgd(rate=0.1)", weights, gradients)
    for step, gradient in enumerate(gradients):
        late.pulled("key", f"site {step % 2}", weights)
        late.update("key", weights, gradient, f"site {step % 3}")
    np.testing.assert_array_equal(weights, plain)
    assert late.state() == {}


def test_each_site_is_compensated_for_the_steps_since_its_own_pull():
    """Worked by hand: rate 1, lambda 1, every gradient 2, so that a step is 2 + 4 (w - backup)."""
    late, weights = optimizer("dcasgd(rate=1, lambda=1)"), np.array([10.0], np.float32)
    gradient, after = np.array([2.0], np.float32), []
    for site in ("oslo", "lima"):
        late.pulled("key", site, weights)
    for site in ("oslo", "oslo", "lima"):
        late.update("key", weights, gradient, site)
        late.pulled("key", site, weights)
        after.append(weights.item())
    assert after == [8.0, 6.0, 6.0 - (2.0 + 4.0 * (6.0 - 10.0))]


def test_a_gradient_that_never_changes_has_no_variance_below_zero():
    gradients = np.broadcast_to(draw(1, 500), (300, 500))
    assert np.isfinite(stepped("rmsprop(centered=true)", draw(0, 500), gradients)).all()
