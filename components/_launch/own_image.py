"""The image that this step runs in, for its pods: only the cluster knows which registry it came from."""

from dataclasses import replace

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


def with_own_image(settings: PodSettings, cluster: Cluster, namespace: str, pod: str) -> PodSettings:
    """Returns settings with the image of a step's pod, and the secrets by which that was pulled.

    Args:
        settings: of the pods to start.
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
        raise InputError(f"pod {namespace}/{pod}: the step's own image cannot be read ({error})") from error
    specs = [item["spec"] for item in found if item["metadata"]["name"] == pod]
    if not specs:
        raise InputError(f"pod {namespace}/{pod}: the step's own image cannot be read (there is no such pod)")
    containers = specs[0]["containers"]
    own = next((each for each in containers if each["name"] == STEP_CONTAINER), containers[0])
    secrets = tuple(each["name"] for each in specs[0].get("imagePullSecrets") or ())
    return replace(settings, image=own["image"], image_pull_secrets=secrets)
