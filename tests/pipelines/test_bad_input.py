"""Bad input over the whole command: one line that says where, the exit status, and nothing half-written.

The steps run in this process; that the same lines come out of kfp's own is held in `test_built_in.py`.
"""

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from geokfp.components import export_model, geo_train_gnn, ingest_graph, partition_graph, train_gnn
from geokfp.components.partition.config import PartitionConfig
from geokfp.components.partition.partitions import read_partitions
from geokfp.components.partition.run import run as partition
from geokfp.components.training.trained_gnn import ModelSource, write_trained_gnn
from geokfp.pipelines import _command_line
from kfp import dsl
from kfp.compiler import Compiler
from support.bad_input import BAD, EDGES, NODES, Case, wrong_node
from support.bad_usage import BAD_USAGE
from support.graphs import communities, written
from support.steps_in_process import run_in_process

# DGL leaves files open while it writes parts.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*unclosed file:ResourceWarning",
    "ignore:.*proc.self.status:pytest.PytestUnraisableExceptionWarning",
)


@dsl.pipeline(name="prepare")
def prepare(nodes: str, edges: str, features: str = "", site_column: str = "", workers: int = 1):
    ingest = ingest_graph(nodes=nodes, edges=edges, features=features, site_column=site_column)
    partition_graph(graph=ingest.outputs["graph"], num_parts=workers)


@dsl.pipeline(name="divide")
def divide(graph: str, num_parts: int = 2):
    made = dsl.importer(artifact_uri=graph, artifact_class=dsl.Dataset).output
    partition_graph(graph=made, num_sites=0, num_parts=num_parts, partition_method="attribute")


@dsl.pipeline(name="train")
def train(partitions: str, site: str = "site-0", entry_point: str = "", user_code: str = ""):
    parts = dsl.importer(artifact_uri=partitions, artifact_class=dsl.Dataset).output
    train_gnn(partitions=parts, site=site, entry_point=entry_point, user_code=user_code, epochs=1)


@dsl.pipeline(name="geo")
def geo(partitions: str, trained: str, topology: dict[str, Any] = {}):  # noqa: B006
    parts = dsl.importer(artifact_uri=partitions, artifact_class=dsl.Dataset).output
    start = dsl.importer(artifact_uri=trained, artifact_class=dsl.Model).output
    geo_train_gnn(partitions=parts, trained=start, topology=topology, epochs=1)


@dsl.pipeline(name="export")
def export(model: str, partitions: str):
    gnn = dsl.importer(artifact_uri=model, artifact_class=dsl.Model).output
    parts = dsl.importer(artifact_uri=partitions, artifact_class=dsl.Dataset).output
    export_model(model=gnn, data=parts)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compiled")
    for pipeline in (prepare, divide, train, geo, export):
        Compiler().compile(pipeline, str(folder / f"{pipeline.name}.yaml"))
    return folder


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of two sites, its partitions, and models that fit them and do not."""
    folder = tmp_path_factory.mktemp("artifacts")
    graph = communities(sites=2)
    outputs = {"partitions": folder / "partitions", "report": folder / "report.html"}
    config = PartitionConfig(num_sites=2, num_parts=1, partition_method="attribute")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        partition(config, written(graph, folder), **outputs)
    for name, width in (("model", 8), ("narrow", 5)):
        source = ModelSource(architecture="sage", num_features=width, num_classes=3, num_layers=2)
        schema = {
            "label_names": list(graph.label_names),
            "feature_names": [],
            "fingerprint": read_partitions(outputs["partitions"]).fingerprint,
        }
        state = source.build().state_dict()
        write_trained_gnn(folder / name, source=source, weights=state, schema=schema, metrics={}, history=[])
    return folder


@pytest.fixture
def run(
    compiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs the command in a folder with good tables; returns exit status, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("geokfp.pipelines._command_line.run_command.run_supervised", run_in_process)
    monkeypatch.setenv("COLUMNS", "1000")
    for name, text in (("nodes.csv", NODES), ("edges.csv", EDGES)):
        (tmp_path / name).write_text(text)

    def command(pipeline: str, given: tuple[str, ...]) -> tuple[int, str, str]:
        own = compiled / f"{pipeline}.yaml"
        typed = ["geokfp", "run", str(own) if own.exists() else pipeline, "--output", "out"]
        for word in given:
            typed += ["--param" if "=" in word else "--params-file", word]
        monkeypatch.setattr("sys.argv", typed)
        with pytest.raises(SystemExit) as ended:
            _command_line.main()
        printed = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, printed.out, printed.err

    return command


def contents(folder: Path) -> dict[str, bytes]:
    """All files but the output's."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in found
        if path.relative_to(folder).parts[0] != "out"
    }


@pytest.mark.parametrize("name", [*BAD, *BAD_USAGE])
def test_it_is_one_line_and_nothing_is_written(
    run: Callable[..., tuple[int, str, str]], artifacts: Path, tmp_path: Path, name: str
) -> None:
    case = (BAD | BAD_USAGE)[name]
    for path in artifacts.iterdir() if case.pipeline in ("divide", "train", "geo", "export") else ():
        if path.is_dir():
            shutil.copytree(path, tmp_path / path.name)
    for file, text in case.files.items():
        (tmp_path / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    if case.change is not None:
        case.change(tmp_path)
    before = contents(tmp_path)

    status, _, told = run(case.pipeline, case.given)

    assert status == case.status, told
    assert told.startswith("geokfp: ")
    assert told.count("\n") == 1
    assert told.endswith("\n")
    for fragment in case.says:
        assert fragment in told
    assert contents(tmp_path) == before
    if case.status == 2:
        assert not (tmp_path / "out").exists()
        return
    failed = told.removeprefix("geokfp: ").split(" ")[0]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["log.txt", "run.json", "steps"]
    assert [path.name for path in (tmp_path / "out/steps" / failed).iterdir()] == ["error.json"]
    assert json.loads((tmp_path / "out/run.json").read_text())["status"] == "failed"


BOM = b"\xef\xbb\xbf"
NO_VALIDATION = "There is no validation node: no validation metric will be reported."
NO_TEST = "There is no test node: no test metric will be reported."
GOOD: dict[str, Case] = {
    "as it should be": Case(pipeline="prepare", says=("5 nodes, 10 directed edges, 2 features",)),
    "byte order mark": Case(
        pipeline="prepare",
        files={"nodes.csv": BOM + NODES.encode(), "edges.csv": BOM + EDGES.encode()},
        says=("5 nodes, 10 directed edges, 2 features",),
    ),
    "lines that end as on Windows": Case(
        pipeline="prepare",
        files={"nodes.csv": NODES.replace("\n", "\r\n"), "edges.csv": EDGES.replace("\n", "\r\n")},
        says=("5 nodes, 10 directed edges, 2 features",),
    ),
    "both": Case(
        pipeline="prepare",
        files={"nodes.csv": BOM + NODES.replace("\n", "\r\n").encode()},
        says=("5 nodes, 10 directed edges, 2 features",),
    ),
    "no validation node": Case(
        pipeline="prepare", files={"nodes.csv": NODES.replace("val", "test")}, says=(NO_VALIDATION,)
    ),
    "no test node": Case(pipeline="prepare", files=wrong_node("test", "none"), says=(NO_TEST,)),
    "a node without an edge": Case(
        pipeline="prepare", files={"edges.csv": EDGES.replace("d,e\n", "")}, says=("1 nodes have no edge",)
    ),
    "a number as Parquet": Case(
        pipeline="prepare",
        change=lambda folder: pd.read_csv(folder / "nodes.csv").to_parquet(folder / "n.parquet"),
        given=("nodes=n.parquet", "edges=edges.csv"),
        says=("5 nodes, 10 directed edges, 2 features",),
    ),
    "file URIs": Case(
        pipeline="prepare",
        given=("nodes=file:nodes.csv", "edges=file:edges%2Ecsv"),
        says=("5 nodes, 10 directed",),
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_it_is_accepted_and_what_is_skipped_is_said(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path, name: str
) -> None:
    case = GOOD[name]
    for file, text in case.files.items():
        (tmp_path / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    if case.change is not None:
        case.change(tmp_path)
    before = contents(tmp_path)
    status, shown, told = run(case.pipeline, case.given)
    assert (status, told) == (0, "")
    for fragment in case.says:
        assert fragment in shown
        assert fragment in (tmp_path / "out/report.html").read_text() or "directed" in fragment
    assert json.loads((tmp_path / "out/metrics.json").read_text())["num_nodes"] == 5
    assert contents(tmp_path) == before
