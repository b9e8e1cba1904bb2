"""What can be chosen about a training over the rows of several sites."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._files import InputError
from .._launch.launch_options import LaunchOptions
from ..geo_training.choices import check_choices
from ..geo_training.clusters.options import check_links
from ..geo_training.compression import compression
from ..geo_training.metrics.ports import check_pages
from ..geo_training.scheduling import transmission
from ..geo_training.synchronization import synchronization
from ..geo_training.topology import MANY, num_accepting
from ..geo_training.topology_file import written_out
from ..ingest.config import MAX_SEED
from .hyperparameters import HYPERPARAMETERS, check_hyperparameters

ALGORITHMS = tuple(HYPERPARAMETERS)


@dataclass(frozen=True, kw_only=True, slots=True)
class GeoTableConfig(LaunchOptions):
    """How one model is trained over all sites of a shards artifact.

    Raises:
        InputError: a value that is not allowed; the message names the option, the value and what is.
    """

    entry_point: str = ""
    """`module:function` of your own model, called as `build(feature_shape, num_classes, **hyperparameters)`;
    returns model, loss and optimizer, of torch or gluon. Give this or `algorithm`."""
    user_code: str = ""
    """Folder or `.py` file (path or URI) with the module of `entry_point`; it is executed, so trust it."""
    algorithm: str = ""
    """A built-in model: `softmax_regression`, `mlp` or `cnn`. Give this or `entry_point`."""
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of `build`: your own function's, or the algorithm's (README.md lists them)."""
    epochs: int = 20
    """Passes of each worker over its training rows."""
    batch_size: int = 64
    """Most rows that a worker takes in one step; an epoch's batches are of nearly equal size."""
    num_workers: int = 1
    """Workers at each site; they share its training rows."""
    eval_every: int = 1
    """Epochs between two judgements by each site's validation rows."""
    topology: Mapping[str, Any] = field(default_factory=dict)
    """Addresses, `{"root": "host:port", "sites": {name: {"listens": "host:port", "accepts": "host:port"}}}`;
    what is missing is a free port of this machine, and who has no `accepts` only dials out."""
    certificates: str = ""
    """Folder with `tls.crt`, `tls.key` and `ca.crt` of this node, or with such a folder for each node of this
    machine; links between sites are TLS then, in which both ends show certificates."""
    plain_text: bool = False
    """Whether links may leave this machine without TLS; only for networks that are trusted."""
    synchronization: str = "auto"
    """How the sites keep in step: a technique with its options, then rules, such as `auto` (as often as the
    links allow), `fsa` or `hfa(k1=20)`; the README.md of geo_training lists them."""
    compression: str = "auto"
    """How values travel between sites, both ways, such as `auto` (as synchronisation `auto` plans, dense with
    others), `none` (dense FP32) or `fp16`; the README.md of geo_training lists them."""
    transmission: str = "fifo"
    """In which pieces and in what order values travel, such as `fifo` (as they come) or `p3` (first layers
    first); the README.md of geo_training lists them."""
    checkpoint_folder: str = ""
    """Folder where the state after an epoch is kept, to go on from if the training is ended; on a volume
    that outlives the step's pod. Empty: beside the model."""
    checkpoint_every: int = 1
    """Epochs between two checkpoints; 0 keeps none. With `mixed` and `esync`, whose sites do not wait for
    each other but for a checkpoint, they are kept only in a `checkpoint_folder` that is given."""
    seed: int = 0
    """Seed of weights, order and draws."""
    round_timeout_s: int = 300
    """Seconds that a round waits for its last worker before the training is ended as failed."""
    metrics_host: str = "127.0.0.1"
    """Where the processes' pages for Prometheus listen; `0.0.0.0` for all of this machine's addresses."""
    metrics_port: int = 0
    """Port of the root's page; the pages of sites, then of workers, have the next ones. 0 for no pages."""
    timeout_s: int = 86400
    """Seconds after which the whole training is ended as failed."""

    def __post_init__(self) -> None:
        """Checks the values."""
        self._check_model()
        for name in ("epochs", "batch_size", "num_workers", "eval_every", "round_timeout_s", "timeout_s"):
            _check(name, getattr(self, name), getattr(self, name) >= 1, "at least 1")
        _check("checkpoint_every", self.checkpoint_every, self.checkpoint_every >= 0, "at least 0")
        is_path = "://" not in self.checkpoint_folder
        _check("checkpoint_folder", self.checkpoint_folder, is_path, "the path of a folder, not a URI")
        _check("seed", self.seed, 0 <= self.seed <= MAX_SEED, f"0 to {MAX_SEED}")
        object.__setattr__(self, "topology", written_out(self.topology))
        self.check_launch()
        check_links(self)
        check_pages(self.metrics_host, self.metrics_port)
        check_choices(
            synchronization(self.synchronization),
            compression(self.compression),
            transmission(self.transmission),
            MANY if self.launches_pods else num_accepting(self.topology),
        )

    @property
    def keeps_checkpoints(self) -> bool:
        """Whether checkpoints are kept."""
        waits = synchronization(self.synchronization).in_step or bool(self.checkpoint_folder)
        return self.checkpoint_every > 0 and waits

    @property
    def build_arguments(self) -> dict[str, Any]:
        """The hyperparameters as `build` is given them."""
        return {name: _whole(value) for name, value in self.hyperparameters.items()}

    def _check_model(self) -> None:
        if bool(self.entry_point) == bool(self.algorithm):
            what = "both given" if self.entry_point else "both empty"
            raise InputError(
                f"entry_point {self.entry_point!r} and algorithm {self.algorithm!r}: {what}, exactly one is "
                f"needed: module:function, or one of {', '.join(ALGORITHMS)}"
            )
        if self.entry_point:
            module, _, function = self.entry_point.partition(":")
            _check("entry_point", self.entry_point, bool(module and function), "module:function")
            return
        allowed = f"one of {', '.join(ALGORITHMS)}"
        _check("algorithm", self.algorithm, self.algorithm in ALGORITHMS, allowed)
        _check("user_code", self.user_code, not self.user_code, "empty without entry_point")
        check_hyperparameters(self.algorithm, self.hyperparameters)


def _check(option: str, value: object, is_allowed: bool, allowed: str) -> None:
    if not is_allowed:
        raise InputError(f"{option} {value!r}: must be {allowed}")


def _whole(value: Any) -> Any:
    """Undoes kfp.local, which hands the whole numbers inside a dict over as floats."""
    if isinstance(value, list | tuple):
        return [_whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
