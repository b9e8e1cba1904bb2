"""A tree of real processes that a test kills, stops and starts again, with a numpy script as its workers."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from geokfp.components.geo_training.topology import ROOT
from geokfp.components.geo_training.tree_job import TreeJob

CLASSES, FEATURES, BATCH = 3, 8, 16
COUNT = CLASSES * FEATURES

SCRIPT = """
import os
import time
from pathlib import Path

import numpy as np
from geokfp.components.geo_training.wire.units import WEIGHTS
from geokfp.components.geo_training.workers.place import Place
from geokfp.components.geo_training.workers.plane import Layout
from support.tree_processes import COUNT, BATCH, gradient_of, rows

index, steps = int(os.environ["INDEX"]), int(os.environ["STEPS"])


class Replica:
    layout, statistics_layout = Layout.of([("w", COUNT)]), Layout.of([])

    def weights(self):
        return self.w.copy()

    def set_weights(self, weights):
        self.w = np.array(weights, np.float32)


class Gradient:
    def flat(self):
        return gradient_of(replica.w, *rows(index, step))


place, replica = Place.from_environment(), Replica()
replica.set_weights(place.plane.first(WEIGHTS, replica.layout, np.zeros(COUNT, np.float32)))
place.begin(lambda: place.policy.begin(replica, place.plane, None))
with Path(os.environ["PROGRESS"]).open("a", buffering=1) as progress:
    for step in range(place.rounds_before, steps):
        progress.write(f"{step} {time.monotonic()}\\n")
        time.sleep(float(os.environ["STEP_S"]))
        place.policy.step(Gradient(), BATCH)
place.finish()
np.save(os.environ["RESULT"], replica.w)
"""


def rows(worker, step, count=BATCH):
    """Returns features and classes of one batch, of three classes that lines part."""
    generator = np.random.default_rng([worker, step])
    x = generator.normal(size=(count, FEATURES)).astype(np.float32)
    return x, (x[:, :CLASSES]).argmax(1)


def gradient_of(weights, x, y):
    """Returns the summed gradient of softmax regression."""
    scores = x @ weights.reshape(FEATURES, CLASSES)
    chances = np.exp(scores - scores.max(1, keepdims=True))
    chances /= chances.sum(1, keepdims=True)
    chances[np.arange(len(y)), y] -= 1
    return (x.T @ chances).ravel().astype(np.float32)


def accuracy(weights):
    """Returns the share of right answers on rows that no worker has."""
    x, y = rows(1000, 0, 2000)
    return float(((x @ weights.reshape(FEATURES, CLASSES)).argmax(1) == y).mean())


class TreeProcesses:
    """The processes; ends all that are left at the end of a `with` block.

    Args:
        folder: for all files.
        job: the tree's, by node: that of the root may say otherwise where it listens.
        steps, step_s: of a worker, and the least time of each.
        within: changes the command of a node or worker, by its name.
    """

    def __init__(
        self,
        folder: Path,
        job: Callable[[str], TreeJob],
        *,
        steps: int,
        step_s: float,
        within: Callable[[str, Sequence[str]], Sequence[str]] = lambda _name, command: command,
    ) -> None:
        self._folder, self._steps, self._step_s, self._within = folder, steps, step_s, within
        self.shape = job(ROOT).topology
        self.nodes = (ROOT, *(site.name for site in self.shape.sites))
        self._jobs = {name: job(name).write(folder / f"{name}.json") for name in self.nodes}
        self._script = folder / "script.py"
        self._script.write_text(SCRIPT, encoding="utf-8")
        self.running: dict[str, subprocess.Popen] = {}

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        if failure is not None:
            print(self.said())
        for process in self.running.values():
            process.kill()
            process.wait()

    def start(self, *names):
        for name in names:
            if "/" in name:
                command, environment = [sys.executable, str(self._script)], self._place(name)
            else:
                module = "geokfp.components.geo_training.server"
                command, environment = [sys.executable, "-m", module, name, str(self._jobs[name])], {}
            with self.log(name).open("ab") as log:
                self.running[name] = subprocess.Popen(
                    self._within(name, command),
                    env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), **environment},
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )

    def kill(self, *names):
        for name in names:
            self.running[name].kill()
            self.running[name].wait()

    def restart(self, *names):
        self.kill(*names)
        self.start(*names)

    def signal(self, name, what: signal.Signals):
        self.running[name].send_signal(what)

    def log(self, name) -> Path:
        return self._folder / f"{name.replace('/', '-')}.log"

    def progress(self, name) -> list[tuple[int, float]]:
        """Returns each step that a worker has begun, and when."""
        path = self._folder / f"{name.replace('/', '-')}.steps"
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        return [(int(step), float(at)) for step, at in (line.split() for line in lines[-100000:])]

    def furthest(self) -> int:
        """Returns the last step that any worker has begun."""
        return max((step for name in self.shape.workers for step, _ in self.progress(name)[-1:]), default=-1)

    def results(self) -> dict[str, np.ndarray]:
        """Returns the last weights of all workers."""
        return {name: np.load(self._place(name)["RESULT"]) for name in self.shape.workers}

    def said(self) -> str:
        """Returns the ends of all logs."""
        return "\n".join(f"{n}: {self.log(n).read_text('utf-8')[-600:]}" for n in self.running)

    def _place(self, name) -> dict[str, str]:
        plain = name.replace("/", "-")
        return {
            "GEOKFP_TREE": str(self._jobs[name.partition("/")[0]]),
            "GEOKFP_WORKER": name,
            "RESULT": str(self._folder / f"{plain}.npy"),
            "PROGRESS": str(self._folder / f"{plain}.steps"),
            "INDEX": str(self.shape.workers.index(name)),
            "STEPS": str(self._steps),
            "STEP_S": str(self._step_s),
        }
