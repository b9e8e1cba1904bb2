"""A supervising process for tests to kill: `launch_supervisor.py FOLDER SHARED_MEMORY_PREFIX [PRELOAD]`."""

import sys
from pathlib import Path

from geokfp.components._launch import Job, Replica, Role, run_job

if __name__ == "__main__":
    folder, prefix, *preload = Path(sys.argv[1]), *sys.argv[2:]
    pids = str(folder / "pids")
    hanging = Replica(name="hanging", arguments=(pids,), environment={"HANGING_IMPORT": pids})
    role = Role(
        name="hanging",
        target="support.launch_targets:hang",
        replicas=(hanging,),
        preload=tuple(preload),
    )
    run_job(
        Job(name="test", roles=(role,), deadline_s=600, shared_memory_prefixes=(prefix,)),
        log_folder=folder / "logs",
    )
