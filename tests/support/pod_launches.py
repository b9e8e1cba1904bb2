"""Launches to turn into objects: the smallest, and one with every setting."""

from geokfp.components._launch.pods import PodGroup, PodLaunch, PodService, PodSettings, StepPod

SETTINGS = PodSettings(
    resources={"limits": {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "1"}, "requests": {"cpu": "2"}},
    env=(
        {"name": "AWS_REGION", "value": "eu-north-1"},
        {
            "name": "AWS_ACCESS_KEY_ID",
            "valueFrom": {"secretKeyRef": {"name": "object-store", "key": "access-key"}},
        },
    ),
    volumes=({"name": "data", "persistentVolumeClaim": {"claimName": "geokfp-data"}},),
    volume_mounts=({"name": "data", "mountPath": "/data"},),
    tolerations=({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},),
    node_selector={"pool": "gpu"},
    affinity={
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 1,
                    "podAffinityTerm": {
                        "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "geokfp"}},
                        "topologyKey": "kubernetes.io/hostname",
                    },
                }
            ]
        }
    },
    service_account="trainer",
    image_pull_secrets=("registry",),
)
"""Every setting that a pod takes."""


def pod_group(name: str = "worker", num_pods: int = 2, **fields: object) -> PodGroup:
    """Returns a group; fields overwrite those of a plain one."""
    plain = {
        "image": "registry.example.com/geokfp-training:0.1.0",
        "target": "geokfp.components.training.pod:prepare",
        "document": '{"epochs": 3}',
    }
    return PodGroup(name=name, num_pods=num_pods, **{**plain, **fields})  # type: ignore[arg-type]


def pod_launch(*groups: PodGroup, **fields: object) -> PodLaunch:
    """Returns a launch of the groups, or of one with two pods; fields overwrite those of a plain one."""
    plain = {
        "name": "train-gnn-0123456789",
        "run_id": "11111111-2222-3333-4444-555555555555",
        "step": "train_gnn",
        "namespace": "kubeflow-user",
        "groups": groups or (pod_group(),),
        "deadline_s": 7200,
    }
    return PodLaunch(**{**plain, **fields})  # type: ignore[arg-type]


def one_group() -> PodLaunch:
    """Returns what train_gnn starts, in the step's own cluster."""
    return pod_launch(
        pod_group(shared_memory_bytes=2 * 1024**3, ports={"dgl": 30050}),
        step_pod=StepPod(name="run-abc-impl-1", uid="99999999-8888-7777-6666-555555555555"),
    )


def every_setting() -> PodLaunch:
    """Returns a root and two groups of another size and image, with all settings, in another cluster."""
    return pod_launch(
        pod_group(
            "root",
            1,
            ports={"tree": 7070},
            service=PodService(kind="LoadBalancer", port=443, target_port=7070, address="192.0.2.7"),
        ),
        pod_group(
            "site-oslo",
            3,
            image="registry.example.com/geokfp-geomx:0.1.0",
            document='{"price": "$(NOT_A_VARIABLE) $$"}',
            settings=PodSettings(**_without_account()),
            shared_memory_bytes=3 * 10**9,
        ),
        pod_group(
            "site-paris",
            1,
            settings=SETTINGS,
            service=PodService(kind="NodePort", port=30070, target_port=7070),
        ),
        name="geo-train-0123456789",
        step="geo_train",
        run_id="a run: of nobody's making",
        ttl_s=600,
    )


def _without_account() -> dict[str, object]:
    names = [name for name in PodSettings.__dataclass_fields__ if name != "service_account"]
    return {name: getattr(SETTINGS, name) for name in names}
