"""Certificates for tests: folders as nodes are given them."""

from collections.abc import Iterable
from pathlib import Path

from geokfp.components.geo_training.transport.node_names import (
    AUTHORITY,
    CERTIFICATE,
    KEY,
    folder_name,
    node_uri,
)
from geokfp.pipelines._command_line.authority import Authority


def issue(folder: Path, nodes: Iterable[str], authority: Authority, trusts: Authority | None = None) -> Path:
    """Writes one certificate that names all of some nodes; others are trusted when `trusts` issued theirs."""
    folder.mkdir(parents=True, exist_ok=True)
    issued = authority.issue("test", [node_uri(node) for node in nodes])
    (folder / CERTIFICATE).write_bytes(issued.certificate)
    (folder / KEY).write_bytes(issued.key)
    (folder / AUTHORITY).write_bytes((trusts or authority).issued.certificate)
    return folder


def issue_each(folder: Path, nodes: Iterable[str], authority: Authority) -> Path:
    """Writes a folder for each of some nodes, all inside one."""
    for node in nodes:
        issue(folder / folder_name(node), [node], authority)
    return folder
