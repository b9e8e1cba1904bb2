"""A container as strict as a pod may be, by runc: not root, no network, only mounts writable."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .container_images import BuiltImages

RUNC_STATE = "/run/geokfp-runc"


def run_container(
    images: BuiltImages,
    reference: str,
    command: Sequence[str],
    *,
    name: str,
    mounts: Mapping[str, Path],
    user: tuple[int, int] | None = None,
    folder: Path,
    timeout_s: float = 600,
) -> str:
    """Runs a command in a container of an image; returns what it printed.

    Args:
        images: where the image is.
        reference: the image.
        command: the command with its arguments, in place of any of the image's.
        name: of the container, unique on this machine; its host name too.
        mounts: folders of this machine by where they are mounted, writable.
        user: ids of user and group; the image's own when None.
        folder: an empty one, for the container's settings.
        timeout_s: how long it may run, in seconds.

    Raises:
        AssertionError: it failed, with the end of what it printed.
        TimeoutExpired: it took too long; it is gone then.
    """
    container = images.command(["buildah", "from", "--pull-never", reference]).strip()
    try:
        system = images.command(["buildah", "mount", container]).strip()
        hosts = folder / "hosts"
        hosts.write_text(f"127.0.0.1 localhost\n127.0.0.1 {name}\n")
        subprocess.run(["runc", "spec"], cwd=folder, check=True)
        settings = json.loads((folder / "config.json").read_text())
        _fill(settings, images.config(reference), command, user)
        settings["root"] = {"path": system, "readonly": True}
        settings["hostname"] = name
        settings["mounts"] += [_bind(str(hosts), "/etc/hosts", "ro")]
        settings["mounts"] += [_bind(str(path), target, "rw") for target, path in mounts.items()]
        (folder / "config.json").write_text(json.dumps(settings))
        done = _run(name, folder, timeout_s)
    finally:
        images.command(["buildah", "rm", container])
    assert done.returncode == 0, f"{name} ended with {done.returncode}:\n{done.stdout[-6000:]}"
    return done.stdout


def _fill(
    settings: dict[str, Any], config: Mapping[str, Any], command: Sequence[str], user: tuple[int, int] | None
) -> None:
    own_user, own_group = (int(part) for part in config["User"].split(":"))
    ids = user or (own_user, own_group)
    settings["process"].update(
        terminal=False,
        user={"uid": ids[0], "gid": ids[1]},
        args=list(command),
        env=list(config["Env"]),
        cwd=config["WorkingDir"],
        noNewPrivileges=True,
        capabilities={},
        rlimits=[],
    )


def _bind(source: str, target: str, access: str) -> dict[str, Any]:
    return {"destination": target, "type": "bind", "source": source, "options": ["rbind", access]}


def _run(name: str, bundle: Path, timeout_s: float) -> "subprocess.CompletedProcess[str]":
    runc = ["runc", "--root", RUNC_STATE]
    try:
        return subprocess.run(
            [*runc, "run", "--bundle", str(bundle), name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout_s,
        )
    finally:
        # Of use only where the time was up; a container that has ended is not known any more.
        subprocess.run([*runc, "delete", "--force", name], capture_output=True, check=False)
