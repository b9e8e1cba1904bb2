"""Every synchronisation with every compression over a tree in memory; neutral settings change nothing."""

import numpy as np
import pytest
from geokfp.components.geo_training.compression import TECHNIQUES as COMPRESSIONS
from geokfp.components.geo_training.scheduling import InOrder
from geokfp.components.geo_training.synchronization import TECHNIQUES as SYNCHRONIZATIONS
from support.geo_tree import topology
from support.vector_training import one_model, train

SHORT = {
    "fsa": "fsa",
    "mixed": "mixed(optimizer=sgd(rate=0.05))",
    "hfa": "hfa(k1=2)",
    "esync": "esync(steps=2)",
    "nbsync": "nbsync(steps=2)",
    "auto": "auto",
}
"""Each technique so that some rounds fit into a few steps."""
FULLER = {"top_k": "top_k(ratio=0.5)", "bi_sparse": "bi_sparse(ratio=0.5)", "demo": "demo(ratio=0.5)"}
"""Those that would send next to nothing of a few values."""


def test_every_synchronisation_is_here():
    assert set(SHORT) == set(SYNCHRONIZATIONS)


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize(
    "synchronization", [*SHORT.values(), "fsa(optimizer=adam(rate=0.02))", "hfa(k1=2) + outer"]
)
def test_every_synchronisation_ends_with_one_model_under_every_compression(synchronization, compression):
    text = f"{FULLER.get(compression, compression)} + by_size(bound=0)"
    _, replicas = train(synchronization, [5, 4, 6, 5], compression=text)
    weights = one_model(replicas)
    assert np.isfinite(weights).all()
    assert 0.01 < np.abs(weights).max() < 3


@pytest.mark.parametrize("compression", ["top_k(ratio=1)", "bi_sparse(ratio=1)", "none + zstd"])
@pytest.mark.parametrize("synchronization", ["fsa", "hfa(k1=2)", "fsa(optimizer=adam(rate=0.02))"])
def test_a_compression_that_loses_nothing_changes_no_bit(synchronization, compression):
    text = f"{compression} + by_size(bound=0)"
    plain, compressed = train(synchronization, 6)[1], train(synchronization, 6, compression=text)[1]
    np.testing.assert_array_equal(one_model(compressed), one_model(plain))


NEUTRAL = {
    "hfa(k1=2, k2=1)": "hfa(k1=2)",
    "hfa(k1=2) + outer(rate=1, momentum=0)": "hfa(k1=2)",
    "hfa(k1=2) + streamed(fragments=1)": "hfa(k1=2)",
    "hfa(k1=2) + quorum(workers=4, grace_s=0)": "hfa(k1=2)",
    "fsa + quorum(workers=4, grace_s=0)": "fsa",
    "esync(steps=2, cap=1)": "hfa(k1=2)",
    "fsa(optimizer=dcasgd(rate=0.1))": "fsa(optimizer=sgd(rate=0.1))",
    "fsa(optimizer=momentum(rate=0.1, momentum=0))": "fsa(optimizer=sgd(rate=0.1))",
}
"""What is neutral, and the plain path that it must equal."""


@pytest.mark.parametrize("neutral", NEUTRAL)
def test_a_neutral_setting_is_the_plain_path_bit_for_bit(neutral):
    np.testing.assert_array_equal(one_model(train(neutral, 7)[1]), one_model(train(NEUTRAL[neutral], 7)[1]))


@pytest.mark.parametrize(
    "text",
    [
        "fsa",
        "fsa(optimizer=dcasgd(rate=0.1, momentum=0.9))",
        "mixed(optimizer=adam(rate=0.05))",
        "hfa(k1=2) + outer",
        "hfa(k1=2, k2=2) + streamed(fragments=2) + outer",
    ],
)
def test_slices_of_a_tensor_are_the_tensor_bit_for_bit(text):
    one_site = topology(1, 2)
    whole, sliced = (train(text, 7, one_site, slices=slices)[1] for slices in (None, InOrder(8)))
    np.testing.assert_array_equal(one_model(sliced), one_model(whole))
