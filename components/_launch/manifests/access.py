"""What a cluster must allow: the rights of the account that launches, and who may reach the pods.

The rights are those that the launcher uses, and no more: a test compares them with what it asks of the API
server. Pods themselves need none.
"""

from collections.abc import Iterable
from typing import Any

NAME = "geokfp-launcher"
"""Of the Role and its binding."""
POD_LABELS = {"app.kubernetes.io/name": "geokfp"}
"""Labels of every object, and of every pod."""

_ALWAYS: tuple[dict[str, list[str]], ...] = (
    # The owner object among them: a step that is run again adds its own pod to it, and deletes it at the end.
    {"apiGroups": [""], "resources": ["services"], "verbs": ["create", "get", "patch", "delete"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]},
    {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["list"]},
)
_JOBS = {
    "job": ("batch", "jobs"),
    "jobset": ("jobset.x-k8s.io", "jobsets"),
    "trainjob": ("trainer.kubeflow.org", "trainjobs"),
    "dgljob": ("qihoo.net", "dgljobs"),
}
_JOB_VERBS = ("create", "get", "list", "watch")


def rules(kinds: Iterable[str]) -> list[dict[str, list[str]]]:
    """Returns what the account that launches may do.

    Args:
        kinds: the kinds of objects that it starts pods by.
    """
    jobs = [
        {"apiGroups": [group], "resources": [resource], "verbs": list(_JOB_VERBS)}
        for group, resource in (_JOBS[kind] for kind in kinds)
    ]
    always = [{field: list(values) for field, values in rule.items()} for rule in _ALWAYS]
    return always + jobs


def rights(
    kinds: Iterable[str], *, namespace: str, account: str, account_namespace: str
) -> list[dict[str, Any]]:
    """Returns a Role and its binding.

    Args:
        kinds: the kinds of objects that the account starts pods by.
        namespace: where the pods run.
        account: the service account that steps run under.
        account_namespace: where that account is.
    """
    return [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": _metadata(NAME, namespace),
            "rules": rules(kinds),
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": _metadata(NAME, namespace),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": NAME},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": account_namespace}],
        },
    ]


def network_policies(*, namespace: str, root_port: int | None) -> list[dict[str, Any]]:
    """Returns who may connect to pods: pods of this package alone, and everybody to a root's own port.

    Args:
        namespace: where the pods run.
        root_port: port that a root listens at for sites of other clusters; None: there are none.
    """
    policies = [
        _policy(
            "geokfp-pods", namespace, POD_LABELS, {"from": [{"podSelector": {"matchLabels": POD_LABELS}}]}
        )
    ]
    if root_port is not None:
        root = {**POD_LABELS, "geokfp/group": "root"}
        ports = {"ports": [{"protocol": "TCP", "port": root_port}]}
        policies.append(_policy("geokfp-root", namespace, root, ports))
    return policies


def _policy(name: str, namespace: str, selected: dict[str, str], ingress: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _metadata(name, namespace),
        "spec": {
            "podSelector": {"matchLabels": dict(selected)},
            "policyTypes": ["Ingress"],
            "ingress": [ingress],
        },
    }


def _metadata(name: str, namespace: str) -> dict[str, Any]:
    return {"name": name, "namespace": namespace, "labels": dict(POD_LABELS)}
