"""The README's own words are what is tried: its pipeline, its commands, its tables."""

import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from geokfp import components
from geokfp.pipelines import PIPELINES, compiled_package
from geokfp.pipelines._command_line.package import read_package
from geokfp.pipelines._command_line.values import collect

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CODE = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
SHELL = "\n".join(re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)).replace("\\\n", " ")
OWN_PIPELINE = next(code for code in CODE if "@dsl.pipeline" in code)


def test_tables_name_what_there_is() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", README, flags=re.MULTILINE)) == set(PIPELINES)
    listed = set(re.findall(r"^\| \[`(\w+)`\]", README, flags=re.MULTILINE))
    assert listed == set(components.__all__)


def test_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / link).exists(), link


def test_its_parameters_exist() -> None:
    package = read_package(compiled_package("single_site"))
    words = shlex.split(next(line for line in SHELL.splitlines() if "run single_site" in line))
    assignments = [word for before, word in pairwise(words) if before == "--param"]
    assert len(collect(package, assignments, None)) == len(assignments)
    names = set(read_package(compiled_package("cross_site")).parameters)
    names |= set(read_package(compiled_package("scheduled_retrain")).parameters)
    assert set(re.findall(r"--param (\w+)=", README)) <= names | set(package.parameters)


def test_its_compile_commands_run(tmp_path: Path) -> None:
    commands = re.findall(r"^geokfp compile .*$", SHELL, flags=re.MULTILINE)
    commands += re.findall(r"`(geokfp compile [^`]*)`", README)
    assert len(commands) == 2
    for command in commands:
        arguments = [sys.executable, "-m", "geokfp.pipelines._command_line", *shlex.split(command)[1:]]
        done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def write_own_pipeline(folder: Path) -> None:
    (folder / "my_pipeline.py").write_text(OWN_PIPELINE)
    subprocess.run([sys.executable, "my_pipeline.py"], cwd=folder, check=True)


def test_its_own_pipeline_has_three_lines_and_compiles(tmp_path: Path) -> None:
    body = OWN_PIPELINE.split("):\n")[1].split("\n\n")[0]
    assert len(body.splitlines()) == 3
    write_own_pipeline(tmp_path)
    package = read_package(tmp_path / "my_pipeline.yaml")
    assert [step.name for step in package.steps] == ["ingest_graph", "partition_graph", "train_gnn"]


@pytest.mark.timeout(300)  # half a minute of CPU
def test_its_own_pipeline_runs(tmp_path: Path) -> None:
    write_own_pipeline(tmp_path)
    command = [sys.executable, "-m", "geokfp.pipelines._command_line", "run", "my_pipeline.yaml"]
    done = subprocess.run(
        [*command, "--output", "results", "--param", "epochs=3"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "results/metrics.json").is_file()
