"""Loses packets by chance on their way through the hub."""

from .delay import DEVICE
from .execute import execute
from .namespaces import within

_SCALE = 1000
"""Steps of a percent."""


def install(hub: str, percent: float) -> None:
    """Drops each packet that enters the hub with the same chance.

    Args:
        hub: the hub's namespace.
        percent: chance of a packet to be lost.

    Raises:
        RigError: the kernel does not take the rule.
    """
    if percent:
        execute(within(hub, ["nft", "-f", "-"]), rules(percent))


def rules(percent: float) -> str:
    """Returns the table for `nft`; what comes back from the delay passed the rule before."""
    hook = "type filter hook forward priority 0; policy accept;"
    drop = f'iifname != "{DEVICE}" numgen random mod {100 * _SCALE} < {round(percent * _SCALE)} counter drop'
    return f"table ip wan {{\nchain lose {{\n{hook}\n{drop}\n}}\n}}\n"
