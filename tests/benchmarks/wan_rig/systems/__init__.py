"""What is compared; a new system is one more line here."""

from collections.abc import Mapping

from .base import CONTROL, Setting, System
from .data_parallel import TORCH_DDP, TORCH_DDP_LAN
from .one_process import ONE_GLUON, ONE_TORCH
from .parameter_server import ALONE, MXNET, MXNET_2BIT, MXNET_LAN, MXNET_P3
from .tree import OURS, TORCH_OURS

SYSTEMS: Mapping[str, System] = {
    "mxnet": MXNET,
    "mxnet_2bit": MXNET_2BIT,
    "mxnet_p3": MXNET_P3,
    "mxnet_lan": MXNET_LAN,
    **OURS,
    "torch_ddp": TORCH_DDP,
    "torch_ddp_lan": TORCH_DDP_LAN,
    **TORCH_OURS,
    "joined": ONE_GLUON,
    "torch_joined": ONE_TORCH,
    CONTROL: ALONE,
}
"""By name; each says which processes run where."""

__all__ = ["CONTROL", "SYSTEMS", "Setting", "System"]
