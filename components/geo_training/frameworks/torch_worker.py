"""Two lines for a training script of torch (of DGL too): one joins the other workers, one steps with them.

    geo = join(model, optimizer)
    ...
    geo.step(len(batch))    # in the place of optimizer.step()

The script finds its place in the environment (`place`). When it ends, it waits for the other workers. Where
the tree's synchronisation names an optimizer of the root, that one acts, and the script's own does not.
"""

import numpy as np
import torch
from torch import nn

from ..workers.place import Place
from .exchange import GeoExchange


class GeoOptimizer:
    """Steps together with the workers of all sites.

    Args:
        place: the worker's place.
        model: has the first worker's weights afterwards.
        optimizer: of the model's parameters; acts on this worker.
    """

    def __init__(self, place: Place, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self._place, self._model, self._optimizer = place, model, optimizer
        self._exchange = GeoExchange(place.plane, place.policy, optimizer)
        place.begin(lambda: self._exchange.broadcast(model))

    @property
    def index(self) -> int:
        """Number of this worker."""
        return self._place.plane.index

    @property
    def size(self) -> int:
        """Number of workers."""
        return self._place.plane.size

    @property
    def rounds_before(self) -> int:
        """Rounds of a tensor behind the first weights; 0 but from a checkpoint, or where others had begun."""
        return self._place.rounds_before

    def backward(self, loss: torch.Tensor, num_samples: int = 1) -> None:
        """Takes the backward pass in the place of `loss.backward()`, once a step.

        With `p3` gradients leave while it computes; without it there is no difference.

        Args:
            loss: the mean over the samples.
            num_samples: those of the step.
        """
        with self._exchange.sending(num_samples):
            loss.backward()  # type: ignore[no-untyped-call]

    def step(self, num_samples: int = 1) -> None:
        """Takes a step in the place of `optimizer.step()`.

        Args:
            num_samples: samples behind the gradients, whose MEAN these are; weighs them against other
                workers'.

        Raises:
            GeoError: the round was given up.
        """
        with torch.no_grad():
            for parameter in self._model.parameters():
                if parameter.grad is not None:
                    parameter.grad *= num_samples
        self._exchange.step(self._model, self._optimizer, num_samples)

    def agreed_weights(self) -> dict[str, torch.Tensor]:
        """Returns the model's state with the weights that all workers last agreed on."""
        with self._exchange.agreed(self._model):
            return {name: tensor.detach().clone() for name, tensor in self._model.state_dict().items()}

    def wan_bytes(self) -> int:
        """Returns the bytes on this site's link to the root so far, both ways, as its node counts them."""
        return self._place.wan_bytes()

    def barrier(self) -> None:
        """Waits until all workers have come here."""
        self._place.plane.total(np.zeros(1))

    def finish(self) -> None:
        """Ends together with the other workers, which all have the same weights then."""
        self._place.finish()


def join(model: nn.Module, optimizer: torch.optim.Optimizer) -> GeoOptimizer:
    """Joins the workers of all sites; the environment says where.

    Args:
        model: has the first worker's weights afterwards.
        optimizer: of the model's parameters.

    Raises:
        InputError: a variable is missing, or names no worker of the tree.
        GeoError: the site's aggregator cannot be reached.
    """
    return GeoOptimizer(Place.from_environment(), model, optimizer)
