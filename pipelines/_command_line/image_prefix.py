"""Puts a registry before the names of this package's images in a compiled pipeline; others stay."""

import re
from typing import Any

from .errors import UsageError

_HOST = r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?"
_FOLDER = r"[a-z0-9]+((\.|__?|-+)[a-z0-9]+)*"
_PREFIX = re.compile(rf"{_HOST}(/{_FOLDER})*/?")


def check_prefix(prefix: str) -> str:
    """Returns a prefix without a slash at its end.

    Raises:
        UsageError: it is no registry and folder.
    """
    if prefix and not _PREFIX.fullmatch(prefix):
        raise UsageError(
            f"--image-prefix {prefix}: a registry and folder such as localhost:5000/team is needed, "
            "folders in small letters, without https:// and tag"
        )
    return prefix.rstrip("/")


def prefix_images(deployment: Any, prefix: str) -> None:
    """Puts `prefix/` before the images of this package.

    Args:
        deployment: the pipeline's deployment spec, changed in place.
        prefix: a registry and folder, without a slash at the end; empty changes nothing.
    """
    for executor in deployment["executors"].values() if prefix else ():
        if "container" in executor and executor["container"]["image"].startswith("geokfp-"):
            executor["container"]["image"] = f"{prefix}/{executor['container']['image']}"
