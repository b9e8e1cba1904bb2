"""Holds the shape of the repository: packages, names, sizes."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FORBIDDEN_NAMES = {"utils", "util", "common", "misc", "helpers", "helper", "tools", "base_utils"}
LONGEST_FILE = 400
LONGEST_FUNCTION = 60


def sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def label(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_the_packages_listed_are_the_folders() -> None:
    found = {
        "geokfp." + path.parent.relative_to(ROOT).as_posix().replace("/", ".")
        for folder in ("components", "pipelines")
        for path in (ROOT / folder).rglob("__init__.py")
    }
    listed = PROJECT["tool"]["setuptools"]["packages"]
    assert sorted(listed) == sorted(found)


def test_every_folder_with_code_is_a_package() -> None:
    for path in sources("components", "pipelines"):
        assert (path.parent / "__init__.py").is_file(), label(path.parent)


def test_compiled_pipelines_and_readmes_are_package_data() -> None:
    data = PROJECT["tool"]["setuptools"]["package-data"]
    assert "*.yaml" in data["geokfp.pipelines.compiled"]
    assert {"py.typed", "*/README.md"} <= set(data["geokfp.components"])


def test_the_top_level_is_fixed() -> None:
    import subprocess

    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    if not listed:
        pytest.skip("not a git checkout")
    top = {line.split("/")[0] for line in listed.splitlines()}
    allowed = {"pyproject.toml", "README.md", "components", "pipelines", "images", "tests"}
    allowed |= {"LICENSE", "CHANGELOG.md", "Makefile"}
    assert {name for name in top if not name.startswith(".")} <= allowed


@pytest.mark.parametrize("path", list(sources("components", "pipelines", "tests")), ids=label)
def test_a_module_is_named_after_what_it_does_and_stays_short(path: Path) -> None:
    assert path.stem.strip("_") not in FORBIDDEN_NAMES
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST_FILE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and path.name != "pipeline.py":
            length = _body_length(node)
            assert length <= LONGEST_FUNCTION, f"{node.name} at line {node.lineno} has {length} lines"


def _body_length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body without the docstring: parameters and their descriptions are no code."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return (node.end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_only_some_folders_hold_doubles() -> None:
    for path in sources("components", "pipelines"):
        assert "mock" not in path.stem
        assert "fake" not in path.stem
        assert not path.stem.startswith("test_")
