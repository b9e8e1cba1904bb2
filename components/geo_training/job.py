"""What the processes of one `geo_train_gnn` are given, and what they leave in the work folder.

Drawing of the folder, for two sites of two workers each, when all have ended::

    work/
      geo-job.json             what every trainer is given
      tree.json                what every node of the tree is given, of that
      geo-job-site-0.json ...  the same of a site that was started again, and tree-site-0.json
      best.safetensors         weights of the best epoch over all sites (the first worker)
      history.json             one row an epoch, over all workers (the first worker)
      site-0/
        outcome-0.npz ...      what the model says about each part's own nodes
        links-0.json ...       bytes of each worker's links in the training over all sites
        alone-0.json           only with `compare_alone`: the site's own training (the site's first worker)
      site-1/
      metrics/                 what every process measured, and where it can be scraped: see `metrics`
      logs/                    what each process printed; restart-1/ in it, after the root was killed

Knows nothing of how they run.
"""

import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from .._files import new_file
from ..training.trained_gnn import ModelSource
from .config import GeoTrainingConfig
from .tree_job import TreeJob

JOB = "geo-job.json"
TREE_JOB = "tree.json"
METRICS = "metrics"


@dataclass(frozen=True, kw_only=True)
class GeoJob:
    """What every process is given, through `geo-job.json`."""

    config: GeoTrainingConfig
    """How to train."""
    source: ModelSource
    """How to build the model."""
    start: Path | None
    """Weights to start from, as safetensors; None for fresh ones."""
    work: Path
    """The work folder."""
    folders: dict[str, str]
    """Folder of each site, in the partitions as in the work folder."""
    tree: TreeJob
    """Who joins whom, and how; written to `tree.json` too, which is all that aggregators need."""

    def write(self, of: str = "") -> Path:
        """Writes `geo-job.json` and returns its path.

        Args:
            of: the site of which the processes that are given it come back; empty for all processes.
        """
        source = {item.name: getattr(self.source, item.name) for item in fields(ModelSource)}
        source["user_code"] = str(self.source.user_code) if self.source.user_code else ""
        document = {
            "config": asdict(self.config),
            "source": source,
            "start": str(self.start) if self.start else "",
            "work": str(self.work),
            "folders": self.folders,
            "tree": self.tree.to_dict(),
        }
        self.tree.write(self.tree_path(of))
        path = self.work / _named(JOB, of)
        with new_file(path) as temporary:
            temporary.write_text(json.dumps(document, indent=1), encoding="utf-8")
        return path

    @classmethod
    def read(cls, path: Path) -> "GeoJob":
        """Reads what `write` wrote."""
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        source = document["source"]
        source["user_code"] = Path(source["user_code"]) if source["user_code"] else None
        return cls(
            config=GeoTrainingConfig(**document["config"]),
            source=ModelSource(**source),
            start=Path(document["start"]) if document["start"] else None,
            work=Path(document["work"]),
            folders=document["folders"],
            tree=TreeJob.from_dict(document["tree"]),
        )

    def keeping_in(self, folder: Path) -> "GeoJob":
        """Returns the same job with checkpoints in a folder."""
        tree = replace(
            self.tree, checkpoint_folder=str(folder), keeps_answers=not self.tree.why_no_site_comes_back
        )
        return replace(self, tree=tree)

    def tree_path(self, of: str = "") -> Path:
        """Returns where the tree's job lies, as `write` wrote it."""
        return self.work / _named(TREE_JOB, of)

    def folder(self, site: str) -> Path:
        """Returns a site's folder in the work folder."""
        return self.work / self.folders[site]


def _named(file: str, of: str) -> str:
    return file.replace(".json", f"-{of}.json") if of else file


def write_json(path: Path, document: Any) -> None:
    """Writes a small file whole."""
    with new_file(path) as temporary:
        temporary.write_text(json.dumps(document, indent=1), encoding="utf-8")
