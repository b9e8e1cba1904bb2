"""What the pods of one tree are, as launches: one for each cluster and namespace that its sites are at.

Drawing of the hand-over that the step and all pods reach::

    <hand over>/<name>/          one launch, named by the run and the step's inputs
      given/                     what the stage hands to its pods
      attempt-0/                 beat, failures/, results/<pod> and restarts/: see `hand_over`, `results`
      attempt-1/                 after the root or a pod was killed                      and `pod_restarts`

Knows nothing of what the pods do.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from ..._files import InputError, local_path
from ..._files.uri import is_object_store
from ..._images import image
from ..._launch.cluster import Cluster, Placed
from ..._launch.hand_over import HandOver
from ..._launch.launch_options import LaunchOptions, own_pod
from ..._launch.launch_step import Surroundings, freed, run_launches
from ..._launch.pod import PodOrders
from ..._launch.pods import PodGroup, PodLaunch
from ..planned_tree import PlannedTree
from ..topology import ROOT
from .pod_tree import members_in, ports_of
from .results import gather
from .site_pods import GroupPlace

NO_PORTS: Mapping[str, Mapping[str, int]] = {}
MARGIN_S = 120
"""Seconds that a cluster leaves pods beyond the deadline that they keep themselves."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeLaunch:
    """What the pods of one tree are."""

    name: str
    """See `launch_name`; by it a step that is run again adopts what is there."""
    step: str
    """The component."""
    options: LaunchOptions
    """The step's."""
    timeout_s: int
    """Seconds that the whole may take."""
    hand_over: str
    """URI of what the step and all pods reach; of this launch alone."""
    image: str
    """Of containers that the settings name none for, by the folder's name under `images/`."""
    target: str
    """What each pod calls, see `PodGroup.target`."""
    body: Mapping[str, Any] = field(default_factory=dict)
    """What it is called with, beside `PodOrders` and `given`, the URI of what the stage hands over."""
    shared_memory_bytes: Mapping[str, int] = field(default_factory=dict)
    """Size of /dev/shm by group."""

    @property
    def given(self) -> HandOver:
        """Where the stage puts what its pods are given, the same in all attempts."""
        return HandOver(self.hand_over).inside("given")

    def attempt(self, number: int) -> HandOver:
        """Returns what an attempt's pods hand over to."""
        return HandOver(self.hand_over).inside(f"attempt-{number}")

    def freed(self) -> AbstractContextManager[None]:
        """Removes in the end, however it ends, all that step and pods have handed each other."""
        return freed(HandOver(self.hand_over))


Held: TypeAlias = tuple[GroupPlace, str, int]
"""Where a group of pods goes, its name, and how many pods it has."""


def placed_launches(of: TreeLaunch, tree: PlannedTree, number: int = 0) -> list[Placed]:
    """Returns one launch a cluster and namespace, the root's first.

    Args:
        of: what the pods are.
        tree: the tree, with places.
        number: of the attempt; each has objects of its own.

    Raises:
        InputError: the hand-over is a path, which pods of another cluster do not see.
    """
    places, sites = tree.pod_places, tree.groups.of_sites.items()
    held = [
        (places.root, ROOT, 1),
        *((places.sites[site], name, tree.job.workers[site]) for site, name in sites),
    ]
    ports = {name: ports_of(tree.job, members_in(tree.job, tree.groups, name, 0)) for _, name, _ in held}
    return at_places(of, held, number, ports)


def at_places(
    of: TreeLaunch, held: Sequence[Held], number: int = 0, ports: Mapping[str, Mapping[str, int]] = NO_PORTS
) -> list[Placed]:
    """Returns one launch a cluster and namespace, in the order of their first groups.

    Args:
        of: what the pods are.
        held: the groups.
        number: of the attempt.
        ports: that pods of a group listen at, by name.

    Raises:
        InputError: see `placed_launches`.
    """
    _check_hand_over(of.hand_over, held)
    orders = PodOrders.of(of.options, step=of.step, hand_over=of.attempt(number).uri)
    document = orders.document({**of.body, "given": of.given.uri})
    at: dict[tuple[Cluster, str], list[PodGroup]] = {}
    own = of.options.pod_namespace()
    for place, group, num_pods in held:
        made = PodGroup(
            name=group,
            num_pods=num_pods,
            image=place.settings.image or image(of.image),
            target=of.target,
            document=document,
            settings=place.settings,
            shared_memory_bytes=of.shared_memory_bytes.get(group, 0),
            ports=ports.get(group, {}),
            service=place.service,
        )
        at.setdefault((place.cluster, place.namespace or own), []).append(made)
    name = f"{of.name}-{number}" if number else of.name
    return [
        Placed(
            launch=PodLaunch(
                name=name,
                run_id=of.options.run_id,
                step=of.step,
                namespace=namespace,
                groups=tuple(groups),
                deadline_s=of.timeout_s + MARGIN_S,
                step_pod=own_pod() if cluster.in_cluster and namespace == own else None,
            ),
            kind=of.options.launcher,
            cluster=replace(cluster, name=groups[0].name) if len(at) > 1 else cluster,
        )
        for (cluster, namespace), groups in at.items()
    ]


def reach_all(options: LaunchOptions, uri: str, places: Iterable[GroupPlace]) -> bool:
    """Tells whether the pods of all places read and write an artifact where it lies.

    Args:
        options: the step's.
        uri: path or URI of the artifact.
        places: where the pods go.
    """
    far = local_path(uri) is not None  # other clusters see no path of this one
    return all(
        options.pods_reach(uri, place.settings) and (place.cluster.in_cluster or not far) for place in places
    )


def _check_hand_over(uri: str, held: Sequence[Held]) -> None:
    far = [group for place, group, _ in held if not place.cluster.in_cluster]
    if far and not is_object_store(uri):
        raise InputError(
            f"hand_over {uri!r}: must be an s3://, gs:// or minio:// URI with pods in other clusters, as "
            f"{far[0]!r} is, which see no path"
        )


def run_placed(
    of: TreeLaunch, placed: Sequence[Placed], hand_over: HandOver, surroundings: Surroundings
) -> None:
    """Runs launches to their end, all with one hand-over.

    Raises:
        ProcessFailed: a pod failed.
    """
    run_launches([(one, hand_over) for one in placed], of.options, surroundings)


def run_attempt(
    of: TreeLaunch, tree: PlannedTree, number: int, surroundings: Surroundings, result: "Wanted"
) -> None:
    """Runs all pods to their end, and copies what they left to one folder, as if all had run there.

    Args:
        of: what the pods are.
        tree: the tree.
        number: of the attempt.
        surroundings: the step's.
        result: what is wanted of that.

    Raises:
        ProcessFailed: a pod failed.
    """
    hand_over, placed = of.attempt(number), placed_launches(of, tree, number)
    run_placed(of, placed, hand_over, surroundings)
    groups = [group for one in placed for group in one.launch.groups]
    pods = [f"{group.name}-{index}" for group in groups for index in range(group.num_pods)]
    gather(hand_over, pods, result.work, only=result.names)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of all that pods leave is copied, and where to.

    Attributes:
        work: the folder.
        names: beginnings of the names of files.
    """

    work: Path
    names: Sequence[str]
