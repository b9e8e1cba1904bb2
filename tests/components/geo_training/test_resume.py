"""Trees and workers that go on from a checkpoint, in memory: every policy, and what nodes keep beside."""

import numpy as np
import pytest
from geokfp.components._files.checkpoints import last_common
from geokfp.components.geo_training.checkpoints.node_checkpoints import Shelf
from geokfp.components.geo_training.checkpoints.state import State
from geokfp.components.geo_training.checkpoints.worker_checkpoints import keep_at_nodes
from geokfp.components.geo_training.synchronization import synchronization
from geokfp.components.geo_training.workers.plane import Members, Plane
from support.geo_tree import at_once, topology, tree
from support.memory_transport import MemoryTransport
from support.vector_training import LAYOUT, RATE, Gradient, Vector, gradient_of, samples_of

EVERY, STEPS = 7, 18
SITES = ("site-0", "site-1")


class Vectors:
    """One vector a worker, trained with momentum, which keeps a checkpoint every `EVERY` steps."""

    def __init__(self, folder, text, compression, resume=0, stop_after=STEPS, transmission="fifo"):
        self._folder, self._text, self._resume, self._stop_after = folder, text, resume, stop_after
        self.shape = topology(2, 2, accepting=1)
        self.weights = {}
        choices = {
            "synchronization": text,
            "compression": compression,
            "checkpoints": folder,
            "transmission": transmission,
        }
        with tree(self.shape, MemoryTransport(), resume=resume, **choices) as self._tree:
            at_once(self._work, self.shape.workers)
        assert not self._tree.errors

    def _work(self, name):
        worker, replica = self.shape.workers.index(name), Vector(measured=float(len(name)))
        velocity = np.zeros(LAYOUT.count, np.float32)
        plane = Plane(
            self._tree.client(name),
            Members(workers=self.shape.workers, name=name),
            None,
            len(self._tree.roots),
        )
        plane.place(LAYOUT)
        policy = synchronization(self._text).worker()
        replica.set_weights(plane.first("weights", LAYOUT, replica.weights()))
        shelf = Shelf(self._folder, name.replace("/", "-"))

        def update(mean):
            np.add(np.float32(0.5) * velocity, mean, out=velocity)
            replica.set_weights(replica.weights() - RATE * velocity)

        policy.begin(replica, plane, update)
        if self._resume:
            kept = shelf.read(self._resume)
            policy.load_state(kept.part("policy"))
            replica.set_weights(kept.part("worker").arrays["weights"])
            velocity[:] = kept.part("worker").arrays["velocity"]
        for step in range(self._resume, self._stop_after):
            number = samples_of(worker)
            summed = gradient_of(replica.weights(), worker, step) * np.float32(number)
            policy.step(Gradient(summed, update), number)
            if (step + 1) % EVERY == 0:
                state = policy.state()
                own = State({"weights": replica.weights(), "velocity": velocity.copy()})
                shelf.write(step + 1, State.of({"policy": state, "worker": own}))
                keep_at_nodes(plane, step + 1)
        if self._stop_after == STEPS:
            policy.finish()
        self.weights[name] = replica.weights()
        plane.close()

    def members(self):
        roots = [root.name for root in self._tree.roots]
        return [*roots, *SITES, *(name.replace("/", "-") for name in self.shape.workers)]


@pytest.mark.parametrize(
    ("text", "compression"),
    [
        ("fsa", "none"),
        ("fsa", "top_k(ratio=0.3) + by_size(bound=0)"),
        ("fsa(optimizer=adam(rate=0.1))", "top_k(ratio=0.3) + by_size(bound=0)"),
        ("hfa(k1=2, k2=2)", "none"),
        ("hfa(k1=3) + outer(momentum=0.5)", "bi_sparse(ratio=0.3, down=lossy) + by_size(bound=0)"),
        ("hfa(k1=4) + outer + streamed(fragments=2)", "none"),
        ("nbsync(steps=19)", "none"),
        ("nbsync(steps=7, damping=0.5) + outer", "fp16(feedback=1.0)"),
    ],
)
def test_it_ends_as_a_run_that_was_not_interrupted(tmp_path, text, compression):
    straight = Vectors(tmp_path / "straight", text, compression)
    stopped = Vectors(tmp_path / "kept", text, compression, stop_after=EVERY + 3)
    assert last_common(tmp_path / "kept", stopped.members()) == EVERY
    resumed = Vectors(tmp_path / "kept", text, compression, resume=EVERY)
    for name, weights in straight.weights.items():
        np.testing.assert_array_equal(resumed.weights[name], weights)


@pytest.mark.parametrize(
    ("text", "compression"),
    [
        ("fsa(optimizer=adam(rate=0.1))", "top_k(ratio=0.3) + by_size(bound=0)"),
        ("hfa(k1=3) + outer(momentum=0.5)", "none"),
    ],
)
def test_each_of_two_roots_goes_on_with_what_it_held(tmp_path, text, compression):
    straight = Vectors(tmp_path / "straight", text, compression)
    choices = {"transmission": "fifo + multigps(shards=2)"}
    stopped = Vectors(tmp_path / "kept", text, compression, stop_after=EVERY + 3, **choices)
    assert "root-1" in stopped.members()
    assert last_common(tmp_path / "kept", stopped.members()) == EVERY
    resumed = Vectors(tmp_path / "kept", text, compression, resume=EVERY, **choices)
    for name, weights in straight.weights.items():
        np.testing.assert_array_equal(resumed.weights[name], weights)


@pytest.mark.parametrize(
    "text", ["mixed", "esync(steps=2)", "hfa(k1=2) + quorum(workers=2, grace_s=0)", "fsa + quorum(workers=2)"]
)
def test_sites_out_of_step_go_on_with_one_model_at_the_end(tmp_path, text):
    Vectors(tmp_path, text, "none", stop_after=EVERY)
    resumed = Vectors(tmp_path, text, "none", resume=EVERY)
    first, *others = resumed.weights.values()
    for weights in others:
        np.testing.assert_array_equal(weights, first)
    assert 0 < np.abs(first).max() < 2  # the minima are means of cosines


def test_the_last_two_are_kept(tmp_path):
    Vectors(tmp_path, "fsa(optimizer=adam)", "none", stop_after=EVERY * 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["epoch-14", "epoch-7"]
    shape = topology(2, 2)
    for number in (21, 28):
        for name in ("root", "site-0"):
            Shelf(tmp_path, name).write(number, State(facts={"n": number}))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["epoch-14", "epoch-21", "epoch-28", "epoch-7"]
    assert not (tmp_path / "epoch-14" / "root").exists()
    assert last_common(tmp_path, ["root", "site-0"]) == 28
    assert last_common(tmp_path, [name.replace("/", "-") for name in shape.workers]) == 14
