"""What the rig needs of a machine, asked for before anything is built."""

import os
import shutil
from pathlib import Path

from geokfp.components._files import InputError

from .links import Links

_CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}
_PACKAGES = {"ip": "iproute2", "tc": "iproute2", "nsenter": "util-linux", "nft": "nftables"}
TUN = Path("/dev/net/tun")


def check(links: Links) -> None:
    """Refuses a machine on which the network cannot be built.

    Raises:
        InputError: one line that names what is missing.
    """
    if lacking := missing(links):
        raise InputError(f"network namespaces with shaped links need {', '.join(lacking)}")


def missing(links: Links) -> list[str]:
    """Returns what is missing on this machine for such a network."""
    lacking = [f"root (this is user {os.geteuid()})"] if os.geteuid() else []
    held = _held_capabilities()
    lacking += [name for name, bit in _CAPABILITIES.items() if not held >> bit & 1]
    commands = ["ip", "tc", "nsenter"] + (["nft"] if links.loss_percent else [])
    lacking += [f"the command {name} of {_PACKAGES[name]}" for name in commands if not shutil.which(name)]
    if links.delay_ms and not TUN.exists():
        lacking.append(f"the device {TUN}")
    return lacking


def _held_capabilities() -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0
