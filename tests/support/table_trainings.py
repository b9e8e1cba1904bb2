"""Trainings over tables of a model of the user's own, whose results are held against each other."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from geokfp.components.table_training.config import GeoTableConfig
from geokfp.components.table_training.run import run
from geokfp.components.table_training.trained_model import read_trained_model
from safetensors.numpy import load_file
from support.site_shards import outputs_in


class Trainings:
    """Trainings of the same options, in folders of their own.

    Args:
        shards: what they train on.
        folder: for their folders and the model's code.
        code: has `build`.
        name: of the code's module.
        hyperparameters: arguments of `build`.
    """

    def __init__(
        self,
        shards: Path,
        folder: Path,
        code: str,
        name: str,
        hyperparameters: dict[str, Any],
        **options: Any,
    ):
        self._shards, self._folder = shards, folder
        path = folder / f"{name}_of_test.py"
        path.write_text(code, encoding="utf-8")
        self.config = GeoTableConfig(
            entry_point=f"{path.stem}:build", user_code=str(path), hyperparameters=hyperparameters, **options
        )

    def train(self, name: str, *surroundings: Any) -> dict[str, float]:
        """Trains, and returns the metrics."""
        return run(self.config, self._shards, outputs_in(self._folder / name), *surroundings).metrics

    def weights(self, name):
        paths = read_trained_model(self._folder / name / "model").weights
        if len(paths) == 1:
            return load_file(paths[0])
        import mxnet as mx

        return {key: array.asnumpy() for key, array in mx.nd.load(str(paths[1])).items()}

    def history(self, name):
        rows = json.loads((self._folder / name / "model" / "history.json").read_text("utf-8"))
        return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]

    def assert_same(self, one, other, metrics_of_one, metrics_of_other):
        first, second = self.weights(one), self.weights(other)
        # Gluon numbers its parameters anew in each process that builds a second block.
        assert [array.shape for array in first.values()] == [array.shape for array in second.values()]
        for array, again in zip(first.values(), second.values(), strict=True):
            np.testing.assert_array_equal(array, again)
        assert self.history(one) == self.history(other)
        judged = [name for name in metrics_of_one if "accuracy" in name]
        assert {name: metrics_of_one[name] for name in judged} == {
            name: metrics_of_other[name] for name in judged
        }
        assert len(judged) == 3
