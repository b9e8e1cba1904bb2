"""A step for tests to end from outside: `fault_steps.py train|geo PARTITIONS FOLDER`."""

import sys
from pathlib import Path

from support.component_call import call

FOREVER = {"epochs": 100_000, "patience": 0, "hidden_size": 8}


def train(partitions: Path, folder: Path) -> None:
    call("train_gnn", folder, partitions=partitions, **FOREVER, num_samplers=1)


def geo(partitions: Path, folder: Path) -> None:
    call("geo_train_gnn", folder, partitions=partitions, **FOREVER)


if __name__ == "__main__":
    {"train": train, "geo": geo}[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
