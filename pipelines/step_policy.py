"""What each step of a pipeline does about caching, retries and time limits, and why.

Caching. KFP's key holds parameter values, names of artifacts and the command, never the content behind a URI:

- reading tables, and dividing their rows among sites, is not cached: the same URI may hold other rows
  tomorrow;
- partitioning is cached: it gets the graph's `fingerprint` as a parameter, so the key does hold the content,
  and no run's id, which would differ each time: in a pod it is asked for, see `LaunchOptions.run_id`;
- training and export are not cached: a user's own code and the machines' timing are in no key;
- who is champion changes behind the same URI, so what asks for it is not cached either.

Retries are for lost pods and stores that are away for a moment, not for wrong input: a wrong option fails as
fast the second time. `geokfp run` drops them, a local process is not evicted. A time limit exists for every
step, as a pod that waits for something that never comes is otherwise found by a person.
"""

from dataclasses import dataclass
from typing import Any

from kfp import kubernetes

HOUR_S = 3600


@dataclass(frozen=True, kw_only=True, slots=True)
class StepPolicy:
    """How KFP treats one step; all of it is fixed when a pipeline is compiled."""

    cached: bool
    """Whether an earlier run's output may stand in."""
    retries: int
    """How often KFP starts the step again after a failure."""
    timeout_s: int
    """Seconds after which the step's pod is ended."""

    def __post_init__(self) -> None:
        """Checks the ranges."""
        if self.retries < 0:
            raise ValueError(f"retries={self.retries}: 0 or more is allowed")
        if self.timeout_s <= 0:
            raise ValueError(f"timeout_s={self.timeout_s}: more than 0 is allowed")

    def apply(self, task: Any, display_name: str) -> Any:
        """Sets everything on a pipeline's task.

        Args:
            task: what calling a component inside a pipeline returned.
            display_name: what the UI shows in the step's box.

        Returns:
            The same task.
        """
        task.set_caching_options(self.cached)
        task.set_display_name(display_name)
        if self.retries:
            task.set_retry(num_retries=self.retries, backoff_duration="30s", backoff_factor=2.0)
        kubernetes.set_timeout(task, seconds=self.timeout_s)
        return task


READ_TABLES = StepPolicy(cached=False, retries=2, timeout_s=2 * HOUR_S)
"""Reading tables: stores are away at times, so two retries."""
PARTITION = StepPolicy(cached=True, retries=1, timeout_s=2 * HOUR_S)
"""Partitioning: one process, deterministic; a retry only helps after a lost pod."""
EXPORT = StepPolicy(cached=False, retries=1, timeout_s=HOUR_S)
"""Export and its verification: minutes."""

OPEN_WINDOW = StepPolicy(cached=False, retries=2, timeout_s=HOUR_S)
"""Looking up the champion: stores are away at times."""
EVALUATE = StepPolicy(cached=False, retries=1, timeout_s=2 * HOUR_S)
"""Running two models on the test nodes."""
PROMOTE = StepPolicy(cached=False, retries=2, timeout_s=2 * HOUR_S)
"""Writing to the store of champions; done again it changes nothing."""


def training_policy(retries: int, timeout_s: int) -> StepPolicy:
    """Returns the policy of a training step, whose length only the pipeline's user knows."""
    return StepPolicy(cached=False, retries=retries, timeout_s=timeout_s)
