"""Options that `geokfp submit` and `geokfp schedule` share, as typer reads them."""

from pathlib import Path
from typing import Annotated

import typer

from .completion import complete_parameter, complete_pipeline
from .errors import UsageError
from .server.connection import Address, Connection, connect
from .server.submission import Submission

_REACH = "Where, and who asks"
_RUNS = "How runs are run"

PipelineName = Annotated[
    str,
    typer.Argument(
        metavar="PIPELINE",
        help="A built-in pipeline (see `geokfp list`), or the path of a compiled .yaml.",
        autocompletion=complete_pipeline,
    ),
]
Params = Annotated[
    list[str],
    typer.Option(
        "--param",
        "-p",
        metavar="NAME=VALUE",
        help="A parameter of the pipeline; may be given many times.",
        autocompletion=complete_parameter,
    ),
]
ParamsFile = Annotated[
    Path | None,
    typer.Option("--params-file", metavar="F.yaml", help="A YAML mapping of parameters; --param wins."),
]
ImagePrefix = Annotated[
    str,
    typer.Option(
        metavar="P",
        help="Registry (and folder) of the images, such as `registry.example.com/team`.",
        rich_help_panel=_RUNS,
    ),
]
Experiment = Annotated[
    str,
    typer.Option(metavar="NAME", help="Made when it is not there.", rich_help_panel=_RUNS),
]
ServiceAccount = Annotated[
    str,
    typer.Option(metavar="NAME", help="Service account of the steps' pods.", rich_help_panel=_RUNS),
]
PipelineRoot = Annotated[
    str,
    typer.Option(
        metavar="URI", help="Where artifacts go, such as `s3://bucket/runs`.", rich_help_panel=_RUNS
    ),
]
NoCache = Annotated[
    bool,
    typer.Option("--no-cache", help="Run the steps whose results would be reused.", rich_help_panel=_RUNS),
]
Host = Annotated[
    str,
    typer.Option(
        metavar="URL",
        envvar="KF_PIPELINES_ENDPOINT",
        help="The installation, such as `https://kubeflow.example.com/pipeline`.",
        rich_help_panel=_REACH,
        show_default=False,
    ),
]
Namespace = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Namespace of your profile, where users have their own.",
        rich_help_panel=_REACH,
        show_default=False,
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        metavar="F",
        envvar="KF_PIPELINES_SA_TOKEN_PATH",
        help="File of a bearer token.",
        rich_help_panel=_REACH,
    ),
]
CookiesFile = Annotated[
    Path | None,
    typer.Option(metavar="F", help="File of a Cookie header's value.", rich_help_panel=_REACH),
]
CaFile = Annotated[
    Path | None,
    typer.Option(
        metavar="F.pem", help="Certificates that the server's is held against.", rich_help_panel=_REACH
    ),
]


def tell_unchecked(submission: Submission) -> None:
    """Says on stderr which steps will check their values themselves."""
    for step, library in submission.unchecked.items():
        typer.echo(
            f"geokfp: {step} checks its values when it starts: {library} is not installed here, "
            "pip install 'geokfp[engine]' brings it",
            err=True,
        )


def reach(
    host: str, namespace: str, token_file: Path | None, cookies_file: Path | None, ca_file: Path | None
) -> Connection:
    """Connects to the installation that the options name.

    Raises:
        ServerError: it does not answer, or refuses.
        UsageError: an option is wrong or missing.
    """
    if not host:
        raise UsageError("--host is needed: the URL of the installation, here or as KF_PIPELINES_ENDPOINT")
    address = Address(
        host=host, namespace=namespace, token_file=token_file, cookies_file=cookies_file, ca_file=ca_file
    )
    return connect(address)
