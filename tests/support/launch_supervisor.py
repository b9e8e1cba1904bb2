"""A supervising process for tests to kill: `launch_supervisor.py FOLDER SHARED_MEMORY_PREFIX`."""

import sys
from pathlib import Path

from geokfp.components._launch import Job, Replica, Role, run_job

if __name__ == "__main__":
    folder, prefix = Path(sys.argv[1]), sys.argv[2]
    hanging = Replica(name="hanging", arguments=(str(folder / "pids"),))
    role = Role(name="hanging", target="support.launch_targets:hang", replicas=(hanging,))
    run_job(
        Job(name="test", roles=(role,), deadline_s=600, shared_memory_prefixes=(prefix,)),
        log_folder=folder / "logs",
    )
