"""Finds out, before anything starts, which clusters of a tree cannot be reached."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

from ..._launch import ProcessFailed, progress
from ..._launch.cluster import Cluster
from ..._launch.launch_step import Surroundings
from ..synchronization import synchronization
from ..topology import ROOT
from .options import TreeOptions
from .site_pods import GroupPlace, TreePlaces, places

ANSWER_S = 15.0
"""Seconds that a cluster has to answer."""

Unreachable: TypeAlias = Callable[[Cluster, str, float], str]
"""Tells why a cluster does not take pods in a namespace, within some seconds; "" when it does."""


def sites_of_step(
    options: TreeOptions, workers: Mapping[str, int], surroundings: Surroundings
) -> tuple[str, ...]:
    """Returns the sites that a step trains with: all, where it starts no pods on clusters.

    Args:
        options: of the step.
        workers: number of workers by site.
        surroundings: what its pods are started with.

    Raises:
        ProcessFailed: see `sites_within_reach`.
    """
    if not options.launches_pods or surroundings.run is not None:
        return tuple(workers)
    where = places(options.topology, list(workers), surroundings.settings, options.certificates)
    return sites_within_reach(where, workers, options.synchronization, options.pod_namespace())


def sites_within_reach(
    places: TreePlaces,
    workers: Mapping[str, int],
    chosen: str,
    namespace: str,
    unreachable: Unreachable | None = None,
) -> tuple[str, ...]:
    """Returns the sites to train with: all, or with a `quorum` those whose clusters answer.

    Args:
        places: where the pods go.
        workers: number of workers by site.
        chosen: the `synchronization` option.
        namespace: of pods that `places` names none for.
        unreachable: asks a cluster; None asks over the network.

    Raises:
        ProcessFailed: a site or the root is out of reach, and the others do not suffice; it is named.
    """
    asked = {ROOT: places.root, **places.sites}
    why = _why_not(asked, namespace, unreachable or _ask)
    if ROOT in why:
        raise ProcessFailed(ROOT, f"cannot be reached: {why[ROOT]}")
    within = tuple(site for site in places.sites if site not in why)
    if not why:
        return within
    missing, reason = next(iter(why.items()))
    quorum, left = synchronization(chosen).quorum, sum(workers[site] for site in within)
    if quorum is None:
        raise ProcessFailed(missing, f"cannot be reached: {reason}")
    if left < quorum.workers:
        raise ProcessFailed(
            missing,
            f"cannot be reached, and {left} workers are left of the quorum's {quorum.workers}: {reason}",
        )
    for site, told in why.items():
        progress(f"{site} is left out, as the quorum allows: it cannot be reached ({told})")
    return within


def _why_not(asked: Mapping[str, GroupPlace], namespace: str, unreachable: Unreachable) -> dict[str, str]:
    """Returns why clusters other than the step's own cannot be reached, by site."""
    where = {
        name: (place.cluster, place.namespace or namespace)
        for name, place in asked.items()
        if not place.cluster.in_cluster
    }
    clusters = list(dict.fromkeys(where.values()))
    if not clusters:
        return {}
    with ThreadPoolExecutor(len(clusters)) as threads:
        answers = threads.map(lambda one: unreachable(one[0], one[1], ANSWER_S), clusters)
        told = dict(zip(clusters, answers, strict=True))
    return {name: told[one] for name, one in where.items() if told[one]}


def _ask(cluster: Cluster, namespace: str, timeout_s: float) -> str:
    from ..._launch.kubernetes import unreachable

    return unreachable(cluster, namespace, timeout_s)
