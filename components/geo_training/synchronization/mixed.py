"""MixedSync of GeoMX: synchronous inside a site, asynchronous between sites.

The gradient of a site goes to the root in a round of the site's own. The root lets its optimizer act at once,
and answers with the change of the weights since that site's last answer. A site's gradient is thus of weights
that others have changed meanwhile; the optimizer `dcasgd` corrects for it (Zheng et al., ICML 2017).
"""

from dataclasses import dataclass, field
from typing import Annotated

from ..optimizers import OPTIMIZERS, OptimizerSpec
from ..optimizers.dcasgd import Dcasgd
from ..spec import Nested, check
from .served_worker import ServedWorker


@dataclass(frozen=True, kw_only=True, slots=True)
class Mixed:
    """Each site exchanges with the root when it is ready, and waits for no other.

    Raises:
        InputError: a value that is not allowed; names the option, the value and what is.
    """

    optimizer: Annotated[OptimizerSpec, Nested(OPTIMIZERS)] = field(default_factory=Dcasgd)
    """The root's, which acts on the mean gradient of one site at a time."""

    def __post_init__(self) -> None:
        """Checks the values."""
        check(self)

    def worker(self, *, meets: bool = False) -> ServedWorker:
        """Returns the worker's end; see `Synchronization.worker`."""
        return ServedWorker(own_rounds=True, meets=meets)
