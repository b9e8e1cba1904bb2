"""What killed launches leave behind, and how the next ones remove it: never what somebody still uses.

A launcher that is killed (SIGKILL, a lost machine) removes nothing. Two things are left then:

- its hand-over. A step that is run again goes on with it, so it stays as long as that may happen: another
  launch beside it removes it after a day without a beat.
- of pods that are processes here, the folder of their logs and temporary files. The kernel tells when nobody
  uses it any more: the launcher holds the folder, and each pod its own log, by a lock that ends with them.
"""

import fcntl
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from .._files import InputError
from .._files.folder import Folder
from .hand_over import BEAT
from .progress import progress

SILENT_S = 24 * 3600
"""Seconds without a beat after which a launch is dead: far beyond a wrong clock, or a step's next try."""
YOUNG_S = 60.0
"""Seconds in which a folder that nobody holds may be one that is just being made."""
PODS_PREFIX = "geokfp-pods-"
_LAUNCH = re.compile(r"[a-z][a-z0-9-]*-[0-9a-f]{10}")
_ATTEMPT = re.compile(r"attempt-\d+")
_COUNT = re.compile(rb"\d+ (\d{18,20})")


def remove_dead_beside(hand_over: str, *, now_s: float) -> None:
    """Removes the hand-overs of dead launches in the folder that a launch's own is in.

    What does not look as a launch's hand-over, or has no beat, is left alone; so is what cannot be removed.

    Args:
        hand_over: URI of the launch's own.
        now_s: wall-clock seconds; beats tell those of their launchers.
    """
    parent, _, own = hand_over.rstrip("/").rpartition("/")
    root = Folder(parent)
    try:
        for name in root.names():
            if name != own and _LAUNCH.fullmatch(name):
                beat_s = _last_beat_s(root.within(name))
                if beat_s is not None and now_s - beat_s > SILENT_S:
                    root.within(name).remove()
                    progress(f"removed what a killed launch left: {parent}/{name}")
    except InputError as error:  # it is not this launch's business
        progress(f"cannot look for what killed launches left: {error}")


def _last_beat_s(launch: Folder) -> float | None:
    attempts = [launch.within(name) for name in launch.names() if _ATTEMPT.fullmatch(name)]
    beats = [_COUNT.fullmatch(folder.read(BEAT) or b"") for folder in (launch, *attempts)]
    return max((int(beat[1]) / 1e9 for beat in beats if beat), default=None)


@contextmanager
def pods_folder() -> Iterator[Path]:
    """Yields a new folder for pods that are processes here, and removes those of dead launchers first."""
    remove_dead_folders(Path(tempfile.gettempdir()), now_s=time.time())
    folder = Path(tempfile.mkdtemp(prefix=PODS_PREFIX))
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_SH)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def hold_log(log: IO[bytes]) -> None:
    """Marks a pod's log as used, by all processes that will have it open as their output."""
    fcntl.flock(log, fcntl.LOCK_SH)


def remove_dead_folders(temporary: Path, *, now_s: float) -> None:
    """Removes the folders of pods that nobody holds; those of other users stay.

    Args:
        temporary: where they are.
        now_s: wall-clock seconds.
    """
    for folder in temporary.glob(f"{PODS_PREFIX}*"):
        if _is_dead(folder, now_s):
            shutil.rmtree(folder, ignore_errors=True)


def _is_dead(folder: Path, now_s: float) -> bool:
    try:
        made = folder.lstat()
        if made.st_uid != os.geteuid() or now_s - made.st_mtime < YOUNG_S:
            return False
        return not any(_is_held(path) for path in (folder, *folder.glob("*.log")))
    except OSError:  # it goes at this moment, or is no folder
        return False


def _is_held(path: Path) -> bool:
    found = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(found)
    return False
