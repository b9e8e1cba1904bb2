"""The pods of `train_gnn`: one a part of the site, as frozen values. Starts nothing.

Pod i is machine i: DGL's server i, trainer i and its samplers. What the pods are given and give goes through
the launch's hand-over::

    <hand over>/<launch>/
      job/job.json             the job, with options and model
      job/start.safetensors    only when a trained GNN is started from
      job/user_code/           only when the model is the user's own
      partitions/              only when pods cannot read the artifact where it lies; pod i reads part i of it
      done/outcome-<i>.npz     of pod i; what metrics need of it where pods write the predictions themselves
      done/given-<i>.json      only then: which table pod i has written
      done/best.safetensors    of pod 0, as history.json
"""

from collections.abc import Mapping
from pathlib import Path

from .._files import InputError, local_path, sha256
from .._files.manifest import NAME
from .._images import image
from .._launch.launch_options import options_of_work, own_pod
from .._launch.manifests import launch_name
from .._launch.pod import PodOrders
from .._launch.pods import PodGroup, PodLaunch, PodSettings
from ..partition.own_part import partitions_at
from ..partition.partitions import Partitions, SitePartitions
from .config import TrainingConfig
from .shared_memory import part_bytes
from .site import DGL_PORT

STEP = "train_gnn"
GROUP = "worker"
PARTITIONS = "partitions"
PREDICTIONS = "predictions"
JOB_FOLDER = "job"
START = "start.safetensors"
USER_CODE = "user_code"
DONE = "done"
MACHINE = "geokfp.components.training.pod_machine:machine"
TORCH_PORT = 29_500
"""Port of pod 0 for torch.distributed."""


def planned(
    config: TrainingConfig,
    inputs: Mapping[str, str],
    settings: PodSettings,
    *,
    site: SitePartitions | None = None,
) -> tuple[PodLaunch, ...]:
    """Returns what `train_gnn` starts with a launcher; the same for the same arguments.

    Args:
        config: how to train, and where.
        inputs: path or URI by name: `partitions`, and of the outputs: `predictions`, which pods write
            themselves where they reach it, and `model`, which the hand-over is beside where none is given.
        settings: of the pods.
        site: the site on this machine, where the artifact is here too; it tells the size of shared memory.

    Raises:
        InputError: an option or input that is wrong.
    """
    uri, output = inputs[PARTITIONS], inputs.get(PREDICTIONS, "")
    path = local_path(uri)
    site = site or chosen_site(partitions_at(uri), config.site)
    options = options_of_work(config)
    target = output if config.pods_reach(output, settings) else ""
    of_data = sha256(path / NAME) if path else uri
    told = {"options": options, "partitions": of_data, **({"to": target} if target else {})}
    name = launch_name(STEP, run_id=config.run_id, task=STEP, inputs=told)
    hand_over = config.hand_over_of(name, inputs.get("model", ""), settings)
    orders = PodOrders.of(config, step=STEP, hand_over=hand_over)
    body = {
        "partitions": uri if config.pods_reach(uri, settings) else f"{hand_over}/{PARTITIONS}",
        "predictions": target,
        "site": site.graph_name,
        "timeout_s": config.timeout_s,
    }
    group = PodGroup(
        name=GROUP,
        num_pods=site.num_parts,
        image=settings.image or image("training"),
        target=MACHINE,
        document=orders.document(body),
        settings=settings,
        shared_memory_bytes=part_bytes(site, config.num_samplers) if site.config_path.is_file() else 0,
        ports={"dgl": DGL_PORT, "torch": TORCH_PORT},
    )
    return (
        PodLaunch(
            name=name,
            run_id=config.run_id,
            step=STEP,
            namespace=config.pod_namespace(),
            groups=(group,),
            deadline_s=config.start_timeout_s + config.timeout_s,
            step_pod=own_pod(),
        ),
    )


def chosen_site(parts: Partitions, wanted: str) -> SitePartitions:
    """Returns the site to train at.

    Args:
        parts: the partitions.
        wanted: its name or folder; empty is the only one.

    Raises:
        InputError: there is no such site, several, or it has no training node.
    """
    sites = [site for site in parts.sites if wanted in ("", site.name, site.directory.name)]
    if len(sites) != 1:
        names = ", ".join(site.name for site in parts.sites)
        raise InputError(f"site {wanted!r}: must be one of {names} (across sites: geo_train_gnn)")
    site = sites[0]
    if site.num_train == 0:
        raise InputError(f"partitions: {site.name} has no training node")
    return site


def checkpoints_of(config: TrainingConfig) -> Path | None:
    """Returns the folder of checkpoints that all pods see; None where they see none."""
    if config.checkpoint_folder:
        return Path(config.checkpoint_folder)
    shared = local_path(config.hand_over) if config.hand_over else None
    return shared / "checkpoints" if shared else None
