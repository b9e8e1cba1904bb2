"""Sums over sites are what scikit-learn says of all rows together."""

import threading

import numpy as np
import pytest
from geokfp.components.table_training.learner import Judged
from geokfp.components.table_training.totals import SPLITS, classification, regression
from sklearn.metrics import accuracy_score, mean_squared_error, r2_score
from support.geo_tree import at_once

NUM_WORKERS = 3


class Sum:
    """`Plane.total` among threads: each call waits for all, and gives all the sum."""

    def __init__(self):
        self._brought = {}
        self._barrier = threading.Barrier(NUM_WORKERS)

    def of(self, name):
        def total(numbers):
            self._brought[name] = numbers
            self._barrier.wait(10)
            result = sum(self._brought.values())
            self._barrier.wait(10)
            return result

        return total


def everywhere(judge, outputs, labels, split):
    shares = Sum()

    def of_one(name):
        mine = slice(int(name), None, NUM_WORKERS)
        return judge(Judged(outputs[mine], 0.0), labels[mine], split[mine], shares.of(name))

    first, *others = at_once(of_one, [str(index) for index in range(NUM_WORKERS)]).values()
    assert all(other == first for other in others)
    return first


def test_accuracies():
    generator = np.random.default_rng(0)
    outputs, labels = generator.normal(size=(60, 4)).astype(np.float32), generator.integers(0, 4, 60)
    split = generator.integers(0, 3, 60).astype(np.int8)  # no test row
    found = everywhere(classification, outputs, labels, split)
    assert set(found) == {"train_accuracy", "val_accuracy"}
    for name in ("train", "val"):
        mask = split == SPLITS[name]
        assert found[f"{name}_accuracy"] == pytest.approx(
            accuracy_score(labels[mask], outputs[mask].argmax(axis=1))
        )


def test_rmse_and_r2_far_from_zero():
    generator = np.random.default_rng(0)
    labels = (1e4 + generator.normal(size=60)).astype(np.float32)
    outputs = (labels + generator.normal(size=60, scale=0.3).astype(np.float32))[:, None]
    split = generator.integers(1, 4, 60).astype(np.int8)
    found = everywhere(regression, outputs, labels, split)
    assert len(found) == 6
    for name, code in SPLITS.items():
        truth, given = labels[split == code], outputs[split == code, 0]
        assert found[f"{name}_rmse"] == pytest.approx(mean_squared_error(truth, given) ** 0.5, rel=1e-4)
        assert found[f"{name}_r2"] == pytest.approx(r2_score(truth, given), rel=1e-4)


def test_equal_labels_have_no_r2():
    split = np.ones(6, np.int8)
    found = everywhere(regression, np.zeros((6, 1), np.float32), np.full(6, 2, np.float32), split)
    assert found == {"train_rmse": 2.0}
