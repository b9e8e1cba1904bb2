"""A container as strict as a pod may be, by runc: not root, only mounts writable, no network unless given."""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .container_images import BuiltImages

RUNC_STATE = "/run/geokfp-runc"
RUNC = ("runc", "--root", RUNC_STATE)
SHM_BYTES = 64 << 20
"""What a node gives a pod that asks for nothing."""


@dataclass(frozen=True, kw_only=True)
class Contained:
    """What runs in a container, and what it sees."""

    name: str
    """Unique on this machine; the host name too."""
    image: str
    """The image's name."""
    command: Sequence[str]
    """With its arguments, in place of any of the image's."""
    folder: Path
    """An empty one, for the container's settings."""
    mounts: Mapping[str, Path] = field(default_factory=dict)
    """Folders of this machine by where they are mounted, writable."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables beside the image's own."""
    user: tuple[int, int] | None = None
    """Ids of user and group; the image's own when None."""
    shared_memory_bytes: int = SHM_BYTES
    """Size of /dev/shm."""
    hosts: Path | None = None
    """What it sees as /etc/hosts; None is its own name alone."""
    own_network: bool = True
    """Whether its network is its own, without a way out; else that of who starts it."""


def run_container(images: BuiltImages, contained: Contained, *, timeout_s: float = 600) -> str:
    """Runs a container; returns what it printed.

    Args:
        images: where the image is.
        contained: what to run.
        timeout_s: how long it may run, in seconds.

    Raises:
        AssertionError: it failed, with the end of what it printed.
        TimeoutExpired: it took too long; it is gone then.
    """
    with prepared(images, contained) as command:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout_s,
        )
    assert done.returncode == 0, f"{contained.name} ended with {done.returncode}:\n{done.stdout[-6000:]}"
    return done.stdout


@contextmanager
def prepared(images: BuiltImages, contained: Contained) -> Iterator[list[str]]:
    """Yields the command that runs a container in the foreground; nothing of it is left afterwards."""
    container = images.command(["buildah", "from", "--pull-never", contained.image]).strip()
    try:
        system = images.command(["buildah", "mount", container]).strip()
        _write_settings(contained, images.config(contained.image), system)
        try:
            yield [*RUNC, "run", "--bundle", str(contained.folder), contained.name]
        finally:
            # Of use only where it still runs; a container that has ended is not known any more.
            subprocess.run([*RUNC, "delete", "--force", contained.name], capture_output=True, check=False)
    finally:
        images.command(["buildah", "rm", container])


def _write_settings(contained: Contained, config: Mapping[str, Any], system: str) -> None:
    subprocess.run(["runc", "spec"], cwd=contained.folder, check=True)
    path = contained.folder / "config.json"
    settings = json.loads(path.read_text())
    hosts = contained.hosts or contained.folder / "hosts"
    if contained.hosts is None:
        hosts.write_text(f"127.0.0.1 localhost\n127.0.0.1 {contained.name}\n")
    own_user, own_group = (int(part) for part in config["User"].split(":"))
    ids = contained.user or (own_user, own_group)
    settings["process"].update(
        terminal=False,
        user={"uid": ids[0], "gid": ids[1]},
        args=list(contained.command),
        env=[*config["Env"], *(f"{name}={value}" for name, value in contained.environment.items())],
        cwd=config["WorkingDir"],
        noNewPrivileges=True,
        capabilities={},
        rlimits=[],
    )
    settings["root"] = {"path": system, "readonly": True}
    settings["hostname"] = contained.name
    for mount in settings["mounts"]:
        if mount["destination"] == "/dev/shm":
            mount["options"] = [
                "nosuid",
                "noexec",
                "nodev",
                "mode=1777",
                f"size={contained.shared_memory_bytes}",
            ]
    settings["mounts"] += [_bind(str(hosts), "/etc/hosts", "ro")]
    settings["mounts"] += [_bind(str(source), target, "rw") for target, source in contained.mounts.items()]
    if not contained.own_network:
        spaces = settings["linux"]["namespaces"]
        settings["linux"]["namespaces"] = [space for space in spaces if space["type"] != "network"]
    path.write_text(json.dumps(settings))


def _bind(source: str, target: str, access: str) -> dict[str, Any]:
    return {"destination": target, "type": "bind", "source": source, "options": ["rbind", access]}
