"""Holds the images against the components that run in them: names, users, and every package they import."""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from geokfp import components
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
IMAGES = sorted(path.parent.name for path in (ROOT / "images").glob("*/Dockerfile"))
UNDECLARED = {"dgl": {"packaging", "torch"}, "pandas": {"pyarrow"}}
"""What a package imports, here or for what is asked of it, and does not declare."""
ENTRIES = {"promotion": ("open_window", "evaluate", "promote")}
"""Modules that a stage's components call, where it is not one named run."""
TARGET = re.compile(r"geokfp\.components((?:\.\w+)+):\w+")


def image_of(component: str) -> str:
    image = getattr(components, component).component_spec.implementation.container.image
    return re.sub(r"^geokfp-(\w+):.*$", r"\1", image)


def dockerfile(image: str) -> str:
    return (ROOT / "images" / image / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")


def installed(image: str) -> set[str]:
    """Returns the packages that an image's Dockerfile asks for by name."""
    (line,) = re.findall(r"pip install --constraint \S+((?: +[\w-]+)+)$", dockerfile(image), re.M)
    return {canonicalize_name(name) for name in line.split()}


@cache
def pinned() -> set[str]:
    lines = (ROOT / "images/constraints.txt").read_text(encoding="utf-8").splitlines()
    return {canonicalize_name(line.partition("==")[0]) for line in lines}


def module_path(parts: list[str]) -> Path | None:
    base = ROOT / "components" / Path(*parts)
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def imports(path: Path) -> Iterator[tuple[str, Path | None]]:
    """Yields what a file imports: a top-level name from outside, or a file of the package."""
    package = list(path.parent.relative_to(ROOT / "components").parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield str(node.module).split(".")[0], None
        elif isinstance(node, ast.ImportFrom):
            parts = package[: len(package) - node.level + 1] + (node.module or "").split(".")
            parts = [part for part in parts if part]
            yield "", module_path(parts)
            yield from (("", module_path([*parts, alias.name])) for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            for target in TARGET.findall(node.value):
                yield "", module_path(target.strip(".").split("."))


def reached(stage: str) -> set[str]:
    """Returns the top-level names from outside that a stage's run may import, here or in its processes."""
    waiting = [ROOT / "components" / stage / f"{module}.py" for module in ENTRIES.get(stage, ("run",))]
    seen, names = set(), set()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for name, file in imports(path):
            if file is not None:
                waiting.append(file)
            elif name and name not in sys.stdlib_module_names:
                names.add(name)
    return names


def needed(names: set[str]) -> set[str]:
    """Returns the distributions of the names, with all that they need in turn."""
    distributions = packages_distributions()
    waiting = [canonicalize_name(distributions[name][0]) for name in names]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        waiting += UNDECLARED.get(name, set())
        for text in requires(name) or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(canonicalize_name(requirement.name))
    return found


def test_each_image_of_a_component_has_a_dockerfile_and_each_dockerfile_is_used() -> None:
    assert {image_of(name) for name in components.__all__} == set(IMAGES)


@pytest.mark.parametrize("component", sorted(components.__all__))
def test_the_image_has_what_the_component_imports(component: str) -> None:
    stage = getattr(components, component).python_func.__module__.split(".")[-2]
    distributions = packages_distributions()
    names = reached(stage)
    assert "numpy" in names
    wanted = {canonicalize_name(distributions[name][0]) for name in names}
    wanted |= set().union(*(UNDECLARED.get(name, set()) for name in wanted))
    assert wanted <= installed(image_of(component))


@pytest.mark.parametrize("image", IMAGES)
def test_nothing_is_installed_that_no_component_needs_and_all_is_pinned(image: str) -> None:
    stages = [
        getattr(components, name).python_func.__module__.split(".")[-2]
        for name in components.__all__
        if image_of(name) == image
    ]
    every = needed(set().union(*(reached(stage) for stage in stages)))
    assert installed(image) <= every
    assert every | {"setuptools", "wheel"} <= pinned()


@pytest.mark.parametrize("image", IMAGES)
def test_it_runs_as_a_numeric_user_that_is_not_root_on_a_base_that_can_be_chosen(image: str) -> None:
    text = dockerfile(image)
    assert text.count("ARG BASE_IMAGE=python:3.11-slim\n") == 1
    assert set(re.findall(r"^FROM (\S+)", text, re.M)) == {"${BASE_IMAGE}"}
    (user,) = re.findall(r"^USER (\d+):\d+$", text, re.M)
    assert int(user) > 0
    assert "pip install --no-deps kfp==2.17.3" in text
    copied = [name for line in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.M) for name in line.split()]
    assert copied
    assert all((ROOT / name).exists() for name in copied)
