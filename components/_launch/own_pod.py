"""What only the cluster knows of this step's own pod: the image that it runs in, and the pipeline run.

Pods run in the same image: which registry it came from is told nowhere else.
"""

from dataclasses import dataclass, replace

from .._files import InputError
from .api_errors import ApiError
from .cluster import Cluster
from .kubernetes import ApiServer
from .object_paths import kind_path
from .pods import PodSettings

STEP_CONTAINER = "main"
"""The container of a step's pod that runs the component."""
REQUEST_S = 30.0
"""Seconds for the answer."""
RUN_LABELS = ("pipeline/runid", "workflows.argoproj.io/workflow")
"""Labels of a step's pod that tell its run: KFP's, and that of the workflow which KFP makes of a run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnPod:
    """What a step's own pod tells."""

    image: str
    """The image that the step runs in."""
    image_pull_secrets: tuple[str, ...]
    """Names of the secrets by which it was pulled."""
    run_id: str
    """The pipeline run; empty where no label tells it."""

    def images_in(self, settings: PodSettings) -> PodSettings:
        """Returns settings of pods with this image."""
        return replace(settings, image=self.image, image_pull_secrets=self.image_pull_secrets)


def read_own_pod(cluster: Cluster, namespace: str, pod: str) -> OwnPod:
    """Returns what a step's pod tells.

    Args:
        cluster: where the step's pod runs.
        namespace: its namespace.
        pod: its name.

    Raises:
        InputError: it cannot be read, or there is no such pod.
    """
    path, query = kind_path("v1", "Pod", namespace), {"fieldSelector": f"metadata.name={pod}"}
    try:
        # To list is what the launcher's account may do with pods.
        found = ApiServer(cluster, request_s=REQUEST_S).request("GET", path, query=query).get("items") or []
    except ApiError as error:
        raise InputError(f"pod {namespace}/{pod}: the step's own pod cannot be read ({error})") from error
    own = next((item for item in found if item["metadata"]["name"] == pod), None)
    if own is None:
        raise InputError(f"pod {namespace}/{pod}: the step's own pod cannot be read (there is no such pod)")
    containers, labels = own["spec"]["containers"], own["metadata"].get("labels") or {}
    step = next((each for each in containers if each["name"] == STEP_CONTAINER), containers[0])
    return OwnPod(
        image=step["image"],
        image_pull_secrets=tuple(each["name"] for each in own["spec"].get("imagePullSecrets") or ()),
        run_id=next((labels[name] for name in RUN_LABELS if labels.get(name)), ""),
    )
