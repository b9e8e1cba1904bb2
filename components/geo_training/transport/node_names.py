"""How certificates name nodes, and files their certificates. Loads no engine.

A certificate is of the nodes that its alternative names of type URI name as `geokfp://NODE`, percent-encoded
where the name holds more than letters, digits and `-._~`; it may name several. Host names and addresses play
no part, so that NAT and addresses that change do not matter.
"""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, unquote

CERTIFICATE, KEY, AUTHORITY = "tls.crt", "tls.key", "ca.crt"
SCHEME = "geokfp://"


def node_uri(node: str) -> str:
    """Returns the URI by which a certificate names a node."""
    return SCHEME + quote(node, safe="")


def named_nodes(certificate: Mapping[str, Any]) -> frozenset[str]:
    """Returns the nodes that a certificate names.

    Args:
        certificate: as `ssl.SSLSocket.getpeercert` returns it.
    """
    names: Iterable[tuple[str, str]] = certificate.get("subjectAltName", ())
    return frozenset(
        unquote(value.removeprefix(SCHEME))
        for kind, value in names
        if kind == "URI" and value.startswith(SCHEME)
    )


def speaks_for(identity: frozenset[str] | None, name: str) -> bool:
    """Tells whether a peer may speak in the name of a node or, as its site, of a worker.

    Args:
        identity: nodes that the peer has proved to be; None where a link proves nothing.
        name: the node or worker.
    """
    return identity is None or name.partition("/")[0] in identity


def folder_name(node: str) -> str:
    """Returns the name of a node's own folder: the node's, percent-encoded, no dot at its beginning."""
    name = quote(node, safe="")
    return f"%2E{name[1:]}" if name.startswith(".") else name
