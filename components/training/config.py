"""What can be chosen about a training at one site."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._files import InputError
from .._launch.launch_options import LaunchOptions
from ..ingest.config import MAX_SEED
from .model_options import MODEL_OPTIONS, check_model_options, is_whole

ARCHITECTURES = tuple(MODEL_OPTIONS)


@dataclass(frozen=True, kw_only=True, slots=True)
class LearningConfig:
    """How a GNN is learned, at one site or over several.

    Raises:
        InputError: a value that is not allowed; the message names the option, the value and what is.
    """

    architecture: str = "sage"
    """`sage` (GraphSAGE, mean aggregator), `gcn` or `gat`; not used with `entry_point`, nor where a trained
    model is started from."""
    entry_point: str = ""
    """`module:function` of your own model, called as `build(num_features, num_classes, **model_options)`."""
    user_code: str = ""
    """Folder or `.py` file (path or URI) with the module of `entry_point`; it is executed, so trust it."""
    model_options: Mapping[str, Any] = field(default_factory=dict)
    """Further options of the model: `input_dropout`, `num_heads` of `gat`, or those of your own `build`."""
    hidden_size: int = 128
    """Width of the inner layers."""
    num_layers: int = 2
    """Layers, each one hop of neighbours."""
    dropout: float = 0.5
    """Share of the hidden values zeroed in training."""
    learning_rate: float = 0.01
    """Step size of Adam."""
    weight_decay: float = 0.0005
    """L2 penalty of Adam."""
    epochs: int = 200
    """Most passes over the training nodes."""
    patience: int = 30
    """Epochs without progress (validation accuracy up or loss down by a tenth) before stopping; 0: never."""
    eval_every: int = 1
    """Epochs between two validations."""
    batch_size: int = 1024
    """Training nodes a worker takes in one step."""
    fan_outs: Sequence[int] = field(default_factory=lambda: [10])
    """Neighbours sampled per layer, outermost first; one number for all layers; empty = all neighbours."""
    num_samplers: int = 0
    """Processes per worker that sample ahead; 0 samples in the worker itself."""
    seed: int = 0
    """Seed of weights, order, dropout and sampling."""
    timeout_s: int = 86400
    """Seconds after which the whole training is ended as failed."""

    def __post_init__(self) -> None:
        """Checks the values."""
        if self.entry_point:
            module, _, function = self.entry_point.partition(":")
            _check("entry_point", self.entry_point, bool(module and function), "module:function")
        else:
            allowed = f"one of {', '.join(ARCHITECTURES)}"
            _check("architecture", self.architecture, self.architecture in ARCHITECTURES, allowed)
            _check("user_code", self.user_code, not self.user_code, "empty without entry_point")
        for name in ("hidden_size", "num_layers", "epochs", "eval_every", "batch_size", "timeout_s"):
            _check(name, getattr(self, name), getattr(self, name) >= 1, "at least 1")
        for name in ("patience", "num_samplers"):
            _check(name, getattr(self, name), getattr(self, name) >= 0, "at least 0")
        _check("seed", self.seed, 0 <= self.seed <= MAX_SEED, f"0 to {MAX_SEED}")
        _check("dropout", self.dropout, 0 <= self.dropout < 1, "at least 0 and below 1")
        _check("learning_rate", self.learning_rate, 0 < self.learning_rate < math.inf, "above 0 and finite")
        decay_fits = 0 <= self.weight_decay < math.inf
        _check("weight_decay", self.weight_decay, decay_fits, "at least 0 and finite")
        each_fits = all(is_whole(value) and value >= 1 for value in self.fan_outs)
        allowed = f"no number, one, or num_layers ({self.num_layers}) of them, each whole and at least 1"
        fits = len(self.fan_outs) in (0, 1, self.num_layers) and each_fits
        _check("fan_outs", list(self.fan_outs), fits, allowed)
        if not self.entry_point:
            check_model_options(
                self.architecture,
                self.model_options,
                hidden_size=self.hidden_size,
                num_layers=self.num_layers,
            )

    @property
    def layer_fan_outs(self) -> list[int]:
        """Neighbours per layer, outermost first; -1 means all."""
        given = [int(value) for value in self.fan_outs] or [-1]
        return given * self.num_layers if len(given) == 1 else given

    @property
    def build_options(self) -> dict[str, Any]:
        """Options that the model is built with."""
        own = {name: _whole(value) for name, value in self.model_options.items()}
        if self.entry_point:
            return own
        return {"hidden_size": self.hidden_size, "dropout": self.dropout, **own}


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingConfig(LearningConfig, LaunchOptions):
    """How a GNN is trained for node classification.

    Raises:
        InputError: a value that is not allowed; the message names the option, the value and what is.
    """

    site: str = ""
    """Site to train at, by name or folder (`site-0` is the first); empty is the only one."""
    checkpoint_folder: str = ""
    """Folder where the state after each epoch is kept, to go on from if the training is ended; on a volume
    that outlives the step's pod. Empty: beside the model."""
    warm_start: str = ""
    """Trained GNN to start from, the path or URI of its folder; its architecture and options are taken too.
    Empty: fresh weights."""

    def __post_init__(self) -> None:
        """Checks the values."""
        LearningConfig.__post_init__(self)
        self.check_launch()
        is_path = "://" not in self.checkpoint_folder
        _check("checkpoint_folder", self.checkpoint_folder, is_path, "the path of a folder, not a URI")


def _check(option: str, value: object, is_allowed: bool, allowed: str) -> None:
    if not is_allowed:
        raise InputError(f"{option} {value!r}: must be {allowed}")


def _whole(value: Any) -> Any:
    """Undoes kfp.local, which hands the whole numbers inside a dict over as floats."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
