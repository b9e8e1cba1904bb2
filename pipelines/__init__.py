"""Ready pipelines over the components, their compiled packages, and the `geokfp` command.

Importing this package loads neither kfp nor an engine; a pipeline's own module loads kfp.
"""

from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

from .task_settings import apply_gpu, apply_storage, settings_for_pods

__all__ = [
    "PIPELINES",
    "apply_gpu",
    "apply_storage",
    "compiled_package",
    "load_pipeline",
    "settings_for_pods",
]

PIPELINES = (
    "single_site",
    "cross_site",
    "warm_start_cross_site",
    "cross_site_table",
    "cross_site_at_sites",
    "scheduled_retrain",
)
"""Names of the built-in pipelines, simplest first."""


def load_pipeline(name: str) -> Any:
    """Returns a built-in pipeline as kfp's compiler and client take it.

    Args:
        name: one of `PIPELINES`.

    Raises:
        KeyError: there is no such pipeline.
    """
    if name not in PIPELINES:
        raise KeyError(name)
    return getattr(import_module(f".{name}.pipeline", __name__), name)


def compiled_package(name: str) -> Path:
    """Returns the path of a built-in pipeline's compiled YAML.

    Args:
        name: one of `PIPELINES`.

    Raises:
        KeyError: there is no such pipeline.
    """
    if name not in PIPELINES:
        raise KeyError(name)
    return Path(str(files(f"{__name__}.compiled") / f"{name}.yaml"))
