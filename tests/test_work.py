"""How runs are given out to workers, and what a terminal shows of them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from benchmarks.live import LiveCourse
from benchmarks.work import Row, Watch, Work, brief, make_missing, run, write_row


@dataclass(frozen=True)
class Sum(Work):
    """A run that adds up."""

    number: int

    @property
    def key(self) -> Row:
        return {"number": self.number}

    @property
    def label(self) -> str:
        return f"a run with a name that is rather long for a terminal, {self.number}"

    @property
    def stem(self) -> str:
        return f"sum-{self.number}"

    def play(self, folder: Path) -> Row:
        if self.number == 4:
            raise ValueError("four is too much")
        return {"sum": sum(range(self.number))}


def test_the_longest_begin_first(tmp_path: Path) -> None:
    given: list[int] = []

    def here(jobs: Sequence[Sum], folder: Path, watch: Watch) -> None:
        for job in jobs:
            given.append(job.number)
            watch.begin(job)
            row = run(job, folder)
            write_row(job, folder, row)
            watch.end(job, brief(job, row))

    def make(**more: Any) -> list[Row] | None:
        return make_missing(
            [Sum(number) for number in range(6)],
            tmp_path,
            workers=2,
            fresh=False,
            console=Console(file=io.StringIO()),
            prepare=lambda: None,
            runner=here,
            **more,
        )

    seconds = {0: 0.1, 1: 3.0, 2: 0.2, 4: 3.0, 5: 1.0}  # 3 is not known
    found = make(likely=lambda job: seconds.get(job.number))
    assert given == [3, 1, 4, 5, 2, 0]
    assert found is not None
    assert [row["number"] for row in found] == list(range(6))
    assert [row["status"] == "failed" for row in found].index(True) == 4
    make()  # what failed is tried again, and nothing else
    assert given[6:] == [4]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_view_fits_the_terminal(width: int) -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=width)
    jobs = [Sum(number) for number in range(5_500)]
    course = LiveCourse(console, len(jobs), dict.fromkeys(jobs, 2.0))
    course.began -= 1_000
    for job in jobs[:1_375]:
        course.begin(job)
        status = "failed" if job.number < 12 else "done"
        timing = {"cpu_seconds": 0.1, "wall_seconds": 0.1}
        course.end(job, {"status": status, "outcome": status, "timing": timing})
    for job in jobs[2_000:2_010]:
        course.begin(job)
    stream.seek(0)
    stream.truncate()
    console.print(course)
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) == 1 + LiveCourse.SHOWN + 1
    head = " ".join(lines[0].split())
    assert "1375/5500 runs 12 failed 16:40 min passed 50:00 min left" in head
    assert "2000 (0 s)" in lines[1] or lines[1].endswith("…")
    assert lines[-1] == "  and 2 more"
