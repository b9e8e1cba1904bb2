"""What pods hand back: of the try that succeeded, not of one before."""

from pathlib import Path

import pytest
from geokfp.components._files import InputError
from geokfp.components._launch.hand_over import HandOver
from geokfp.components.geo_training.clusters.results import gather, give_back


def test_a_pod_that_runs_again_gives_what_it_made_now(tmp_path: Path) -> None:
    hand_over, work = HandOver(str(tmp_path / "hand-over")), tmp_path / "work"
    (work / "site-0").mkdir(parents=True)
    for said in ("by the try that failed", "by this try"):
        (work / "site-0/outcome").write_text(said)
        (work / "scratch").write_text(said)
        give_back(hand_over, work, "site-0-0")
    gather(hand_over, ["site-0-0"], tmp_path / "here", only=["site-0/"])
    assert (tmp_path / "here/site-0/outcome").read_text() == "by this try"
    assert not (tmp_path / "here/scratch").exists()


def test_a_pod_that_gave_nothing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="results/root-0"):
        gather(HandOver(str(tmp_path)), ["root-0"], tmp_path / "here", only=["root/"])
