"""Two sites with a store each that only its own pods are shown: read, divided, trained, never mixed."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from geokfp.components._files import ArtifactError
from geokfp.components._launch.launch_step import Surroundings
from geokfp.components.geo_training.at_sites.run import run as partition_at_sites
from geokfp.components.geo_training.config import GeoTrainingConfig, SitePartitionConfig
from geokfp.components.geo_training.run import Outputs, run
from geokfp.components.partition.partitions import read_partitions
from support.pods_of_stores import PodsOfStores
from support.real_graphs import communities

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore:.*unclosed file:ResourceWarning"),
    pytest.mark.skipif(os.getuid() != 0, reason="only root may hide folders by mounts"),
]
SECRET = "node-of-"


def tables(folder: Path, name: str, labels: tuple[str, str]) -> dict[str, str]:
    """Writes a site's tables, with ids that nobody else has."""
    graph = communities(80, num_train=32)
    chosen = np.array(labels)[np.asarray(graph.labels) % 2]
    features = np.asarray(graph.dense_features())
    ids = [f"{SECRET}{name}-{index}" for index in range(graph.num_nodes)]
    columns = {f"f{index}": features[:, index] for index in range(features.shape[1])}
    split = np.array(["none", "train", "validation", "test"])[graph.split]
    nodes = pd.DataFrame({"id": ids, "label": chosen, "split": split, **columns})
    source, destination = np.array(ids)[graph.edges[0]], np.array(ids)[graph.edges[1]]
    nodes.to_csv(folder / "nodes.csv", index=False)
    pd.DataFrame({"src": source, "dst": destination}).to_csv(folder / "edges.csv", index=False)
    return {"nodes": str(folder / "nodes.csv"), "edges": str(folder / "edges.csv")}


def store(folder: Path, name: str, labels: tuple[str, str]) -> tuple[Path, dict[str, str]]:
    path = folder / name
    path.mkdir()
    return path, tables(path, name, labels)


class Opened:
    """What this process, which is the step, opens while it is watched."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.watching = False
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple) -> None:
        if self.watching and event in ("open", "os.listdir", "os.scandir"):
            self.paths.append(str(arguments[0]))


def test_rows_and_features_stay_at_their_site(tmp_path):
    folder, opened = tmp_path, Opened()
    oslo, of_oslo = store(folder, "oslo", ("apple", "pear"))
    paris, of_paris = store(folder, "paris", ("pear", "plum"))
    where = {"sites": {"oslo": {"storage": str(oslo)}, "paris": {"storage": str(paris)}}}
    common = {
        "topology": where,
        "launcher": "job",
        "run_id": "run",
        "namespace": "geo",
        "hand_over": str(folder / "hand-over"),
    }
    pods = PodsOfStores(folder / "pods", {"site-0": oslo, "site-1": paris})
    opened.watching = True
    config = SitePartitionConfig(tables={"oslo": of_oslo, "paris": of_paris}, num_parts=1, **common)
    counts = partition_at_sites(
        config,
        partitions=folder / "partitions",
        report=folder / "report.html",
        surroundings=Surroundings(run=pods),
    )
    assert (counts["num_nodes"], counts["num_classes"]) == (160.0, 3.0)
    assert [path.name for path in (folder / "partitions").iterdir()] == ["manifest.json"]
    parts = read_partitions(folder / "partitions", elsewhere=True)
    assert parts.label_names == ("apple", "pear", "plum")
    assert [site.uri.startswith(str(own)) for site, own in zip(parts.sites, (oslo, paris), strict=True)] == [
        True,
        True,
    ]
    with pytest.raises(ArtifactError, match="its rows stay at its sites"):
        read_partitions(folder / "partitions")

    outputs = Outputs(
        model=folder / "model", predictions=folder / "predictions", report=folder / "trained.html"
    )
    # The sites' pods are in namespaces of their own: they know each other and the root's address alone.
    apart = {
        "root": f"{pods.address(0)}:7000",
        "sites": {name: {**given, "namespace": name} for name, given in where["sites"].items()},
    }
    options = {**common, "topology": apart}
    training = GeoTrainingConfig(epochs=3, hidden_size=4, batch_size=16, plain_text=True, **options)
    result = run(training, folder / "partitions", None, outputs, Surroundings(run=pods))
    opened.watching = False
    assert opened.paths
    assert not [path for path in opened.paths if path.startswith((str(oslo), str(paris)))]
    assert result.metrics["epochs_run"] == 3
    assert int(result.confusion.sum()) > 0
    kept = json.loads((outputs.predictions / "sites.json").read_text())
    for name, own in (("oslo", oslo), ("paris", paris)):
        assert kept[name].startswith(str(own))
        table = pd.read_parquet(Path(kept[name]) / "part-0" / "predictions.parquet")
        assert set(table["id"]) == {f"{SECRET}{name}-{index}" for index in range(80)}
    assert_no_row_left(folder, stores=(oslo, paris))


def assert_no_row_left(folder: Path, stores: tuple[Path, ...]) -> None:
    """Looks through all that was written outside of the stores and the pods' own folders."""
    own = (*stores, folder / "pods")
    for path in folder.rglob("*"):
        if path.is_file() and not any(path.is_relative_to(each) for each in own):
            assert SECRET.encode() not in path.read_bytes(), path
