"""What steps use and only a cluster's owner can give: a shared volume, and secrets with their own values."""

from collections.abc import Mapping
from typing import Any

CERTIFICATES = "geokfp-certificates"
"""Secret with what one node shows the others, a key a file as `geokfp certificates` writes them."""
DATA_CLAIM = "geokfp-data"
"""Claim of the volume over which steps and pods hand files over."""
OBJECT_STORE = "geokfp-object-store"
"""Secret whose keys are the variables that S3 clients read."""


def storage_claim(*, namespace: str, size: str) -> dict[str, Any]:
    """Returns a claim of a volume that pods on several nodes write at once.

    Args:
        namespace: where the pods run.
        size: a quantity such as `100Gi`.
    """
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": DATA_CLAIM, "namespace": namespace},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": size}}},
    }


def secrets(*, namespace: str) -> list[dict[str, Any]]:
    """Returns secrets to fill in.

    Args:
        namespace: where the pods run.
    """
    store = {
        "AWS_ACCESS_KEY_ID": "to be filled in",
        "AWS_SECRET_ACCESS_KEY": "to be filled in",
        "AWS_ENDPOINT_URL": "https://minio.example.com:9000",
    }
    certificates = {
        "tls.crt": "to be filled in: this node's certificate and those above it",
        "tls.key": "to be filled in: its key",
        "ca.crt": "to be filled in: the authority",
    }
    return [
        _secret(OBJECT_STORE, namespace, "Opaque", store),
        _secret(CERTIFICATES, namespace, "kubernetes.io/tls", certificates),
    ]


def _secret(name: str, namespace: str, kind: str, values: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": kind,
        "stringData": dict(values),
    }
