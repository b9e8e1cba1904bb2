"""Runs pods as processes of this machine, to each of which all stores but its own are hidden by a mount."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from geokfp.components._launch import ProcessFailed
from geokfp.components._launch.cluster import Placed
from geokfp.components._launch.manifests import MANIFESTS

POLL_S = 0.1


class PodsOfStores:
    """A `PodRunner`.

    Args:
        folder: what each pod prints goes here, under its name; its temporary files too.
        stores: folder of each group that has one; the kernel shows the others as empty to its pods.
    """

    def __init__(self, folder: Path, stores: Mapping[str, Path]) -> None:
        self._folder, self._stores = folder, stores

    def __call__(
        self, placed: Sequence[Placed], *, on_line: object, beat: Callable[[], None], on_created: object
    ) -> None:
        processes: dict[str, subprocess.Popen[bytes]] = {}
        hosts = [MANIFESTS[one.kind].hosts(one.launch) for one in placed]
        names = [name for of_launch in hosts for group in of_launch.values() for name in group]
        known = {name: self.address(number) for number, name in enumerate(names)}
        try:
            for one, of_launch in zip(placed, hosts, strict=True):
                for group in one.launch.groups:
                    for index in range(group.num_pods):
                        processes[f"{group.name}-{index}"] = self._start(
                            f"{group.name}-{index}",
                            [path for of, path in self._stores.items() if of != group.name],
                            {
                                "GEOKFP_GROUP": group.name,
                                "GEOKFP_INDEX": str(index),
                                "GEOKFP_HOSTS": json.dumps(of_launch),
                                "GEOKFP_ADDRESSES": json.dumps(known),
                                "GEOKFP_TARGET": group.target,
                                "GEOKFP_DOCUMENT": group.document,
                            },
                        )
            while any(process.poll() is None for process in processes.values()):
                beat()
                for name, process in processes.items():
                    if process.poll() not in (None, 0):
                        text = (self._folder / name / "log.txt").read_text().splitlines()
                        raise ProcessFailed(name, text[-1], tuple(text[-30:]))
                time.sleep(POLL_S)
        finally:
            for process in processes.values():
                process.terminate()
                process.wait(timeout=30)

    @staticmethod
    def address(number: int) -> str:
        """Returns the address of a pod, by its number among all of a step's."""
        return f"127.{os.getpid() % 200 + 20}.0.{number + 1}"

    def _start(
        self, name: str, hidden: Sequence[Path], variables: dict[str, str]
    ) -> "subprocess.Popen[bytes]":
        home = self._folder / name
        home.mkdir(parents=True, exist_ok=True)
        mounts = "".join(f"mount -t tmpfs none '{path}' && " for path in hidden)
        command = f"{mounts}exec '{sys.executable}' -m geokfp.components._launch.pod"
        with (home / "log.txt").open("w") as log:
            return subprocess.Popen(
                ["unshare", "--mount", "--propagation", "private", "sh", "-c", command],
                env={**os.environ, "HOME": str(home), "TMPDIR": str(home), **variables},
                cwd=home,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
