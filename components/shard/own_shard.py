"""The shard of a site alone, fetched from the site's own store by a machine of the site."""

from pathlib import Path

from .._files import ArtifactError, Folder, sha256
from .._files.manifest import NAME, parsed_manifest
from .shards import KIND, VERSION, site_folder


def fetch_shard(uri: str, target: Path) -> None:
    """Copies the one site of a shards artifact, held against its checksums.

    Args:
        uri: path or URI of the artifact.
        target: local folder of the site.

    Raises:
        ArtifactError: not a shards artifact of this version, or a file is altered.
        InputError: it cannot be read.
    """
    place = f"{uri}/{NAME}"
    document = parsed_manifest(Folder(uri).read(NAME), place, kind=KIND, version=VERSION)
    first = f"{site_folder(0)}/"
    for name, checksum in document["files"].items():
        if name.startswith(first):
            path = target / name.removeprefix(first)
            Folder(uri).get_file(name, path)
            if sha256(path) != checksum:
                raise ArtifactError(
                    f"{uri}/{name}: checksum differs from {NAME}; it was altered or cut short"
                )
