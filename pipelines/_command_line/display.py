"""Shows a run as it goes: a live table on a terminal, plain lines elsewhere."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from .package import Step
from .supervision import Event

_MARKS = {
    "waiting": "[dim]·[/]",
    "succeeded": "[green]✓[/]",
    "skipped": "[dim]-[/]",
    "failed": "[red]✗[/]",
    "canceled": "[red]-[/]",
}


@dataclass(slots=True)
class _State:
    """One step's line."""

    name: str
    status: str = "waiting"
    started: float = 0.0
    seconds: float = 0.0
    latest: str = ""

    def elapsed(self, now: float) -> float:
        """Returns seconds since the start, or the step's whole time."""
        return now - self.started if self.status == "started" else self.seconds


class Progress:
    """What is known of a run's steps, shown while the `with` block lasts.

    Called from one thread; rich's own refreshes the table.
    """

    def __init__(self, steps: Sequence[Step], console: Console) -> None:
        self._console = console
        self._states = {step.folder: _State(name=step.name) for step in steps}
        self._live = (
            Live(get_renderable=self._table, console=console, refresh_per_second=8)
            if console.is_terminal
            else None
        )
        self._spinner = Spinner("dots")

    def __enter__(self) -> "Progress":
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def event(self, event: Event) -> None:
        """Takes note of a step's start or end."""
        now = time.monotonic()
        state = self._states.setdefault(event.folder, _State(name=event.folder.replace("-", "_")))
        if event.kind == "started":
            state.started = now
        else:
            state.seconds = now - state.started if event.seconds is None else event.seconds
        state.status = event.kind
        if self._live is None:
            ran = event.kind in ("succeeded", "failed")
            self._print(f"{state.name}: {event.kind}" + (f" in {state.seconds:.1f} s" if ran else ""))

    def line(self, text: str) -> None:
        """Takes a progress line of the step that is running."""
        for state in self._states.values():
            if state.status == "started":
                state.latest = text
                if self._live is None:
                    self._print(f"{state.name}: {text}")

    def note(self, text: str) -> None:
        """Shows a line as it is (`--verbose`)."""
        self._print(text)

    def seconds(self) -> dict[str, float]:
        """Returns the time of each step that ended, by name."""
        ended = [state for state in self._states.values() if state.status in ("succeeded", "failed")]
        return {state.name: round(state.seconds, 3) for state in ended}

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _table(self) -> Table:
        now = time.monotonic()
        table = Table.grid(padding=(0, 1))
        for state in list(self._states.values()):
            mark = self._spinner if state.status == "started" else Text.from_markup(_MARKS[state.status])
            shown = f"{state.elapsed(now):.1f} s" if state.status != "waiting" else ""
            latest = Text(state.latest, style="dim", no_wrap=True, overflow="ellipsis")
            table.add_row(mark, state.name, Text(shown, justify="right"), latest)
        return table


def show_results(
    console: Console, seconds: Mapping[str, float], metrics: Mapping[str, float], directory: Path
) -> None:
    """Prints the end of a run that is done: times, accuracy, and where the results are."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    for name, value in seconds.items():
        table.add_row(name, f"{value:.1f} s")
    table.add_row("total", f"{sum(seconds.values()):.1f} s")
    console.print(table)
    for name in ("test_accuracy", "val_accuracy"):
        if name in metrics:
            console.print(f"{name}  {metrics[name]:.4f}", highlight=False)
    for label, name in (("report", "report.html"), ("model", "model"), ("metrics", "metrics.json")):
        if (directory / name).exists():
            console.print(f"{label:8}{directory / name}", highlight=False, soft_wrap=True)
