"""What a run or a schedule is made of: a package and values, checked before anything is sent.

Knows nothing of networks.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..errors import UsageError
from ..image_prefix import check_prefix, prefix_images
from ..options import check_options
from ..package import Package, read_package, resolve
from ..values import collect
from .macros import check_macros

LONGEST_PARAMETERS = 10_000
"""Characters of all values as JSON that KFP's API takes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Submission:
    """A pipeline with the values of its runs."""

    package: Package
    """The pipeline."""
    arguments: Mapping[str, Any]
    """Values by parameter, each of its type; the others have their defaults."""
    documents: Sequence[Mapping[str, Any]]
    """The package's YAML documents, images with their prefix."""
    unchecked: Mapping[str, str]
    """Library that is not installed here, by the step that checks its values itself for want of it."""

    @contextmanager
    def file(self) -> Iterator[str]:
        """Yields the path of a package that holds the documents, there while the block lasts."""
        with tempfile.TemporaryDirectory(prefix="geokfp-") as folder:
            path = Path(folder) / "pipeline.yaml"
            path.write_text(yaml.safe_dump_all(self.documents, allow_unicode=True), encoding="utf-8")
            yield str(path)


def prepare(
    pipeline: str, assignments: Sequence[str], file: Path | None, *, image_prefix: str, scheduled: bool
) -> Submission:
    """Reads a pipeline and checks the values of its runs, as `geokfp run` does.

    Args:
        pipeline: a built-in name, or the path of a compiled YAML.
        assignments: `NAME=VALUE` as typed.
        file: a YAML mapping of names to values, or None.
        image_prefix: registry and folder of the images; empty leaves them.
        scheduled: whether a schedule starts the runs, so that they have a scheduled time.

    Raises:
        UsageError: there is no such pipeline, or a value is not allowed.
    """
    prefix = check_prefix(image_prefix)
    package = read_package(resolve(pipeline))
    arguments = collect(package, assignments, file)
    later = check_macros(package, arguments, scheduled=scheduled)
    known = {name: None if name in later else value for name, value in arguments.items()}
    unchecked = check_options(package, known)
    length = len(json.dumps(arguments))
    if length > LONGEST_PARAMETERS:
        raise UsageError(
            f"{package.name}: its values have {length} characters as JSON; allowed: {LONGEST_PARAMETERS}"
        )
    documents = list(yaml.safe_load_all(package.path.read_text(encoding="utf-8")))
    prefix_images(documents[0]["deploymentSpec"], prefix)
    return Submission(package=package, arguments=arguments, documents=documents, unchecked=unchecked)
