"""Tab completion of pipelines and parameters."""

import typer

from .. import PIPELINES
from .errors import UsageError
from .package import read_package, resolve


def complete_pipeline(incomplete: str) -> list[str]:
    """Returns the built-in pipelines that start with what was typed."""
    return [name for name in PIPELINES if name.startswith(incomplete)]


def complete_parameter(context: typer.Context, incomplete: str) -> list[str]:
    """Returns `NAME=` for the parameters of the pipeline typed before."""
    typed = [context.params.get("pipeline"), *context.args]  # not parsed yet when an option comes after it
    pipeline = next(filter(None, typed), None)
    if not pipeline or "=" in incomplete:
        return []
    try:
        package = read_package(resolve(pipeline))
    except UsageError:
        return []
    return [f"{name}=" for name in package.parameters if name.startswith(incomplete)]
