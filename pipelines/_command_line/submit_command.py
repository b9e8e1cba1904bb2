"""`geokfp submit`: runs a pipeline once on a Kubeflow Pipelines installation, and watches it."""

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Console

from .display import Progress
from .errors import Interrupted, RunFailed
from .package import Package
from .server.connection import Connection
from .server.run_states import StepState
from .server.runs import WEEK_S, RunOptions, Waiting, start, terminate, watch, why_it_ended
from .server.submission import prepare
from .server_options import (
    CaFile,
    CookiesFile,
    Experiment,
    Host,
    ImagePrefix,
    Namespace,
    NoCache,
    Params,
    ParamsFile,
    PipelineName,
    PipelineRoot,
    ServiceAccount,
    TokenFile,
    reach,
    tell_unchecked,
)
from .supervision import Event

_WATCHING = "Watching"


def submit(
    pipeline: PipelineName,
    host: Host = "",
    param: Params = [],  # noqa: B006  typer copies it
    params_file: ParamsFile = None,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the run; otherwise the pipeline's and the time.")
    ] = "",
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Only start the run.", rich_help_panel=_WATCHING)
    ] = False,
    timeout_s: Annotated[
        float,
        typer.Option(
            metavar="S",
            min=0.01,
            max=10 * 52 * WEEK_S,
            help="Wait for this long, then leave the run (exit status 124); otherwise a week.",
            rich_help_panel=_WATCHING,
            show_default=False,
        ),
    ] = WEEK_S,
    poll_s: Annotated[
        float,
        typer.Option(
            metavar="S", min=0.01, max=3600, help="Seconds between two looks.", rich_help_panel=_WATCHING
        ),
    ] = 5.0,
    terminate_on_interrupt: Annotated[
        bool,
        typer.Option(
            "--terminate-on-interrupt",
            help="Ctrl-C ends the run; otherwise the run goes on.",
            rich_help_panel=_WATCHING,
        ),
    ] = False,
    image_prefix: ImagePrefix = "",
    experiment: Experiment = "Default",
    service_account: ServiceAccount = "",
    pipeline_root: PipelineRoot = "",
    no_cache: NoCache = False,
    namespace: Namespace = "",
    token_file: TokenFile = None,
    cookies_file: CookiesFile = None,
    ca_file: CaFile = None,
) -> None:
    """Run a pipeline once on a Kubeflow Pipelines installation, and watch it.

    Values are checked as `geokfp run` checks them, before anything is sent.
    Exit status: 0 the run succeeded (with --no-wait: was started), 1 it failed or the installation refuses,
    2 wrong usage, 124 it still goes on after --timeout-s, 130 interrupted.

    Example: `geokfp submit cross_site --host https://kubeflow.example.com/pipeline -p nodes=s3://bucket/nodes.csv
    -p edges=s3://bucket/edges.csv --image-prefix registry.example.com/team`
    """
    submission = prepare(pipeline, param, params_file, image_prefix=image_prefix, scheduled=False)
    tell_unchecked(submission)
    options = RunOptions(
        name=name or f"{submission.package.name} {datetime.now(UTC):%Y-%m-%d %H-%M-%S}",
        experiment=experiment,
        service_account=service_account,
        pipeline_root=pipeline_root,
        no_cache=no_cache,
    )
    connection = reach(host, namespace, token_file, cookies_file, ca_file)
    run_id = start(connection, submission, options)
    typer.echo(f"run {run_id}: {connection.address.run_link(run_id)}")
    if not no_wait:
        waiting = Waiting(poll_s=poll_s, timeout_s=timeout_s)
        _follow(connection, run_id, submission.package, waiting, ends_run=terminate_on_interrupt)


def _follow(
    connection: Connection, run_id: str, package: Package, waiting: Waiting, *, ends_run: bool
) -> None:
    progress = Progress(package.steps, Console(file=sys.stdout, highlight=False))
    try:
        with progress:
            run = watch(connection, run_id, package, _Shown(progress, package), waiting)
        if run.state != "SUCCEEDED":
            why = why_it_ended(connection, run, package)
            raise RunFailed(f"{why}; {connection.address.run_link(run_id)}")
        took = (run.finished_at - run.created_at).total_seconds() if run.finished_at else None
        typer.echo("succeeded" if took is None else f"succeeded in {took:.0f} s")
    except KeyboardInterrupt as interrupt:
        if ends_run:
            terminate(connection, run_id)
            raise Interrupted(f"interrupted; run {run_id} is being terminated") from interrupt
        where = connection.address.run_link(run_id)
        raise Interrupted(f"interrupted; run {run_id} goes on: {where}") from interrupt


class _Shown:
    """Tells a display what has changed since the last look."""

    def __init__(self, progress: Progress, package: Package) -> None:
        self._progress = progress
        self._folders = {step.name: step.folder for step in package.steps}
        self._kinds = dict.fromkeys(self._folders, "waiting")

    def __call__(self, states: Mapping[str, StepState]) -> None:
        for name, state in states.items():
            if state.kind != self._kinds[name]:
                self._kinds[name] = state.kind
                self._progress.event(
                    Event(folder=self._folders[name], kind=state.kind, seconds=state.seconds)
                )
