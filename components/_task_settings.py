"""What a component with a launcher takes of the settings of its task, for the pods that it starts."""

from kfp import dsl

TASK_SETTINGS = [
    dsl.TaskConfigPassthrough(field=field, apply_to_task=True)
    for field in (
        dsl.TaskConfigField.RESOURCES,
        dsl.TaskConfigField.ENV,
        dsl.TaskConfigField.KUBERNETES_VOLUMES,
        dsl.TaskConfigField.KUBERNETES_TOLERATIONS,
        dsl.TaskConfigField.KUBERNETES_NODE_SELECTOR,
        dsl.TaskConfigField.KUBERNETES_AFFINITY,
    )
]
"""Everything, and for the step's own pod too, which with `local` does the work; see `settings_for_pods`."""
