"""How busy the machine's processors are."""

from pathlib import Path

STAT = Path("/proc/stat")
"""First line: `cpu` and ticks of all processors in user, nice, system, idle, iowait, ..."""
_IDLE = slice(3, 5)


class Cores:
    """Measures from its making on.

    Args:
        stat: file that the kernel tells the ticks in.
    """

    def __init__(self, stat: Path = STAT) -> None:
        self._stat = stat
        self._before = self._ticks()

    def busy(self) -> float:
        """Returns the share of all processors' time in which they were not idle; 0 before the first tick."""
        ticks = [now - before for now, before in zip(self._ticks(), self._before, strict=True)]
        return 1 - sum(ticks[_IDLE]) / sum(ticks) if sum(ticks) else 0.0

    def _ticks(self) -> list[int]:
        # Without guest and guest_nice, which user and nice contain.
        return [int(word) for word in self._stat.read_text(encoding="ascii").splitlines()[0].split()[1:9]]
