"""`geokfp manifests`: what a cluster needs before steps can start pods there.

::

    DIR/
      role.yaml               rights of the account that steps run under
      network-policy.yaml     who may connect to pods
      training-runtime.yaml   what TrainJobs refer to (with the launcher trainjob)
      example-storage.yaml    a volume to hand files over by
      example-secrets.yaml    certificates and an object store's keys, to fill in

Examples are the user's once they are written: one that is there is left as it is.
"""

import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from .errors import UsageError
from .image_prefix import check_prefix

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_ACCOUNT = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
_EXAMPLE = "example-"
_RUNTIME_TTL_S = 3600
_COMMENTS = {
    "role": "Rights of the account that steps run under: what the launcher calls, and no more.",
    "network-policy": "Pods are reached by each other alone, at any port; a root also at its own port.",
    "training-runtime": "What TrainJobs refer to; one a cluster, of no namespace.",
    "example-storage": "An example: a volume that pods on several nodes write at once; its storageClassName "
    "is to be one that gives ReadWriteMany.",
    "example-secrets": "Examples, to be filled in. Certificates are those that `geokfp certificates` writes, "
    "or your authority's, of one node.",
}


def manifests(
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Folder for the files; without it all is printed."
        ),
    ] = None,
    namespace: Annotated[str, typer.Option(metavar="N", help="Where the pods run.")] = "kubeflow",
    service_account: Annotated[
        str, typer.Option(metavar="A", help="Account that steps run under.")
    ] = "pipeline-runner",
    service_account_namespace: Annotated[
        str, typer.Option(metavar="N", help="Where that account is; empty is --namespace.")
    ] = "",
    launcher: Annotated[
        list[str],
        typer.Option(
            metavar="KIND", help="job, jobset, trainjob or dgljob; may be given many times; all without it."
        ),
    ] = [],  # noqa: B006  typer copies it
    root_port: Annotated[
        int | None,
        typer.Option(
            metavar="P",
            min=1,
            max=65535,
            help="Let sites of other clusters reach a root, which listens at 7000 in its pod.",
        ),
    ] = None,
    image_prefix: Annotated[
        str, typer.Option(metavar="P", help="Registry (and folder) of the images, as for `geokfp compile`.")
    ] = "",
) -> None:
    """Write what a cluster needs: rights, network policies, the runtime of TrainJobs, examples.

    Example: `geokfp manifests --namespace team --service-account default-editor --launcher jobset -o cluster`
    """
    _check_name("--namespace", namespace)
    if not _ACCOUNT.fullmatch(service_account):
        raise UsageError(
            f"--service-account {service_account}: small letters, digits, - and . are allowed, at most 253"
        )
    _check_name("--service-account-namespace", service_account_namespace or namespace)
    prefix = check_prefix(image_prefix)
    kinds = _kinds(launcher)
    files = _files(kinds, namespace, service_account, service_account_namespace or namespace, root_port)
    if "trainjob" in kinds:
        files["training-runtime"] = [_runtime(prefix)]
    texts = {name: _text(name, files[name]) for name in _COMMENTS if name in files}
    if output is None:
        typer.echo("---\n".join(texts.values()), nl=False)
        return
    for path in _write(texts, output):
        typer.echo(path)


def _kinds(given: list[str]) -> list[str]:
    from geokfp.components._launch.pods import KINDS  # late, as not every command is to load it

    for kind in given:
        if kind not in KINDS:
            raise UsageError(f"--launcher {kind}: must be one of {', '.join(KINDS)}")
    return [kind for kind in KINDS if kind in given or not given]


def _files(
    kinds: list[str], namespace: str, account: str, account_namespace: str, root_port: int | None
) -> dict[str, list[dict[str, Any]]]:
    from geokfp.components._launch.manifests.access import network_policies, rights
    from geokfp.components._launch.manifests.examples import secrets, storage_claim

    role = rights(kinds, namespace=namespace, account=account, account_namespace=account_namespace)
    return {
        "role": role,
        "network-policy": network_policies(namespace=namespace, root_port=root_port),
        "example-storage": [storage_claim(namespace=namespace, size="100Gi")],
        "example-secrets": secrets(namespace=namespace),
    }


def _runtime(prefix: str) -> dict[str, Any]:
    from geokfp.components._images import image
    from geokfp.components._launch.manifests.trainjob import training_runtime

    named = image("training")
    return training_runtime("geokfp", image=f"{prefix}/{named}" if prefix else named, ttl_s=_RUNTIME_TTL_S)


def _text(name: str, objects: list[dict[str, Any]]) -> str:
    return f"# {_COMMENTS[name]}\n" + yaml.safe_dump_all(objects, sort_keys=False, allow_unicode=True)


def _check_name(option: str, value: str) -> None:
    if not _NAME.fullmatch(value):
        raise UsageError(f"{option} {value}: small letters, digits and - are allowed, at most 63")


def _write(texts: Mapping[str, str], output: Path) -> list[Path]:
    try:
        output.mkdir(parents=True, exist_ok=True)
        paths = {name: output / f"{name}.yaml" for name in texts}
        return [path for name, path in paths.items() if _put(path, texts[name], name.startswith(_EXAMPLE))]
    except OSError as error:
        at = error.filename or output
        raise UsageError(f"--output {output}: {at}: {error.strerror or error}; a folder is needed") from error


def _put(path: Path, text: str, example: bool) -> bool:
    """Writes a file, whole or not at all, unless it is an example that was changed by hand."""
    if example and path.is_file() and path.read_bytes() != text.encode():
        typer.echo(f"geokfp: {path} is kept as it is: remove it to have the example again", err=True)
        return False
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.stem}-") as folder:
        temporary = Path(folder) / path.name
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    return True
