"""A step for tests to end from outside: `fault_steps.py train|geo PARTITIONS FOLDER`."""

import sys
from pathlib import Path

FOREVER = {"epochs": 100_000, "patience": 0, "hidden_size": 8}


def train(partitions: Path, folder: Path) -> None:
    from geokfp.components.training.config import TrainingConfig
    from geokfp.components.training.run import Outputs, run

    run(
        TrainingConfig(**FOREVER, num_samplers=1),
        partitions,
        Outputs(model=folder / "model", predictions=folder / "predictions", report=folder / "report.html"),
    )


def geo(partitions: Path, folder: Path) -> None:
    from geokfp.components.geo_training.config import GeoTrainingConfig
    from geokfp.components.geo_training.run import Outputs, run

    run(
        GeoTrainingConfig(**FOREVER),
        partitions,
        None,
        Outputs(model=folder / "model", predictions=folder / "predictions", report=folder / "report.html"),
    )


if __name__ == "__main__":
    {"train": train, "geo": geo}[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
