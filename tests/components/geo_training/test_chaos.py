"""Whatever is killed or cut, in an order by chance: all end with one model, and nothing counts twice."""

import random
import threading

import numpy as np
import pytest
from geokfp.components.geo_training.checkpoints.journal import Journal
from geokfp.components.geo_training.wire.units import CHANGES
from support.faulty_tree import SILENCE_S, FaultyTree
from support.ledger import assert_counted_once

STEPS, LAST_FAULT = 20, 13
"""Rounds in all; in the last ones nothing fails, so that all are there in the end."""
GATHER_S = 15.0
SITES = {name: [name, f"{name}/trainer-0", f"{name}/trainer-1"] for name in ("site-0", "site-1")}


class Chaos:
    """Lets something fail whenever the first worker comes to one of some steps."""

    def __init__(self, seed):
        self._random, self._lock, self.came = random.Random(seed), threading.Lock(), []
        self._gathered, self._there = threading.Condition(), set()
        self._steps = sorted(self._random.sample(range(1, LAST_FAULT + 1), 6))

    def __call__(self, tree, _name, step):
        if step > LAST_FAULT:
            self._gather(tree)
        with self._lock:
            if not self._steps or step < self._steps[0]:
                return
            self._steps.pop(0)
            site = self._random.choice(list(SITES))
            fault = self._random.choice([self.worker, self.aggregator, self.site, self.root, self.cut])
            self.came.append(f"{fault.__name__} {site} at {step}")
            fault(tree, site)

    def _gather(self, tree):
        """Waits until all workers are there again: those that go on would else end before."""
        with self._gathered:
            self._there.add(threading.current_thread())
            self._gathered.notify_all()
            all_there = self._gathered.wait_for(
                lambda: self._there >= set(tree.threads(tree.shape.workers)), GATHER_S
            )
            assert all_there, f"not all are back: {self.came}"

    def worker(self, tree, site):
        tree.restart(self._random.choice(SITES[site][1:]))

    def aggregator(self, tree, site):
        tree.restart(site)

    def site(self, tree, site):
        tree.restart(*SITES[site])

    def root(self, tree, _site):
        tree.restart("root")

    def cut(self, tree, site):
        tree.network.cut(site, "root")
        seconds = self._random.uniform(0.2, 2.0) * SILENCE_S
        threading.Timer(seconds, tree.network.mend, (site, "root")).start()


@pytest.mark.parametrize(
    ("text", "seed"),
    [
        ("fsa(optimizer=sgd(rate=0.1)) + quorum(workers=1, grace_s=0.3)", 1),
        ("hfa(k1=1) + quorum(workers=1, grace_s=0.3)", 2),
        pytest.param("mixed(optimizer=sgd(rate=0.1)) + quorum(workers=1)", 3, marks=pytest.mark.long),
        pytest.param("nbsync(steps=1) + quorum(workers=1, grace_s=0.3)", 4, marks=pytest.mark.long),
        *(
            pytest.param(text, seed, marks=pytest.mark.long)
            for text in ("fsa(optimizer=adam(rate=0.1))", "hfa(k1=1) + outer(rate=0.7)")
            for seed in (5, 6)
        ),
    ],
)
def test_all_end_with_one_model_and_nothing_counts_twice(tmp_path, text, seed):
    chaos, kept = Chaos(seed), tmp_path / "kept"
    options = {"steps": STEPS, "kept": kept, "every": 10 * STEPS, "samples": lambda worker, _step: 1 + worker}
    tree = FaultyTree(text, before=chaos, **options).run()
    assert not tree.errors, chaos.came
    assert len(chaos.came) == 6
    first, *others = tree.last.values()
    assert len(others) == 3
    for other in others:
        np.testing.assert_array_equal(other, first)
    assert 0 < np.abs(first).max() < 2  # the minima are means of cosines
    rounds_of = assert_counted_once(Journal(kept).records(0), CHANGES)
    assert set(rounds_of) == set(tree.shape.workers)
    assert all(numbers <= set(range(STEPS + 2)) for numbers in rounds_of.values())
