"""The one place that reads the environment of a process."""

import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

STEP_START = "GEOKFP_STEP_START"
"""Wall-clock seconds at which the step began; set for every process that a step starts."""

JOB_MARK = "GEOKFP_JOB_MARK"
"""What all processes of one job have in common, down to the children of their children."""

GROUP = "GEOKFP_GROUP"
"""Name of a pod's group."""
INDEX = "GEOKFP_INDEX"
"""Number of a pod in its group, or its own DNS name where the cluster tells no number."""
HOSTS = "GEOKFP_HOSTS"
"""JSON: the DNS names of each group's pods, in order."""
ADDRESSES = "GEOKFP_ADDRESSES"
"""JSON: IPv4 address by DNS name; stands for DNS where processes stand for pods."""
TARGET = "GEOKFP_TARGET"
"""`module:function` that a pod calls."""
DOCUMENT = "GEOKFP_DOCUMENT"
"""What it is called with."""
_DGL_PHASE = "DGL_OPERATOR_PHASE_ENV"
_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")

_OWN_START = time.time()


def step_start() -> float:
    """Returns the wall-clock time (seconds) at which this process's step began."""
    return float(os.environ.get(STEP_START, _OWN_START))


def job_mark() -> str:
    """Returns the mark of the job that this process belongs to, or ""."""
    return os.environ.get(JOB_MARK, "")


def variables(*names: str) -> dict[str, str]:
    """Returns variables by name; "" for one that is not set."""
    return {name: os.environ.get(name, "") for name in names}


@dataclass(frozen=True, kw_only=True, slots=True)
class PodVariables:
    """What a pod is told by its environment."""

    group: str
    """Name of its group."""
    index: int
    """Its number in the group."""
    hosts: Mapping[str, tuple[str, ...]]
    """DNS names of each group's pods, in order."""
    addresses: Mapping[str, str] | None
    """IPv4 address by DNS name where there is no DNS, else None."""
    target: str
    """`module:function` to call."""
    document: str
    """What to call it with."""


def pod_variables() -> PodVariables:
    """Returns what this pod is told.

    Raises:
        KeyError: a variable that a launcher sets is not there.
        ValueError: the number is none, or a variable is not JSON.
    """
    hosts = {group: tuple(names) for group, names in json.loads(os.environ[HOSTS]).items()}
    group, index = os.environ[GROUP], os.environ[INDEX]
    addresses = os.environ.get(ADDRESSES, "")
    return PodVariables(
        group=group,
        index=int(index) if index.isdigit() else hosts[group].index(index),
        hosts=hosts,
        addresses=json.loads(addresses) if addresses else None,
        target=os.environ[TARGET],
        document=os.environ[DOCUMENT],
    )


def has_nothing_to_do() -> bool:
    """Tells whether this pod is one that the DGL Operator adds, to partition what is partitioned already."""
    return os.environ.get(_DGL_PHASE, "") == "Partitioner"


def step_pod() -> tuple[str, str] | None:
    """Returns name and uid of the pod that a step of a pipeline runs in, None outside of one."""
    name, uid = os.environ.get("KFP_POD_NAME", ""), os.environ.get("KFP_POD_UID", "")
    return (name, uid) if name and uid else None


def own_namespace() -> str:
    """Returns the namespace that this process's pod is in, "" outside of a pod."""
    return _NAMESPACE.read_text(encoding="ascii").strip() if _NAMESPACE.is_file() else ""


def object_store_endpoint() -> str:
    """Returns the address of the S3 service, "" for the library's own default."""
    return next((value for name in _ENDPOINTS if (value := os.environ.get(name, ""))), "")


def inherited(mark: str) -> dict[str, str]:
    """Returns what a job's processes inherit: this one's environment, the step's start, the mark."""
    return {**os.environ, STEP_START: str(step_start()), JOB_MARK: mark}


def apply(variables: Mapping[str, str]) -> None:
    """Sets variables in this process, before the modules that read them are imported.

    `PYTHONPATH` takes effect as well: its folders go to the front of the module search path.
    """
    os.environ.update(variables)
    folders = [folder for folder in variables.get("PYTHONPATH", "").split(os.pathsep) if folder]
    sys.path[:0] = [folder for folder in folders if folder not in sys.path]
