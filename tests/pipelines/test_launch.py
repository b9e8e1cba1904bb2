"""`geokfp launch`: prints the objects that a step would send, and refuses what no step would take."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from geokfp import components
from geokfp.components._launch.pods import KINDS
from geokfp.components.training.config import TrainingConfig
from geokfp.components.training.run import Outputs, run
from geokfp.pipelines._command_line.component_plan import LAUNCHED
from support.kubernetes_schemas import check_object
from support.real_graphs import communities, load, partitioned
from support.site_shards import sharded
from support.site_tables import site_tables
from support.typed_commands import Typed, typed_command

# DGL leaves /proc/self/status open when it partitions.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*unclosed file:ResourceWarning",
    "ignore:.*proc.self.status:pytest.PytestUnraisableExceptionWarning",
)

SITES = ("oslo", "paris")
SETTINGS = {
    "resources": {"limits": {"memory": "8Gi"}},
    "env": [{"name": "AWS_REGION", "value": "eu-north-1"}],
    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "geokfp-data"}}],
    "volume_mounts": [{"name": "data", "mountPath": "/data"}],
    "node_selector": {"pool": "gpu"},
}


@pytest.fixture
def geokfp(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    return typed_command(monkeypatch, capsys)


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The least that a launch of train_gnn is told."""
    partitions = partitioned(communities(), tmp_path_factory.mktemp("two"), num_parts=2)
    told = {"partitions": partitions, "hand_over": "/data", "namespace": "team", "epochs": 3}
    return [word for name, value in told.items() for word in ("-p", f"{name}={value}")]


def test_the_components_that_start_pods_are_those_that_hand_files_over() -> None:
    launched = {
        name for name in components.__all__ if "hand_over" in getattr(components, name).component_spec.inputs
    }
    assert set(LAUNCHED) == launched


@pytest.mark.parametrize("kind", KINDS)
def test_the_objects_of_a_launch_are_printed(
    geokfp: Typed, given: list[str], tmp_path: Path, kind: str
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text(json.dumps(SETTINGS))
    options = ("--launcher", kind, "--dry-run", "--pod-settings", settings)
    done = geokfp("launch", "train_gnn", *options, *given)
    assert done.status == 0, done.err
    objects = list(yaml.safe_load_all(done.out))
    for obj in objects:
        check_object(obj)
    assert objects[0]["kind"] == "Service"
    text = json.dumps(objects)
    for told in ("geokfp-data", "eu-north-1", '"pool": "gpu"', "geokfp-training:", '"memory": "8Gi"'):
        assert told in text
    assert geokfp("launch", "train_gnn", *options, *given).out == done.out


def test_the_command_prints_nothing_but_the_objects(given: list[str], tmp_path: Path) -> None:
    words = ["launch", "train_gnn", "--launcher", "job", "--dry-run", *given, "-p", "service_account=trainer"]
    command = [sys.executable, "-m", "geokfp.pipelines._command_line", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    service, job = yaml.safe_load_all(done.stdout)
    assert job["spec"]["template"]["spec"]["serviceAccountName"] == "trainer"
    assert job["metadata"]["namespace"] == service["metadata"]["namespace"] == "team"
    assert service["metadata"]["labels"]["geokfp/run-id"] == "by-hand"


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sharded(tmp_path_factory.mktemp("rows"), num_sites=2)


def test_a_training_over_sites_is_printed_too(geokfp: Typed, shards: Path) -> None:
    told = {
        "shards": shards,
        "hand_over": "/data",
        "namespace": "team",
        "algorithm": "mlp",
        "plain_text": "true",
    }
    words = [word for name, value in told.items() for word in ("-p", f"{name}={value}")]
    done = geokfp("launch", "geo_train", "--launcher", "job", "--dry-run", *words)
    assert done.status == 0, done.err
    objects = list(yaml.safe_load_all(done.out))
    for obj in objects:
        check_object(obj)
    assert [obj["kind"] for obj in objects] == ["Service", "Job", "Job", "Job"]


def at_two_sites(**files: str) -> list[str]:
    """The least that a launch is told that reads tables at two sites: their files and the sites' stores."""
    tables = {name: {key: f"/stores/{name}/{file}" for key, file in files.items()} for name in SITES}
    topology = {"sites": {name: {"storage": f"/stores/{name}/kept", "namespace": name} for name in SITES}}
    told = {"tables": json.dumps(tables), "topology": json.dumps(topology)}
    return [word for name, value in told.items() for word in ("-p", f"{name}={value}")]


def test_a_sharding_at_sites_is_printed_too(geokfp: Typed) -> None:
    words = ["--launcher", "job", "--dry-run", *at_two_sites(table="rows.csv"), "-p", "namespace=team"]
    done = geokfp("launch", "shard_at_sites", *words, "-p", "hand_over=/data")
    assert done.status == 0, done.err
    assert "geokfp-geomx:" in done.out
    assert "/stores/paris/rows.csv" in done.out


@pytest.mark.parametrize("kind", KINDS)
def test_a_partitioning_at_sites_is_printed_too(geokfp: Typed, kind: str) -> None:
    given = at_two_sites(nodes="n.csv", edges="e.csv")
    words = ["--launcher", kind, "--dry-run", *given, "-p", "namespace=team"]
    done = geokfp("launch", "partition_at_sites", *words, "-p", "hand_over=/data")
    assert done.status == 0, done.err
    objects = list(yaml.safe_load_all(done.out))
    for obj in objects:
        check_object(obj)
    assert {obj["metadata"]["namespace"] for obj in objects} == set(SITES)
    assert done.out.count("/stores/oslo/kept/") > 0


@pytest.mark.long
def test_a_partitioning_at_sites_runs_here_as_its_pods_would(geokfp: Typed, tmp_path: Path) -> None:
    tables = site_tables(communities(), tmp_path / "stores", SITES)
    topology = {"sites": {name: {"storage": str(tmp_path / "stores" / name)} for name in SITES}}
    told = {"tables": json.dumps(tables), "topology": json.dumps(topology), "num_parts": 1}
    words = [word for name, value in told.items() for word in ("-p", f"{name}={value}")]
    out = tmp_path / "out"
    ended = geokfp("launch", "partition_at_sites", "--launcher", "job", "--as-processes", "-o", out, *words)
    assert (ended.status, ended.err) == (0, "")
    assert json.loads((out / "metrics.json").read_text())["num_nodes"] == 300
    assert [path.name for path in (out / "partitions").iterdir()] == ["manifest.json"]
    options = ["-p", f"partitions={out / 'partitions'}", "-p", "epochs=2", "-p", "plain_text=true"]
    words = ["--launcher", "job", "--as-processes", "-o", tmp_path / "trained", *options]
    ended = geokfp("launch", "geo_train_gnn", *words)
    assert (ended.status, ended.err) == (0, "")
    assert json.loads((tmp_path / "trained" / "metrics.json").read_text())["epochs_run"] == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train_gmm", "--launcher", "job"], "no component 'train_gmm' that starts pods: did you mean"),
        (["train_gnn", "--launcher", "local"], "--launcher local: must be one of job, jobset, trainjob"),
        (["train_gnn", "--launcher", "job"], "no value for partitions"),
        (["train_gnn", "--launcher", "job", "-p", "epoch=3"], "epoch: train-gnn has no such parameter"),
        (["train_gnn", "--launcher", "job", "-p", "epochs=x"], "epochs=x: a whole number"),
        (["train_gnn", "--launcher", "job", "-p", "task_config=x"], "has no such parameter"),
    ],
)
def test_wrong_words_are_refused(geokfp: Typed, words: list[str], message: str) -> None:
    done = geokfp("launch", *words, "--dry-run")
    assert (done.status, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("epochs=0", "epochs 0: must be at least 1"),
        ("hand_over=", "hand_over '': must be given"),
        ("hand_over=here", "hand_over 'here': must be an absolute path"),
        ("namespace=", "namespace '': must be given"),
        ("run_id=", "run_id '': must be given with launcher 'job'"),
        ("site=oslo", "site 'oslo': must be one of"),
        ("partitions=nowhere", "nowhere"),
    ],
)
def test_options_that_no_step_would_take_are_refused(
    geokfp: Typed, given: list[str], option: str, message: str
) -> None:
    name = option.partition("=")[0]
    others = [word for word in given if word != "-p" and not word.startswith(f"{name}=")]
    words = [word for each in (*others, option) for word in ("-p", each)]
    done = geokfp("launch", "train_gnn", "--launcher", "job", "--dry-run", *words)
    assert done.status == 2
    assert message in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"image": 3}, "image is 3, allowed: text"),
        ({"env": {"A": "1"}}, "env is {'A': '1'}, allowed: a list"),
        ({"resource": {}}, "resource is unknown, allowed: "),
        ({"service_account": "a"}, "service_account is unknown, allowed: "),
        ({"env": [{"name": "GEOKFP_GROUP", "value": "x"}]}, "env sets GEOKFP_GROUP"),
        ([], "a mapping is needed"),
    ],
)
def test_settings_that_no_pod_takes_are_refused(
    geokfp: Typed, given: list[str], tmp_path: Path, settings: Any, message: str
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(json.dumps(settings))
    words = ("--launcher", "job", "--dry-run", "--pod-settings", file)
    done = geokfp("launch", "train_gnn", *words, *given)
    assert done.status == 2
    assert message in done.err


def test_a_component_runs_here_as_its_pods_would(geokfp: Typed, given: list[str], tmp_path: Path) -> None:
    partitions = next(word for word in given if word.startswith("partitions="))
    out = tmp_path / "trained"
    ended = geokfp(
        *("launch", "train_gnn", "--launcher", "trainjob", "--as-processes", "-o", out),
        *("-p", partitions, "-p", "epochs=2"),
    )
    assert (ended.status, ended.err) == (0, "")
    assert "worker/1: " in ended.out or "worker/0: " in ended.out
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["epochs_run"] == 2
    names = {path.name for path in out.iterdir()}
    assert names == {"model", "predictions", "report.html", "job_resource", "metrics.json"}


def test_the_readmes_commands_are_understood(
    geokfp: Typed, given: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8").replace("\\\n", " ")
    settings = re.search(r"```yaml\n(.*?)```", readme, flags=re.DOTALL)
    commands = re.findall(r"^geokfp (launch .*|manifests .*)$", readme, flags=re.MULTILINE)
    assert settings is not None
    (tmp_path / "pods.yaml").write_text(settings[1])
    made = tmp_path / "results/steps/partition_graph"
    made.mkdir(parents=True)
    partitions = next(word for word in given if word.startswith("partitions=")).partition("=")[2]
    (made / "partitions").symlink_to(partitions)
    monkeypatch.chdir(tmp_path)
    words = [shlex.split(command) for command in commands]
    printed = [geokfp(*each) for each in words if "--as-processes" not in each]
    assert [(each.status, each.err) for each in printed] == [(0, "")] * 2
    assert (tmp_path / "cluster/role.yaml").is_file()
    assert "claimName: geokfp-data" in printed[1].out
    (here,) = (each for each in words if "--as-processes" in each)
    here[here.index("--as-processes") : here.index("-p")] = ["--dry-run"]
    ended = geokfp(*here, "-p", "hand_over=/data", "-p", "namespace=team")
    assert (ended.status, ended.err) == (0, "")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "give either --dry-run or --as-processes"),
        (("--dry-run", "--as-processes"), "give either --dry-run or --as-processes"),
        (("--as-processes",), "--output: must be given with --as-processes"),
        (("--dry-run", "-o", "out"), "--output: must be given with --as-processes"),
    ],
)
def test_what_is_to_be_done_must_be_said(
    geokfp: Typed, given: list[str], options: tuple[str, ...], told: str
) -> None:
    ended = geokfp("launch", "train_gnn", "--launcher", "job", *options, *given)
    assert ended.status == 2
    assert told in ended.err


@pytest.mark.long
def test_cora_in_two_pods_is_as_accurate_as_beside_the_step(geokfp: Typed, tmp_path: Path) -> None:
    partitions = partitioned(load("cora"), tmp_path, num_parts=2)
    out = tmp_path / "trained"
    ended = geokfp(
        *("launch", "train_gnn", "--launcher", "jobset", "--as-processes", "-o", out),
        *("-p", f"partitions={partitions}", "-p", "epochs=40"),
    )
    assert (ended.status, ended.err) == (0, "")
    paths = {name: tmp_path / "here" / name for name in ("model", "predictions", "report")}
    here = run(TrainingConfig(epochs=40), partitions, Outputs(**paths)).metrics
    metrics = json.loads((out / "metrics.json").read_text())
    for name in ("train_accuracy", "val_accuracy", "test_accuracy", "best_epoch"):
        assert metrics[name] == here[name], name
    assert metrics["test_accuracy"] > 0.77
