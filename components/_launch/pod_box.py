"""A process with a network and a /dev/shm of its own, as a pod has them (Linux, root).

`python -m geokfp.components._launch.pod_box pod SHM_BYTES COMMAND...` leaves the network and the mounts of
its parent, says `apart`, waits on standard input for a line with its address, such as `10.231.0.2/16`, then
becomes the command, which prints to where its standard error goes. `... pod_box hub` is the switch between
pods: it joins each whose process id comes in on standard input, and says so. Nothing is named outside of
these processes: when they end, all of it is gone.
"""

import ctypes
import os
import subprocess
import sys

_NEW_MOUNTS = 0x00020000
_NEW_NETWORK = 0x40000000
_RECURSIVE_PRIVATE = 0x4000 | 0x40000
_BRIDGE = "hub"


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"ip {' '.join(arguments)}: {' '.join(done.stderr.split())}")


def become_pod(shm_bytes: int, command: list[str]) -> None:
    """Becomes the command, with its own network and /dev/shm.

    Args:
        shm_bytes: size of /dev/shm.
        command: program and arguments.

    Raises:
        OSError: the kernel or `ip` refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _checked(libc.unshare(_NEW_MOUNTS | _NEW_NETWORK), "unshare")
    _checked(libc.mount(b"none", b"/", None, _RECURSIVE_PRIVATE, None), "mount /")
    size = f"size={shm_bytes},mode=1777".encode()
    _checked(libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, size), "mount /dev/shm")
    sys.stdout.write("apart\n")
    sys.stdout.flush()
    address = sys.stdin.readline().strip()
    if not address:  # who started this has ended
        sys.exit(1)
    _ip("link", "set", "lo", "up")
    _ip("addr", "add", address, "dev", "eth0")
    _ip("link", "set", "eth0", "up")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.execvp(command[0], command)


def be_hub() -> None:
    """Joins pods to one network until standard input ends.

    Raises:
        OSError: the kernel or `ip` refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _checked(libc.unshare(_NEW_NETWORK), "unshare")
    _ip("link", "add", _BRIDGE, "type", "bridge")
    _ip("link", "set", _BRIDGE, "up")
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for number, line in enumerate(sys.stdin):
        end = f"pod{number}"
        _ip("link", "add", end, "type", "veth", "peer", "name", "eth0", "netns", line.strip())
        _ip("link", "set", end, "master", _BRIDGE, "up")
        sys.stdout.write("joined\n")
        sys.stdout.flush()


def main(arguments: list[str]) -> int:
    """Runs as a pod or as the hub; returns the exit status of what does not become another program."""
    try:
        if arguments[0] == "hub":
            be_hub()
        else:
            become_pod(int(arguments[1]), arguments[2:])
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
