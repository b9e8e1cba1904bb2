"""What comes back of a training on data that may not leave its site: counts, no rows.

Predictions of a site's nodes go to the site's own store, beside its partitions::

    <storage>/<name>/site-0/
      partitions/ or shards/              see `partition_at_sites` and `shard_at_sites`
      predictions/<training>/part-0/      predictions.parquet of one part's nodes, as of every training
"""

import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..._files import ArtifactError, Folder, new_directory
from ..._launch.hand_over import HandOver
from ...partition.partitions import SitePartitions
from ...training.outcome import TEST, TRAIN, VALIDATION, Outcome, confusion, write_predictions
from ..clusters.results import give_back
from ..job import write_json

SPLITS = {"train_accuracy": TRAIN, "val_accuracy": VALIDATION, "test_accuracy": TEST}
WHERE = "sites.json"
"""What the artifact of predictions holds in their place: where each site's lie."""


@dataclass(frozen=True, slots=True)
class Judged:
    """How right a model is over all sites.

    Attributes:
        accuracies: by name, as `outcome.accuracies` gives them.
        split: the split that reports speak of.
        matrix: nodes of each class (row) of that by predicted class (column).
    """

    accuracies: dict[str, float]
    split: int
    matrix: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StayingPart:
    """One part whose rows stay at its site.

    Attributes:
        site: the site; its directory is where DGL reads the part.
        uri: of the site's partitions, in its own store.
        number: of the part.
        label_names: name of each class.
    """

    site: SitePartitions
    uri: str
    number: int
    label_names: tuple[str, ...]

    def hand_back(self, hand_over: HandOver, work: Path, folder: Path, pod: str, training: str) -> None:
        """Keeps the predictions at the site, and hands over all else that the pod's processes left.

        Args:
            hand_over: the launch's.
            work: the folder of what they left.
            folder: the site's in it.
            pod: the pod's name.
            training: names the predictions.
        """
        path = folder / f"outcome-{self.number}.npz"
        with np.load(path, allow_pickle=False) as file:
            logits, labels, split = (file[name] for name in ("logits", "labels", "split"))
        path.unlink()
        outcome = Outcome(self.site.name, self._node_ids(), logits, labels, split)
        write_judged(folder, self.number, outcome, len(self.label_names))
        predictions = work.parent / "predictions"
        write_predictions(predictions, [outcome], self.label_names)
        keep_predictions(predictions, self.uri, training, f"part-{self.number}")
        give_back(hand_over, work, pod)

    def _node_ids(self) -> npt.NDArray[np.generic]:
        name = f"{self.site.graph_name}/node_ids.npy"
        if (content := Folder(self.uri).read(name)) is None:
            raise ArtifactError(f"{self.uri}/{name}: missing")
        ids: npt.NDArray[np.generic] = np.load(io.BytesIO(content), allow_pickle=False)
        document = json.loads(self.site.config_path.read_text(encoding="utf-8"))
        ((start, stop),) = [ranges[self.number] for ranges in document["node_map"].values()]
        return ids[start:stop]


def write_judged(folder: Path, number: int, outcome: Outcome, num_classes: int) -> None:
    """Writes how many nodes or rows of each class were taken for which, of each split.

    Args:
        folder: the site's in the work folder.
        number: of the pod at its site.
        outcome: what the model says of the pod's own.
        num_classes: number of classes.
    """
    counts = {name: confusion([outcome], num_classes, code) for name, code in SPLITS.items()}
    write_json(folder / f"judged-{number}.json", {name: one.tolist() for name, one in counts.items()})


def keep_predictions(folder: Path, uri: str, training: str, name: str) -> None:
    """Keeps predictions at their site.

    Args:
        folder: where they lie.
        uri: of the site's data, in its own store.
        training: names the training.
        name: of the folder in its predictions.
    """
    HandOver(_predictions(uri, training)).put_folder(folder, name, anew=True)


def read_judged(folders: Iterable[tuple[Path, int]], num_classes: int) -> Judged:
    """Adds up what all pods counted.

    Args:
        folders: of each site in the work folder, with its number of pods.
        num_classes: number of classes.
    """
    sums = {name: np.zeros((num_classes, num_classes), np.int64) for name in SPLITS}
    for folder, num_pods in folders:
        for number in range(num_pods):
            path = folder / f"judged-{number}.json"
            for name, matrix in json.loads(path.read_text(encoding="utf-8")).items():
                sums[name] += np.array(matrix, np.int64)
    found = {name: float(np.trace(each) / each.sum()) for name, each in sums.items() if each.sum()}
    judged = next(name for name in reversed(SPLITS) if sums[name].any() or name == "train_accuracy")
    return Judged(found, SPLITS[judged], sums[judged])


def write_where(path: Path, uris: Mapping[str, str], training: str) -> None:
    """Writes the artifact of predictions: where each site's lie.

    Args:
        path: the artifact's folder.
        uris: of each site's data, in its own store.
        training: names the training.
    """
    with new_directory(path) as folder:
        write_json(folder / WHERE, {site: _predictions(uri, training) for site, uri in uris.items()})


def _predictions(uri: str, training: str) -> str:
    return f"{uri.rpartition('/')[0]}/predictions/{training}"
