"""Lets processes of this machine stand in for the sites' pods, to try out what keeps data at its sites."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from ..._files import InputError
from ..._launch.as_processes import run_as_processes
from ..._launch.environment import step_pod
from ..._launch.launch_options import LaunchOptions
from ..._launch.launch_step import Surroundings
from ..._launch.pods import KINDS

Options = TypeVar("Options", bound=LaunchOptions)
_OF_PROCESSES = ("storage", "env")
"""What of a site's topology is about processes too."""


@contextmanager
def on_this_machine(options: Options, surroundings: Surroundings) -> Iterator[tuple[Options, Surroundings]]:
    """Yields options and surroundings by which a step's pods are processes of this machine.

    Args:
        options: a step's, with the launcher `local` and a topology.
        surroundings: the step's.

    Raises:
        InputError: this is a pod of a pipeline, which is at one place and must not read what others keep.
    """
    if step_pod() is not None:
        raise InputError(
            f"launcher 'local': must be {', '.join(KINDS)} in a pipeline's pod, as each site's own pods "
            "read what stays at the site"
        )
    with tempfile.TemporaryDirectory(prefix="geokfp-") as folder:
        changed: dict[str, Any] = {
            "launcher": KINDS[0],
            "run_id": options.run_id or "local",
            "namespace": options.namespace or "default",
            "hand_over": options.hand_over or str(Path(folder) / "hand-over"),
            "topology": _of_processes(getattr(options, "topology", {})),
        }
        if hasattr(options, "plain_text"):
            changed["plain_text"] = options.plain_text or not getattr(options, "certificates", "")
        yield replace(options, **changed), replace(surroundings, run=run_as_processes)


def _of_processes(topology: Any) -> dict[str, Any]:
    sites = {
        name: {key: site[key] for key in _OF_PROCESSES if key in site}
        for name, site in topology.get("sites", {}).items()
    }
    return {"sites": sites}
