"""What killed launches leave is removed by the next ones, and nothing else is."""

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from geokfp.components._launch.hand_over import BEAT, HandOver
from geokfp.components._launch.launch_step import freed
from geokfp.components._launch.leftovers import (
    SILENT_S,
    YOUNG_S,
    pods_folder,
    remove_dead_beside,
    remove_dead_folders,
)
from support.faults import wait_until
from support.process_ends import gone

LAUNCHER = """
import sys, time
from geokfp.components._launch.leftovers import hold_log, pods_folder
import subprocess

with pods_folder() as folder:
    with (folder / "worker.0.log").open("wb") as output:
        hold_log(output)
        pod = subprocess.Popen(["sleep", "600"], stdout=output, start_new_session=True)
    print(folder, pod.pid, flush=True)
    time.sleep(600)
"""


def beaten(folder: Path, at_s: float) -> Path:
    folder.mkdir(parents=True)
    (folder / BEAT).write_text(f"7 {int(at_s * 1e9)}")
    return folder


def test_a_hand_over_goes_when_its_launch_has_been_silent_for_a_day(tmp_path: Path) -> None:
    now_s = time.time()
    old_s = now_s - SILENT_S - 1
    dead = beaten(tmp_path / "train-gnn-0123456789", old_s)
    dead_tree = tmp_path / "geo-train-0123456789"
    beaten(dead_tree / "attempt-0", old_s - 9)
    beaten(dead_tree / "attempt-1", old_s)
    live = beaten(tmp_path / "train-gnn-aaaaaaaaaa", now_s - SILENT_S + 60)
    second_try = tmp_path / "geo-train-aaaaaaaaaa"
    beaten(second_try / "attempt-0", old_s)
    beaten(second_try / "attempt-1", now_s)
    own = beaten(tmp_path / "train-gnn-bbbbbbbbbb", old_s)
    silent = tmp_path / "train-gnn-cccccccccc"
    silent.mkdir()
    others = beaten(tmp_path / "my-graphs", old_s)
    remove_dead_beside(f"{own}/", now_s=now_s)
    assert not dead.exists()
    assert not dead_tree.exists()
    for kept in (live, second_try, own, silent, others):
        assert kept.is_dir(), kept


def test_a_launch_frees_those_beside_it_as_it_begins(tmp_path: Path) -> None:
    dead = beaten(tmp_path / "train-gnn-0123456789", time.time() - SILENT_S - 60)
    hand_over = HandOver(str(tmp_path / "train-gnn-aaaaaaaaaa"))
    hand_over.beat()
    with freed(hand_over):
        assert not dead.exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("store", ["path", "memory"])  # memory stands for a remote one
def test_a_beat_that_was_written_is_one_that_is_read(tmp_path: Path, store: str) -> None:
    root = str(tmp_path) if store == "path" else f"memory://{uuid.uuid4().hex}"
    hand_over = HandOver(f"{root}/train-gnn-0123456789")
    hand_over.beat()
    hand_over.put_text("given/job.json", "{}")
    remove_dead_beside(f"{root}/other", now_s=time.time())
    assert hand_over.get_text("given/job.json") == "{}"
    remove_dead_beside(f"{root}/other", now_s=time.time() + SILENT_S + 1)
    assert hand_over.get_text("given/job.json") is None
    assert hand_over.get_text(BEAT) is None


def test_pods_keep_their_folder_until_the_last_has_ended(tmp_path: Path) -> None:
    launcher = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert launcher.stdout is not None
        folder, pod = launcher.stdout.readline().split()
        later_s = time.time() + 2 * YOUNG_S
        remove_dead_folders(tmp_path, now_s=later_s)
        assert Path(folder).is_dir()
    finally:
        launcher.kill()
        launcher.communicate()
    remove_dead_folders(tmp_path, now_s=later_s)
    assert Path(folder).is_dir()
    os.kill(int(pod), signal.SIGKILL)
    wait_until(lambda: gone(int(pod)), "the pod to end")
    remove_dead_folders(tmp_path, now_s=time.time())
    assert Path(folder).is_dir()  # it may be one that is just being made
    remove_dead_folders(tmp_path, now_s=later_s)
    assert not Path(folder).exists()


def test_a_folder_is_gone_when_its_launcher_has_ended() -> None:
    with pods_folder() as folder:
        (folder / "worker.0.tmp").mkdir()
    assert not folder.exists()
