"""How far the runs are: one live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text


class Course:
    """Counts runs; knows which are under way, and foretells the end.

    ``weights`` say how long runs take compared with each other; all the same if none.
    """

    def __init__(
        self, console: Console, total: int, weights: Mapping[Any, float] | None = None
    ) -> None:
        self.console = console
        self.total = total
        self.weights = weights or {}
        self.weight_done = 0.0
        self.weight_left = sum(self.weights.values()) or float(total)
        self.done = 0
        self.failed = 0
        self.running: dict[Any, float] = {}  # and since when
        self.began = time.monotonic()

    def begin(self, job: Any) -> None:
        """Note that a run is under way."""
        self.running[job] = time.monotonic()

    def end(self, job: Any, told: dict[str, Any]) -> None:
        """Note that a run ended."""
        self.running.pop(job, None)
        self.done += 1
        weight = self.weights.get(job, 1.0)
        self.weight_done += weight
        self.weight_left -= weight
        self.failed += told["status"] == "failed"
        self.tell(job, told)

    def tell(self, job: Any, told: dict[str, Any]) -> None:
        """Print a line for the run."""
        print(self.line(job, told), flush=True)

    def line(self, job: Any, told: dict[str, Any]) -> str:
        """Return a line for a run that ended."""
        took = f"{told['timing']['wall_seconds']:.1f} s"
        left = f"; {self.left} left" if self.done < self.total else ""
        return (
            f"[{self.done}/{self.total}] {job.label}: {told['outcome']} ({took}{left})"
        )

    @property
    def left(self) -> str:
        """The time left, if the runs go on as they did so far."""
        if not self.done:
            return "?"
        passed = time.monotonic() - self.began
        return clock(passed / self.weight_done * max(0.0, self.weight_left))


class LiveCourse(Course):
    """The same as a view that is drawn again and again."""

    SHOWN = 8  # runs under way

    def tell(self, job: Any, told: dict[str, Any]) -> None:
        """Keep a line of a failed run above the view."""
        if told["status"] == "failed":
            self.console.print(self.line(job, told), style="red", markup=False)

    def __rich__(self) -> RenderableType:
        """Draw the view."""
        now = time.monotonic()
        head = Table.grid(padding=(0, 2))
        failed = Text(f"{self.failed} failed", style="red" if self.failed else "dim")
        counted = (
            f"{self.done}/{self.total} runs",
            failed,
            f"{clock(now - self.began)} passed",
            f"{self.left} left",
        )
        # The bar takes what the words leave it, on a narrow terminal nothing.
        width = min(40, self.console.width - sum(len(text) + 2 for text in counted))
        bar = ProgressBar(total=self.total, completed=self.done, width=width)
        cells = [bar, *counted] if width >= 4 else counted
        for _ in cells:
            head.add_column(no_wrap=True)
        head.add_row(*cells)
        under_way = list(self.running.items())
        shown = [
            f"  {job.label} ({clock(now - since)})"
            for job, since in under_way[: self.SHOWN]
        ]
        if len(under_way) > self.SHOWN:
            shown.append(f"  and {len(under_way) - self.SHOWN} more")
        lines = [Text(x, "dim", no_wrap=True, overflow="ellipsis") for x in shown]
        return Group(head, *lines)


def clock(seconds: float) -> str:
    """Write a length of time: 7 s, 2:05 min, 1:10 h.

    >>> clock(6.6), clock(125), clock(4200)
    ('7 s', '2:05 min', '1:10 h')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02} h"


@contextmanager
def watching(
    console: Console, total: int, weights: Mapping[Any, float] | None = None
) -> Iterator[Course]:
    """Show how far it is while runs are made; see `Course` for the weights."""
    if not console.is_terminal:
        yield Course(console, total, weights)
        return
    course = LiveCourse(console, total, weights)
    with Live(course, console=console, refresh_per_second=2, transient=True):
        yield course
