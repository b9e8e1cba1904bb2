"""All reading and writing of files and artifacts: URIs, whole-or-nothing writes, checksummed manifests.

Knows nothing of graphs or models.

Errors::

    ValueError
    └── InputError          what the user gave is wrong; one line says what, where and what is allowed
        └── ArtifactError   an artifact is missing a file, was altered, or has another kind or version
"""

from .atomic import new_directory, new_file
from .errors import ArtifactError, InputError
from .folder import Folder
from .manifest import read_manifest, sha256, write_manifest
from .uri import exists, local_file, local_path, open_uri, suffix

__all__ = [
    "ArtifactError",
    "Folder",
    "InputError",
    "exists",
    "local_file",
    "local_path",
    "new_directory",
    "new_file",
    "open_uri",
    "read_manifest",
    "sha256",
    "suffix",
    "write_manifest",
]
