"""`geokfp run`: runs a compiled pipeline on this machine and gathers its results."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from .completion import complete_parameter, complete_pipeline
from .display import Progress, show_results
from .errors import RunFailed
from .failure import describe_failure
from .options import check_options
from .output_folder import output_folder, publish, write_json
from .package import Package, read_package, resolve
from .results import read_steps, stage, write_results
from .supervision import read_event, run_supervised
from .values import collect


def run(
    pipeline: Annotated[
        str,
        typer.Argument(
            metavar="PIPELINE",
            help="A built-in pipeline (see `geokfp list`), or the path of a compiled .yaml.",
            autocompletion=complete_pipeline,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Folder for the results: new, empty, or of an earlier run."
        ),
    ],
    param: Annotated[
        list[str],
        typer.Option(
            "--param",
            "-p",
            metavar="NAME=VALUE",
            help="A parameter of the pipeline; may be given many times.",
            autocompletion=complete_parameter,
        ),
    ] = [],  # noqa: B006  typer copies it
    params_file: Annotated[
        Path | None,
        typer.Option("--params-file", metavar="F.yaml", help="A YAML mapping of parameters; --param wins."),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show all that kfp and the steps print, and tracebacks.")
    ] = False,
) -> None:
    """Run a compiled pipeline on this machine.

    DIR then holds metrics.json, report.html, model/ (the exported model), log.txt, run.json and
    steps/STEP/ARTIFACT. Results of an earlier run in DIR are kept in DIR/previous until the new run is done.
    Exit status: 0 done, 1 the run failed, 2 wrong usage, 130 interrupted.

    Example: `geokfp run single_site -p nodes=nodes.csv -p edges=edges.csv -p epochs=20 --output results`
    """
    package = read_package(resolve(pipeline))
    arguments = collect(package, param, params_file)
    run_package(package, arguments, output, verbose=verbose)


def run_package(package: Package, arguments: Mapping[str, Any], output: Path, *, verbose: bool) -> None:
    """Runs a package, shows its progress and leaves the results in `output`.

    Args:
        package: the pipeline.
        arguments: values by parameter, each of its parameter's type.
        output: the folder for the results.
        verbose: show all that is printed.

    Raises:
        RunFailed: a step failed, or a package that steps need is not installed.
        UsageError: an option's value is not allowed, or the output folder cannot be used.
    """
    require_engine()
    check_options(package, arguments)
    console = Console(highlight=False)
    output = output.absolute()
    record: dict[str, Any] = {
        "pipeline": package.name,
        "geokfp": version("geokfp"),
        "status": "running",
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "parameters": {name: p.default for name, p in package.parameters.items()} | dict(arguments),
    }
    with output_folder(output) as work:
        write_json(output / "run.json", record)
        progress = Progress(package.steps, console)
        done = _run_steps(package, arguments, output, work, progress, verbose=verbose)
        staged = work / "staged"
        staged.mkdir()
        root = work / "pipeline"
        steps = read_steps(package, root)
        cause = "" if done else describe_failure(package, root, progress.seconds(), output / "log.txt")
        stage(steps, root, staged)
        metrics = write_results(package, steps, staged) if done else {}
        record |= {"status": "done" if done else "failed", "seconds": progress.seconds()}
        write_json(staged / "run.json", record if done else {**record, "cause": cause})
        publish(staged, output, done=done)
    if not done:
        raise RunFailed(cause)
    show_results(console, progress.seconds(), metrics, output)


def _run_steps(
    package: Package,
    arguments: Mapping[str, Any],
    output: Path,
    work: Path,
    progress: Progress,
    *,
    verbose: bool,
) -> bool:
    from geokfp.components._launch import parse_progress  # late: it needs the extra `engine`

    root = work / "pipeline"
    root.mkdir()
    with (output / "log.txt").open("w", encoding="utf-8") as log, progress:

        def on_line(line: str) -> None:
            log.write(line + "\n")
            log.flush()
            event = read_event(line)
            if event is not None:
                progress.event(event)
            message = parse_progress(line)
            if message is not None:
                progress.line(message)
            if verbose and message is None:
                progress.note(line)

        return run_supervised(package.path.absolute(), arguments, root, on_line)


def require_engine() -> None:
    """Raises `RunFailed` when packages of the extra `engine` are not installed."""
    missing = []
    for requirement in requires("geokfp") or []:
        match = re.match(r"([A-Za-z0-9._-]+).*extra == ['\"]engine['\"]", requirement)
        if match:
            try:
                version(match[1])
            except PackageNotFoundError:
                missing.append(match[1])
    if missing:
        raise RunFailed(f"running steps here needs {', '.join(missing)}: pip install 'geokfp[engine]'")
