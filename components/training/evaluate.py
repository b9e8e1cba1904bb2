"""Full-neighbour inference of all nodes of a site, spread over its trainers. Knows nothing of metrics.

Built-in models run layer by layer: each trainer computes a layer for its own part's nodes from the stored
values of all parts, so that no node's layer is computed twice (as in DistDGL; Zheng et al., 2020). Other
models run batch by batch over the whole neighbourhood.
"""

from typing import Any

import dgl.distributed
import torch
from torch import Tensor, nn

from .models import Stack
from .site_view import SiteView

NODES_AT_ONCE = 1024
"""Nodes whose neighbours are taken together."""


@torch.no_grad()
def infer(site: SiteView, model: nn.Module, num_layers: int) -> Tensor:
    """Returns the logits of this trainer's own nodes; all trainers of the site call this together.

    Args:
        site: the trainer's view; all its trainers must have the same weights.
        model: the model; left in evaluation mode.
        num_layers: hops that the model looks at.

    Returns:
        Float32 [nodes of the own part, num_classes], in the order of DGL's ids.
    """
    model.eval()
    if isinstance(model, Stack):
        return _layer_by_layer(site, model)
    own = torch.arange(site.start, site.stop)
    batches = (site.whole_neighbourhood(nodes, num_layers) for nodes in torch.split(own, NODES_AT_ONCE))
    return torch.cat([model(batch.blocks, batch.features) for batch in batches])


def _layer_by_layer(site: SiteView, model: Stack) -> Tensor:
    own = torch.arange(site.start, site.stop)
    last = len(model.widths) - 1
    stored: Any = None
    output = torch.empty(0)
    for index, width in enumerate(model.widths):
        pieces = torch.split(own, NODES_AT_ONCE)
        output = torch.cat([_one_layer(site, model, index, stored, nodes) for nodes in pieces])
        if index < last:
            # Made by all trainers together; the name keeps two layers' values apart.
            stored = dgl.distributed.DistTensor(
                (site.graph.num_nodes(), width),
                torch.float32,
                name=f"layer-{index}",
                part_policy=site.graph.get_node_partition_policy("_N"),
            )
            stored[own] = output
            site.barrier()
    return output


def _one_layer(site: SiteView, model: Stack, index: int, stored: Any, nodes: Tensor) -> Tensor:
    block, inputs = site.one_hop(nodes)
    values: Any = site.features(inputs) if index == 0 else stored[inputs]
    return model.forward_layer(index, block, values)
