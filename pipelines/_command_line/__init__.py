"""The `geokfp` command: list, run, compile, submit and schedule pipelines; set up a cluster; certificates.

One file a sub-command; each says in its help what it does and gives an example. Nothing here imports an
engine (torch, dgl, mxnet), and kfp only where a pipeline is compiled or run.
"""

import sys
import traceback
from importlib.metadata import version
from typing import Annotated

import typer

from .certificates_command import certificates
from .compile_command import compile_pipelines
from .demo_command import demo
from .errors import CommandError
from .images_command import images
from .launch_command import launch
from .list_command import list_pipelines
from .manifests_command import manifests
from .run_command import run
from .schedule_command import schedule
from .submit_command import submit

app = typer.Typer(
    name="geokfp",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("list")(list_pipelines)
app.command("run")(run)
app.command("compile")(compile_pipelines)
app.command("submit")(submit)
app.add_typer(schedule, name="schedule")
app.command("demo")(demo)
app.command("manifests")(manifests)
app.command("launch")(launch)
app.command("certificates")(certificates)
app.command("images")(images)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"geokfp {version('geokfp')}")
        raise typer.Exit


@app.callback()
def _geokfp(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show where an error came from that should not be.")
    ] = False,
) -> None:
    """Graph learning beyond one machine and one data centre, as Kubeflow pipelines.

    Example: `geokfp demo --output demo`
    """


def main() -> None:
    """Runs the command; the process ends with 0 done, 1 failed, 2 bad usage, 130 interrupted."""
    try:
        app(prog_name="geokfp")
    except CommandError as error:
        print(f"geokfp: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(error.exit_status)
    except KeyboardInterrupt:
        print("geokfp: interrupted", file=sys.stderr)  # noqa: T201
        sys.exit(130)
    except Exception as error:  # noqa: BLE001  the process's main: logged, and a code that is not 0
        if "--verbose" in sys.argv:
            traceback.print_exc()
        said = f"{type(error).__name__}: {error} (`geokfp --verbose ...` shows where)"
        print(f"geokfp: {said}", file=sys.stderr)  # noqa: T201
        sys.exit(1)
