"""Rows that stay at their site: what a pod there keeps in the site's own store, and what it hands back."""

from dataclasses import dataclass
from pathlib import Path

from .._launch.hand_over import HandOver
from ..geo_training.at_sites.judged import keep_predictions, write_judged
from ..geo_training.clusters.results import give_back
from ..shard.shards import SiteShard
from .predictions import outcome_of, write_predictions


@dataclass(frozen=True, slots=True)
class StayingRows:
    """One worker's rows of a site that keeps them.

    Attributes:
        site: the site.
        number: of the worker at its site.
        label_names: name of each class; empty for regression.
        training: names the predictions.
    """

    site: SiteShard
    number: int
    label_names: tuple[str, ...]
    training: str

    def hand_back(self, hand_over: HandOver, work: Path, folder: Path, pod: str) -> None:
        """Keeps the predictions at the site, and hands over all else that the pod's processes left.

        Args:
            hand_over: the launch's.
            work: the folder of what they left.
            folder: the site's in it.
            pod: the pod's name.
        """
        outcome = outcome_of(folder, site=self.site.name, workers=[self.number])
        (folder / f"outcome-{self.number}.npz").unlink()
        if self.label_names:
            write_judged(folder, self.number, outcome, len(self.label_names))
        predictions = work.parent / "predictions"
        write_predictions(predictions, [outcome], self.label_names)
        keep_predictions(predictions, self.site.uri, self.training, f"worker-{self.number}")
        give_back(hand_over, work, pod)
