"""One site's part of `shard_at_sites`: reads its rows, agrees on labels, keeps them in its store.

What leaves the site is `site.json`::

    {"name", "uri", "num_rows", "num_train", "num_validation", "num_test", "class_counts", "fingerprint",
     "task", "features": {"dtype", "shape", "names"}, "labels": {"dtype", "names"}}
"""

import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..._files import InputError
from ..._launch import progress
from ..._launch.hand_over import HandOver
from ...shard.config import ShardConfig
from ...shard.run import shard
from ...shard.shards import read_shards
from ...shard.source import read_rows
from ..job import write_json
from .agreement import agreed_labels
from .pod_site import SITE
from .schema import SiteSchema, with_labels

_COUNTS = ("name", "num_rows", "num_train", "num_validation", "num_test", "class_counts")


def main(arguments: list[str]) -> None:
    """Does one site's part.

    Args:
        arguments: path of the site's orders, see `pod_site`.

    Raises:
        InputError: a table that is wrong, or unlike those of the other sites.
        TimeoutError: a site told nothing in time.
    """
    orders = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    config = ShardConfig(**orders["shard"])
    rows = read_rows(config, least_classes=1)
    progress(f"{orders['site']}: {rows.num_rows:,} rows")
    label_names = agreed_labels(orders, SiteSchema.of_rows(rows))
    if len(label_names) == 1:
        raise InputError(f"tables: one class only ({label_names[0]!r}) at all sites; at least two are needed")
    with tempfile.TemporaryDirectory(prefix="geokfp-") as folder:
        made = Path(folder) / "shards"
        others = {name: Path(folder) / name for name in ("report", "fingerprint")}
        shard(with_labels(rows, label_names), config, shards=made, **others)
        HandOver(orders["storage"]).put_folder(made, "shards", anew=True)
        write_json(Path(orders["work"]) / SITE, _told(made, f"{orders['storage']}/shards"))
    progress(f"{orders['site']}: its rows lie in {orders['storage']}")


def _told(made: Path, uri: str) -> dict[str, Any]:
    found = read_shards(made, verify=False)
    (site,) = found.sites
    return {
        **{name: getattr(site, name) for name in _COUNTS},
        "uri": uri,
        "fingerprint": found.fingerprint,
        "task": found.task,
        "features": {**asdict(site.feature_type), "names": list(found.feature_names)},
        "labels": {"dtype": site.label_type.dtype, "names": list(found.label_names)},
    }
