"""Settings of a pipeline's task that training steps need: GPUs, storage, and for whose pods they are.

A component with a `launcher` hands what is set on its task on to the pods that it starts.
"""

import copy
from typing import Any

GPU = "nvidia.com/gpu"


def apply_gpu(task: Any, count: int | str = 1, *, type: str = GPU) -> Any:
    """Asks for GPUs, and tolerates the taint that keeps other pods from their nodes.

    Args:
        task: what calling a component inside a pipeline returned.
        count: how many for each pod; a parameter of the pipeline is allowed.
        type: the resource's name.

    Returns:
        The same task.
    """
    from kfp import kubernetes

    task.set_accelerator_type(type)
    task.set_accelerator_limit(count)
    return kubernetes.add_toleration(task, key=type, operator="Exists", effect="NoSchedule")


def apply_storage(task: Any, pvc: Any, mount_path: str) -> Any:
    """Mounts a volume, such as the one that a step and its pods share, or that checkpoints lie on.

    Args:
        task: what calling a component inside a pipeline returned.
        pvc: name of the PersistentVolumeClaim; of several pods on several nodes it must be ReadWriteMany. A
            parameter of the pipeline, or a task's output, is allowed.
        mount_path: where it is seen, such as `/data`.

    Returns:
        The same task.

    Raises:
        ValueError: the path is not absolute.
    """
    from kfp import kubernetes

    if not mount_path.startswith("/"):
        raise ValueError(f"mount_path {mount_path!r}: must be an absolute path")
    return kubernetes.mount_pvc(task, pvc_name=pvc, mount_path=mount_path)


def settings_for_pods(task: Any) -> Any:
    """Keeps resources, tolerations, selectors and affinity for the pods that a step starts, not for its own.

    The step's own pod only waits for them, and would hold a GPU for nothing. Not for the launcher `local`,
    where the step's own pod does the work. Variables and volumes stay with both.

    Args:
        task: what calling a component with a `launcher` inside a pipeline returned.

    Returns:
        The same task.

    Raises:
        ValueError: the component has no launcher.
    """
    from kfp import dsl

    passthroughs = task.component_spec.task_config_passthroughs
    if not passthroughs:
        raise ValueError(f"task {task.name!r}: its component has no launcher")
    with_both = (dsl.TaskConfigField.ENV, dsl.TaskConfigField.KUBERNETES_VOLUMES)
    task.component_spec = copy.copy(task.component_spec)
    task.component_spec.task_config_passthroughs = [
        dsl.TaskConfigPassthrough(field=each.field, apply_to_task=each.field in with_both)
        for each in passthroughs
    ]
    return task
