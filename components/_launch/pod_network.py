"""Where processes that stand for pods find each other: a network of their own, or addresses of loopback.

With a network of its own each process has a /dev/shm of its own too, as pods have; that needs root and `ip`.
"""

import ipaddress
import os
import random
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Protocol

from .errors import ProcessFailed
from .leftovers import hold_log

NETWORK = ipaddress.ip_network("10.231.0.0/16")
SHM_BYTES = 64 << 20
"""What a node gives a pod that asks for nothing."""
ANSWER_S = 30.0
"""Seconds for a process to come up, or to be joined."""
END_S = 5.0
"""Seconds that the hub has to end when nobody needs it."""


class PodNetwork(Protocol):
    """Starts processes at addresses."""

    addresses: Mapping[str, str]
    """IPv4 address by host."""

    def start(
        self,
        host: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        shm_bytes: int,
        log: Path,
    ) -> "subprocess.Popen[bytes]":
        """Starts a host's process, which prints to the log; `ProcessFailed` when it cannot be joined."""


@contextmanager
def opened_network(hosts: Sequence[str], *, apart: bool) -> Iterator[PodNetwork]:
    """Yields the network of some hosts.

    Args:
        hosts: their DNS names.
        apart: whether each has its own network and /dev/shm; see `can_be_apart`.
    """
    if not apart:
        yield _Loopback(hosts)
        return
    hub = _start_hub()
    try:
        yield _Switched(hosts, hub)
    finally:
        _end_hub(hub)


def can_be_apart() -> str:
    """Returns "" where processes can be given networks of their own, or why not; tries it."""
    if os.geteuid() != 0:
        return "that needs root"
    if shutil.which("ip") is None:
        return "`ip` is not installed (iproute2)"
    hub = _start_hub()
    with suppress(BrokenPipeError):
        _pipe(hub.stdin).close()
    told = _pipe(hub.stderr).read().decode("utf-8", "replace")
    _end_hub(hub)
    return "" if hub.returncode == 0 else " ".join(told.split()) or "the kernel refuses"


class _Loopback:
    """See `PodNetwork`: hosts are addresses of 127.0.0.0/8, and share /dev/shm."""

    def __init__(self, hosts: Sequence[str]) -> None:
        first = (127 << 24) + (random.SystemRandom().randrange(1, 1 << 15) << 8) + 1
        self.addresses: Mapping[str, str] = {
            host: str(ipaddress.ip_address(first + number)) for number, host in enumerate(hosts)
        }

    def start(
        self,
        host: str,  # noqa: ARG002
        command: Sequence[str],
        environment: Mapping[str, str],
        shm_bytes: int,  # noqa: ARG002
        log: Path,
    ) -> "subprocess.Popen[bytes]":
        """See `PodNetwork`."""
        with log.open("wb") as output:
            hold_log(output)
            return subprocess.Popen(
                list(command),
                env=dict(environment),
                cwd=log.parent,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )


class _Switched:
    """See `PodNetwork`: each host has its own network, joined by the hub's."""

    def __init__(self, hosts: Sequence[str], hub: "subprocess.Popen[bytes]") -> None:
        first = int(NETWORK.network_address) + 1
        self.addresses: Mapping[str, str] = {
            host: str(ipaddress.ip_address(first + number)) for number, host in enumerate(hosts)
        }
        self._hub = hub

    def start(
        self,
        host: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        shm_bytes: int,
        log: Path,
    ) -> "subprocess.Popen[bytes]":
        """See `PodNetwork`."""
        with log.open("wb") as output:
            hold_log(output)
            process = subprocess.Popen(
                [*_box("pod"), str(shm_bytes or SHM_BYTES), *command],
                env=dict(environment),
                cwd=log.parent,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,
                pass_fds=(_pipe(self._hub.stdin).fileno(),),  # the hub lasts as long as any pod
            )
        try:
            self._join(process, f"{self.addresses[host]}/{NETWORK.prefixlen}")
        except (OSError, TimeoutError) as error:
            process.kill()
            process.wait()
            told = " ".join(log.read_text(encoding="utf-8", errors="replace").split())
            raise ProcessFailed(host, f"cannot be given a network: {told or error}") from error
        finally:
            _pipe(process.stdout).close()
            _pipe(process.stdin).close()
        return process

    def _join(self, process: "subprocess.Popen[bytes]", address: str) -> None:
        _expect(_pipe(process.stdout), "apart")
        _pipe(self._hub.stdin).write(f"{process.pid}\n".encode())
        _expect(_pipe(self._hub.stdout), "joined")
        _pipe(process.stdin).write(f"{address}\n".encode())


def _start_hub() -> "subprocess.Popen[bytes]":
    hub = subprocess.Popen(
        _box("hub"),
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    with suppress(OSError):  # whoever needs it will find out
        _expect(_pipe(hub.stdout), "ready")
    return hub


def _end_hub(hub: "subprocess.Popen[bytes]") -> None:
    for stream in (hub.stdin, hub.stdout, hub.stderr):
        with suppress(BrokenPipeError):
            _pipe(stream).close()
    try:
        hub.wait(END_S)
    except subprocess.TimeoutExpired:
        hub.kill()
        hub.wait()


def _expect(stream: IO[bytes], word: str) -> None:
    """Reads one line from a pipe without a buffer, and holds it against what is awaited."""
    if not select.select([stream], [], [], ANSWER_S)[0]:
        raise TimeoutError(f"not {word} after {ANSWER_S:g} s")
    if (line := stream.readline().decode().strip()) != word:
        raise OSError(f"not {word}: {line or 'it ended'}")


def _box(role: str) -> list[str]:
    return [sys.executable, "-P", "-m", "geokfp.components._launch.pod_box", role]


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream
