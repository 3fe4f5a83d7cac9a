"""What the leaderboard costs beside the crawls themselves, and what a worker adds.

The same episodes are made twice in turns: in a plain loop of this process, and by the
leaderboard with one worker. The CPU time (user and system) of the second is that of
worker and parent with its live view, from the end of the first run to the end of the
last; imports, compiling and loading the trace are left out on both sides. Then a
matrix is made with one worker and with two: that is wall time, from start to end, and
needs a machine with nothing else to do.

    python -m benchmarks.overhead
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

import baselines
from baselines.agent import make_agent, run_episode
from benchmarks.leaderboard import likely_seconds, plan, positive, warm_up
from benchmarks.live import watching
from benchmarks.runs import Job
from benchmarks.tasks import TASKS, Task, chosen
from benchmarks.work import Row, Watch, in_processes, one_thread, read_row
from gym_webforage import load_trace

AGENT = "breadth_first"  # no baseline is cheaper
CHEAPEST = ("spider", "news", "topic-sqlalchemy")
BAR, TWO_BAR = 0.05, 1.8


@dataclass(frozen=True)
class Timed(Job):
    """A run that notes how much CPU time its process had used when it ended."""

    def play(self, folder: Path) -> Row:
        """Make the run."""
        row = super().play(folder)
        return {**row, "timing": {"process_seconds": time.process_time()}}


class Stamps:
    """Passes on what a view is told; notes the CPU time of this process."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.seconds: list[float] = []

    def begin(self, job: Any) -> None:
        """Pass it on."""
        self.watch.begin(job)

    def end(self, job: Any, told: Row) -> None:
        """Note the time and pass it on."""
        self.watch.end(job, told)
        self.seconds.append(time.process_time())


def plain(task: Task, seeds: int) -> float:
    """Return the CPU seconds of an episode in a plain loop."""
    module = baselines.load(AGENT)
    began = time.process_time()
    for seed in range(1, seeds):
        env, agent = make_agent(module, task.make, seed)
        run_episode(env, agent, seed=seed)
    return (time.process_time() - began) / (seeds - 1)


def harnessed(task: Task, seeds: int) -> tuple[float, float]:
    """Return the CPU seconds of a run in the worker, and in its parent."""
    digest = load_trace(task.trace).digest
    jobs = [Timed(task, AGENT, seed, digest, "") for seed in range(seeds)]
    with tempfile.TemporaryDirectory() as place, Path(os.devnull).open("w") as nowhere:
        folder = Path(place)
        console = Console(file=nowhere, force_terminal=True, width=100)
        with watching(console, len(jobs)) as course:
            stamps = Stamps(course)
            in_processes(1)(jobs, folder, stamps)
        rows = [read_row(job, folder) for job in jobs]
    worker = [row["timing"]["process_seconds"] for row in rows if row is not None]
    return (
        (worker[-1] - worker[0]) / (seeds - 1),
        (stamps.seconds[-1] - stamps.seconds[0]) / (seeds - 1),
    )


def overhead(task: Task, seeds: int, rounds: int, console: Console) -> float:
    """Print and return the share of CPU time that a task's runs cost beside it."""
    plain(task, 3)
    found: list[tuple[float, float, float]] = []
    for _ in range(rounds):
        found.append((plain(task, seeds), *harnessed(task, seeds)))
    crawl, worker, parent = (statistics.median(x) for x in zip(*found, strict=True))
    shares = sorted((w + p) / c - 1 for c, w, p in found)
    share = statistics.median(shares)
    console.print(
        f"{task.id}: {1e3 * crawl:.2f} ms a crawl; beside it "
        f"{1e6 * (worker - crawl):.0f} µs in the worker and {1e6 * parent:.0f} µs in "
        f"the parent: {share:.1%} ({shares[0]:.1%} to {shares[-1]:.1%} in {rounds} "
        f"rounds of {seeds - 1} runs; bar {BAR:.0%})",
        soft_wrap=True,
    )
    return share


def two_workers(seeds: int, console: Console) -> float:
    """Print and return how much faster a matrix is made with two workers."""
    tasks = [task for task in TASKS if task.core]
    names = ["best_first", "breadth_first", "linear_td", "random_walk", "oracle"]
    likely = likely_seconds()
    jobs = sorted(plan(tasks, names, seeds), key=lambda job: -(likely(job) or 9))
    seconds = []
    for workers in (1, 2):
        with tempfile.TemporaryDirectory() as place:
            with Path(os.devnull).open("w") as nowhere:
                view = Console(file=nowhere, force_terminal=True, width=100)
                began = time.perf_counter()
                with watching(view, len(jobs)) as course:
                    in_processes(workers)(jobs, Path(place), course)
                seconds.append(time.perf_counter() - began)
    ratio = seconds[0] / seconds[1]
    console.print(
        f"{len(jobs)} runs: {seconds[0]:.1f} s with one worker, {seconds[1]:.1f} s "
        f"with two: {ratio:.2f} times as fast (bar {TWO_BAR})"
    )
    return ratio


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.overhead",
        description="Measure what the leaderboard costs beside the crawls themselves, "
        "and how much faster two workers are than one.",
    )
    parser.add_argument(
        "--tasks",
        nargs="+",
        default=CHEAPEST,
        metavar="TASK",
        help=f"({' '.join(CHEAPEST)})",
    )
    parser.add_argument(
        "--seeds", type=positive, default=100, metavar="N", help="runs a round (100)"
    )
    parser.add_argument(
        "--rounds", type=positive, default=5, metavar="N", help="turns (5)"
    )
    parser.add_argument(
        "--no-workers", action="store_true", help="leave out one worker against two"
    )
    given = parser.parse_args(arguments)
    one_thread()
    console = Console(highlight=False)
    try:
        tasks = [chosen(TASKS, [name])[0] for name in given.tasks]
    except LookupError as error:
        parser.error(str(error))
    console.print("Preparing: traces and compiled kernels ...")
    warm_up(tasks)
    console.print(f"load average of this machine: {os.getloadavg()[0]:.2f}")
    for task in tasks:
        overhead(task, max(2, given.seeds), given.rounds, console)
    if not given.no_workers:
        console.print(f"load average of this machine: {os.getloadavg()[0]:.2f}")
        two_workers(2, console)
    return 0


if __name__ == "__main__":
    sys.exit(main())
