"""Plans a pod a site for steps that read its tables there. Starts nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..._launch.launch_options import options_of_work
from ..._launch.manifests import launch_name
from ..._launch.pods import PodLaunch, PodSettings
from ..clusters.launching import TreeLaunch, at_places
from ..clusters.site_pods import GroupPlace, places
from .at_stores import AtStores
from .config import SitePartitionConfig
from .pod_site import TARGET
from .shard_config import SiteShardConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class SiteStep:
    """What one step does at every site."""

    name: str
    """The component."""
    output: str
    """Its main output, beside which the hand-over is when none is named."""
    image: str
    """Of its pods, by the folder's name under `images/`."""
    worker: str
    """What reads a site's tables: `package.module:function`, called with the path of its orders."""


PARTITION = SiteStep(
    name="partition_at_sites",
    output="partitions",
    image="training",
    worker="geokfp.components.geo_training.at_sites.worker:main",
)

SHARD = SiteStep(
    name="shard_at_sites",
    output="shards",
    image="geomx",
    worker="geokfp.components.geo_training.at_sites.shard_worker:main",
)
_STEPS: Mapping[type[AtStores], SiteStep] = {SitePartitionConfig: PARTITION, SiteShardConfig: SHARD}


@dataclass(frozen=True, kw_only=True, slots=True)
class Planned:
    """What is started."""

    launch: TreeLaunch
    """What the pods are."""
    held: Sequence[tuple[GroupPlace, str, int]]
    """Place, name and number of pods of each group."""


def planned(config: AtStores, inputs: Mapping[str, str], settings: PodSettings) -> tuple[PodLaunch, ...]:
    """Returns the launches of a step, one a cluster, as `run` starts them.

    Args:
        config: the step's.
        inputs: URI of the output where `hand_over` is empty.
        settings: of the pods.

    Raises:
        InputError: options do not go together.
    """
    step = _STEPS[type(config)]
    made = plan(step, config, settings, inputs.get(step.output, ""))
    return tuple(placed.launch for placed in at_places(made.launch, made.held, 0))


def plan(step: SiteStep, config: AtStores, settings: PodSettings, outputs_uri: str) -> Planned:
    """Plans the pods.

    Args:
        step: what they do.
        config: the step's.
        settings: of the pods where the topology says nothing.
        outputs_uri: of the step's main output.

    Raises:
        InputError: options do not go together.
    """
    where = places(config.topology, list(config.tables), settings, "", root_needed=False)
    name = launch_name(step.name, run_id=config.run_id, task=step.name, inputs=options_of_work(config))
    groups = {site: f"site-{index}" for index, site in enumerate(config.tables)}
    orders = {
        group: {
            **config.orders(site),
            "site": site,
            "storage": f"{where.sites[site].storage.rstrip('/')}/{name}/{group}",
        }
        for site, group in groups.items()
    }
    body = {"worker": step.worker, "sites": groups, "sites_orders": orders, "timeout_s": config.timeout_s}
    launch = TreeLaunch(
        name=name,
        step=step.name,
        options=config,
        timeout_s=config.timeout_s,
        hand_over=config.hand_over_of(name, outputs_uri, settings),
        image=step.image,
        target=TARGET,
        body=body,
    )
    return Planned(launch=launch, held=[(where.sites[site], group, 1) for site, group in groups.items()])
