"""Which pieces of a step a module's forward pass has to wait for; the same for every framework.

A module uses its own parameters, or one around it does that does not call it (as torch's attention does with
its last projection). Which modules are called, the first forward passes show.
"""

from collections.abc import Callable, Mapping


class ForwardNeeds:
    """What each module waits for.

    Args:
        own: the pieces of each module's own parameters, by its dotted name; the model's is empty.
        take: waits for one piece, and does nothing for one that was taken.
    """

    def __init__(self, own: Mapping[str, frozenset[int]], take: Callable[[int], None]) -> None:
        self._own = own
        self._take = take
        self._called: set[str] = set()
        self._needs: dict[str, set[int]] | None = None
        self._orphans: list[int] = []

    def before_forward(self, name: str, *, is_whole: bool = False) -> None:
        """Called before each forward pass of a module.

        Args:
            name: the module's.
            is_whole: whether it runs the modules in it without calling them.
        """
        if self._needs is None:
            self._called.add(name)
            return
        needed = self._own[name] | self._needs.get(name, set())
        if is_whole:
            needed = needed.union(*(own for inner, own in self._own.items() if _is_in(inner, name)))
        for index in sorted(needed):
            self._take(index)

    def after_step(self) -> None:
        """Called when a step was sent; takes what no forward pass will wait for."""
        if self._needs is None:
            self._needs = self._adopt()
        for index in self._orphans:
            self._take(index)

    def _adopt(self) -> dict[str, set[int]]:
        """Gives what modules that were not called need to the nearest around them that was."""
        needs: dict[str, set[int]] = {}
        orphans: set[int] = set()
        for name, own in self._own.items():
            around = name
            while around not in self._called and around:
                around = around.rpartition(".")[0]
            if around in self._called:
                needs.setdefault(around, set()).update(own)
            else:
                orphans |= own
        self._orphans = sorted(orphans)
        return needs


def _is_in(inner: str, name: str) -> bool:
    return not name or inner.startswith(f"{name}.")
