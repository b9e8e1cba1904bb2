"""What a tree's job refuses, and how a node that is given a wrong one ends."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from geokfp.components._files import ArtifactError, InputError
from geokfp.components.geo_training.scheduling import transmission
from geokfp.components.geo_training.server import command
from geokfp.components.geo_training.topology import read
from geokfp.components.geo_training.tree_job import TreeJob

WORKERS = {"oslo": 1, "paris": 2}
TOPOLOGY = read({}, WORKERS, (7000, 7001, 7002))


def job(**choices) -> TreeJob:
    return TreeJob(run_id="run", workers=WORKERS, topology=TOPOLOGY, **choices)


@pytest.mark.parametrize("option", ["round_timeout_s", "silence_s", "reconnect_s"])
@pytest.mark.parametrize("value", [0, -1.0, math.inf, math.nan, "5", None, True])
def test_a_time_that_is_none_is_refused(option, value):
    with pytest.raises(InputError, match=rf"{option} is .*, allowed: a number above 0"):
        job(**{option: value})
    job(**{option: 0.5})


def test_pages_at_no_host_are_refused():
    with pytest.raises(InputError, match="metrics_host is 'a b', allowed: a name or address"):
        job(metrics_host="a b", metrics_port=9000)


def test_a_share_cannot_fall_to_more_than_it_begins_with():
    wrong = r"min_fraction is 0\.4, allowed with fraction 0\.3: at most that"
    with pytest.raises(InputError, match=wrong):
        job(transmission="fifo + dgt(fraction=0.3, min_fraction=0.4)")
    transmission("fifo + dgt(fraction=0.3, min_fraction=0.3)")
    transmission("fifo + dgt(fraction=0.3, min_fraction=0.4, adaptive=false)")


def test_a_file_with_a_wrong_value_names_both(tmp_path: Path):
    path = job().write(tmp_path / "tree.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "silence_s": "5"}))
    with pytest.raises(ArtifactError, match=r"tree\.json: not a tree's job \(silence_s is '5', allowed"):
        TreeJob.read(path)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "usage: python -m geokfp.components.geo_training.server NODE TREE.json"),
        (("root", "absent.json"), "absent.json: not a tree's job ("),
        (("berlin", "tree.json"), "NODE 'berlin', allowed: root, oslo, paris"),
    ],
)
def test_a_wrong_command_ends_with_one_line(tmp_path, monkeypatch, capsys, arguments, reason):
    monkeypatch.chdir(tmp_path)
    job().write(tmp_path / "tree.json")
    assert command(list(arguments)) == 2
    written = capsys.readouterr()
    assert written.err.startswith(f"geokfp: {reason}")
    assert len(written.err.splitlines()) == 1
    assert not written.out


def test_the_process_ends_with_that_line_too(tmp_path):
    (tmp_path / "tree.json").write_text("{}")
    server = [sys.executable, "-m", "geokfp.components.geo_training.server", "root", "tree.json"]
    done = subprocess.run(server, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("geokfp: tree.json: not a tree's job (")
    assert len(done.stderr.splitlines()) == 1
