"""What the leaderboard costs beside its crawls: the pieces of that measurement."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from benchmarks.overhead import AGENT, Stamps, harnessed, main, overhead, plain
from benchmarks.runs import Job
from benchmarks.tasks import QUICK

SPIDER = next(task for task in QUICK if task.id == "quick-spider")


class Told:
    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def begin(self, job: Job) -> None:
        self.calls.append(("begin", job.seed))

    def end(self, job: Job, told: dict[str, str]) -> None:
        self.calls.append((told["status"], job.seed))


def test_stamps_pass_everything_on() -> None:
    watch = Told()
    stamps = Stamps(watch)
    for seed in (0, 1):
        job = Job(SPIDER, AGENT, seed, "", "")
        stamps.begin(job)
        stamps.end(job, {"status": "done"})
    assert watch.calls == [("begin", 0), ("done", 0), ("begin", 1), ("done", 1)]
    assert stamps.seconds == sorted(stamps.seconds) and len(stamps.seconds) == 2


def test_a_crawl_costs_something_alone_and_in_a_worker() -> None:
    assert plain(SPIDER, 3) > 0
    worker, parent = harnessed(SPIDER, 3)
    assert worker > 0 and parent > 0


def test_the_share_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.overhead.plain", lambda *_: 0.010)
    costs = iter([(0.0102, 0.0001), (0.0104, 0.0002), (0.0110, 0.0003)])
    monkeypatch.setattr("benchmarks.overhead.harnessed", lambda *_: next(costs))
    shown = io.StringIO()
    share = overhead(SPIDER, 11, 3, Console(file=shown, highlight=False))
    assert share == pytest.approx(0.06)
    assert "10.00 ms a crawl; beside it 400 µs in the worker and 200 µs" in (
        shown.getvalue()
    )
    assert "6.0% (3.0% to 13.0% in 3 rounds of 10 runs" in shown.getvalue()


def test_a_task_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--tasks", "nosuch"])
    assert stopped.value.code == 2
    assert "there is no task 'nosuch'" in capsys.readouterr().err
