"""What tests of built images share: the images, and a small graph's tables."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from geokfp.components._images import PARENTS
from support.container_images import BuiltImages
from support.graphs import communities

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "geokfp/images"


@pytest.fixture(scope="session")
def built() -> BuiltImages:
    images = BuiltImages(CACHE)
    images.build(list(PARENTS))
    return images


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A volume with a small graph's tables, which everybody may read."""
    graph = communities(90)
    nodes = pd.DataFrame(graph.features, columns=[f"x{column}" for column in range(graph.features.shape[1])])
    folder = tmp_path / "data"
    folder.mkdir()
    nodes.assign(id=np.arange(len(nodes)), label=graph.labels).to_csv(folder / "nodes.csv", index=False)
    pd.DataFrame(graph.edges.T, columns=["src", "dst"]).to_csv(folder / "edges.csv", index=False)
    for parent in (folder, *folder.parents[: len(folder.parents) - 1]):
        parent.chmod(parent.stat().st_mode | 0o055)
    return folder
