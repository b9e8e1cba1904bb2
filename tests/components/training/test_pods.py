"""train_gnn in pods, with processes in the place of pods: the same training as beside the step."""

import dataclasses
import json
from pathlib import Path

import pandas as pd
import pytest
from geokfp.components._files import Folder, InputError, read_manifest
from geokfp.components._launch import ProcessFailed
from geokfp.components._launch.as_processes import run_as_processes
from geokfp.components._launch.launch_step import Surroundings
from geokfp.components._launch.pods import PodSettings, StepPod
from geokfp.components.training.config import TrainingConfig
from geokfp.components.training.pod_plan import planned
from geokfp.components.training.run import Outputs, run
from support.dying_model import DIES_IN_EPOCH_3
from support.real_graphs import communities, partitioned

# DGL leaves /proc/self/status open when it partitions.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*unclosed file:ResourceWarning",
    "ignore:.*proc.self.status:pytest.PytestUnraisableExceptionWarning",
)


def outputs(folder: Path) -> Outputs:
    return Outputs(model=folder / "model", predictions=folder / "predictions", report=folder / "report.html")


def in_pods(folder: Path, **options: object) -> TrainingConfig:
    given = {"launcher": "jobset", "hand_over": str(folder / "shared"), "run_id": "r", "namespace": "n"}
    return TrainingConfig(**{**given, **options})


@pytest.fixture(scope="module")
def partitions(tmp_path_factory):
    return partitioned(communities(), tmp_path_factory.mktemp("two"), num_parts=2)


def test_two_pods_train_the_same_model_as_two_trainers_of_one_host(partitions, tmp_path):
    here, there = outputs(tmp_path / "here"), outputs(tmp_path / "there")
    resource = tmp_path / "job_resource"
    surroundings = Surroundings(run=run_as_processes, job_resource=resource)

    alone = run(TrainingConfig(epochs=3), partitions, here)
    spread = run(in_pods(tmp_path, epochs=3), partitions, there, surroundings)

    for name in ("train_accuracy", "val_accuracy", "test_accuracy", "epochs_run", "best_epoch"):
        assert spread.metrics[name] == alone.metrics[name]
    tables = [pd.read_parquet(out.predictions / "predictions.parquet") for out in (here, there)]
    pd.testing.assert_frame_equal(*tables)
    assert json.loads(resource.read_text())["kind"] == "Processes"
    left = [path for path in (tmp_path / "shared").rglob("*") if path.is_file()]
    assert left == []


def test_the_plan_is_one_pod_a_part_and_the_same_each_time(partitions, tmp_path, monkeypatch):
    monkeypatch.setenv("KFP_POD_NAME", "step")
    monkeypatch.setenv("KFP_POD_UID", "uid")
    config = in_pods(tmp_path, hand_over="", timeout_s=100, start_timeout_s=50, num_samplers=1)
    settings = PodSettings(image="registry/geokfp-training:1", service_account="trainer")
    inputs = {"partitions": str(partitions), "model": "s3://bucket/model"}
    (launch,) = planned(config, inputs, settings)
    assert (launch,) == planned(config, inputs, settings)
    (group,) = launch.groups
    assert (group.name, group.num_pods, group.image) == ("worker", 2, "registry/geokfp-training:1")
    assert launch.step_pod == StepPod(name="step", uid="uid")
    assert launch.deadline_s == 150
    files = [(partitions / f"site-0/part-{part}").glob("*.dgl") for part in range(2)]
    assert group.shared_memory_bytes > max(sum(path.stat().st_size for path in part) for part in files)
    document = json.loads(group.document)
    assert document["orders"]["hand_over"] == f"s3://bucket/model-hand-over/{launch.name}"
    assert document["partitions"] == f"s3://bucket/model-hand-over/{launch.name}/partitions"
    others = [dataclasses.replace(config, **change) for change in ({"run_id": "s"}, {"seed": 1})]
    names = {launch.name, *(planned(other, inputs, settings)[0].name for other in others)}
    assert len(names) == 3
    assert planned(dataclasses.replace(config, orphan_timeout_s=9), inputs, settings)[0].name == launch.name


def test_a_hand_over_that_pods_do_not_see_is_refused_before_anything_starts(partitions, tmp_path):
    with pytest.raises(InputError, match="hand_over '': must be given"):
        run(in_pods(tmp_path, hand_over=""), partitions, outputs(tmp_path / "out"))
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.long
def test_killed_in_epoch_3_and_run_again_pods_go_on_where_they_were(tmp_path):
    partitions = partitioned(communities(num_nodes=800), tmp_path, num_parts=2)
    mark, code = tmp_path / "mark", tmp_path / "dies_of_test.py"
    code.write_text(DIES_IN_EPOCH_3, encoding="utf-8")
    config = in_pods(
        tmp_path,
        entry_point="dies_of_test:build",
        user_code=str(code),
        model_options={"mark": str(mark)},
        epochs=6,
        fan_outs=[3, 3],
        batch_size=15,
    )
    surroundings = Surroundings(run=run_as_processes)
    alone = dataclasses.replace(config, launcher="local")
    straight = run(alone, partitions, outputs(tmp_path / "a"))
    mark.touch()
    with pytest.raises(ProcessFailed, match=r"^worker/[01]/site-0/trainer-[01]: killed by SIGKILL"):
        run(config, partitions, outputs(tmp_path / "b"), surroundings)
    assert list((tmp_path / "shared/checkpoints").rglob("epoch-2"))
    resumed = run(config, partitions, outputs(tmp_path / "b"), surroundings)
    for name, value in straight.metrics.items():
        if name != "seconds_per_epoch":
            assert resumed.metrics[name] == pytest.approx(value, abs=1e-6), name
    assert not list(tmp_path.rglob("epoch-*"))


@pytest.mark.long
def test_pods_read_their_own_part_from_the_object_store(partitions, tmp_path, bucket):
    Folder(f"minio://{bucket}/partitions").put_artifact(partitions)
    uris = {"partitions": f"minio://{bucket}/partitions", "model": f"minio://{bucket}/model"}
    surroundings = Surroundings(run=run_as_processes, uris=uris)
    alone = run(TrainingConfig(epochs=2), partitions, outputs(tmp_path / "here"))
    spread = run(
        in_pods(tmp_path, epochs=2, hand_over=""), partitions, outputs(tmp_path / "there"), surroundings
    )
    assert spread.metrics["test_accuracy"] == alone.metrics["test_accuracy"]
    assert Folder(f"minio://{bucket}").names() == ["partitions"]


def in_store(bucket: str, scheme: str = "s3") -> dict[str, str]:
    return {name: f"{scheme}://{bucket}/{name}" for name in ("partitions", "model", "predictions")}


@pytest.mark.parametrize(
    ("hand_over", "predictions", "mounted", "target"),
    [
        ("", "s3://b/predictions", (), True),
        ("gs://other/folder", "minio://b/predictions", (), True),
        ("/data", "s3://b/predictions", (), False),
        ("/data", "/data/out/predictions", ("/data",), True),
        ("", "/data/out/predictions", ("/other",), False),
        ("", "", (), False),
    ],
)
def test_predictions_go_to_their_artifact_where_pods_reach_it(
    partitions, tmp_path, hand_over, predictions, mounted, target
):
    config = in_pods(tmp_path, hand_over=hand_over)
    settings = PodSettings(volume_mounts=tuple({"name": "v", "mountPath": path} for path in mounted))
    inputs = {"partitions": str(partitions), "model": "s3://b/model"}
    (launch,) = planned(config, {**inputs, "predictions": predictions}, settings)
    assert json.loads(launch.groups[0].document)["predictions"] == (predictions if target else "")
    assert (launch.name == planned(config, inputs, settings)[0].name) is not target


@pytest.mark.long
def test_pods_write_predictions_straight_to_the_store(partitions, tmp_path, bucket):
    here, there = outputs(tmp_path / "here"), outputs(tmp_path / "there")
    uris = in_store(bucket, "minio")
    Folder(uris["partitions"]).put_artifact(partitions)
    alone = run(TrainingConfig(epochs=2), partitions, here)
    config = in_pods(tmp_path, epochs=2, hand_over="")
    spread = run(config, partitions, there, Surroundings(run=run_as_processes, uris=uris))

    assert not there.predictions.exists()  # as the artifact's path stays empty, the store's is kept
    assert spread.metrics["test_accuracy"] == alone.metrics["test_accuracy"]
    assert spread.confusion.tolist() == alone.confusion.tolist()
    assert spread.roc == alone.roc
    Folder(uris["predictions"]).fetch_artifact(there.predictions)
    manifest = read_manifest(there.predictions, kind="geokfp.predictions", version=1)
    assert manifest["num_rows"] == 300
    assert sorted(manifest["files"]) == [f"predictions.parquet/part-0000{part}.parquet" for part in (0, 1)]
    tables = [pd.read_parquet(out.predictions / "predictions.parquet") for out in (here, there)]
    pd.testing.assert_frame_equal(*tables)
    assert Folder(f"minio://{bucket}").names() == ["partitions", "predictions"]


@pytest.mark.long
def test_a_failed_training_leaves_no_predictions_that_read_as_whole(partitions, tmp_path, bucket):
    uris = in_store(bucket)
    Folder(uris["predictions"]).replace("manifest.json", b"of an earlier run")
    Folder(uris["predictions"]).replace("predictions.parquet/part-00000.parquet", b"of an earlier run")
    with pytest.raises(ProcessFailed, match=r"s3://.*/partitions/manifest.json: no such file"):
        run(
            in_pods(tmp_path, hand_over=""),
            partitions,
            outputs(tmp_path / "out"),
            Surroundings(run=run_as_processes, uris=uris),
        )
    assert Folder(f"s3://{bucket}").names() == []
