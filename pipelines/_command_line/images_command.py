"""`geokfp images`: the commands that build the container images, from the repository root."""

import shlex
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .errors import UsageError
from .image_prefix import check_prefix

ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "base": ("BASE_IMAGE", "PIP_INDEX_URL", "PIP_NO_INDEX"),
    "training": ("PIP_INDEX_URL", "PIP_NO_INDEX", "TORCH_INDEX_URL"),
    "geomx": ("PIP_INDEX_URL", "PIP_NO_INDEX", "TORCH_INDEX_URL"),
    "export": ("PIP_INDEX_URL", "PIP_NO_INDEX"),
}
"""Build arguments that each image takes, besides PARENT_IMAGE."""


class Engine(StrEnum):
    """What builds the images."""

    docker = "docker"
    buildah = "buildah"


def images(
    prefix: Annotated[
        str,
        typer.Option(
            "--image-prefix",
            "--prefix",
            metavar="P",
            help="Registry (and folder) of the images, such as `registry.example.com/team`.",
        ),
    ] = "",
    engine: Annotated[Engine, typer.Option(help="What builds them.")] = Engine.docker,
    build_arg: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Build argument of the images that have it; may be given many times: BASE_IMAGE, "
            "TORCH_INDEX_URL, PIP_INDEX_URL, PIP_NO_INDEX.",
            show_default=False,
        ),
    ] = None,
    wheels: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of wheels that are taken before an index's.")
    ] = None,
    push: Annotated[bool, typer.Option("--push", help="Push each image to its registry too.")] = False,
) -> None:
    """Print the commands that build the images, in order, to be run in the repository's root.

    Example: `geokfp images --image-prefix registry.example.com/team --push | sh -e`
    """
    from geokfp.components._images import PARENTS

    before = check_prefix(prefix)
    if push and not before:
        raise UsageError("--push: --image-prefix is needed, the registry to push to")
    arguments = _arguments(build_arg or [])
    if wheels is not None and not wheels.is_dir():
        raise UsageError(f"--wheels {wheels}: a folder of wheels is needed")
    for name, parent in PARENTS.items():
        typer.echo(shlex.join(_build(name, parent, before, engine, arguments, wheels)))
        if push:
            typer.echo(shlex.join([engine.value, "push", _reference(name, before)]))


def _arguments(texts: list[str]) -> dict[str, str]:
    known = sorted({name for names in ARGUMENTS.values() for name in names})
    arguments = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in known:
            raise UsageError(f"--build-arg {text}: NAME=VALUE is needed, NAME one of {', '.join(known)}")
        arguments[name] = value
    return arguments


def _build(
    name: str, parent: str, prefix: str, engine: Engine, arguments: Mapping[str, str], wheels: Path | None
) -> Iterator[str]:
    # buildah keeps no layers for the next build unless it is told to; docker does.
    yield from ("docker", "build") if engine is Engine.docker else ("buildah", "build", "--layers")
    yield from ("--file", f"images/{name}/Dockerfile")
    if prefix and parent:
        yield from ("--build-arg", f"PARENT_IMAGE={_reference(parent, prefix)}")
    for argument, value in arguments.items():
        if argument in ARGUMENTS[name]:
            yield from ("--build-arg", f"{argument}={value}")
    if wheels is not None:
        yield from ("--build-context", f"wheels={wheels}")
    yield from ("--tag", _reference(name, prefix), ".")


def _reference(name: str, prefix: str) -> str:
    from geokfp.components._images import image  # late: listing pipelines loads no component

    return f"{prefix}/{image(name)}" if prefix else image(name)
