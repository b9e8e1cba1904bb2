"""A model of which one trainer kills a process of its tree, in steps that a test chooses."""

import os
from pathlib import Path

KILLS = """
import os
import signal
from pathlib import Path

import psutil
from geokfp.components.training.models import build as built_in

STEPS = []


def is_named(process, name):
    try:
        return Path(f"/proc/{process.pid}/comm").read_text().strip() == name[-15:]
    except OSError:
        return False


def kill(mark, step, name, whole_pod):
    left = int(Path(mark).read_text())
    if not left:
        return
    Path(mark).write_text(str(left - 1))
    for process in psutil.Process(step).children(recursive=True):
        if is_named(process, name):
            (process.parent().parent() if whole_pod else process).send_signal(signal.SIGKILL)


def build(num_features, num_classes, mark, step, killer, killed, at, whole_pod):
    model = built_in("sage", num_features, num_classes, num_layers=2)

    def count(module, _inputs):
        STEPS.extend([1] if module.training else [])
        if module.training and len(STEPS) in at and is_named(psutil.Process(), killer):
            kill(mark, step, killed, whole_pod)

    model.register_forward_pre_hook(count)
    return model
"""


class Killer:
    """Who kills what, and when.

    Args:
        folder: for the model's code and the mark.
        killed: the process, such as `site-1/trainer-0`.
        at: after how many steps of the trainer that does it.
        killer: that trainer; it should outlive what it does.
        whole_pod: whether the pod that holds the process is killed.
    """

    def __init__(self, folder: Path, killed: str, at=(8,), killer="site-0/trainer-0", *, whole_pod=False):
        self.code, self._mark = folder / "kills_of_test.py", folder / "mark"
        self.code.write_text(KILLS, encoding="utf-8")
        self.spare()
        self._num = len(at)
        self.options = {
            "entry_point": "kills_of_test:build",
            "user_code": str(self.code),
            "model_options": {
                "mark": str(self._mark),
                "step": os.getpid(),
                "killer": killer,
                "killed": killed,
                "at": list(at),
                "whole_pod": whole_pod,
            },
        }

    def spare(self) -> None:
        """Lets all live."""
        self._mark.write_text("0")

    def arm(self) -> None:
        """Lets the killing begin."""
        self._mark.write_text(str(self._num))

    @property
    def is_done(self) -> bool:
        """Whether it has killed as often as it was to."""
        return self._mark.read_text() == "0"
