"""Which network interface of this machine has an address (Linux)."""

import fcntl
import ipaddress
import socket
import struct

_SIOCGIFADDR = 0x8915
_LOOPBACK = "lo"


def interface_of(address: str) -> str:
    """Returns the name of the interface that has an IPv4 address.

    Raises:
        LookupError: none has it.
    """
    if ipaddress.ip_address(address).is_loopback:  # one interface has all of 127.0.0.0/8
        return _LOOPBACK
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(any_socket, _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
            except OSError:  # it has no address
                continue
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    raise LookupError(f"no network interface of this machine has the address {address}")
