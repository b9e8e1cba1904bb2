"""A launcher of processes for pods, for tests to kill: `pod_launcher.py FOLDER ORPHAN_TIMEOUT_S`."""

import sys
from pathlib import Path

from geokfp.components._launch.as_processes import run_as_processes
from geokfp.components._launch.cluster import Placed
from geokfp.components._launch.hand_over import HandOver
from geokfp.components._launch.launch_options import LaunchOptions
from geokfp.components._launch.launch_step import Surroundings, run_launches
from support.pod_targets import hanging_launch

if __name__ == "__main__":
    folder, orphan_timeout_s = Path(sys.argv[1]), int(sys.argv[2])
    options = LaunchOptions(launcher="job", run_id="r", orphan_timeout_s=orphan_timeout_s)
    hand_over = HandOver(str(folder / "hand-over"))
    launch = hanging_launch(folder, hand_over.uri, orphan_timeout_s)
    run_launches(
        [(Placed(launch=launch, kind=options.launcher), hand_over)],
        options,
        Surroundings(run=run_as_processes),
    )
