"""Checkpoints of the training loop of a GNN, which the trainers of all sites and the nodes keep together.

training.safetensors    model, optimizer, epochs: see `training_state`
state.safetensors       what is exchanged, and the bytes of links so far: see `state`
"""

from collections.abc import Callable

from ...training.training_state import TrainingState
from ..frameworks.exchange import GeoExchange
from ..transport.base import Traffic
from .state import STATE, State
from .worker_checkpoints import WorkerShelf

TRAINING = "training.safetensors"


class GeoCheckpoints:
    """See `loop.Checkpoints`.

    Args:
        shelf: where the worker keeps its own.
        exchange: what joins the workers.
        traffic: gives the bytes of links since the process began, by node at the lower end.

    Attributes:
        traffic_before: the bytes of links before the checkpoint that was gone on from.
    """

    def __init__(
        self, shelf: WorkerShelf, exchange: GeoExchange, traffic: Callable[[], dict[str, Traffic]]
    ) -> None:
        self.traffic_before: dict[str, Traffic] = {}
        self._shelf = shelf
        self._exchange = exchange
        self._traffic = traffic

    def all_traffic(self) -> dict[str, Traffic]:
        """Returns the bytes of links, with those before the checkpoint."""
        links = self._traffic()
        for name, link in links.items():
            link.add(self.traffic_before.get(name, Traffic()))
        return links

    def restore(self, state: TrainingState) -> None:
        """See `Checkpoints`."""
        if self._shelf.kept is None:
            return
        state.read(self._shelf.kept / TRAINING)
        kept = State.read(self._shelf.kept / STATE)
        self._exchange.load_state(kept.part("exchange"))
        links = kept.part("links").facts
        self.traffic_before = {name: Traffic(*counts) for name, counts in links.items()}
        self._shelf.take_place(kept.part("place"))

    def save(self, state: TrainingState) -> None:
        """See `Checkpoints`; where one is due."""
        epoch = state.history[-1].epoch
        if not self._shelf.due(epoch):
            return
        exchanged = self._exchange.state()  # first: it may wait for what changes the model
        links = {name: [link.sent_bytes, link.received_bytes] for name, link in self.all_traffic().items()}
        parts = {"exchange": exchanged, "links": State(facts=links), "place": self._shelf.place()}
        with self._shelf.new(epoch) as folder:
            state.write(folder / TRAINING)
            State.of(parts).write(folder / STATE)
