"""Which ports the pages for Prometheus have."""

from ..._files import InputError

LAST = 65535


def check_port(first: int, num_processes: int = 1) -> None:
    """Holds the first of the ports against what there is.

    Args:
        first: the root's; 0 for no page at all.
        num_processes: how many ports are needed, one after the other.

    Raises:
        InputError: there are not so many from the first on; names the option, its value and what is allowed.
    """
    last = LAST - num_processes + 1
    if not isinstance(first, int) or isinstance(first, bool) or not 0 <= first <= last:
        raise InputError(f"metrics_port is {first!r}, allowed: 0 for none, or 1 to {last}")
