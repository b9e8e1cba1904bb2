"""Opening what a URI names, local or remote, through fsspec."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.parse import urlsplit

import fsspec

from .errors import InputError


def suffix(uri: str) -> str:
    """Returns the ending that tells the format, such as `.csv.gz`."""
    path = urlsplit(uri).path if "://" in uri else uri  # in a plain path # and ? are letters like others
    name = PurePosixPath(path).name.lower()
    return ".csv.gz" if name.endswith(".csv.gz") else PurePosixPath(name).suffix


def exists(uri: str) -> bool:
    """Tells whether `uri` names something that can be read.

    Raises:
        InputError: the URI's scheme is not known, or its file system cannot be reached.
    """
    file_system, path = _resolve(uri)
    return bool(file_system.exists(path))


@contextmanager
def open_uri(uri: str) -> Iterator[IO[bytes]]:
    """Opens `uri` for reading bytes as they lie (a `.gz` is not unpacked).

    Raises:
        InputError: there is no such file, or the URI's scheme is not known.
    """
    file_system, path = _resolve(uri)
    try:
        handle = file_system.open(path, "rb")
    except FileNotFoundError as error:
        raise InputError(f"{uri}: no such file") from error
    except IsADirectoryError as error:
        raise InputError(f"{uri}: is a folder, a file is needed") from error
    with handle:
        yield handle


@contextmanager
def local_file(uri: str) -> Iterator[Path]:
    """Yields a local path that holds the bytes of `uri`: the file itself, or a copy for the block's time.

    Raises:
        InputError: there is no such file, or the URI's scheme is not known.
    """
    parts = urlsplit(uri)
    if parts.scheme in ("", "file"):
        path = Path(parts.path if parts.scheme else uri)
        if not path.is_file():
            raise InputError(f"{uri}: {'is a folder, a file is needed' if path.is_dir() else 'no such file'}")
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="geokfp-") as folder:
        copy = Path(folder) / Path(parts.path).name
        with open_uri(uri) as source, copy.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        yield copy


def _resolve(uri: str) -> tuple[Any, str]:
    try:
        file_system, path = fsspec.core.url_to_fs(uri)
    except (ValueError, ImportError) as error:
        raise InputError(f"{uri}: {error}".splitlines()[0]) from error
    return file_system, path
