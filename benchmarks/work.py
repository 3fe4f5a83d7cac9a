"""Runs as rows on disk, made by worker processes, with a sign of how far it is.

A row's file is named after everything that its figures depend on. So a row that is
there need not be made again, and none is ever taken for another.
"""

from __future__ import annotations

import hashlib
import json
import math
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Protocol, TypeVar

from rich.console import Console

from benchmarks.live import clock, watching

Row = dict[str, Any]


class Work:
    """A run to make. Subclasses say what it depends on, and make it."""

    @property
    def key(self) -> Row:
        """What the figures depend on, as JSON can say it."""
        raise NotImplementedError

    @property
    def label(self) -> str:
        """The run's name for readers."""
        raise NotImplementedError

    @property
    def stem(self) -> str:
        """The first part of the file's name."""
        raise NotImplementedError

    def play(self, folder: Path) -> Row:
        """Make the run; return the rest of its row. Files beside it go to a folder.

        What differs from time to time belongs under ``timing``.
        """
        raise NotImplementedError

    def outcome(self, row: Row) -> str:
        """Say in a few words what came out."""
        return row["status"]

    @property
    def family(self) -> str:
        """What runs have in common that need the same compiled code."""
        return type(self).__name__

    def warm_up(self) -> None:
        """Compile what the run needs, such as by a short one that is thrown away."""

    def log(self, folder: Path, place: Path) -> None:
        """Write what the finished run has to show for TensorBoard, into ``place``."""

    @property
    def name(self) -> str:
        """The row's name, without an ending."""
        key = json.dumps(self.key, sort_keys=True).encode()
        return f"{self.stem}-{hashlib.sha256(key).hexdigest()[:12]}"

    def file(self, folder: Path) -> Path:
        """Return the place of the row."""
        return folder / f"{self.name}.json"


AnyWork = TypeVar("AnyWork", bound=Work)


def run(job: Work, folder: Path) -> Row:
    """Make a run; one that fails gives a row, too, with its traceback."""
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        outcome: Row = {"status": "done", **job.play(folder)}
    except Exception:
        outcome = {"status": "failed", "traceback": traceback.format_exc()}
    # Apart from the figures, since these differ from run to run.
    timing = {
        **outcome.pop("timing", {}),
        "cpu_seconds": time.process_time() - cpu,
        "wall_seconds": time.perf_counter() - wall,
    }
    return {**job.key, **outcome, "timing": timing}


def lost(job: Work, reason: str) -> Row:
    """Return the row of a run whose process is gone."""
    return {
        **job.key,
        "status": "failed",
        "traceback": f"{reason}\n",
        "timing": {"cpu_seconds": 0.0, "wall_seconds": 0.0},
    }


# --- rows on disk


def write_whole(file: Path, content: str | bytes) -> None:
    """Write a file so that it is there either whole or not at all."""
    beside = file.with_name(f".{file.name}-{os.getpid()}")
    beside.write_bytes(content.encode() if isinstance(content, str) else content)
    os.replace(beside, file)


def write_row(job: Work, folder: Path, row: Row) -> None:
    """Keep a row."""
    write_whole(job.file(folder), json.dumps(row) + "\n")


def read_row(job: Work, folder: Path) -> Row | None:
    """Return the row of a run, None if there is none that can be read."""
    try:
        row = json.loads(job.file(folder).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return row if isinstance(row, dict) and "status" in row else None


def brief(job: Work, row: Row) -> Row:
    """Return what is told of a row at once; the rest is on disk."""
    failed = row["status"] == "failed"
    outcome = "failed" if failed else job.outcome(row)
    return {"status": row["status"], "outcome": outcome, "timing": row["timing"]}


# --- worker processes


class Watch(Protocol):
    """Is told how the runs go on."""

    def begin(self, job: Any) -> None:
        """Note that a run is under way."""

    def end(self, job: Any, told: Row) -> None:
        """Note that a run ended; ``told`` is what `brief` says of its row."""


Runner = Callable[[Sequence[Any], Path, Watch], None]
"""Makes runs and writes their rows."""

USUAL_SECONDS = 0.4  # of a run whose like was never made
AHEAD = 2  # runs that a worker has at hand, so that it never waits for the next


def one_thread() -> None:
    """Let numeric libraries of this process's workers use one thread each.

    Small networks and products run fastest so.
    """
    for library in ("OMP", "MKL", "OPENBLAS"):
        os.environ[f"{library}_NUM_THREADS"] = "1"


@dataclass
class _Worker:
    """A process, the line to it, and the runs that were given to it."""

    process: BaseProcess
    line: Connection
    jobs: deque[Any] = field(default_factory=deque)  # the first is under way


def in_processes(workers: int) -> Runner:
    """Return a runner with so many worker processes on this machine."""

    def run_all(jobs: Iterable[AnyWork], folder: Path, watch: Watch) -> None:
        _Pool(jobs, folder, workers, watch).run()

    return run_all


class _Pool:
    """Worker processes, each with a few runs at hand.

    One that dies costs the run that it was at, which counts as failed; the runs that
    waited for it go to others.
    """

    def __init__(
        self, jobs: Iterable[Any], folder: Path, workers: int, watch: Watch
    ) -> None:
        self.waiting = deque(jobs)
        self.folder = folder
        self.watch = watch
        self.workers: list[_Worker] = []
        self.number = min(workers, len(self.waiting))
        methods = multiprocessing.get_all_start_methods()
        # Workers are forked off a process that has imported all this once.
        method = "forkserver" if "forkserver" in methods else "spawn"
        self.context: Any = multiprocessing.get_context(method)
        if method == "forkserver":
            self.context.set_forkserver_preload(["benchmarks.runs"])

    def run(self) -> None:
        """Make all runs."""
        try:
            for _ in range(self.number):
                self._hire()
            while self.workers:
                lines = {worker.line: worker for worker in self.workers}
                for line in wait(list(lines)):
                    assert isinstance(line, Connection)
                    self._hear(lines[line])
        finally:
            for worker in self.workers:
                worker.process.terminate()
            for worker in self.workers:
                worker.process.join()

    def _hire(self) -> None:
        here, there = self.context.Pipe()
        process = self.context.Process(target=_work, args=(there, str(self.folder)))
        process.start()
        there.close()  # so that the worker's end of the line is its end
        worker = _Worker(process, here)
        self.workers.append(worker)
        self._supply(worker)

    def _supply(self, worker: _Worker) -> None:
        # Near the end no worker takes what another could do at once.
        ahead = AHEAD if len(self.waiting) > 2 * self.number else 1
        while self.waiting and len(worker.jobs) < ahead:
            worker.jobs.append(self.waiting.popleft())
            with suppress(OSError):  # it is dead, which the next look at it tells
                worker.line.send(worker.jobs[-1])
            if len(worker.jobs) == 1:
                self.watch.begin(worker.jobs[0])

    def _hear(self, worker: _Worker) -> None:
        """Take a worker's answer, and give it more to do or let it go."""
        try:
            told = worker.line.recv()
        except (EOFError, OSError):
            self._bury(worker)
            return
        job = worker.jobs.popleft()
        if worker.jobs:
            self.watch.begin(worker.jobs[0])
        self._supply(worker)
        if not worker.jobs:
            worker.line.close()
            worker.process.join()
            self.workers.remove(worker)
        self.watch.end(job, told)

    def _bury(self, worker: _Worker) -> None:
        worker.line.close()
        worker.process.join()
        self.workers.remove(worker)
        reason = f"the process ended with exit code {worker.process.exitcode}"
        job = worker.jobs.popleft()
        row = lost(job, reason)
        write_row(job, self.folder, row)
        self.waiting.extendleft(reversed(worker.jobs))
        if self.waiting:
            self._hire()
        self.watch.end(job, brief(job, row))


def _work(line: Connection, folder: str) -> None:
    """Make runs until the other end hangs up."""
    # Ctrl-C reaches all processes of a terminal; the parent ends its workers itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):
        while True:
            job = line.recv()
            row = run(job, Path(folder))
            write_row(job, Path(folder), row)
            line.send(brief(job, row))


def _end_with_parent() -> None:
    """End this process when its parent is gone, however long its run would take.

    A parent that is killed has no time to end its workers.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


# --- all together


def is_finished(row: Row | None) -> bool:
    """Say whether a run need not be made again: one that failed is tried again."""
    return row is not None and row["status"] != "failed"


def foretell(runs: int, seconds: float, workers: int) -> str:
    """Say how long it will take, by the time that such runs took before."""
    return (
        f"{runs:,} runs to make, about {clock(seconds / workers)} with {workers} "
        f"worker{'s' if workers > 1 else ''} on cores of their own"
    )


def make_missing(
    jobs: Sequence[AnyWork],
    folder: Path,
    *,
    workers: int,
    fresh: bool,
    console: Console,
    prepare: Callable[[], None],
    runner: Runner | None = None,
    likely: Callable[[AnyWork], float | None] | None = None,
) -> list[Row] | None:
    """Make the runs that have no finished row yet; return the rows of all.

    ``prepare`` is called before the first run; ``runner`` makes them, if not worker
    processes of this machine; ``likely`` knows how many CPU seconds a run takes, or
    None: the longest begin first, so that no worker is left alone with one at the
    end. None after Ctrl-C, when what was finished is kept.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if fresh:
        for job in jobs:
            job.file(folder).unlink(missing_ok=True)
    rows = {job: read_row(job, folder) for job in jobs}
    missing = [job for job, row in rows.items() if not is_finished(row)]
    seconds = {job: likely(job) for job in missing} if likely else {}
    missing.sort(key=lambda job: -(seconds.get(job) or math.inf))
    kept = len(jobs) - len(missing)
    if kept:
        console.print(f"{kept} of {len(jobs)} runs are there already, in {folder}")
    try:
        if missing:
            weights = {job: known or USUAL_SECONDS for job, known in seconds.items()}
            if weights:
                told = foretell(len(missing), sum(weights.values()), workers)
                console.print(told, soft_wrap=True)
            prepare()
            with watching(console, len(missing), weights) as watch:
                (runner or in_processes(workers))(missing, folder, watch)
    except KeyboardInterrupt:
        console.print(
            f"\nStopped. Finished runs are kept in {folder}; the same command (without "
            "--fresh) continues.",
            soft_wrap=True,
        )
        return None
    made = {job: read_row(job, folder) for job in missing}
    return [row for job in jobs if (row := made.get(job, rows[job])) is not None]
