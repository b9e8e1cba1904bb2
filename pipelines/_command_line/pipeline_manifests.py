"""Names of the Pipeline and PipelineVersion objects that a compiled pipeline becomes, for GitOps.

A version's specification cannot be changed once it is in a cluster: another specification needs another
version. Knows nothing of how pipelines are compiled.
"""

import re
from dataclasses import dataclass
from typing import Any

from .errors import UsageError

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAMESPACE = re.compile(_LABEL)
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_LONGEST_NAMESPACE = 63
_LONGEST_NAME = 253
_ALLOWED = "lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit, at most "


@dataclass(frozen=True, kw_only=True, slots=True)
class ManifestNames:
    """How the objects of a pipeline are named."""

    pipeline: str = ""
    """Name of the Pipeline object; empty is the pipeline's own."""
    version: str = ""
    """Version, shown in the UI, and after the pipeline's name in the object's; empty is this package's."""
    namespace: str = ""
    """Namespace of the objects; empty leaves it to `kubectl --namespace`."""

    def __post_init__(self) -> None:
        if self.namespace and not (
            _NAMESPACE.fullmatch(self.namespace) and len(self.namespace) <= _LONGEST_NAMESPACE
        ):
            allowed = f"lower-case letters, digits and '-', at most {_LONGEST_NAMESPACE} characters"
            raise UsageError(f"--namespace {self.namespace}: allowed: {allowed}")
        if self.pipeline:
            _check_name("--pipeline-name", self.pipeline, self.pipeline)

    def options(self, info: Any, default_version: str) -> dict[str, Any]:
        """Returns what kfp's compiler takes, for one pipeline.

        Args:
            info: the pipeline's `pipeline_info`.
            default_version: the version when none is given.

        Raises:
            UsageError: the names are not allowed as names of objects.
        """
        name = self.pipeline or info.name
        _check_name("--pipeline-name", name, name)
        version = self.version or default_version
        # What follows a + tells builds apart in Python's versions, and is no part of a name in a cluster.
        version_name = f"{name}-{version if self.version else version.replace('+', '-')}"
        _check_name("--pipeline-version", version, version_name)
        return {
            "pipeline_name": name,
            "pipeline_display_name": info.display_name or name,
            "pipeline_version_name": version_name,
            "pipeline_version_display_name": version,
            "namespace": self.namespace or None,
            "include_pipeline_manifest": True,
        }


def _check_name(option: str, given: str, name: str) -> None:
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        part = "" if name == given else f" (in the name {name})"
        raise UsageError(f"{option} {given}{part}: allowed: {_ALLOWED}{_LONGEST_NAME} characters")
