"""Where a step's processes run: the options that all stages with a launcher have in common."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from .._files import InputError, local_path
from .._files.uri import is_object_store
from .environment import own_namespace, step_pod
from .pods import LAUNCHERS, PodSettings, StepPod, check_account, check_namespace

LOCAL = "local"
LEAST_ORPHAN_S = 5
"""Below it a live step's beats, a second or more apart, would come too late for its pods."""


@dataclass(frozen=True, kw_only=True)
class LaunchOptions:
    """Where a step's processes run; a stage's config inherits from it and calls `check_launch`."""

    # Without slots: a config that has them may inherit from this beside another one.

    launcher: str = LOCAL
    """`local` starts processes in the step's own pod; `job` (Indexed Jobs), `jobset`, `trainjob` and `dgljob`
    start pods of their own, by the controller of that name."""
    hand_over: str = ""
    """Folder that the step and its pods hand files over in: a path on a volume that all mount, or an `s3://`,
    `gs://` or `minio://` URI. Empty is beside the step's output, when that goes to an object store. `local`
    needs none."""
    run_id: str = ""
    """The pipeline run, in a pipeline `dsl.PIPELINE_JOB_ID_PLACEHOLDER`: a step that is started again goes on
    with the pods that it started. Empty is the run that the step's own pod belongs to, which a step that is
    cached needs: a value that differs in each run would be part of its key."""
    namespace: str = ""
    """Namespace of the pods; empty is the step's own."""
    service_account: str = ""
    """Account that the pods run under; empty is the namespace's default."""
    start_timeout_s: int = 600
    """Seconds in which all pods must have started."""
    orphan_timeout_s: int = 300
    """Seconds without a sign of life of the step after which its pods end themselves; at least 5."""

    def check_launch(self) -> None:
        """Checks the values.

        Raises:
            InputError: one that is not allowed; the message names the option, the value and what is.
        """
        if self.launcher not in LAUNCHERS:
            raise InputError(f"launcher {self.launcher!r}: must be one of {', '.join(LAUNCHERS)}")
        for name, least in (("start_timeout_s", 1), ("orphan_timeout_s", LEAST_ORPHAN_S)):
            if getattr(self, name) < least:
                raise InputError(f"{name} {getattr(self, name)!r}: must be at least {least}")
        if self.namespace:
            check_namespace(self.namespace)
        if self.service_account:
            check_account(self.service_account)
        if self.hand_over and not self.hand_over.startswith("/") and not is_object_store(self.hand_over):
            raise InputError(
                f"hand_over {self.hand_over!r}: must be an absolute path, or an s3://, gs:// or minio:// URI"
            )

    @property
    def launches_pods(self) -> bool:
        """Whether pods are started, and not processes beside the step's own."""
        return self.launcher != LOCAL

    def pod_namespace(self) -> str:
        """Returns the namespace that the pods go to.

        Raises:
            InputError: none is given, and this is no pod.
        """
        if namespace := self.namespace or own_namespace():
            return namespace
        raise InputError("namespace '': must be given where the step does not run in a pod")

    def pods_reach(self, uri: str, settings: PodSettings) -> bool:
        """Tells whether pods read and write an artifact where it lies, and it need not be handed over.

        They do so on a volume of theirs, and in an object store, unless `hand_over` is a path: they are then
        taken to see volumes alone.

        Args:
            uri: path or URI of the artifact.
            settings: the pods', with the volumes that they mount.
        """
        path = local_path(uri)
        if path is not None:
            return is_on_volume(path, settings.volume_mounts)
        return is_object_store(uri) and not self.hand_over.startswith("/")

    def hand_over_of(self, launch: str, outputs_uri: str, settings: PodSettings) -> str:
        """Returns the URI of a launch's own hand-over.

        Args:
            launch: the launch's name.
            outputs_uri: URI of the step's main output.
            settings: the pods', with the volumes that they mount.

        Raises:
            InputError: there is no folder that the pods would see.
        """
        if self.hand_over:
            if "://" not in self.hand_over and step_pod() is not None:
                _check_mounted(self.hand_over, settings.volume_mounts)
            return f"{self.hand_over.rstrip('/')}/{launch}"
        if is_object_store(outputs_uri):
            return f"{outputs_uri.rstrip('/')}-hand-over/{launch}"
        raise InputError(
            f"hand_over '': must be given, as pods do not see {outputs_uri or 'the outputs'}: a path on a "
            "volume that the step and its pods mount, or an s3://, gs:// or minio:// URI"
        )


LAUNCH_OPTIONS = tuple(field.name for field in fields(LaunchOptions))
"""Names of the options; none of them has a part in what a step gives."""


def options_of_work(config: LaunchOptions) -> dict[str, Any]:
    """Returns the options that have a part in what a step gives: all but those of its launch."""
    return {name: value for name, value in asdict(config).items() if name not in LAUNCH_OPTIONS}


def own_pod() -> StepPod | None:
    """Returns the pod that this step runs in, None outside of a pipeline's cluster."""
    found = step_pod()
    return None if found is None else StepPod(name=found[0], uid=found[1])


def settings_of(task_config: Any, options: LaunchOptions) -> PodSettings:
    """Returns what pods are set by: what the author of a pipeline set on the task, and the options.

    Args:
        task_config: a `dsl.TaskConfig`, whose fields may all be None, or None.
        options: the step's.
    """

    def given(name: str) -> Any:
        return getattr(task_config, name, None)

    return PodSettings(
        resources=given("resources") or {},
        env=_all(given("env")),
        volumes=_all(given("volumes")),
        volume_mounts=_all(given("volume_mounts")),
        tolerations=_all(given("tolerations")),
        node_selector=given("node_selector") or {},
        affinity=given("affinity") or {},
        service_account=options.service_account,
    )


def _all(values: list[dict[str, Any]] | None) -> tuple[Mapping[str, Any], ...]:
    return tuple(values or ())


def is_on_volume(path: Path, mounts: tuple[Mapping[str, Any], ...]) -> bool:
    """Tells whether a path lies on one of the volumes that a pod mounts."""
    return any(path.is_relative_to(folder) for folder in _folders(mounts))


def _check_mounted(path: str, mounts: tuple[Mapping[str, Any], ...]) -> None:
    if not is_on_volume(Path(path), mounts):
        told = ", ".join(str(folder) for folder in _folders(mounts)) or "none"
        raise InputError(
            f"hand_over {path!r}: must be on a volume of the task (mounted: {told}); apply_storage mounts one"
        )


def _folders(mounts: tuple[Mapping[str, Any], ...]) -> list[Path]:
    return [Path(str(mount["mountPath"])) for mount in mounts if mount.get("mountPath")]
