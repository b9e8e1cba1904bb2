"""`manifest.json`: what kind of artifact a folder is, its version, its contents and their checksums."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from .atomic import new_file
from .errors import ArtifactError

NAME = "manifest.json"


def sha256(path: Path) -> str:
    """Returns the SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def write_manifest(directory: Path, *, kind: str, version: int, body: Mapping[str, Any]) -> None:
    """Writes `manifest.json` over all files that lie in `directory` by now.

    Args:
        directory: the artifact's folder, complete but for the manifest.
        kind: what the artifact is, such as `geokfp.partitions`.
        version: version of the folder's layout.
        body: what the kind has to say, as JSON.
    """
    files = {
        path.relative_to(directory).as_posix(): sha256(path)
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name != NAME
    }
    with new_file(directory / NAME) as temporary:
        temporary.write_text(
            manifest_text(kind=kind, version=version, body=body, files=files), encoding="utf-8"
        )


def manifest_text(*, kind: str, version: int, body: Mapping[str, Any], files: Mapping[str, str]) -> str:
    """Returns the text of a manifest, for a folder whose files were written elsewhere.

    Args:
        kind: what the artifact is.
        version: version of the folder's layout.
        body: what the kind has to say, as JSON.
        files: SHA-256 by file, paths in the folder.
    """
    return json.dumps({"kind": kind, "version": version, **body, "files": files}, indent=2) + "\n"


def read_manifest(directory: Path, *, kind: str, version: int, verify: bool = True) -> dict[str, Any]:
    """Reads a manifest and holds the folder against it.

    Args:
        directory: the artifact's folder.
        kind: the kind that is needed.
        version: the layout version that this code reads.
        verify: compare the checksum of each file; without it only their presence.

    Returns:
        The whole document, with the keys of `body` and `files`.

    Raises:
        ArtifactError: no manifest, another kind or version, a file missing or altered.
    """
    path = Path(directory) / NAME
    document = parsed_manifest(
        path.read_bytes() if path.is_file() else None, str(path), kind=kind, version=version
    )
    for name, checksum in document["files"].items():
        file = Path(directory) / name
        if not file.is_file():
            raise ArtifactError(f"{file}: listed in {NAME} but missing")
        if verify and sha256(file) != checksum:
            raise ArtifactError(f"{file}: checksum differs from {NAME}; the file was altered or cut short")
    return document


def parsed_manifest(text: bytes | None, place: str, *, kind: str, version: int) -> dict[str, Any]:
    """Reads a manifest's own bytes, wherever its folder is.

    Args:
        text: the manifest; None when there is none.
        place: where it is, to begin a complaint with.
        kind: the kind that is needed.
        version: the layout version that this code reads.

    Raises:
        ArtifactError: no manifest, another kind or version.
    """
    if text is None:
        raise ArtifactError(f"{place}: no such file; a {kind} artifact is needed")
    try:
        document = json.loads(text)
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ArtifactError(f"{place}: not JSON ({error})") from error
    if not isinstance(document, dict) or document.get("kind") != kind:
        found = document.get("kind") if isinstance(document, dict) else type(document).__name__
        raise ArtifactError(f"{place}: kind is {found!r}, {kind!r} is needed")
    if document.get("version") != version:
        raise ArtifactError(
            f"{place}: {kind} version {document.get('version')!r}, this release reads {version}"
        )
    if not isinstance(document.get("files"), dict):
        raise ArtifactError(f"{place}: lists no files with their checksums")
    return dict(document)


def listed_files(text: bytes, place: str) -> list[str]:
    """Returns the names of the files that a manifest lists, paths in its folder, for who copies an artifact.

    Args:
        text: the manifest.
        place: where it is, to begin a complaint with.

    Raises:
        ArtifactError: it is no manifest, or lists a file outside its folder.
    """
    try:
        document = json.loads(text)
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ArtifactError(f"{place}: not JSON ({error})") from error
    files = document.get("files") if isinstance(document, dict) else None
    if not isinstance(files, dict):
        raise ArtifactError(f"{place}: lists no files with their checksums")
    names = [str(name) for name in files]
    for name in names:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise ArtifactError(f"{place}: lists {name!r}; allowed: files in its folder")
    return names
