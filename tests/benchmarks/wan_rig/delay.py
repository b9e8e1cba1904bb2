"""Holds every packet for some time: an IP relay on a TUN device, for kernels without netem.

The hub routes what enters it into the device; this process reads each packet there, holds it and writes it
back, and the hub routes it on. It reads and writes about 40,000 packets a second on one core, which it takes
before all others: some 400 Mbit/s of full packets.

    python delay.py MILLISECONDS
"""

import contextlib
import fcntl
import os
import select
import struct
import sys
import time
from collections import deque

DEVICE = "delay0"
TABLE = 100
"""Number of the routing table that leads into the device."""
READY = "ready"
"""Printed when the device exists."""

_TUNSETIFF = 0x400454CA
_IFF_TUN_NO_PI = 0x0001 | 0x1000
_LARGEST_PACKET = 1 << 16
_MOST_AT_ONCE = 64
"""Packets read before packets that are due are looked for again."""


def main(delay_ms: float) -> None:
    """Makes the device and relays until killed."""
    os.nice(-20)
    device = open_device()
    print(READY, flush=True)
    relay(device, delay_ms / 1000)


def open_device() -> int:
    """Returns the descriptor of a new TUN device, which lives as long as it."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), _IFF_TUN_NO_PI))
    return device


def relay(device: int, delay_s: float) -> None:
    """Gives back each packet `delay_s` seconds after it came, in the order of their coming."""
    held: deque[tuple[float, bytes]] = deque()
    while True:
        wait_s = max(0.0, held[0][0] - time.monotonic()) if held else None
        if select.select([device], [], [], wait_s)[0]:
            _take(device, held, delay_s)
        while held and held[0][0] <= time.monotonic():
            with contextlib.suppress(BlockingIOError):  # as any full queue on a packet's way
                os.write(device, held.popleft()[1])


def _take(device: int, held: deque[tuple[float, bytes]], delay_s: float) -> None:
    with contextlib.suppress(BlockingIOError):
        for _ in range(_MOST_AT_ONCE):
            packet = os.read(device, _LARGEST_PACKET)
            held.append((time.monotonic() + delay_s, packet))


if __name__ == "__main__":
    main(float(sys.argv[1]))
