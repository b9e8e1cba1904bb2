"""What can be chosen about a training across sites."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from .._files import InputError
from ..training.config import TrainingConfig
from .compression import compression
from .synchronization import synchronization
from .topology import check


@dataclass(frozen=True, kw_only=True, slots=True)
class GeoTrainingConfig:
    """How one GNN is trained over all sites: the options of `TrainingConfig`, and how the sites are joined.

    Raises:
        InputError: a value that is not allowed; the message names the option, the value and what is.
    """

    architecture: str = "sage"
    """`sage`, `gcn` or `gat`; not used with `entry_point` or with a trained model to start from."""
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
    """Step size of Adam, a replica of which each worker steps with the same averaged gradient."""
    weight_decay: float = 0.0005
    """L2 penalty of Adam."""
    epochs: int = 200
    """Most passes over the training nodes."""
    patience: int = 30
    """Epochs without a better validation result after which training stops; 0 never stops early."""
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
    topology: Mapping[str, Any] = field(default_factory=dict)
    """Addresses, `{"root": "host:port", "sites": {name: {"listens": "host:port"}}}`; what is missing is a
    free port of this machine."""
    synchronization: str = "fsa"
    """How the sites keep in step: `fsa`, every worker of every site in every step."""
    compression: str = "none"
    """How values travel between sites, both ways: `none`, dense FP32."""
    compare_alone: bool = True
    """With several sites also train each alone, from the same start, judged on all sites' test nodes."""
    round_timeout_s: int = 300
    """Seconds that a round waits for its last worker before the training is ended as failed."""

    def __post_init__(self) -> None:
        """Checks the values."""
        _ = self.training
        synchronization(self.synchronization)
        compression(self.compression)
        check(self.topology)
        if self.round_timeout_s < 1:
            raise InputError(f"round_timeout_s {self.round_timeout_s!r}: must be at least 1")

    def compares(self, num_sites: int) -> bool:
        """Tells whether each of so many sites is trained alone too."""
        return self.compare_alone and num_sites > 1

    @property
    def training(self) -> TrainingConfig:
        """The options of a worker's own loop."""
        names = {f.name for f in fields(TrainingConfig)} & {f.name for f in fields(self)}
        return TrainingConfig(**{name: getattr(self, name) for name in names})
