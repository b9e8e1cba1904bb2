"""Which links are secured: TLS between sites wherever certificates are given, plain text on loopback.

Without certificates nothing may listen beyond this machine, but where plain text is asked for by name. With
them only a site's own workers speak to its node in plain text, and only where it listens on loopback.
"""

from collections.abc import Iterable
from pathlib import Path

from .._files import InputError
from .topology import Topology
from .transport.base import Address, Transport
from .transport.certificates import Certificates
from .transport.tcp import TcpTransport
from .transport.tls import TlsTransport


def check_security(certificates: str, plain_text: bool, addresses: Iterable[Address]) -> None:
    """Holds the options against the addresses of a tree.

    Args:
        certificates: folder; empty for none.
        plain_text: whether it is asked for.
        addresses: those that nodes are reached at, or bind.

    Raises:
        InputError: an address is not loopback and neither is given, or both are.
    """
    if "://" in certificates:
        raise InputError(f"certificates {certificates!r}: must be the path of a folder, not a URI")
    if certificates and plain_text:
        raise InputError(f"plain_text True: must be False with certificates {certificates!r}")
    open_addresses = [str(address) for address in addresses if not address.is_loopback]
    if open_addresses and not (certificates or plain_text):
        raise InputError(
            f"certificates '': must be a folder where an address of the topology is not loopback "
            f"({open_addresses[0]}), or plain_text must be True"
        )


def check_certificates(certificates: str, nodes: Iterable[str]) -> None:
    """Holds the files of nodes that run on this machine against what their peers will ask for.

    Raises:
        InputError: a file is missing or wrong, or a certificate is not valid, or of another node.
    """
    for node in nodes if certificates else ():
        Certificates(Path(certificates), node).check()


def is_secured(certificates: str, topology: Topology, address: Address) -> bool:
    """Tells whether links to an address of the topology are TLS."""
    in_site = any(address == site.listens for site in topology.sites)
    on_loopback = address.is_loopback and topology.bound(address).is_loopback
    return bool(certificates) and not (in_site and on_loopback)


def transport(
    certificates: str, topology: Topology, node: str, address: Address, peer: str = "", service: int = 0
) -> Transport:
    """Returns how a node listens at an address of the topology, or dials who listens there.

    Args:
        certificates: folder; empty for none.
        topology: the tree.
        node: the node; a worker shows its site's certificate.
        address: where it or its peer listens.
        peer: the node that is dialled.
        service: type of service of what is sent; 0 for the system's.
    """
    if not is_secured(certificates, topology, address):
        return TcpTransport(service=service)
    return TlsTransport(Certificates(Path(certificates), node.partition("/")[0]), peer, service=service)
