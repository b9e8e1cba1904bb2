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
from geokfp.components._images import PARENTS, image
from geokfp.pipelines._command_line.images_command import ARGUMENTS
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support.container_images import dockerfile, packages

ROOT = Path(__file__).resolve().parents[2]
IMAGES = sorted(path.parent.name for path in (ROOT / "images").glob("*/Dockerfile"))
UNDECLARED = {"dgl": {"packaging", "torch"}, "pandas": {"pyarrow"}}
"""What a package imports, here or for what is asked of it, and does not declare."""
ENTRIES = {"promotion": ("open_window", "evaluate", "promote")}
"""Modules that a stage's components call, where it is not one named run."""
LAUNCHING = {"kubernetes", "s3fs"}
"""What steps need that start pods and hand data over by an object store; fsspec imports it by its name."""
NOT_ROWS = {"table_training": {"dgl"}, "shard_at_sites": {"dgl"}}
"""What a stage or component reaches in code for graphs only: its image is without."""
TARGET = re.compile(r"geokfp\.components((?:\.\w+)+):\w+")


def image_of(component: str) -> str:
    image = getattr(components, component).component_spec.implementation.container.image
    return re.sub(r"^geokfp-(\w+):.*$", r"\1", image)


def installed(name: str) -> set[str]:
    """Returns the packages that the Dockerfiles of an image and of those under it ask for by name."""
    own = {canonicalize_name(package) for package in packages(name)}
    return own | installed(PARENTS[name]) if PARENTS[name] else own


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


def stages_in(name: str) -> set[str]:
    """Returns the stages that run in an image, or in one that is built upon it."""
    users = {child for child, parent in PARENTS.items() if parent == name}
    own = {
        getattr(components, component).python_func.__module__.split(".")[-2]
        for component in components.__all__
        if image_of(component) == name
    }
    return own.union(*(stages_in(user) for user in users))


def test_the_images_are_those_that_components_run_in_and_what_those_are_built_upon() -> None:
    used = {image_of(name) for name in components.__all__}
    assert used == set(PARENTS) - {"base"}
    assert sorted(PARENTS) == IMAGES
    assert all(parent in list(PARENTS)[:place] for place, parent in enumerate(PARENTS.values()) if parent)


@pytest.mark.parametrize("component", sorted(components.__all__))
def test_the_image_has_what_the_component_imports(component: str) -> None:
    stage = getattr(components, component).python_func.__module__.split(".")[-2]
    distributions = packages_distributions()
    names = reached(stage) - NOT_ROWS.get(stage, set()) - NOT_ROWS.get(component, set())
    assert "numpy" in names
    wanted = {canonicalize_name(distributions[name][0]) for name in names}
    wanted |= set().union(*(UNDECLARED.get(name, set()) for name in wanted))
    assert wanted | LAUNCHING <= installed(image_of(component))


@pytest.mark.parametrize("name", IMAGES)
def test_nothing_is_installed_that_no_component_needs_and_all_is_pinned(name: str) -> None:
    every = needed(LAUNCHING.union(*(reached(stage) for stage in stages_in(name))))
    assert {canonicalize_name(package) for package in packages(name)} <= every
    assert every | {"setuptools", "wheel", "kfp"} <= pinned()


@pytest.mark.parametrize("name", IMAGES)
def test_it_runs_as_a_numeric_user_that_is_not_root(name: str) -> None:
    *_, last = re.findall(r"^USER (\S+)$", dockerfile(name), re.M)
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", last)


@pytest.mark.parametrize("name", IMAGES)
def test_what_it_is_built_upon_can_be_chosen_and_so_can_the_index(name: str) -> None:
    text = dockerfile(name)
    upon = f"PARENT_IMAGE={image(PARENTS[name])}" if PARENTS[name] else "BASE_IMAGE=python:3.11-slim"
    assert re.findall(r"^ARG ((?:BASE|PARENT)_IMAGE.*)$", text, re.M) == [upon]
    stages = set(re.findall(r"^FROM (\S+)", text, re.M))
    assert stages == {"scratch", f"${{{upon.partition('=')[0]}}}"}
    arguments = set(re.findall(r"^ARG (\w+)", text, re.M))
    assert arguments - {"PARENT_IMAGE"} == set(ARGUMENTS[name])
    assert ("TORCH_INDEX_URL" in arguments) == ("torch" in packages(name))


@pytest.mark.parametrize("name", IMAGES)
def test_it_says_what_it_is(name: str) -> None:
    labels = dict(re.findall(r'org\.opencontainers\.image\.(\w+)="([^"]+)"', dockerfile(name)))
    assert labels["title"] == f"geokfp-{name}"
    assert labels["description"]
    if not PARENTS[name]:  # the others inherit the rest
        assert f"geokfp-{name}:{labels['version']}" == image(name)
        assert labels["licenses"] == "Apache-2.0"


def test_what_is_copied_into_them_reaches_the_builder() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    kept = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    lines = re.findall(r"^COPY (?!--from)(.+) \S+$", "".join(map(dockerfile, IMAGES)), re.M)
    copied = {name for line in lines for name in line.split()}
    assert copied == kept
    assert all((ROOT / name).exists() for name in copied)


def test_pip_inside_keeps_to_the_constraints() -> None:
    settings = (ROOT / "images/pip.conf").read_text(encoding="utf-8")
    assert "constraint = /opt/geokfp/constraints.txt\n" in settings
    assert "COPY images/constraints.txt images/pip.conf /opt/geokfp/\n" in dockerfile("base")
    assert "pip install --no-deps kfp==2.17.3\n" in dockerfile("base")
