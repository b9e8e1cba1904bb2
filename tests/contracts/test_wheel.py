"""A built wheel holds everything that an editable install finds in the checkout."""

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from geokfp.pipelines import PIPELINES
from support.pipelines_server import serving

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    checkout = folder / "checkout"
    for name in ("components", "pipelines"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", str(folder), str(checkout)], check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_every_source_and_data_file(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("components", "pipelines"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".yaml", ".md", ".typed") and "__pycache__" not in path.parts:
                assert f"geokfp/{path.relative_to(ROOT).as_posix()}" in held


def test_the_wheel_holds_nothing_else(wheel: Path) -> None:
    tops = {name.split("/")[0].split("-")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert tops == {"geokfp"}


def test_the_installed_wheel_lists_and_compiles(wheel: Path, tmp_path: Path) -> None:
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        str(tmp_path / "site"),
    ]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n"
        "sys.meta_path = [f for f in sys.meta_path if 'editable' not in str(f)]\n"
        "sys.argv = ['geokfp', 'compile', '--all', '--output', 'out']\n"
        "import geokfp.pipelines._command_line as command\n"
        f"assert command.__file__.startswith({str(tmp_path / 'site')!r}), command.__file__\n"
        "command.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "out").iterdir())) == len(PIPELINES)


@pytest.mark.long
def test_the_wheel_alone_runs_the_demo_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "empty", with_pip=True)
    python = tmp_path / "empty" / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, f"{wheel}[engine]"], check=True, capture_output=True, timeout=1200)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    demo = [str(python.with_name("geokfp")), "demo", "--output", "results"]
    done = subprocess.run(
        demo, cwd=elsewhere, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    metrics = json.loads((elsewhere / "results" / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["test_accuracy"] > 0.9
    assert sorted(path.name for path in elsewhere.iterdir()) == ["results"]
    where = [str(python), "-c", "import geokfp.components as c; print(c.__file__)"]
    found = subprocess.run(where, cwd=elsewhere, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.startswith(str(tmp_path / "empty"))


@pytest.mark.long
def test_the_wheel_without_the_engine_compiles_submits_and_schedules(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "empty", with_pip=True)
    geokfp = str(tmp_path / "empty" / "bin" / "geokfp")
    install = [str(tmp_path / "empty/bin/python"), "-m", "pip", "install", "--quiet", str(wheel)]
    subprocess.run(install, check=True, capture_output=True, timeout=1200)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    inputs = ["-p", "nodes=s3://bucket/[[CurrentTime.2006-01-02]].csv", "-p", "edges=s3://bucket/edges.csv"]
    with serving() as api:
        environment["KF_PIPELINES_ENDPOINT"] = api.url
        for arguments in (
            ["list"],
            ["compile", "--all", "--output", "out"],
            ["compile", "--all", "--kubernetes-manifests", "--output", "objects"],
            ["submit", "cross_site", *inputs],
            ["schedule", "cross_site", "--interval", "6h", *inputs],
            ["schedule", "list"],
        ):
            done = subprocess.run(
                [geokfp, *arguments],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
        assert (len(api.runs), len(api.recurring), api.wrong) == (1, 1, [])
    installed = [str(tmp_path / "empty/bin/python"), "-m", "pip", "list", "--format", "json"]
    listed = subprocess.run(installed, capture_output=True, text=True, check=True).stdout
    assert not {"torch", "dgl", "numpy"} & {each["name"] for each in json.loads(listed)}
