"""`geokfp demo`: `cross_site` with its defaults, which need no data."""

from pathlib import Path
from typing import Annotated

import typer

from .package import read_package, resolve
from .run_command import run_package


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the results.")
    ] = Path("demo"),
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show all that kfp and the steps print, and tracebacks.")
    ] = False,
) -> None:
    """Run the pipeline cross_site on its built-in example, with nothing to download.

    The example is the nearest-neighbour graph of scikit-learn's handwritten digits, at 2 sites with 2 workers
    each.

    Example: `geokfp demo --output demo`
    """
    run_package(read_package(resolve("cross_site")), {}, output, verbose=verbose)
