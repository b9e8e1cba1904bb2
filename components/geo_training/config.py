"""What can be chosen about a training across sites."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from .._files import InputError
from .._launch.launch_options import LaunchOptions
from ..training.config import LearningConfig, TrainingConfig
from .at_sites.config import SitePartitionConfig
from .at_sites.shard_config import SiteShardConfig
from .choices import check_choices
from .clusters.options import check_links
from .compression import compression
from .metrics.ports import check_pages
from .scheduling import transmission
from .synchronization import synchronization
from .topology import MANY, num_accepting
from .topology_file import written_out

__all__ = ["GeoTrainingConfig", "SitePartitionConfig", "SiteShardConfig"]


@dataclass(frozen=True, kw_only=True, slots=True)
class GeoTrainingConfig(LearningConfig, LaunchOptions):
    """How one GNN is trained over all sites: the options of `LearningConfig`, and how the sites are joined.

    Raises:
        InputError: a value that is not allowed; the message names the option, the value and what is.
    """

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
    links allow), `fsa` (every worker of every site in every step), `mixed(optimizer=dcasgd(rate=0.01))` (the
    root's optimizer in the place of the workers') or `hfa(k1=20) + outer(momentum=0.9)`; README.md lists
    them."""
    compression: str = "auto"
    """How gradients and changes of weights travel between sites, both ways: a technique with its options,
    then rules, such as `auto` (as synchronisation `auto` plans, dense with others), `none` (dense FP32),
    `fp16` or `top_k(ratio=0.015, bits=2) + zstd`; README.md lists them."""
    transmission: str = "fifo"
    """In which pieces and in what order values travel: a technique with its options, then rules, such as
    `fifo` (as they come) or `p3(slice_ms=50)` (small slices, first layers first); README.md lists them."""
    checkpoint_folder: str = ""
    """Folder where the state after an epoch is kept, to go on from if the training is ended; on a volume
    that outlives the step's pod. Empty: beside the model."""
    checkpoint_every: int = 1
    """Epochs between two checkpoints; 0 keeps none."""
    compare_alone: bool = True
    """With several sites also train each alone, from the same start, judged on all sites' test nodes."""
    round_timeout_s: int = 300
    """Seconds that a round waits for its last worker before the training is ended as failed."""
    metrics_host: str = "127.0.0.1"
    """Where the processes' pages for Prometheus listen; `0.0.0.0` for all of this machine's addresses."""
    metrics_port: int = 0
    """Port of the root's page; the pages of sites, then of workers, have the next ones. 0 for no pages."""

    def __post_init__(self) -> None:
        """Checks the values."""
        LearningConfig.__post_init__(self)
        chosen = synchronization(self.synchronization)
        if chosen.unequal_steps:
            raise InputError(
                f"synchronization {self.synchronization!r}: sites would take unequal numbers of steps, "
                "but the epochs of a GNN are equal ones, allowed: fsa, mixed, hfa, nbsync, auto"
            )
        object.__setattr__(self, "topology", written_out(self.topology))
        self.check_launch()
        check_links(self)
        check_pages(self.metrics_host, self.metrics_port)
        check_choices(
            chosen,
            compression(self.compression),
            transmission(self.transmission),
            MANY if self.launches_pods else num_accepting(self.topology),
        )
        if "://" in self.checkpoint_folder:
            raise InputError(
                f"checkpoint_folder {self.checkpoint_folder!r}: must be the path of a folder, not a URI"
            )
        if self.checkpoint_every < 0:
            raise InputError(f"checkpoint_every {self.checkpoint_every!r}: must be at least 0")
        if self.round_timeout_s < 1:
            raise InputError(f"round_timeout_s {self.round_timeout_s!r}: must be at least 1")

    def compares(self, num_sites: int) -> bool:
        """Tells whether each of so many sites is trained alone too."""
        return self.compare_alone and num_sites > 1

    @property
    def training(self) -> TrainingConfig:
        """The options of a worker's own loop."""
        return TrainingConfig(**{each.name: getattr(self, each.name) for each in fields(LearningConfig)})
