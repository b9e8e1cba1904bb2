"""Choices that relaying does not go with; refused before anything starts."""

from ..._files import InputError
from ..scheduling import Transmission
from ..synchronization import Synchronization
from ..synchronization.mixed import Mixed

_NOT_WHOLE = ("dgt", "multigps")
"""Rules that send the root what relays must merge whole."""


def check_relaying(chosen: Transmission, synchronization: Synchronization, *, accepting: bool) -> None:
    """Holds `tsengine` against what else was chosen; without it nothing is refused.

    Args:
        chosen: the transmission.
        synchronization: how the sites keep in step.
        accepting: whether a site of the topology accepts others.

    Raises:
        InputError: no site can relay, or nothing can be relayed.
    """
    if "tsengine" not in chosen.rules:
        return
    told = "transmission has tsengine"
    if not accepting:
        raise InputError(
            f"{told}, but topology has no site that accepts others, allowed: an address of each site that "
            "may relay, as in {'sites': {'site-0': {'accepts': 'host:port'}}}"
        )
    if isinstance(synchronization.technique, Mixed):
        raise InputError(f"{told} with synchronization mixed, allowed: others; no sites meet in its rounds")
    if synchronization.quorum is not None:
        raise InputError(f"{told} with the rule quorum, allowed: rounds of all workers, without quorum")
    for rule in _NOT_WHOLE:
        if rule in chosen.rules:
            raise InputError(f"{told} and {rule}, allowed: one of them")
