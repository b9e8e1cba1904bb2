"""The container images: their names, and in which order they are built."""

from collections.abc import Mapping
from importlib.metadata import version

PARENTS: Mapping[str, str] = {"base": "", "training": "base", "geomx": "base", "export": "training"}
"""The images, folders under `images/`, in the order of building: each with the one that it is built upon."""


def image(name: str) -> str:
    """Returns the bare name of an image of this package's version.

    The name carries no registry; `geokfp compile --image-prefix` puts one before it.

    Args:
        name: the folder under `images/`, such as `training`.

    Returns:
        A reference such as `geokfp-training:0.1.0`.
    """
    return f"geokfp-{name}:{version('geokfp')}"
