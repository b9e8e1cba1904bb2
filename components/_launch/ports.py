"""Free TCP ports of this machine."""

import random
import socket
from collections import deque
from pathlib import Path

_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 10_000
_TRIES = 2000
_given: deque[int] = deque(maxlen=1000)
"""The last ports that were returned: who asked first need not listen there yet."""


def free_ports(count: int) -> list[int]:
    """Returns `count` different loopback ports that nothing listened to, and that it has not returned before.

    All are held at once and then released together, so that they differ. They lie below the range from
    which the kernel takes the near end of outgoing connections: a client that retries before its server
    is up could otherwise be given the server's own port, connect to itself, and hold it.

    Raises:
        OSError: no such port was found.
    """
    held: list[socket.socket] = []
    try:
        for _ in range(_TRIES):
            if len(held) == count:
                ports = [each.getsockname()[1] for each in held]
                _given.extend(ports)
                return ports
            if (port := _candidate()) not in _given and (bound := _bind(port)) is not None:
                held.append(bound)
    finally:
        for each in held:
            each.close()
    raise OSError(f"found {len(held)} of {count} free ports in {_TRIES} tries")


def _candidate() -> int:
    try:
        end = int(_EPHEMERAL.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        end = 32_768
    return random.SystemRandom().randrange(_LOWEST, end) if end > _LOWEST + 1000 else 0


def _bind(port: int) -> socket.socket | None:
    one = socket.socket()
    try:
        one.bind(("127.0.0.1", port))
    except OSError:
        one.close()
        return None
    return one
