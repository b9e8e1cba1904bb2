"""Relaying with everything else that is chosen, and what it is refused with."""

import re
from pathlib import Path

import geokfp.components.geo_training
import numpy as np
import pytest
from geokfp.components._files import InputError
from geokfp.components.geo_training.config import GeoTrainingConfig
from geokfp.components.geo_training.scheduling import RULES, transmission
from geokfp.components.geo_training.scheduling.relay import TsEngine
from geokfp.components.geo_training.tree_job import TreeJob
from geokfp.components.table_training.config import GeoTableConfig
from support.geo_tree import topology
from support.vector_training import one_model, train

README = Path(geokfp.components.geo_training.__file__).with_name("README.md").read_text(encoding="utf-8")
TSENGINE = "fifo + tsengine(explore=1)"
ACCEPTS = {"sites": {"site-0": {"accepts": "127.0.0.1:7000"}}}


@pytest.mark.parametrize(
    "synchronization",
    [
        "fsa",
        "fsa(optimizer=adam(rate=0.02))",
        "hfa(k1=2, k2=2) + streamed(fragments=2) + outer",
        "esync(steps=2)",
        "nbsync(steps=2)",
    ],
)
@pytest.mark.parametrize("compression", ["none", "top_k(ratio=0.5)", "quantized(bits=4)", "mpq(bound=2)"])
def test_every_synchronisation_ends_with_one_model_where_sites_relay(synchronization, compression):
    text = compression if compression.startswith("mpq") else f"{compression} + by_size(bound=0)"
    shape = topology(3, 1, accepting=3)
    _, replicas = train(synchronization, 12, shape, compression=text, transmission=TSENGINE)
    weights = one_model(replicas)
    assert np.isfinite(weights).all()
    assert 0.01 < np.abs(weights).max() < 3


@pytest.mark.parametrize("synchronization", ["fsa", "fsa(optimizer=adam(rate=0.02))", "hfa(k1=2)"])
def test_relayed_weights_are_those_of_the_tree_but_for_the_order_of_sums(synchronization):
    shape = topology(3, 1, accepting=3)
    plain, relayed = (train(synchronization, 12, shape, transmission=text)[1] for text in ("fifo", TSENGINE))
    np.testing.assert_allclose(one_model(relayed), one_model(plain), rtol=1e-5)


def test_with_one_relay_that_nobody_needs_not_a_bit_changes():
    """One site: nobody hands it anything, and the tree is the star."""
    shape = topology(1, 2, accepting=1)
    plain, relayed = (train("fsa", 8, shape, transmission=text)[1] for text in ("fifo", TSENGINE))
    np.testing.assert_array_equal(one_model(relayed), one_model(plain))


@pytest.mark.parametrize(
    "config", [GeoTrainingConfig, lambda **options: GeoTableConfig(algorithm="mlp", **options)]
)
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            {"topology": {}},
            "transmission has tsengine, but topology has no site that accepts others, allowed: ",
        ),
        ({"synchronization": "mixed"}, "transmission has tsengine with synchronization mixed, allowed: "),
        ({"synchronization": "hfa + quorum"}, "transmission has tsengine with the rule quorum, allowed: "),
        (
            {"transmission": "fifo + tsengine(explore=0)"},
            "explore is 0.0, allowed: a number above 0 and at m",
        ),
        ({"transmission": "fifo + tsengine(expires=1)"}, "expires is 1, allowed: a whole number at least 3"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_starts(config, options, reason):
    with pytest.raises(InputError, match=re.escape(reason)):
        config(**{"synchronization": "fsa", "transmission": TSENGINE, "topology": ACCEPTS, **options})


def test_a_tree_without_relays_is_refused_too():
    tree = {"run_id": "run", "workers": {"site-0": 1}, "transmission": TSENGINE}
    with pytest.raises(InputError, match="no site that accepts others"):
        TreeJob(topology=topology(1, 1), **tree)
    with pytest.raises(InputError, match="with tsengine: 0, as the sites have plans"):
        checkpoints = {"checkpoint_folder": "/nowhere", "checkpoint_every": 1}
        served = "fsa(optimizer=adam)"
        TreeJob(topology=topology(1, 1, accepting=1), synchronization=served, **checkpoints, **tree)
    job = TreeJob(topology=topology(1, 1, accepting=1), **tree)
    assert TreeJob.from_dict(job.to_dict()).relays == TsEngine(explore=1.0)


def test_the_readme_lists_it_and_what_it_is_refused_with():
    assert "| `tsengine(explore=0.1, expires=5)`, a rule |" in README
    assert transmission("fifo + tsengine").rules["tsengine"] == TsEngine(explore=0.1, expires=5)
    refused = README.partition("| refused | why |")[2].partition("\n\n")[0]
    for row in ("without an address `accepts`", "with `mixed` or `quorum`", "with `dgt` or `multigps`"):
        assert f"| `tsengine` {row}" in refused
    for other in ("dgt", "multigps"):
        with pytest.raises(InputError, match=f"tsengine and {other}, allowed: one of them"):
            GeoTrainingConfig(synchronization="fsa", transmission=f"{TSENGINE} + {other}", topology=ACCEPTS)
    assert "tsengine" in RULES
