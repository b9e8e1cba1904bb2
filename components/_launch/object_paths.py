"""Where objects are at an API server: pure, from their documents."""

from typing import Any

from .cluster import Document

PLURALS = {
    "ConfigMap": "configmaps",
    "DGLJob": "dgljobs",
    "Event": "events",
    "Job": "jobs",
    "JobSet": "jobsets",
    "Pod": "pods",
    "Secret": "secrets",
    "Service": "services",
    "TrainJob": "trainjobs",
}
JOBS = frozenset({"Job", "JobSet", "TrainJob", "DGLJob"})
"""Kinds that start pods."""


def collection_path(document: Document) -> str:
    """Returns the path of all objects of a document's kind in its namespace."""
    return kind_path(document["apiVersion"], document["kind"], document["metadata"]["namespace"])


def kind_path(api_version: str, kind: str, namespace: str) -> str:
    """Returns the path of all objects of a kind in a namespace."""
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    return f"{root}/namespaces/{namespace}/{PLURALS[kind]}"


def object_path(document: Document) -> str:
    """Returns the path of one object."""
    return f"{collection_path(document)}/{document['metadata']['name']}"


def label(document: Document) -> str:
    """Returns how an object is called in messages, such as `Job geo-1/train-ab`."""
    metadata = document["metadata"]
    return f"{document['kind']} {metadata['namespace']}/{metadata['name']}"


def is_job(document: Document) -> bool:
    """Whether an object starts pods and ends with them."""
    return document["kind"] in JOBS


def is_ending(document: Document) -> bool:
    """Whether an object is being deleted."""
    return "deletionTimestamp" in document["metadata"]


def owner_uids(document: Document) -> list[str]:
    """Returns the uids of an object's owners."""
    owners: list[dict[str, Any]] = document["metadata"].get("ownerReferences") or []
    return [owner["uid"] for owner in owners]
