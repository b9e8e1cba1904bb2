"""An optimizer's state: its size, its names, and going on from a checkpoint as if nothing had happened."""

import re
from pathlib import Path

import numpy as np
import pytest
from geokfp.components._files import InputError
from geokfp.components.geo_training import optimizers
from geokfp.components.geo_training.optimizers import OPTIMIZERS, build, parse_optimizer
from support.optimizer_oracles import EVERY_OPTION

NUM_VALUES = 100
SITES = ("oslo", "paris", "a/b c%")
_ROW = re.compile(r"^\| (`.*`) \| (.*) \|$", re.MULTILINE)


def run(stepping: optimizers.Optimizer, weights: dict[str, np.ndarray], steps: range) -> None:
    for step in steps:
        for position, key in enumerate(sorted(weights)):
            random = np.random.default_rng((step, position))
            gradient, site = random.normal(size=weights[key].size).astype(np.float32), SITES[step % 3]
            stepping.update(key, weights[key], gradient, site)
            stepping.pulled(key, site, weights[key])


def start() -> dict[str, np.ndarray]:
    return {"layer.0/weight": np.ones(NUM_VALUES, np.float32), "bias": np.ones(3, np.float32)}


@pytest.mark.parametrize("text", EVERY_OPTION)
def test_training_goes_on_from_a_checkpoint_bit_for_bit(text, tmp_path: Path):
    whole, first, second = (build(parse_optimizer(text)) for _ in range(3))
    uninterrupted, resumed = start(), start()
    run(whole, uninterrupted, range(12))
    run(first, resumed, range(7))
    np.savez(tmp_path / "state.npz", **first.state())
    with np.load(tmp_path / "state.npz", allow_pickle=False) as arrays:
        second.load_state(dict(arrays))
    run(second, resumed, range(7, 12))
    for key in uninterrupted:
        np.testing.assert_array_equal(resumed[key], uninterrupted[key])
    ours, theirs = whole.state(), second.state()
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        assert array.dtype == theirs[name].dtype
        np.testing.assert_array_equal(array, theirs[name])


def test_names_tell_array_key_and_site_whatever_these_hold():
    stepping = build(parse_optimizer("dcasgd(momentum=0.9, adaptive=true)"))
    run(stepping, start(), range(3))
    assert sorted(stepping.state()) == [
        "backup/bias/a%2Fb%20c%25",
        "backup/bias/oslo",
        "backup/bias/paris",
        "backup/layer.0%2Fweight/a%2Fb%20c%25",
        "backup/layer.0%2Fweight/oslo",
        "backup/layer.0%2Fweight/paris",
        "mean_square/bias",
        "mean_square/layer.0%2Fweight",
        "velocity/bias",
        "velocity/layer.0%2Fweight",
    ]
    again = build(parse_optimizer("dcasgd(momentum=0.9, adaptive=true)"))
    again.load_state(stepping.state())
    assert again.state().keys() == stepping.state().keys()


def test_the_state_is_a_copy_both_ways():
    stepping, weights = build(parse_optimizer("dcasgd(momentum=0.9)")), start()
    run(stepping, weights, range(1))
    taken = stepping.state()
    kept = {name: array.copy() for name, array in taken.items()}
    run(stepping, weights, range(1, 2))
    stepping.load_state(taken)
    run(stepping, weights, range(2, 3))
    for name, array in taken.items():
        np.testing.assert_array_equal(array, kept[name])


def documented() -> dict[str, str]:
    """Returns the bytes that the package's docstring says, by optimizer."""
    rows = _ROW.findall(optimizers.__doc__ or "")
    return {name.strip("`"): size for names, size in rows for name in names.split(", ")}


def evaluated(size: str, options: object, num_sites: int) -> int:
    """Returns the bytes of an expression such as `4 n s; + 4 n with momentum`."""
    first, *more = size.split("; + ")
    total = _bytes(first, num_sites)
    for each in more:
        term, option = each.split(" with ")
        total += _bytes(term, num_sites) if getattr(options, option) else 0
    return total


def _bytes(terms: str, num_sites: int) -> int:
    values = {"n": NUM_VALUES, "s": num_sites}
    return sum(
        int(np.prod([values[factor] if factor in values else int(factor) for factor in term.split()]))
        for term in terms.split(" + ")
    )


def test_the_table_of_state_sizes_has_every_optimizer():
    assert set(documented()) == set(OPTIMIZERS)


@pytest.mark.parametrize("text", [*EVERY_OPTION, "dcasgd(adaptive=true)", "rmsprop(centered=true)"])
def test_a_state_has_the_size_that_the_table_says(text):
    spec, weights = parse_optimizer(text), np.ones(NUM_VALUES, np.float32)
    stepping = build(spec)
    for site in SITES:
        stepping.pulled("key", site, weights)
        stepping.update("key", weights, weights.copy(), site)
    held = sum(array.nbytes for array in stepping.state().values())
    assert held == evaluated(documented()[text.split("(")[0]], spec, len(SITES))


ONE, TWO = np.ones(3, np.float32), np.ones(4, np.float32)
COUNT = np.array([1.0])
BAD = {
    "of another optimizer": (
        {"velocity/k": ONE},
        "holds 'velocity/k', allowed: mean/<key>, mean_square/<key>",
    ),
    "without a key": ({"mean": ONE}, "holds 'mean', allowed"),
    "with too much of a name": ({"mean/k/oslo": ONE}, "holds 'mean/k/oslo', allowed"),
    "with a backup": ({"backup/k/oslo": ONE}, "holds 'backup/k/oslo', allowed"),
    "of no UTF-8": ({"mean/%FF": ONE}, "holds 'mean/%FF', allowed: percent-encoded UTF-8"),
    "of FP64": (
        {"mean/k": ONE.astype(np.float64)},
        r"'mean/k' is float64 \[3\], allowed: float32 \[n\]",
    ),
    "of two axes": ({"mean/k": ONE[None]}, r"'mean/k' is float32 \[1, 3\], allowed: float32 \[n\]"),
    "with two counts": (
        {"steps/k": np.ones(2)},
        r"'steps/k' is float64 \[2\], allowed: float64 \[1\]",
    ),
    "with an array less": ({"mean/k": ONE, "steps/k": COUNT}, "key 'k' has no 'mean_square'"),
    "without a count": ({"mean/k": ONE, "mean_square/k": ONE}, "key 'k' has no 'steps'"),
    "of two sizes": (
        {"mean/k": ONE, "mean_square/k": TWO, "steps/k": COUNT},
        "key 'k' holds arrays of 3, 4 values, allowed: one size",
    ),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(case):
    arrays, message = BAD[case]
    stepping = build(parse_optimizer("adam"))
    run(stepping, start(), range(1))
    before = stepping.state()
    with pytest.raises(InputError, match=message):
        stepping.load_state(arrays)
    assert stepping.state().keys() == before.keys()


def test_sgd_keeps_nothing_and_says_so():
    with pytest.raises(InputError, match="holds 'mean/k', allowed: nothing"):
        build(parse_optimizer("sgd")).load_state({"mean/k": ONE})
