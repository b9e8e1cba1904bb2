"""What comes back of a training on data that may not leave its site: counts, no rows.

Predictions of a site's nodes go to the site's own store, beside its partitions::

    <storage>/<name>/site-0/
      partitions/                         see `partition_at_sites`
      predictions/<training>/part-0/      predictions.parquet of one part's nodes, as of every training
"""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..._files import ArtifactError, Folder, new_directory
from ..._launch.hand_over import HandOver
from ...partition.partitions import Partitions, SitePartitions
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
        counts = {name: confusion([outcome], len(self.label_names), code) for name, code in SPLITS.items()}
        write_json(
            folder / f"judged-{self.number}.json", {name: one.tolist() for name, one in counts.items()}
        )
        predictions = work.parent / "predictions"
        write_predictions(predictions, [outcome], self.label_names)
        own = HandOver(_predictions(self.uri, training))
        own.put_folder(predictions, f"part-{self.number}", anew=True)
        give_back(hand_over, work, pod)

    def _node_ids(self) -> npt.NDArray[np.generic]:
        name = f"{self.site.graph_name}/node_ids.npy"
        if (content := Folder(self.uri).read(name)) is None:
            raise ArtifactError(f"{self.uri}/{name}: missing")
        ids: npt.NDArray[np.generic] = np.load(io.BytesIO(content), allow_pickle=False)
        document = json.loads(self.site.config_path.read_text(encoding="utf-8"))
        ((start, stop),) = [ranges[self.number] for ranges in document["node_map"].values()]
        return ids[start:stop]


def read_judged(folders: Mapping[str, Path], parts: Partitions) -> Judged:
    """Adds up what all pods counted.

    Args:
        folders: of each site in the work folder.
        parts: the partitions.
    """
    sums = {name: np.zeros((parts.num_classes, parts.num_classes), np.int64) for name in SPLITS}
    for site in parts.sites:
        for number in range(site.num_parts):
            path = folders[site.name] / f"judged-{number}.json"
            for name, matrix in json.loads(path.read_text(encoding="utf-8")).items():
                sums[name] += np.array(matrix, np.int64)
    found = {name: float(np.trace(each) / each.sum()) for name, each in sums.items() if each.sum()}
    judged = next(name for name in reversed(SPLITS) if sums[name].any() or name == "train_accuracy")
    return Judged(found, SPLITS[judged], sums[judged])


def write_where(path: Path, parts: Partitions, training: str) -> None:
    """Writes the artifact of predictions: where each site's lie."""
    with new_directory(path) as folder:
        write_json(folder / WHERE, {site.name: _predictions(site.uri, training) for site in parts.sites})


def _predictions(uri: str, training: str) -> str:
    return f"{uri.removesuffix('/partitions')}/predictions/{training}"
