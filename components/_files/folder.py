"""A folder that a path or URI names, local or remote, read and written by processes that are far apart.

Knows nothing of what lies in it.
"""

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from .atomic import new_directory, new_file
from .errors import ArtifactError, InputError
from .manifest import NAME, listed_files
from .uri import errors_named, local_path, remote_path


class Folder:
    """A folder on this machine or a mounted volume, or in an object store that fsspec opens.

    Every method raises `InputError`, which names the URI, where the store does not answer or refuses.

    Args:
        uri: its path or URI.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri.rstrip("/") or "/"
        self._path = local_path(self.uri)

    def within(self, name: str) -> "Folder":
        """Returns a folder in this one."""
        return Folder(f"{self.uri}/{name}")

    def names(self) -> list[str]:
        """Returns the names of what lies in it now; none of a folder that is not there."""
        with errors_named(self.uri):
            if self._path is not None:
                return sorted(entry.name for entry in self._path.iterdir()) if self._path.is_dir() else []
            system, root = self._remote()
            try:
                return sorted(PurePosixPath(path).name for path in system.ls(root, detail=False))
            except FileNotFoundError:
                return []

    def read(self, name: str) -> bytes | None:
        """Returns a file's bytes; None where there is no such file."""
        with errors_named(f"{self.uri}/{name}"):
            try:
                if self._path is not None:
                    return (self._path / name).read_bytes()
                system, root = self._remote()
                return bytes(system.cat_file(f"{root}/{name}"))
            except FileNotFoundError:
                return None

    def create(self, name: str, content: bytes) -> bool:
        """Writes a file that must not be there, whole or not at all.

        Of several that do so at once one succeeds: on a volume by a hard link, in S3 and Google Cloud Storage
        by a conditional write. What other stores do, their library decides; some look first, and then write.

        Returns:
            Whether this call wrote it; False where it was there, or where another writes it at this moment.
        """
        with errors_named(f"{self.uri}/{name}", "written"):
            try:
                if self._path is not None:
                    _link_new(self._path / name, content)
                else:
                    system, root = self._remote()
                    system.pipe_file(f"{root}/{name}", content, mode="create")
            except OSError as error:
                if error.errno != errno.EBUSY and not isinstance(error, FileExistsError):
                    raise
                return False  # EBUSY: S3 answers so to who writes what is being written
            return True

    def replace(self, name: str, content: bytes) -> None:
        """Writes a file, in the place of an older one if there is one; who reads has the one or the other."""
        with errors_named(f"{self.uri}/{name}", "written"):
            if self._path is not None:
                with new_file(self._path / name) as temporary:
                    temporary.write_bytes(content)
            else:
                system, root = self._remote()
                system.pipe_file(f"{root}/{name}", content)

    def put_file(self, source: Path, name: str) -> None:
        """Copies a local file here, however large, in the place of an older one; see `replace`."""
        with errors_named(f"{self.uri}/{name}", "written"):
            if self._path is not None:
                with new_file(self._path / name) as temporary:
                    shutil.copyfile(source, temporary)
            else:
                system, root = self._remote()
                system.put_file(str(source), f"{root}/{name}")

    def get_file(self, name: str, target: Path) -> None:
        """Copies a file from here to a local path, whole or not at all, however large."""
        with errors_named(f"{self.uri}/{name}"), new_file(target) as temporary:
            if self._path is not None:
                shutil.copyfile(self._path / name, temporary)
            else:
                system, root = self._remote()
                system.get_file(f"{root}/{name}", str(temporary))

    def read_range(self, name: str, start: int, stop: int) -> bytes:
        """Returns a file's bytes from `start` to before `stop`, fewer where it ends before."""
        with errors_named(f"{self.uri}/{name}"):
            if self._path is not None:
                with (self._path / name).open("rb") as file:
                    file.seek(start)
                    return file.read(stop - start)
            system, root = self._remote()
            return bytes(system.cat_file(f"{root}/{name}", start=start, end=stop))

    def discard(self, name: str) -> None:
        """Removes a file, if it is there."""
        with errors_named(f"{self.uri}/{name}", "removed"):
            if self._path is not None:
                (self._path / name).unlink(missing_ok=True)
            else:
                system, root = self._remote()
                if system.exists(f"{root}/{name}"):
                    system.rm_file(f"{root}/{name}")

    def remove(self) -> None:
        """Removes everything that lies in it, if there is anything."""
        with errors_named(self.uri, "removed"):
            if self._path is not None:
                shutil.rmtree(self._path, ignore_errors=True)
            else:
                system, root = self._remote()
                if system.exists(root):
                    system.rm(root, recursive=True)

    def fetch_artifact(self, target: Path) -> None:
        """Copies the artifact that lies here, by its manifest, whole or not at all.

        Args:
            target: the folder to write; an older one is replaced.

        Raises:
            ArtifactError: there is no manifest, or it lists a file outside the folder or one that is missing.
        """
        manifest = self.read(NAME)
        if manifest is None:
            raise ArtifactError(f"{self.uri}/{NAME}: no such file; an artifact's folder is needed")
        with new_directory(target) as folder:
            for name in listed_files(manifest, f"{self.uri}/{NAME}"):
                self._fetch_listed(name, folder / name)
            (folder / NAME).write_bytes(manifest)

    def _fetch_listed(self, name: str, target: Path) -> None:
        try:
            self.get_file(name, target)
        except InputError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise ArtifactError(f"{self.uri}/{name}: listed in {NAME} but missing") from error
            raise

    def put_artifact(self, source: Path) -> None:
        """Writes an artifact here, its manifest last: where that is, all is. An equal one is left as it is.

        Of another one that is there the manifest goes first.

        Args:
            source: the artifact's folder on this machine.
        """
        manifest = (source / NAME).read_bytes()
        if self.read(NAME) == manifest:
            return
        self.discard(NAME)
        for name in listed_files(manifest, str(source / NAME)):
            self.put_file(source / name, name)
        self.replace(NAME, manifest)

    def _remote(self) -> tuple[Any, str]:
        system, root = remote_path(self.uri)
        system.invalidate_cache()  # others write there too
        return system, root


def _link_new(target: Path, content: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with _beside(target) as temporary:
        temporary.write_bytes(content)
        os.link(temporary, target)


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.partial")
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
