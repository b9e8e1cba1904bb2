"""What a pod does with the predictions of its part, where pods write them to their artifact themselves."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..partition.own_part import own_node_ids, partitions_at
from ..partition.partitions import SitePartitions
from .outcome import Outcome, predictions_of
from .predictions import given_name, keep_judged, put_part
from .worker import outcome_name


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnPredictions:
    """The predictions of one part."""

    uri: str
    """Path or URI of the partitions."""
    site: SitePartitions
    """The part's site, as `open_part` gave it; it may have another name than in the partitions."""
    part: int
    """Number of the part."""

    def put(self, folder: Path, target: str, number: int) -> None:
        """Writes the part's table, and leaves in its outcome what metrics need.

        Args:
            folder: where the outcome lies, and what was written is told.
            target: path or URI of the artifact of predictions.
            number: of the part among those of all sites.

        Raises:
            InputError: the table cannot be written.
        """
        path = folder / outcome_name(self.part)
        with np.load(path, allow_pickle=False) as file:
            logits, labels, split = (file[name] for name in ("logits", "labels", "split"))
        ids = own_node_ids(self.uri, self.site, self.part)
        outcome = Outcome(self.site.name, ids, logits, labels, split)
        table = predictions_of(outcome, partitions_at(self.uri).label_names)
        put_part(target, number, table).write(folder / given_name(self.part))
        keep_judged(path)
