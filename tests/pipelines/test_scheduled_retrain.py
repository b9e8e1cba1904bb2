"""`scheduled_retrain` as compiled, run locally window after window: replaced, kept, and after an overlap."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from geokfp.components.promotion.champions import Champions
from geokfp.components.promotion.config import WindowConfig
from geokfp.pipelines import compiled_package
from geokfp.pipelines._command_line.dags import tasks_in_order
from geokfp.pipelines._command_line.package import read_package
from support.graphs import communities

PODS_HERE = Path(__file__).parents[1] / "support" / "pods_here"
COMMAND = [sys.executable, "-m", "geokfp.pipelines._command_line", "run", "scheduled_retrain"]
CODE = '''
import time
from pathlib import Path

from geokfp.components.training.models import build as built_in


def build(num_features, num_classes, *, wait_for=""):
    """GraphSAGE; where a file is named, it is waited for."""
    until = time.monotonic() + 500
    while wait_for and not Path(wait_for).exists():
        if time.monotonic() > until:
            raise TimeoutError(wait_for)
        time.sleep(0.1)
    return built_in("sage", num_features, num_classes, num_layers=2, hidden_size=16, dropout=0.1)
'''


def test_steps_under_the_condition_are_known_by_the_pipelines_names() -> None:
    import yaml

    steps = {step.name: step for step in read_package(compiled_package("scheduled_retrain")).steps}
    assert list(steps)[-2:] == ["export_model", "promote_model"]
    assert steps["promote_model"].inputs.parameters["champions"] == "champions"
    assert steps["export_model"].inputs.parameters["formats"] == "export_formats"
    assert not any(step.depends_on_parameters for step in steps.values())
    document = next(yaml.safe_load_all(compiled_package("scheduled_retrain").read_text()))
    (promote,) = (task for task in tasks_in_order(document) if task.name == "promote-model")
    sources = promote.document["inputs"]["artifacts"]
    assert sources["trained"]["taskOutputArtifact"]["producerTask"] == "train-gnn"
    assert sources["exported"]["taskOutputArtifact"]["producerTask"] == "export-model"


def test_the_scheduled_time_is_handed_over_as_kfp_knows_it() -> None:
    text = compiled_package("scheduled_retrain").read_text(encoding="utf-8")
    assert "constant: '{{$.pipeline_job_schedule_time_utc}}'" in text
    WindowConfig(champions="kept", scheduled_time="{{$.pipeline_job_schedule_time_utc}}")


def test_on_this_machine_it_is_the_present() -> None:
    from geokfp.pipelines._command_line.local_run import with_times

    text = compiled_package("scheduled_retrain").read_text(encoding="utf-8")
    filled = with_times(text, datetime(2026, 11, 30, 6, tzinfo=UTC))
    assert "constant: '2026-11-30T06:00:00+00:00'" in filled
    assert "time_utc" not in filled


def test_a_volume_is_mounted_where_champions_are_read_and_written(tmp_path: Path) -> None:
    import yaml
    from geokfp.pipelines.scheduled_retrain.pipeline import make_scheduled_retrain
    from kfp.compiler import Compiler

    Compiler().compile(make_scheduled_retrain(storage=("kept", "/kept")), str(tmp_path / "p.yaml"))
    _, platform = yaml.safe_load_all((tmp_path / "p.yaml").read_text())
    executors = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    mounted = {name for name, settings in executors.items() if "pvcMount" in settings}
    steps = (
        "open-window",
        "ingest-graph",
        "partition-graph",
        "train-gnn",
        "evaluate-challenger",
        "promote-model",
    )
    assert mounted == {f"exec-{step}" for step in steps}
    for name in mounted:
        (mount,) = executors[name]["pvcMount"]
        assert (mount["mountPath"], mount["constant"]) == ("/kept", "kept")


class Runs:
    """Runs of the command in one folder, with tables of each day."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = dict(os.environ)
        self._running: list[subprocess.Popen[str]] = []
        (folder / "waiting.py").write_text(CODE)

    def tables(self, day: int, *, meaning: int, learnable: bool = True) -> None:
        """Writes the tables of a day.

        Args:
            day: the day.
            meaning: which class is which; a model of another meaning is wrong on nearly all nodes.
            learnable: whether the labels of training and validation nodes are the true ones.
        """
        graph = communities(240, seed=day)
        labels = (graph.labels + meaning) % 3
        if not learnable:
            labels = np.where(graph.split == 3, labels, np.random.default_rng(day).permutation(labels))
        words = np.array(["none", "train", "validation", "test"])[graph.split]
        columns = {f"f{index}": graph.features[:, index] for index in range(8)}
        nodes = pd.DataFrame({"id": graph.node_ids, "label": labels, "split": words} | columns)
        source, destination = graph.node_ids[graph.edges]
        target = self.folder / f"2026-11-{day:02}"
        target.mkdir()
        nodes.to_csv(target / "nodes.csv", index=False)
        pd.DataFrame({"src": source, "dst": destination}).to_csv(target / "edges.csv", index=False)

    def start(self, day: int, *, name: str = "", **parameters: object) -> subprocess.Popen[str]:
        """Starts the run that is scheduled at the end of a day."""
        values = {
            "champions": "champions",
            "nodes": "%Y-%m-%d/nodes.csv",
            "edges": "%Y-%m-%d/edges.csv",
            "time": f"2026-11-{day + 1:02}T00:00Z",
            "num_parts": 1,
            "epochs": 15,
            "patience": 0,
            "export_formats": [],
            "entry_point": "waiting:build",
            "user_code": "waiting.py",
            "margin": 0.02,
        } | parameters
        command = [*COMMAND, "--output", name or f"out-{day}"]
        for option, value in values.items():
            text = json.dumps(value) if not isinstance(value, str) else value
            command += ["--param", f"{option}={text}"]
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._running.append(process)
        return process

    def end(self, process: subprocess.Popen[str], name: str) -> dict[str, float]:
        """Waits for a run; returns its metrics."""
        printed, _ = process.communicate(timeout=600)
        assert process.returncode == 0, printed
        found: dict[str, float] = json.loads((self.folder / name / "metrics.json").read_text())
        return found

    def run(self, day: int, **parameters: object) -> dict[str, float]:
        return self.end(self.start(day, **parameters), f"out-{day}")

    def champions(self) -> list[str]:
        """Days of the champions' windows, oldest first."""
        records = list(Champions(str(self.folder / "champions")).records())
        return [record.window[8:10] for record in reversed(records)]

    def stop(self) -> None:
        for process in self._running:
            if process.poll() is None:
                process.terminate()
            process.communicate()


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    made = Runs(tmp_path)
    try:
        yield made
    finally:
        made.stop()


def wait_until_training(run: subprocess.Popen[str]) -> None:
    assert run.stdout is not None
    assert any(line.startswith("train_gnn: started") for line in run.stdout)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_three_successive_windows_and_an_overlap(runs: Runs) -> None:
    for day, meaning in ((1, 0), (2, 1), (4, 2), (5, 2)):
        runs.tables(day, meaning=meaning)
    runs.tables(3, meaning=1, learnable=False)

    first = runs.run(1)
    assert (first["champion_generation"], first["promoted"]) == (0, 1)

    second = runs.run(2)
    assert second["champion_generation"] == 1
    assert second["accuracy_gain"] >= 0.02
    assert (second["promoted"], second["generation"]) == (1, 2)

    third = runs.run(3)
    assert third["challenger_wins"] == 0
    assert "promoted" not in third
    assert not (runs.folder / "out-3/steps/promote_model").exists()
    assert runs.champions() == ["01", "02"]

    go = runs.folder / "go"
    older = runs.start(4, warm_start=False, model_options={"wait_for": str(go)})
    wait_until_training(older)
    newer = runs.run(5)
    assert (newer["champion_generation"], newer["promoted"], newer["generation"]) == (2, 1, 3)
    go.touch()
    late = runs.end(older, "out-4")
    assert (late["champion_generation"], late["challenger_wins"]) == (2, 1)
    assert (late["promoted"], late["generation"]) == (0, 3)
    assert (runs.folder / "out-4/steps/promote_model/outcome").read_text() == "late"
    assert runs.champions() == ["01", "02", "05"]
    pointer = json.loads((runs.folder / "champions/champion.json").read_text())
    assert pointer["window"] == "2026-11-05T00:00:00Z"


@pytest.mark.long
@pytest.mark.timeout(900)
def test_windows_are_divided_and_trained_in_pods(runs: Runs) -> None:
    here = [str(PODS_HERE), runs.environment.get("PYTHONPATH", "")]
    runs.environment["PYTHONPATH"] = os.pathsep.join(filter(None, here))
    launching = {
        "launcher": "jobset",
        "hand_over": str(runs.folder / "shared"),
        "namespace": "team",
        "num_parts": 2,
        "model_options": {},
    }
    for day, meaning in ((1, 0), (2, 1)):
        runs.tables(day, meaning=meaning)
    first = runs.run(1, **launching)
    assert (first["champion_generation"], first["promoted"]) == (0, 1)
    second = runs.run(2, **launching)
    assert (second["champion_generation"], second["promoted"], second["generation"]) == (1, 1, 2)
    assert runs.champions() == ["01", "02"]
    for step in ("partition_graph", "train_gnn"):
        started = json.loads((runs.folder / "out-2/steps" / step / "job_resource").read_text())
        assert started["kind"] == "Processes", step
    assert [path.name for path in (runs.folder / "shared").rglob("*")] == ["checkpoints"]
