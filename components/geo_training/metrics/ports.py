"""Where the pages for Prometheus may be."""

import ipaddress
import re

from ..._files import InputError

LAST = 65535
_NAME = re.compile(
    r"[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?"
)
_NUMBERS = re.compile(r"[0-9.]+")


def check_pages(host: str, first: int, num_processes: int = 1) -> None:
    """Holds where the pages are to be against what there is.

    Args:
        host: where they listen.
        first: the root's port; 0 for no page at all.
        num_processes: how many ports are needed, one after the other.

    Raises:
        InputError: the host is none, or there are not so many ports from the first on; names the option, its
            value and what is allowed.
    """
    if not isinstance(host, str) or not _is_host(host):
        raise InputError(
            f"metrics_host is {host!r}, allowed: a name or address of this machine, without a port, such as "
            "0.0.0.0 for all"
        )
    last = LAST - num_processes + 1
    if not isinstance(first, int) or isinstance(first, bool) or not 0 <= first <= last:
        raise InputError(f"metrics_port is {first!r}, allowed: 0 for none, or 1 to {last}")


def _is_host(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return bool(_NAME.fullmatch(text)) and not _NUMBERS.fullmatch(text)
    return True
