"""A launcher for tests to kill: `launch_on_clusters.py KIND KUBECONFIG ...`; or several, one after the other.

Without arguments it reads lines `KIND KUBECONFIG ...`, forks a launcher for each, and prints its process id,
and at its end the status that `os.waitpid` gives: all that they need is imported once.
"""

import os
import sys
import threading

from geokfp.components._launch.cluster_run import Cluster, Placed, run_on_clusters
from support.launched import launch, quick


def run(kind: str, *kubeconfigs: str) -> None:
    """Runs the launch on all clusters; the sign of life of a launcher for several never returns."""
    clusters = [Cluster(name=f"c{number}", kubeconfig=path) for number, path in enumerate(kubeconfigs)]

    def beat() -> None:
        if len(clusters) > 1:
            threading.Event().wait()

    run_on_clusters(
        [Placed(launch=launch(), kind=kind, cluster=cluster) for cluster in clusters],
        on_line=lambda *line: None,
        beat=beat,
        settings=quick(),
    )


if __name__ == "__main__":
    if sys.argv[1:]:
        run(*sys.argv[1:])
        sys.exit()
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            sys.stdin.close()
            run(*line.split())
            os._exit(0)
        print(pid, flush=True)
        print(os.waitpid(pid, 0)[1], flush=True)
