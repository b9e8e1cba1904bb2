"""SIGTERM at a launcher: the owner's deletion is accepted within half a second, whatever it is doing."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from geokfp.components._launch.api_errors import Stopped
from geokfp.components._launch.ready_request import Endpoint, ReadyRequest
from geokfp.components._launch.termination import Deletion
from support.api_server import ApiServerDouble
from support.cluster_script import DEADLINE_S, ClusterScript
from support.launched import NAMESPACE

ALL = ("root/0", "worker/0", "worker/1")
TESTS = Path(__file__).parents[2]
BOUND_S = 0.5
STATUS = 128 + signal.SIGTERM


class Launchers:
    """A process that launchers are forked from."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(TESTS / "support" / "launch_on_clusters.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(TESTS)},
        )

    def start(self, *kubeconfigs: str) -> int:
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(["job", *kubeconfigs]) + "\n")
        self.process.stdin.flush()
        return self._number()

    def status(self) -> int:
        """Waits for the end of the launcher; returns its exit status, or minus the signal's number."""
        return os.waitstatus_to_exitcode(self._number())

    def _number(self) -> int:
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())


@pytest.fixture(scope="module")
def launchers() -> Iterator[Launchers]:
    found = Launchers()
    with found.process:
        yield found
        assert found.process.stdin is not None
        found.process.stdin.close()


class Moment:
    """Sends SIGTERM as the request of some number comes in, or a little later.

    What the cluster does goes by the requests' numbers too.
    """

    def __init__(self, server: ApiServerDouble, *, number: int, delay_s: float) -> None:
        self.sent_s = 0.0
        self.pid = 0
        self._script = ClusterScript(server, NAMESPACE)
        self._known = threading.Event()
        self._sent = threading.Event()
        self._number = number
        self._delay_s = delay_s
        server.on_request = self._on_request

    def aim(self, pid: int) -> None:
        self.pid = pid
        self._known.set()

    def passed(self) -> None:
        assert self._sent.wait(DEADLINE_S)

    def _on_request(self, number: int) -> None:
        if number == self._number:
            self._kill()
        if number == 12:
            self._script.start(*ALL)
        if number == 24:
            self._script.succeed(*ALL)

    def _kill(self) -> None:
        def kill() -> None:
            assert self._known.wait(DEADLINE_S)
            self.sent_s = time.monotonic()
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)
            self._sent.set()

        threading.Timer(self._delay_s, kill).start()


@pytest.mark.parametrize("seed", range(10))
def test_at_a_random_moment(launchers: Launchers, tmp_path: Path, seed: int) -> None:
    randomness = random.Random(f"moment {seed}")
    with ApiServerDouble() as server:
        moment = Moment(server, number=randomness.randint(1, 26), delay_s=randomness.random() * 0.05)
        moment.aim(launchers.start(server.kubeconfig(tmp_path)))
        status = launchers.status()
        moment.passed()
        deletion, *again = server.asked("DELETE")
        assert deletion.status == 200
        assert deletion.came_s - moment.sent_s <= BOUND_S
        # It may have freed all by itself just then, and have ended well, or by the signal as any process.
        assert not again or deletion.came_s < moment.sent_s
        assert status == STATUS or (status in {0, -signal.SIGTERM} and deletion.came_s < moment.sent_s)
        nothing_left(server)


def test_at_several_clusters_at_once_although_the_launcher_is_busy(
    launchers: Launchers, tmp_path: Path
) -> None:
    with ApiServerDouble() as near, ApiServerDouble() as far:
        scripts = [ClusterScript(server, NAMESPACE) for server in (near, far)]
        far.fail("DELETE", "", delay_s=0.2, status=200, carried_out=True)
        near.fail("DELETE", "", delay_s=0.2, status=200, carried_out=True)
        pid = launchers.start(near.kubeconfig(tmp_path / "near"), far.kubeconfig(tmp_path / "far"))
        for script in scripts:
            script.start(*ALL)
        sent_s = time.monotonic()
        os.kill(pid, signal.SIGTERM)
        assert launchers.status() == STATUS
        for server in (near, far):
            (deletion,) = server.asked("DELETE")
            assert deletion.came_s - sent_s <= BOUND_S
            nothing_left(server)


def nothing_left(server: ApiServerDouble) -> None:
    ClusterScript(server, NAMESPACE).wait_for(
        lambda: not server.store.everything(), "the collection of what the owner owned"
    )


def test_nothing_is_created_once_the_process_is_ending() -> None:
    with ApiServerDouble() as server:
        deletion = Deletion(lambda: request_to(server.url))
        deletion.send(0.1)
        with deletion.creating(), pytest.raises(Stopped):
            deletion.posting()
        deletion.close()
        assert server.requests == []


def test_another_runs_object_is_not_deleted() -> None:
    with ApiServerDouble() as server:
        deletion = Deletion(lambda: request_to(server.url))
        deletion.posting()
        deletion.conflicted()
        deletion.send(0.1)
        deletion.close()
        assert server.requests == []


def test_a_creation_under_way_is_waited_for() -> None:
    with ApiServerDouble() as server:
        deletion = Deletion(lambda: request_to(server.url))
        with deletion.creating():
            deletion.posting()
            sending = threading.Thread(target=deletion.send, args=(DEADLINE_S,))
            sending.start()
            deletion.conflicted()
        sending.join()
        deletion.close()
        assert server.requests == []


def request_to(url: str) -> ReadyRequest:
    return ReadyRequest(Endpoint(url=url), "DELETE", "/api/v1/namespaces/a/services/b", {}, b"{}")
