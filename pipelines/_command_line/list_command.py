"""`geokfp list`: the built-in pipelines, or one pipeline's parameters."""

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from .. import PIPELINES, compiled_package
from .completion import complete_pipeline
from .package import Package, read_package, resolve


def list_pipelines(
    pipeline: Annotated[
        str | None,
        typer.Argument(
            metavar="[PIPELINE]",
            help="Show this pipeline's parameters: a built-in name, or the path of a compiled .yaml.",
            autocompletion=complete_pipeline,
            show_default=False,
        ),
    ] = None,
) -> None:
    """List the built-in pipelines, or the parameters of one.

    Example: `geokfp list cross_site`
    """
    console = Console(highlight=False)
    if pipeline is None:
        console.print(_pipelines())
        console.print("Parameters of one: geokfp list NAME", style="dim")
    else:
        console.print(_parameters(read_package(resolve(pipeline))))


def _pipelines() -> Table:
    table = Table("Pipeline", "Steps", "What it does", box=None, pad_edge=False)
    for name in PIPELINES:
        package = read_package(compiled_package(name))
        table.add_row(name, " >> ".join(step.name for step in package.steps), package.description)
    return table


def _parameters(package: Package) -> Table:
    table = Table("Parameter", "Type", "Default", "Meaning", box=None, pad_edge=False)
    for parameter in package.parameters.values():
        default = "(needed)" if parameter.required else _shown(parameter.default)
        table.add_row(parameter.name, parameter.type, default, parameter.description)
    return table


def _shown(value: Any) -> str:
    return "" if value is None else repr(value)
