"""Policies that train between rounds, against short oracles: HFA's two levels, fragments, late means."""

from functools import partial

import numpy as np
import pytest
from geokfp.components.geo_training.synchronization import synchronization
from support.lock_step import LockStep
from support.vector_training import COUNT, PIECES, Gradient, Vector, descend, gradient_of, samples_of, train

NAMES = ("site-0/trainer-0", "site-0/trainer-1", "site-1/trainer-0", "site-1/trainer-1")
SHARE = np.array([samples_of(worker) for worker in range(4)]) / sum(map(samples_of, range(4)))
SLICES = [slice(piece.start, piece.start + piece.count) for piece in PIECES]


def close(one, other):
    np.testing.assert_allclose(one, other, rtol=0, atol=3e-6)


def site_mean(weights, worker):
    site = [worker // 2 * 2, worker // 2 * 2 + 1]
    return np.average([weights[i] for i in site], axis=0, weights=[samples_of(i) for i in site])


def oracle_of_two_levels(steps, k1, k2, num_fragments):
    """HierFAVG, whose fragments meet over all sites at steps of their own."""
    weights, seen = [np.zeros(COUNT) for _ in range(4)], []
    parts = SLICES if num_fragments == 2 else [slice(0, COUNT)]
    for step in range(steps):
        weights = [w - 0.1 * gradient_of(w, i, step) for i, w in enumerate(weights)]
        for index, part in enumerate(parts):
            if (step + 1 - index * k1 * k2 // num_fragments) % (k1 * k2) == 0:
                mean = sum(s * w[part] for s, w in zip(SHARE, weights, strict=True))
                for w in weights:
                    w[part] = mean
        if k2 > 1 and (step + 1) % k1 == 0:
            weights = [site_mean(weights, worker) for worker in range(4)]
        seen.append([w.copy() for w in weights])
    return seen


@pytest.mark.parametrize(
    ("k1", "k2", "num_fragments"),
    [(2, 3, 1), (3, 1, 1), (1, 4, 1), (4, 1, 2), (2, 2, 2), (3, 2, 2), (1, 2, 2)],
)
def test_two_levels_and_fragments_agree_with_numpy(k1, k2, num_fragments):
    rule = f" + streamed(fragments={num_fragments})" if num_fragments > 1 else ""
    seen, _ = train(f"hfa(k1={k1}, k2={k2}){rule}", 13)
    for step, of_workers in enumerate(oracle_of_two_levels(13, k1, k2, num_fragments)[:-1]):
        for worker, expected in enumerate(of_workers):
            close(list(seen.values())[worker][step], expected)


def oracle_of_late_means(num_steps, steps, damping, parts, late):
    """NBSync: x <- x + damping (mean change - own change) when the mean comes, and the anchor takes it."""
    weights, anchor, seen = [np.zeros(COUNT) for _ in range(4)], np.zeros(COUNT), []
    flying = {}

    def land(index):
        part, (_, changes) = parts[index], flying.pop(index)
        mean = sum(s * change for s, change in zip(SHARE, changes, strict=True))
        anchor[part] += mean
        for w, change in zip(weights, changes, strict=True):
            w[part] += damping * (mean - change)

    for step in range(1, num_steps + 1):
        for i, w in enumerate(weights):
            w -= 0.1 * gradient_of(w, i, step - 1)
        for index, part in enumerate(parts):
            due = (step - index * steps // len(parts)) % steps == 0
            if index in flying and (due or step >= flying[index][0] + late):
                land(index)
            if due:
                flying[index] = (step, [w[part] - anchor[part] for w in weights])
        seen.append(([w.copy() for w in weights], anchor.copy()))
    return seen


@pytest.mark.parametrize("late", [1, 2, 99])
@pytest.mark.parametrize("damping", [1.0, 0.5])
@pytest.mark.parametrize("parts", [SLICES, [slice(0, COUNT)]])
def test_a_late_mean_corrects_by_the_damped_difference(late, damping, parts):
    chosen = synchronization(f"nbsync(steps=4, damping={damping}) + streamed(fragments={len(parts)})")
    all_workers = LockStep(NAMES, late)
    replicas, policies = [Vector() for _ in NAMES], [chosen.worker() for _ in NAMES]
    updates = [partial(descend, replica) for replica in replicas]
    for name, replica, policy, update in zip(NAMES, replicas, policies, updates, strict=True):
        policy.begin(replica, all_workers.plane(name), update)
    for step, (of_workers, anchor) in enumerate(oracle_of_late_means(17, 4, damping, parts, late)):
        all_workers.step = step + 1
        for worker, (replica, policy) in enumerate(zip(replicas, policies, strict=True)):
            number = samples_of(worker)
            gradient = gradient_of(replica.weights(), worker, step) * np.float32(number)
            policy.step(Gradient(gradient, updates[worker]), number)
        for replica, policy, expected in zip(replicas, policies, of_workers, strict=True):
            close(replica.weights(), expected)
            close(policy.agreed(), anchor)
