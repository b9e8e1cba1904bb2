"""The optimizers of the root, which steps the weights that it hands out: chosen by text, never by a pickle.

`parse_optimizer("adam(rate=0.001)")` gives an `OptimizerSpec`, which is options and rule; `build` of it gives
the `Optimizer` of all keys. Pure numpy, FP32, in place.

Bytes of state of a key of n values that s sites pull (a step needs a few blocks of temporaries beside):

| optimizer | bytes |
|---|---|
| `sgd` | 0 |
| `momentum`, `nag`, `outer`, `signum` | 0; + 4 n with momentum |
| `adam`, `adamax` | 8 n + 8 |
| `nadam` | 8 n + 16 |
| `adagrad` | 4 n |
| `rmsprop` | 4 n; + 4 n with momentum; + 4 n with centered |
| `adadelta`, `ftrl` | 8 n |
| `ftml` | 12 n + 8 |
| `dcasgd` | 4 n s; + 4 n with momentum; + 4 n with adaptive |

With lambda 0 `dcasgd` keeps no more than `momentum`. Each file has the formulas and their source.
"""

from collections.abc import Mapping

from ..spec import parse, render
from .adadelta import Adadelta
from .adagrad import Adagrad
from .adam import Adam
from .adamax import Adamax
from .base import Optimizer, OptimizerSpec
from .dcasgd import Dcasgd
from .ftml import Ftml
from .ftrl import Ftrl
from .keyed import KeyedOptimizer
from .momentum import Momentum
from .nadam import Nadam
from .nesterov import Nesterov, Outer
from .rmsprop import Rmsprop
from .sgd import Sgd
from .signum import Signum

__all__ = [
    "OPTIMIZERS",
    "Optimizer",
    "OptimizerSpec",
    "build",
    "parse_optimizer",
    "render_optimizer",
]

OPTIMIZERS: Mapping[str, type[OptimizerSpec]] = {
    "sgd": Sgd,
    "momentum": Momentum,
    "nag": Nesterov,
    "outer": Outer,
    "adam": Adam,
    "adamax": Adamax,
    "nadam": Nadam,
    "adagrad": Adagrad,
    "rmsprop": Rmsprop,
    "adadelta": Adadelta,
    "ftrl": Ftrl,
    "ftml": Ftml,
    "signum": Signum,
    "dcasgd": Dcasgd,
}


def parse_optimizer(text: str) -> OptimizerSpec:
    """Returns the spec that a text such as `momentum(rate=0.1, momentum=0.9)` names.

    Raises:
        InputError: it names none; one line with the option, its value, what is allowed, and the nearest name.
    """
    return parse(text, "optimizer", OPTIMIZERS)


def render_optimizer(spec: OptimizerSpec) -> str:
    """Returns the canonical text of a spec, with every option; `parse_optimizer` reads it back."""
    return render(spec, OPTIMIZERS)


def build(spec: OptimizerSpec) -> Optimizer:
    """Returns an optimizer of the spec that has seen no key."""
    return KeyedOptimizer(spec)
