"""`geokfp certificates`: an authority and the certificates of a root and its sites, to try TLS with.

::

    DIR/
      ca.crt      the authority; ca.key, its key, is needed by no node
      ca.key
      root/       what the root is given: tls.crt, tls.key, ca.crt
      SITE/       the same for each site, named as its site, percent-encoded

Folders and files are readable by their owner only.
"""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from .errors import UsageError

_ROOT = "root"
_AUTHORITY_KEY = "ca.key"
_MOST_DAYS = 36500


def certificates(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the files: new, or empty.")
    ],
    site: Annotated[
        list[str],
        typer.Option("--site", metavar="NAME", help="A site of the partitions; may be given many times."),
    ],
    days: Annotated[int, typer.Option(metavar="N", help="Days of validity, 1 to 36500.")] = 30,
) -> None:
    """Make a test authority, and certificates of the root and of each site.

    DIR/NAME then holds tls.crt, tls.key and ca.crt: `certificates` of geo_train and geo_train_gnn is that
    folder at each site, or DIR where all run on one machine. Nothing is overwritten.

    Example: `geokfp certificates --site oslo --site paris --output certificates`
    """
    # Late, as not every command is to load them.
    from geokfp.components.geo_training.transport.node_names import folder_name, node_uri

    _check(site, days)
    try:
        _write(_files(site, days), output)
    except OSError as error:
        raise UsageError(f"--output {output}: {error.strerror or error}; a new folder is needed") from error
    for name in (_ROOT, *site):
        typer.echo(f"{output / folder_name(name)}: {node_uri(name)}")


def _check(sites: list[str], days: int) -> None:
    from geokfp.components.geo_training.transport.node_names import AUTHORITY

    if not 1 <= days <= _MOST_DAYS:
        raise UsageError(f"--days {days}: 1 to {_MOST_DAYS} are allowed")
    taken = {_ROOT, AUTHORITY, _AUTHORITY_KEY}
    for name in sites:
        if name in taken or not name or "/" in name:
            raise UsageError(
                f"--site {name}: a name is needed that was not given, without '/', not {_ROOT!r}"
            )
        taken.add(name)


def _files(sites: list[str], days: int) -> Mapping[str, bytes]:
    from geokfp.components.geo_training.transport.node_names import (
        AUTHORITY,
        CERTIFICATE,
        KEY,
        folder_name,
        node_uri,
    )

    from .authority import Authority

    authority = Authority(days)
    files = {AUTHORITY: authority.issued.certificate, _AUTHORITY_KEY: authority.issued.key}
    for name in (_ROOT, *sites):
        issued, folder = authority.issue(name, [node_uri(name)]), folder_name(name)
        files[f"{folder}/{CERTIFICATE}"] = issued.certificate
        files[f"{folder}/{KEY}"] = issued.key
        files[f"{folder}/{AUTHORITY}"] = authority.issued.certificate
    return files


def _write(files: Mapping[str, bytes], output: Path) -> None:
    """Writes all files or none: the system refuses to put a folder in the place of one that holds files."""
    output = output.absolute()
    output.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{output.name}-", dir=output.parent))
    try:
        for name, content in files.items():
            path = temporary / name
            path.parent.mkdir(mode=0o700, exist_ok=True)
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        os.rename(temporary, output)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
