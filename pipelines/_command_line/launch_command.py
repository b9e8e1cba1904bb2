"""`geokfp launch`: what a component starts on a cluster, to read, or to run here."""

from pathlib import Path
from typing import Annotated

import typer
import yaml

from .component_plan import LAUNCHED, ComponentPlan, plan_component
from .errors import UsageError
from .launch_here import defaults, run_here
from .run_command import require_engine


def complete_component(incomplete: str) -> list[str]:
    """Returns the components that start pods and begin with what was typed."""
    return [name for name in LAUNCHED if name.startswith(incomplete)]


def launch(
    component: Annotated[
        str,
        typer.Argument(
            metavar="COMPONENT",
            help=f"One of {', '.join(LAUNCHED)}.",
            autocompletion=complete_component,
        ),
    ],
    launcher: Annotated[
        str, typer.Option(metavar="KIND", help="What starts the pods: job, jobset, trainjob or dgljob.")
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the objects as YAML; nothing is started.")
    ] = False,
    as_processes: Annotated[
        bool,
        typer.Option("--as-processes", help="Run the pods' own commands here, as processes; needs --output."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Folder for the outputs of --as-processes."),
    ] = None,
    param: Annotated[
        list[str],
        typer.Option(
            "--param",
            "-p",
            metavar="NAME=VALUE",
            help="A parameter of the component, or the path or URI of an input artifact; many times.",
        ),
    ] = [],  # noqa: B006  typer copies it
    params_file: Annotated[
        Path | None,
        typer.Option("--params-file", metavar="F.yaml", help="A YAML mapping of parameters; --param wins."),
    ] = None,
    pod_settings: Annotated[
        Path | None,
        typer.Option(
            "--pod-settings",
            metavar="F.yaml",
            help="A YAML mapping of resources, env, volumes, volume_mounts, tolerations, node_selector ...",
        ),
    ] = None,
) -> None:
    """Show what a component starts on a cluster, or run it here without one.

    Example: `geokfp launch train_gnn --launcher jobset --dry-run -p partitions=partitions -p hand_over=/data`

    Example: `geokfp launch train_gnn --launcher jobset --as-processes -p partitions=partitions -o trained`
    """
    if dry_run == as_processes:
        raise UsageError("give either --dry-run or --as-processes")
    if as_processes == (output is None):
        raise UsageError("--output: must be given with --as-processes, and only then")
    require_engine()
    given = defaults(output) if output is not None else {}
    plan = plan_component(component, launcher, param, params_file, pod_settings, given)
    if output is None:
        typer.echo(manifests_of(plan), nl=False)
        return
    metrics = run_here(component, plan, output)
    for name, value in metrics.items():
        typer.echo(f"{name} {value:.6g}")


def manifests_of(plan: ComponentPlan) -> str:
    """Returns the objects of a plan as YAML documents, in the order of their creation.

    Raises:
        UsageError: the kind cannot start what is planned.
    """
    from geokfp.components._files import InputError  # late: they need the extra `engine`
    from geokfp.components._launch.manifests import MANIFESTS

    kind = MANIFESTS[plan.launcher]
    try:
        objects = [obj for launch in plan.launches for obj in kind.objects(launch)]
    except InputError as error:
        raise UsageError(str(error)) from error
    return yaml.safe_dump_all(objects, sort_keys=False, allow_unicode=True)
