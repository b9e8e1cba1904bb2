"""Whether the parts fit into shared memory, by a free space that the test chooses."""

import re
from pathlib import Path

import pytest
from geokfp.components._files import InputError
from geokfp.components.geo_training import run as geo
from geokfp.components.geo_training.config import GeoTrainingConfig
from geokfp.components.partition.partitions import SitePartitions
from geokfp.components.training import run as single
from geokfp.components.training.config import TrainingConfig
from geokfp.components.training.shared_memory import (
    MARGIN,
    PART_BYTES,
    SAMPLER_BYTES,
    check_shared_memory,
    free_bytes,
    needed_bytes,
)
from support.real_graphs import communities, partitioned


def site(folder, *, num_parts=2, size=1000):
    for part in range(num_parts):
        for name in ("graph.dgl", "node_feat.dgl", "edge_feat.dgl"):
            path = folder / f"part-{part}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bytes(size))
    (folder / "node_ids.npy").write_bytes(bytes(10**6))  # not held by a server
    return SitePartitions(
        name=folder.name, directory=folder, num_parts=num_parts, num_nodes=4, num_edges=4,
        num_train=2, num_validation=1, num_test=1,
    )  # fmt: skip


def test_the_need_is_the_parts_files_and_a_margin(tmp_path):
    files = 6 * 1000
    assert needed_bytes(site(tmp_path / "a"), 0) == int(files * (1 + MARGIN)) + 2 * PART_BYTES
    with_samplers = needed_bytes(site(tmp_path / "a"), 3)
    assert with_samplers == needed_bytes(site(tmp_path / "a"), 0) + 2 * 3 * SAMPLER_BYTES


def test_sites_of_a_host_must_fit_together(tmp_path):
    sites = [site(tmp_path / name) for name in ("north", "south")]
    needed = sum(needed_bytes(one, 0) for one in sites)
    asked = []
    mount = Path("/somewhere")
    check_shared_memory(sites, 0, mount=mount, free=lambda path: asked.append(path) or needed)
    assert asked == [mount]
    message = rf"4 part\(s\) of north, south need {needed} bytes in /somewhere, {needed - 1} are free"
    with pytest.raises(InputError, match=message):
        check_shared_memory(sites, 0, mount=mount, free=lambda _: needed - 1)


def test_the_free_space_is_what_the_file_system_says(tmp_path):
    assert free_bytes(tmp_path) > 0


@pytest.mark.filterwarnings("ignore:.*unclosed file:ResourceWarning")
def test_both_trainings_look_before_they_start(tmp_path, monkeypatch):
    partitions = partitioned(communities(), tmp_path, num_parts=2)
    monkeypatch.setattr("os.statvfs", lambda _: type("Room", (), {"f_bavail": 16, "f_frsize": 4096}))
    starts = [
        lambda out: single.run(TrainingConfig(), partitions, single.Outputs(**out)),
        lambda out: geo.run(GeoTrainingConfig(), partitions, None, geo.Outputs(**out)),
    ]
    for number, start in enumerate(starts):
        folder = tmp_path / str(number)
        folder.mkdir()
        out = {"model": folder / "model", "predictions": folder / "predictions", "report": folder / "r.html"}
        with pytest.raises(InputError, match=re.escape("in /dev/shm, 65536 are free")):
            start(out)
        assert list(folder.iterdir()) == []
