"""`geokfp compile`: writes pipelines as packages to upload, or as Kubernetes manifests."""

import os
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from .. import PIPELINES, load_pipeline
from .completion import complete_pipeline
from .errors import UsageError
from .image_prefix import check_prefix, prefix_images
from .package import built_in_name, read_package, resolve
from .pipeline_manifests import ManifestNames

_MANIFESTS = "With --kubernetes-manifests"


def compile_pipelines(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the files.")],
    pipelines: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PIPELINE]...",
            help="Built-in pipelines, or paths of compiled .yaml files.",
            autocompletion=complete_pipeline,
            show_default=False,
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All built-in pipelines.")] = False,
    image_prefix: Annotated[
        str,
        typer.Option(
            metavar="P", help="Registry (and folder) of the images, such as `registry.example.com/team`."
        ),
    ] = "",
    kubernetes_manifests: Annotated[
        bool,
        typer.Option(
            "--kubernetes-manifests",
            help="Write Pipeline and PipelineVersion objects for `kubectl apply`, not packages to upload.",
        ),
    ] = False,
    pipeline_name: Annotated[
        str,
        typer.Option(metavar="NAME", help="Name of the Pipeline object.", rich_help_panel=_MANIFESTS),
    ] = "",
    pipeline_version: Annotated[
        str,
        typer.Option(
            metavar="V",
            help="Version; otherwise this package's. Another specification needs another version.",
            rich_help_panel=_MANIFESTS,
        ),
    ] = "",
    namespace: Annotated[
        str,
        typer.Option(metavar="NAME", help="Namespace of the objects.", rich_help_panel=_MANIFESTS),
    ] = "",
) -> None:
    """Compile pipelines for a Kubeflow Pipelines installation.

    Example: `geokfp compile --all --image-prefix registry.example.com/team --output packages`
    """
    names = [*(pipelines or []), *(PIPELINES if every else ())]
    if not names:
        raise UsageError("nothing to compile: name a pipeline, or give --all")
    prefix = check_prefix(image_prefix)
    manifests = ManifestNames(pipeline=pipeline_name, version=pipeline_version, namespace=namespace)
    named = dict.fromkeys(built_in_name(name) or name for name in names)
    _check_manifests(manifests, named, asked=kubernetes_manifests)
    components = [_load(name, prefix) for name in named]
    options = [
        manifests.options(each.pipeline_spec.pipeline_info, _version()) if kubernetes_manifests else None
        for each in components
    ]
    paths = _paths(components, output)
    try:
        output.mkdir(parents=True, exist_ok=True)
        for component, path, names_of_objects in zip(components, paths, options, strict=True):
            write_package(component, path, names_of_objects)
            typer.echo(path)
    except OSError as error:
        raise UsageError(f"--output {output}: {error.strerror or error}") from error


def _paths(components: Collection[Any], output: Path) -> list[Path]:
    paths: dict[Path, str] = {}
    for component in components:
        name = component.pipeline_spec.pipeline_info.name
        path = output / f"{name.replace('-', '_')}.yaml"
        if path.parent != output or "\0" in name:
            raise UsageError(f"pipeline {name!r}: allowed: a name that a file can have")
        if path in paths:
            raise UsageError(
                f"pipelines {paths[path]!r} and {name!r}: both would be {path}; allowed: one of them"
            )
        if path.is_dir():
            raise UsageError(f"--output {output}: {path} is a folder; allowed: a file, or nothing")
        paths[path] = name
    return list(paths)


def _load(name: str, prefix: str) -> Any:
    if name in PIPELINES:
        pipeline = load_pipeline(name)
        prefix_images(pipeline.pipeline_spec.deployment_spec, prefix)
        return pipeline
    from kfp.components import load_component_from_text

    documents = list(yaml.safe_load_all(read_package(resolve(name)).path.read_text(encoding="utf-8")))
    prefix_images(documents[0]["deploymentSpec"], prefix)  # in the text: kfp reads it anew at each use
    return load_component_from_text(yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True))


def _check_manifests(manifests: ManifestNames, named: Collection[str], *, asked: bool) -> None:
    if manifests != ManifestNames() and not asked:
        raise UsageError(
            "--pipeline-name, --pipeline-version, --namespace: allowed: with --kubernetes-manifests"
        )
    if manifests.pipeline and len(named) > 1:
        raise UsageError(
            f"--pipeline-name {manifests.pipeline}: allowed: with one pipeline, not {len(named)}"
        )


def write_package(component: Any, path: Path, manifests: Mapping[str, Any] | None) -> None:
    """Writes a pipeline's compiled YAML, whole or not at all.

    Args:
        component: a pipeline, from code or loaded from YAML.
        path: the file to write.
        manifests: kfp's options of Kubernetes objects to write in place of a package; None writes a package.
    """
    from kfp.compiler import Compiler
    from kfp.compiler.compiler_utils import KubernetesManifestOptions

    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.stem}-") as folder:
        temporary = Path(folder) / path.name
        Compiler().compile(
            component,
            str(temporary),
            kubernetes_manifest_format=manifests is not None,
            kubernetes_manifest_options=None if manifests is None else KubernetesManifestOptions(**manifests),
        )
        os.replace(temporary, path)


def _version() -> str:
    from importlib.metadata import version

    return version("geokfp")
