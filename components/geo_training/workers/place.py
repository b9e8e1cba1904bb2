"""A training script's place in a tree: what joins it to the others, and its end together with them.

For scripts that run a loop of their own, of torch or MXNet. Knows nothing of either.
"""

import atexit
import sys
from collections.abc import Callable, Mapping
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from ..._files import InputError
from ..._launch import variables
from ..metrics.watch import Watch, recorder_of, watch_worker
from ..security import check_certificates, is_secured
from ..server import dial
from ..synchronization import WorkerPolicy, synchronization
from ..synchronization.base import POSITION
from ..topology import ROOT
from ..transport.base import Traffic
from ..tree_job import TreeJob
from .pace import agreed_slices
from .plane import Layout, Members, Plane

TREE, WORKER = "GEOKFP_TREE", "GEOKFP_WORKER"
"""Variables that say where a worker finds its `TreeJob`, and its name there, such as `site-0/trainer-1`."""


class Place:
    """One worker's; `finish` is called when the program ends.

    Attributes:
        plane: what joins it to the other workers.
        policy: what is exchanged, and when; `begin` has not been called.
        compression: how it travels between sites, as the tree's job says.
        rounds_before: rounds of a tensor behind the first weights: more than 0 where the root went on from a
            checkpoint, or others had begun before.
    """

    def __init__(
        self,
        plane: Plane,
        policy: WorkerPolicy,
        compression: str = "none",
        rounds_before: int = 0,
        watched: Watch | None = None,
        between_sites: Callable[[Mapping[str, Traffic]], Traffic] = itemgetter(ROOT),
    ) -> None:
        self.plane = plane
        self.policy = policy
        self.compression = compression
        self.rounds_before = rounds_before
        self._watched = watched
        self._between_sites = between_sites
        self._begun = self._failed = self._ended = False
        atexit.register(self.finish)
        self._note_failures()

    @classmethod
    def from_environment(cls) -> "Place":
        """Joins the tree that the environment names.

        Raises:
            InputError: a variable is missing, or names no worker of the tree; a certificate is wrong.
            GeoError: the site's aggregator cannot be reached.
        """
        found = variables(TREE, WORKER)
        missing = [name for name in (TREE, WORKER) if not found[name]]
        if missing:
            raise InputError(f"environment: {' and '.join(missing)} must be set to join the other workers")
        job, name = TreeJob.read(Path(found[TREE])), found[WORKER]
        if name not in job.topology.workers:
            raise InputError(f"{WORKER} {name!r}: must be one of {', '.join(job.topology.workers)}")
        site = job.topology.site(name).name
        if is_secured(job.certificates, job.topology, job.address(site)):
            check_certificates(job.certificates, (site,))
        client = dial(job, name, site, observer=recorder_of(job))
        members = Members(workers=job.topology.workers, name=name)
        plane = Plane(client, members, agreed_slices(job, client, members), len(job.roots))
        policy = synchronization(job.synchronization).worker(
            piecewise=job.is_overlapped, root_follows=job.checkpoint_every > 0
        )
        rounds = 0
        if job.checkpoint_every:
            rounds = int(plane.first(POSITION, Layout.of([("rounds", 1)]), np.zeros(1))[0])
        rounds += plane.first_round or 0
        watched = watch_worker(job, name, client)
        return cls(plane, policy, job.compression, rounds, watched, partial(job.of_roots, site))

    def begin(self, begin: Callable[[], Any]) -> None:
        """Notes that the policy is begun by `begin`, so that `finish` ends it."""
        begin()
        self._begun = True

    def wan_bytes(self) -> int:
        """Returns the bytes between this site and others so far, both ways; see `TreeJob.of_roots`."""
        traffic = self._between_sites(self.plane.client.peer_traffic())
        return traffic.sent_bytes + traffic.received_bytes

    def finish(self) -> None:
        """Ends together with the other workers, which all have the same weights then; may be called twice."""
        if self._ended:
            return
        self._ended = True
        if self._failed:
            self.plane.client.close("a worker failed")
            return
        if self._begun:
            self.policy.finish()
        if self._watched is not None:
            self._watched.close()
        self.plane.close()

    def _note_failures(self) -> None:
        """A script that ends by an error must not end as if it had done its part."""
        before = sys.excepthook

        def note(*failure: Any) -> None:
            self._failed = True
            before(*failure)

        sys.excepthook = note
