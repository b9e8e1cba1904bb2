"""What the processes of one `geo_train` are given, and what they leave in the work folder.

Drawing of the folder, for two sites of two workers each, when all have ended::

    work/
      user_code/               only with `user_code`: the user's code
      source.json              how to build the model: what the trial is asked
      trial.json               what the trial found
      table-job.json           what every worker is given
      tree.json                what every node of the tree is given, of that
      table-job-site-0.json    the same of a site that was started again, and tree-site-0.json; of a worker
                               alone table-job-site-0-trainer-1.json
      weights/                 the files of the trained weights (the first worker)
      totals.json              sums over the rows of all sites (the first worker)
      site-0/
        history-0.json         one row a judged epoch (the site's first worker)
        outcome-0.npz ...      what the model says about the rows that each worker judged
        links-0.json ...       bytes of each worker's links
      site-1/
      metrics/                 what every process measured, and where it can be scraped: see geo_training
      logs/                    what each process printed; restart-1/ in it, after the root was killed

Knows nothing of how they run.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from .._files import new_file
from ..geo_training.tree_job import TreeJob
from ..shard.shards import ArrayType, SiteShard
from .config import GeoTableConfig
from .rows import steps_per_epoch
from .source import ModelSource

JOB = "table-job.json"
TREE_JOB = "tree.json"
WEIGHTS = "weights"
TOTALS = "totals.json"


@dataclass(frozen=True, kw_only=True)
class TableJob:
    """What every worker is given, through `table-job.json`."""

    config: GeoTableConfig
    """How to train."""
    source: ModelSource
    """How to build the model."""
    work: Path
    """The work folder."""
    sites: tuple[SiteShard, ...]
    """Where each site's rows lie; a worker opens those of its own site only."""
    tree: TreeJob
    """Who joins whom, and how; written to `tree.json` too, which is all that aggregators need."""

    def write(self, of: str = "") -> Path:
        """Writes `table-job.json` and returns its path.

        Args:
            of: the site or worker that is given it as it comes back; empty for all processes.
        """
        document = {
            "config": asdict(self.config),
            "source": source_to(self.source),
            "work": str(self.work),
            "sites": [{**asdict(site), "directory": str(site.directory)} for site in self.sites],
            "tree": self.tree.to_dict(),
        }
        self.tree.write(self.tree_path(of))
        path = self.work / _named(JOB, of)
        write_json(path, document)
        return path

    @classmethod
    def read(cls, path: Path) -> "TableJob":
        """Reads what `write` wrote."""
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return cls(
            config=GeoTableConfig(**document["config"]),
            source=source_from(document["source"]),
            work=Path(document["work"]),
            sites=tuple(_site(entry) for entry in document["sites"]),
            tree=TreeJob.from_dict(document["tree"]),
        )

    def keeping_in(self, folder: Path) -> "TableJob":
        """Returns the same job with checkpoints in a folder, and who is killed coming back from them."""
        whole_sites = not self.config.launches_pods and not self.tree.why_no_site_comes_back
        tree = replace(
            self.tree, checkpoint_folder=str(folder), keeps_answers=whole_sites, answers_workers=True
        )
        return replace(self, tree=tree)

    def tree_path(self, of: str = "") -> Path:
        """Returns where the tree's job lies, as `write` wrote it."""
        return self.work / _named(TREE_JOB, of)

    @property
    def weights(self) -> Path:
        """The folder of the trained weights."""
        return self.work / WEIGHTS

    @property
    def num_steps(self) -> int:
        """Steps of an epoch, the same at every worker."""
        num_train = [site.num_train for site in self.sites]
        return steps_per_epoch(num_train, self.config.num_workers, self.config.batch_size)

    def site(self, name: str) -> SiteShard:
        """Returns a site by name."""
        return next(site for site in self.sites if site.name == name)

    def folder(self, site: str) -> Path:
        """Returns a site's folder in the work folder, named as in the shards: its name may hold anything."""
        return self.work / self.site(site).directory.name


def _named(file: str, of: str) -> str:
    return file.replace(".json", f"-{of}.json") if of else file


def write_json(path: Path, document: Any) -> None:
    """Writes a small file whole."""
    with new_file(path) as temporary:
        temporary.write_text(json.dumps(document, indent=1), encoding="utf-8")


def source_to(source: ModelSource) -> dict[str, Any]:
    """Returns the form that `source_from` reads."""
    return {**asdict(source), "user_code": str(source.user_code) if source.user_code else ""}


def source_from(document: Mapping[str, Any]) -> ModelSource:
    """Reads what `source_to` gave."""
    read = dict(document)
    read["user_code"] = Path(read["user_code"]) if read["user_code"] else None
    read["feature_shape"] = tuple(read["feature_shape"])
    return ModelSource(**read)


def _site(entry: Mapping[str, Any]) -> SiteShard:
    read = dict(entry)
    for name in ("feature_type", "label_type"):
        read[name] = ArrayType(dtype=read[name]["dtype"], shape=tuple(read[name]["shape"]))
    return SiteShard(
        **{**read, "directory": Path(read["directory"]), "class_counts": tuple(read["class_counts"])}
    )
