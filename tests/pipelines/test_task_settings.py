"""Settings of tasks: what a compiled pipeline says about GPUs, volumes, and the pods that get them."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from geokfp.components import export_model, train_gnn
from geokfp.pipelines import apply_gpu, apply_storage, settings_for_pods
from kfp import dsl
from kfp.compiler import Compiler


def compiled(folder: Path, *, for_pods: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    @dsl.pipeline(name="settings")
    def settings(uri: str = "s3://bucket/artifact", gpus: int = 2, pvc: str = "data"):
        partitions = dsl.importer(artifact_uri=uri, artifact_class=dsl.Dataset, reimport=False).output
        plain = train_gnn(partitions=partitions)
        task = apply_storage(apply_gpu(train_gnn(partitions=partitions), gpus), pvc, "/data").after(plain)
        if for_pods:
            settings_for_pods(task)

    Compiler().compile(settings, str(folder / "settings.yaml"))
    spec, platform = yaml.safe_load_all((folder / "settings.yaml").read_text())
    return spec, platform


def passthroughs(spec: dict[str, Any]) -> list[dict[str, bool]]:
    return [
        {each["field"]: each.get("applyToTask", False) for each in component["taskConfigPassthroughs"]}
        for component in spec["components"].values()
        if "taskConfigPassthroughs" in component
    ]


def test_gpus_and_volumes_are_parameters_of_the_pipeline(tmp_path: Path) -> None:
    spec, platform = compiled(tmp_path, for_pods=False)
    (gpus,) = [
        executor["container"]["resources"]["accelerator"]
        for executor in spec["deploymentSpec"]["executors"].values()
        if "resources" in executor.get("container", {})
    ]
    assert gpus["resourceType"] == "nvidia.com/gpu"
    assert "gpus" in gpus["resourceCount"]
    (settings,) = [
        each
        for each in platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"].values()
        if "pvcMount" in each
    ]
    assert settings["pvcMount"][0]["mountPath"] == "/data"
    assert settings["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    ]
    assert all(all(given.values()) for given in passthroughs(spec))


def test_settings_may_be_for_the_pods_of_one_task_alone(tmp_path: Path) -> None:
    spec, _ = compiled(tmp_path, for_pods=True)
    plain, changed = sorted(passthroughs(spec), key=lambda given: sum(given.values()), reverse=True)
    assert all(plain.values())
    assert [field for field, applies in sorted(changed.items()) if applies] == ["ENV", "KUBERNETES_VOLUMES"]


def test_wrong_use_is_told() -> None:
    with pytest.raises(ValueError, match="mount_path 'data': must be an absolute path"):
        apply_storage(None, "pvc", "data")

    @dsl.pipeline(name="wrong")
    def wrong(uri: str = "s3://bucket/artifact"):
        model = dsl.importer(artifact_uri=uri, artifact_class=dsl.Model, reimport=False).output
        data = dsl.importer(artifact_uri=uri, artifact_class=dsl.Dataset, reimport=False).output
        with pytest.raises(ValueError, match="task 'export-model': its component has no launcher"):
            settings_for_pods(export_model(model=model, data=data))
