"""The folder through which a step and its pods hand each other files, and by which pods know that it lives.

It lies on a volume that all of them mount at the same path, or in an object store. Its content, for a
launch whose pods are of the groups `worker` and `root`::

    <hand over>/
      beat                        counts up as long as the launcher, or the root, lives
      failures/worker-1.json      why a pod failed, as `error.json` of a step
      ...                         files and folders as the stage names them

A folder is there from when its list, `<folder>.list`, is: written last. Knows nothing of what is handed over.
"""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from .._files import InputError
from .._files.folder import Folder
from .environment import object_store_endpoint

BEAT = "beat"
BEAT_EVERY_S = 1.0
"""Least seconds between two beats: callers need not count."""


class Silence:
    """For how long a counter has not moved, by the listener's own clock; clocks of others play no part.

    Args:
        now_s: when the listener began.
    """

    def __init__(self, now_s: float) -> None:
        self._heard: str | None = None
        self._since_s = now_s

    def after(self, heard: str | None, now_s: float) -> float:
        """Returns the seconds since the counter was last found changed.

        Args:
            heard: what the counter says; None when it cannot be read.
            now_s: seconds of a clock that only goes on.
        """
        if heard is not None and heard != self._heard:
            self._heard, self._since_s = heard, now_s
        return now_s - self._since_s


class HandOver:
    """See the module; every file is there whole or not at all.

    Args:
        uri: path of the folder, or its URI: `s3://`, `gs://`, `minio://` (S3 at AWS_ENDPOINT_URL).
        clock: seconds of a clock that only goes on.

    Attributes:
        uri: as given, for a pod's document.

    Raises:
        InputError: `minio://` without an address; of all methods: what the file system has against it.
    """

    def __init__(self, uri: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.uri = uri
        if uri.startswith("minio://") and not object_store_endpoint():
            raise InputError(f"{uri}: minio:// needs the address of the service in AWS_ENDPOINT_URL")
        self._folder = Folder(uri)
        self._clock = clock
        self._silence = Silence(clock())
        self._beats = 0
        self._last_beat_s = -BEAT_EVERY_S

    def inside(self, name: str) -> "HandOver":
        """Returns a folder in this one."""
        return HandOver(f"{self.uri.rstrip('/')}/{name}", clock=self._clock)

    def put_text(self, name: str, text: str) -> None:
        """Writes a small file."""
        self._folder.replace(name, text.encode())

    def get_text(self, name: str) -> str | None:
        """Returns a small file's text, None when it is not there."""
        found = self._folder.read(name)
        return None if found is None else found.decode()

    def put_file(self, source: Path, name: str) -> None:
        """Writes a file."""
        self._folder.put_file(source, name)

    def get_file(self, name: str, target: Path) -> None:
        """Copies a file to a local path, whose folder is made."""
        self._folder.get_file(name, target)

    def put_folder(self, source: Path, name: str, *, only: Sequence[str] = ("",), anew: bool = False) -> None:
        """Writes the files of a local folder, then their list.

        Args:
            source: the local folder.
            name: the folder's name.
            only: beginnings of the names, relative to the folder, of the files to write.
            anew: whether one that is there is written over, as what a pod gives must be: an earlier try may
                have left its own; else nothing is written then.
        """
        if not anew and self.list_of(name) is not None:
            return
        found = sorted(path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file())
        files = [file for file in found if file.startswith(tuple(only))]
        for file in files:
            self._folder.put_file(source / file, f"{name}/{file}")
        self.put_text(_list_name(name), json.dumps(files))

    def list_of(self, name: str) -> list[str] | None:
        """Returns the names of a folder's files, relative to it; None when it is not there."""
        text = self.get_text(_list_name(name))
        return None if text is None else list(json.loads(text))

    def get_folder(self, name: str, target: Path, *, only: Sequence[str] = ("",)) -> None:
        """Copies a folder to a local path.

        Args:
            name: the folder.
            target: local folder, made when missing.
            only: beginnings of the names, relative to the folder, of the files to copy.
        """
        files = self.list_of(name)
        if files is None:
            raise InputError(f"{self.uri}: has no folder {name!r}")
        target.mkdir(parents=True, exist_ok=True)
        for file in files:
            if file.startswith(tuple(only)):
                self._folder.get_file(f"{name}/{file}", target / file)

    def remove(self) -> None:
        """Removes everything."""
        self._folder.remove()

    def beat(self) -> None:
        """Tells the pods that the launcher lives; to be called again and again, as often as one likes."""
        now_s = self._clock()
        if now_s - self._last_beat_s < BEAT_EVERY_S:
            return
        self._last_beat_s = now_s
        self._beats += 1
        # A launcher that was started again begins anew: the time tells its counts from those before.
        self.put_text(BEAT, f"{self._beats} {time.time_ns()}")

    def silent_for_s(self) -> float:
        """Returns for how many seconds no beat has come, since this object was made at most.

        A hand-over that cannot be read counts as silent.
        """
        try:
            heard = self.get_text(BEAT)
        except InputError:
            heard = None
        return self._silence.after(heard, self._clock())


def _list_name(name: str) -> str:
    return f"{name}.list"
