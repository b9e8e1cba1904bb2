"""Whether the shared memory of this host has room for the parts, found out before any process starts.

A DGL server holds its part in POSIX shared memory. When that is full the kernel ends the server with
SIGBUS at the first touch of a page that has no room; containers get 64 MB of it unless told otherwise.
Knows nothing of processes.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from .._files import InputError
from .._launch import SHARED_MEMORY
from ..partition.partitions import SitePartitions

MARGIN = 0.1
"""Room beyond the size of the parts' files, as a share of it: names, maps and rounding to pages."""
PART_BYTES = 1 << 20
"""Room beyond that for each part."""
SAMPLER_BYTES = 8 << 20
"""Room for the batches that a sampler has ready for its trainer."""


def free_bytes(mount: Path) -> int:
    """Returns what a file system has free for this user, bytes."""
    room = os.statvfs(mount)
    return room.f_bavail * room.f_frsize


def needed_bytes(site: SitePartitions, num_samplers: int) -> int:
    """Returns the shared memory, bytes, that the servers and samplers of one site take.

    The files of a part hold its arrays as they are in memory.

    Args:
        site: the site's partitions.
        num_samplers: sampler processes of each trainer.
    """
    files = sum(path.stat().st_size for path in site.directory.glob("part-*/*.dgl"))
    others = site.num_parts * (PART_BYTES + num_samplers * SAMPLER_BYTES)
    return int(files * (1 + MARGIN)) + others


def part_bytes(site: SitePartitions, num_samplers: int) -> int:
    """Returns the shared memory, bytes, that the pod beside the largest part of a site takes.

    Args:
        site: the site's partitions, all on this machine.
        num_samplers: sampler processes of each trainer.
    """
    files = max(
        sum(path.stat().st_size for path in (site.directory / f"part-{part}").glob("*.dgl"))
        for part in range(site.num_parts)
    )
    return int(files * (1 + MARGIN)) + PART_BYTES + num_samplers * SAMPLER_BYTES


def check_shared_memory(
    sites: Iterable[SitePartitions],
    num_samplers: int,
    *,
    mount: Path = SHARED_MEMORY,
    free: Callable[[Path], int] = free_bytes,
) -> None:
    """Checks that all sites that run on this host fit into its shared memory together.

    Args:
        sites: the sites whose servers start here.
        num_samplers: sampler processes of each trainer.
        mount: the file system that shared memory lives in.
        free: gives the bytes free in it.

    Raises:
        InputError: they do not fit.
    """
    sites = tuple(sites)
    needed, available = sum(needed_bytes(site, num_samplers) for site in sites), free(mount)
    if needed > available:
        num_parts, names = sum(site.num_parts for site in sites), ", ".join(site.name for site in sites)
        raise InputError(
            f"shared memory: {num_parts} part(s) of {names} need {needed} bytes in {mount}, {available} are "
            "free: mount a larger one (in a container an emptyDir of medium Memory, or --shm-size)"
        )
