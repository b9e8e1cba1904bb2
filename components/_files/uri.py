"""Opening what a URI names, local or remote, through fsspec.

A path, or a `file:` URI (RFC 8089; its `%20` is a blank), is read where it lies.
"""

import io
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.parse import unquote, urlsplit

from .errors import InputError

OBJECT_STORES = ("s3", "gs", "gcs", "minio")
"""Schemes of what every machine reaches by the same URI."""

_BUFFER_BYTES = 1 << 18
_LIBRARIES = {
    "http": "aiohttp",
    "https": "aiohttp",
    "s3": "s3fs",
    "minio": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
    "hf": "huggingface_hub",
    "sftp": "paramiko",
}
"""What fsspec opens a scheme with; its own words name packages that it no longer needs."""


def suffix(uri: str) -> str:
    """Returns the ending that tells the format, such as `.csv.gz`.

    Raises:
        InputError: a `file:` URI of another host.
    """
    name = (local_path(uri) or PurePosixPath(urlsplit(uri).path)).name.lower()
    return ".csv.gz" if name.endswith(".csv.gz") else PurePosixPath(name).suffix


def local_path(uri: str) -> Path | None:
    """Returns the path that `uri` names on this machine, None when it names something elsewhere.

    Raises:
        InputError: a `file:` URI of another host.
    """
    parts = urlsplit(uri)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise InputError(f"{uri}: names the host {parts.netloc!r}; allowed: file:///absolute/path")
        return Path(unquote(parts.path))
    return None if "://" in uri or "::" in uri else Path(uri)


def is_object_store(uri: str) -> bool:
    """Tells whether a URI names something that every machine reaches by it, unlike a path."""
    return urlsplit(uri).scheme in OBJECT_STORES


def remote_path(uri: str) -> tuple[Any, str]:
    """Returns fsspec's file system of a URI, and the path in it.

    `minio://`, as Kubeflow Pipelines names its own store, is S3 at the address in AWS_ENDPOINT_URL, which
    S3's library reads from the environment by itself.
    """
    import fsspec  # late: where pipelines are only submitted, it is not there

    known = f"s3{uri.removeprefix('minio')}" if uri.startswith("minio://") else uri
    found: tuple[Any, str] = fsspec.core.url_to_fs(known)
    return found


def exists(uri: str) -> bool:
    """Tells whether `uri` names something that is there.

    Raises:
        InputError: the URI's scheme is not known, or its file system does not answer.
    """
    path = local_path(uri)
    with errors_named(uri):
        if path is not None:
            return path.exists()
        file_system, remote = remote_path(uri)
        return bool(file_system.exists(remote))


@contextmanager
def open_uri(uri: str) -> Iterator[IO[bytes]]:
    """Opens `uri` for reading bytes as they lie (a `.gz` is not unpacked).

    Raises:
        InputError: there is no such file, it may not be read, the URI's scheme is not known, or its file
            system fails, then or while the block reads.
    """
    path = local_path(uri)
    with errors_named(uri):
        handle = _open_remote(uri) if path is None else _regular(path).open("rb")
    with handle:
        yield handle


@contextmanager
def local_file(uri: str) -> Iterator[Path]:
    """Yields a local path that holds the bytes of `uri`: the file itself, or a copy for the block's time.

    Raises:
        InputError: as `open_uri`.
    """
    path = local_path(uri)
    with open_uri(uri) as source:  # also of a local file, to know that it may be read
        if path is not None:
            yield path
            return
        with tempfile.TemporaryDirectory(prefix="geokfp-") as folder:
            copy = Path(folder) / (PurePosixPath(urlsplit(uri).path).name or "content")
            with copy.open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
            yield copy


def _open_remote(uri: str) -> io.BufferedReader:
    file_system, path = remote_path(uri)
    return io.BufferedReader(_Named(file_system.open(path, "rb"), uri), _BUFFER_BYTES)


class _Named(io.RawIOBase):
    """A remote file whose errors, while it is read, name its URI."""

    def __init__(self, handle: IO[bytes], uri: str) -> None:
        self._handle = handle
        self._uri = uri

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._handle.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        with errors_named(self._uri):
            found = self._handle.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)


def _regular(path: Path) -> Path:
    if path.is_dir():
        raise IsADirectoryError(path)
    if path.exists() and not path.is_file():  # a pipe would be read twice, or be waited for
        raise OSError("not an ordinary file")
    return path


@contextmanager
def errors_named(uri: str, done: str = "read") -> Iterator[None]:
    """Makes one line, which names a URI, of whatever its file system raises.

    Args:
        uri: what is opened.
        done: what it cannot be: `read` or `written`.

    Raises:
        InputError: in the place of any other error.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise InputError(f"{uri}: no such file") from error
    except IsADirectoryError as error:
        raise InputError(f"{uri}: is a folder, a file is needed") from error
    except PermissionError as error:
        raise InputError(f"{uri}: permission denied") from error
    except OSError as error:
        told = error.strerror or str(error) or type(error).__name__
        raise InputError(f"{uri}: cannot be {done} ({_one_line(told)})") from error
    except ImportError as error:
        raise InputError(f"{uri}: {_to_install(uri) or _one_line(error)}") from error
    except ValueError as error:  # an unknown scheme
        raise InputError(f"{uri}: {_one_line(error)}") from error
    except Exception as error:  # a remote file system's own errors have no tree in common
        told = f"{type(error).__name__}: {_one_line(error)}"
        raise InputError(f"{uri}: cannot be {done} ({told})") from error


def _to_install(uri: str) -> str:
    scheme = urlsplit(uri.rpartition("::")[2]).scheme
    library = _LIBRARIES.get(scheme, "")
    return library and f"{scheme} needs a library that is not installed: pip install {library}"


def _one_line(text: object) -> str:
    return " ".join(str(text).split())
