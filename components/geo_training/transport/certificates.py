"""The certificate, key and authority of a node in files: TLS 1.3, in which both ends show a certificate.

Drawing of a folder, as a mounted Kubernetes secret of type `kubernetes.io/tls` has it too::

    certificates/
      tls.crt     certificate of this node, PEM, with those between it and the authority behind it
      tls.key     its key, PEM, without a passphrase
      ca.crt      the authorities that all nodes' certificates come from, PEM

Where nodes of several names run on one machine, each has such a folder inside, named by `folder_name`. Files
are read again once they have changed, for the next connection.
"""

import ssl
import threading
from pathlib import Path
from typing import TypeAlias

from ..._files import InputError
from .node_names import AUTHORITY, CERTIFICATE, KEY, folder_name, named_nodes, node_uri
from .tls_reasons import check_files, own_reason

_Stamp: TypeAlias = tuple[tuple[int, int, int], ...]


class Certificates:
    """The certificate, key and authority of one node; any thread may ask.

    Args:
        folder: holds the three files, or a folder of the node's name that does.
        node: the node that they are of.
    """

    def __init__(self, folder: Path, node: str) -> None:
        own = folder / folder_name(node)
        self.folder = own if own.is_dir() else folder
        self.node = node
        self._lock = threading.Lock()
        self._stamp: _Stamp = ()
        self._contexts: dict[bool, ssl.SSLContext] = {}

    def context(self, *, server_side: bool) -> ssl.SSLContext:
        """Returns what connections are made with: TLS 1.3, and the peer must show a certificate too.

        Raises:
            OSError: a file cannot be read, or is not what it must be.
        """
        with self._lock:
            stamp = tuple(_stamp(self.folder / name) for name in (CERTIFICATE, KEY, AUTHORITY))
            if stamp != self._stamp:
                self._contexts = {side: self._load(server_side=side) for side in (False, True)}
                self._stamp = stamp
            return self._contexts[server_side]

    def check(self) -> None:
        """Speaks with itself, as a peer would check it.

        Raises:
            InputError: a file is missing or wrong, the certificate is not of this authority, not valid now or
                of another node.
        """
        what = f"certificates {str(self.folder)!r}"
        if not self.folder.is_dir():
            raise InputError(f"{what}: is no folder, needed: {CERTIFICATE}, {KEY} and {AUTHORITY} in one")
        for name in (CERTIFICATE, KEY, AUTHORITY):
            if not (self.folder / name).is_file():
                raise InputError(
                    f"{what}: {name} of node {self.node!r} is missing, needed: {CERTIFICATE}, {KEY} and "
                    f"{AUTHORITY} there or in a folder {self.node!r} of it"
                )
        try:
            names = _names_seen(self.context(server_side=True), self.context(server_side=False))
        except OSError as error:
            raise InputError(f"{what}: not usable by {self.node!r}: {own_reason(error)}") from error
        if self.node not in names:
            shown = sorted(names) or "no node"
            raise InputError(
                f"{what}: {CERTIFICATE} is of {shown}, needed: {node_uri(self.node)} as a URI name"
            )

    def _load(self, *, server_side: bool) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server_side else ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # nodes are known by name, see the module
        context.verify_mode = ssl.CERT_REQUIRED
        if server_side:
            context.num_tickets = 0  # every connection shows its certificate anew
        check_files(self.folder / CERTIFICATE, self.folder / KEY, self.folder / AUTHORITY)
        context.load_verify_locations(self.folder / AUTHORITY)
        # Without a passphrase OpenSSL would ask the terminal for one.
        context.load_cert_chain(self.folder / CERTIFICATE, self.folder / KEY, password="")
        return context


def _stamp(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _names_seen(server: ssl.SSLContext, client: ssl.SSLContext) -> frozenset[str]:
    """Returns the nodes that each end of a handshake without a network is shown by the other."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for end in ends * 2:
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return frozenset.intersection(*(named_nodes(end.getpeercert() or {}) for end in ends))
