"""`geokfp schedule`: recurring runs of a pipeline on a Kubeflow Pipelines installation."""

import sys
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from typer.core import TyperGroup

from .errors import UsageError
from .server import schedules
from .server.cron import six_fields
from .server.interval import seconds_of
from .server.runs import RunOptions
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

_WIDTH = 200


class _SetByDefault(TyperGroup):
    """`geokfp schedule PIPELINE ...` means `geokfp schedule set PIPELINE ...`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Puts the command before arguments that begin with none."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["set", *args]
        rest: list[str] = super().parse_args(ctx, args)
        return rest


schedule = typer.Typer(
    cls=_SetByDefault,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Run a pipeline again and again on a Kubeflow Pipelines installation.

    `geokfp schedule PIPELINE ...` creates a schedule, or changes the one of its name: see
    `geokfp schedule set --help`.

    Example: `geokfp schedule cross_site --host https://kubeflow.example.com/pipeline --cron "0 3 * * *"
    --name nightly -p 'nodes=s3://bucket/[[ScheduledTime.2006-01-02]]/nodes.csv'`
    """,
)
ScheduleName = Annotated[str, typer.Argument(metavar="NAME", help="Name of a schedule, or its id.")]


@schedule.command("set")
def set_schedule(
    pipeline: PipelineName,
    host: Host = "",
    param: Params = [],  # noqa: B006  typer copies it
    params_file: ParamsFile = None,
    cron: Annotated[
        str,
        typer.Option(
            metavar="FIELDS",
            help="When, in UTC: minute, hour, day of month, month, day of week, such as `0 3 * * MON-FRI`. "
            "Six fields have the second first.",
        ),
    ] = "",
    interval: Annotated[str, typer.Option(metavar="T", help="How often, such as 6h or 1d12h.")] = "",
    name: Annotated[str, typer.Option(metavar="NAME", help="Otherwise the pipeline's name.")] = "",
    max_concurrency: Annotated[
        int,
        typer.Option(metavar="N", help="Runs at once, 1 to 10; one that would be more is put off."),
    ] = 1,
    catch_up: Annotated[
        bool, typer.Option("--catch-up", help="Make up for starts that were missed, all of them.")
    ] = False,
    paused: Annotated[bool, typer.Option("--paused", help="Start no run until it is resumed.")] = False,
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
    """Create a schedule, or change the one of its name; a paused one stays paused.

    Text parameters may hold `[[ScheduledTime.2006-01-02]]` (a layout of Go's), `[[CurrentTime]]` or
    `[[RunUUID]]`, which KFP 2.16 and later fills in when a run starts.
    Values are checked as `geokfp run` checks them, before anything is sent.

    Example: `geokfp schedule single_site --host https://kubeflow.example.com/pipeline --interval 6h`
    """
    if bool(cron) == bool(interval):
        raise UsageError("--cron or --interval: one of the two is needed, not both")
    timing = schedules.Timing(
        cron=six_fields(cron) if cron else None,
        interval_s=seconds_of(interval) if interval else None,
        max_concurrency=max_concurrency,
        catch_up=catch_up,
    )
    submission = prepare(pipeline, param, params_file, image_prefix=image_prefix, scheduled=True)
    tell_unchecked(submission)
    options = RunOptions(
        name=name or submission.package.name,
        experiment=experiment,
        service_account=service_account,
        pipeline_root=pipeline_root,
        no_cache=no_cache,
    )
    connection = reach(host, namespace, token_file, cookies_file, ca_file)
    outcome, made = schedules.put(connection, submission, options, timing, paused=paused)
    typer.echo(f"{outcome} {options.name} ({made.recurring_run_id}): {_summary(made)}")


@schedule.command("list")
def list_schedules(
    host: Host = "",
    namespace: Namespace = "",
    token_file: TokenFile = None,
    cookies_file: CookiesFile = None,
    ca_file: CaFile = None,
) -> None:
    """List the schedules.

    Example: `geokfp schedule list --host https://kubeflow.example.com/pipeline`
    """
    found = schedules.every(reach(host, namespace, token_file, cookies_file, ca_file))
    if not found:
        typer.echo("no schedules")
        return
    table = Table("Schedule", "When (UTC)", "State", "At once", "Pipeline", "Id", box=None, pad_edge=False)
    for each in found:
        table.add_row(
            each.display_name,
            schedules.timing_text(each),
            _state(each),
            str(each.max_concurrency or ""),
            schedules.pipeline_of(each),
            each.recurring_run_id,
        )
    width = None if sys.stdout.isatty() else _WIDTH  # what reads it needs whole ids
    Console(highlight=False, width=width).print(table)


@schedule.command("pause")
def pause(
    name: ScheduleName,
    host: Host = "",
    namespace: Namespace = "",
    token_file: TokenFile = None,
    cookies_file: CookiesFile = None,
    ca_file: CaFile = None,
) -> None:
    """Start no more runs until the schedule is resumed; runs that have started go on.

    Example: `geokfp schedule pause nightly --host https://kubeflow.example.com/pipeline`
    """
    schedules.pause(reach(host, namespace, token_file, cookies_file, ca_file), name)
    typer.echo(f"paused {name}")


@schedule.command("resume")
def resume(
    name: ScheduleName,
    host: Host = "",
    namespace: Namespace = "",
    token_file: TokenFile = None,
    cookies_file: CookiesFile = None,
    ca_file: CaFile = None,
) -> None:
    """Start runs again.

    Example: `geokfp schedule resume nightly --host https://kubeflow.example.com/pipeline`
    """
    schedules.resume(reach(host, namespace, token_file, cookies_file, ca_file), name)
    typer.echo(f"resumed {name}")


@schedule.command("delete")
def delete(
    name: ScheduleName,
    host: Host = "",
    namespace: Namespace = "",
    token_file: TokenFile = None,
    cookies_file: CookiesFile = None,
    ca_file: CaFile = None,
) -> None:
    """Delete a schedule; runs that have started go on.

    Example: `geokfp schedule delete nightly --host https://kubeflow.example.com/pipeline`
    """
    schedules.delete(reach(host, namespace, token_file, cookies_file, ca_file), name)
    typer.echo(f"deleted {name}")


def _summary(schedule: Any) -> str:
    return f"{schedules.timing_text(schedule)} (UTC), {_state(schedule)}, {schedule.max_concurrency} at once"


def _state(schedule: Any) -> str:
    return "paused" if schedules.is_paused(schedule) else "active"
