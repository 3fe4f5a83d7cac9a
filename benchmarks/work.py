"""Runs as rows on disk, made by worker processes, with a sign of how far it is.

A row's file is named after everything that its figures depend on. So a row that is
there need not be made again, and none is ever taken for another.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

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
    write_whole(job.file(folder), json.dumps(row, indent=1) + "\n")


def read_row(job: Work, folder: Path) -> Row | None:
    """Return the row of a run, None if there is none that can be read."""
    try:
        row = json.loads(job.file(folder).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return row if isinstance(row, dict) and "status" in row else None


# --- worker processes


def one_thread() -> None:
    """Let numeric libraries of this process's workers use one thread each.

    Small networks and products run fastest so.
    """
    for library in ("OMP", "MKL", "OPENBLAS"):
        os.environ[f"{library}_NUM_THREADS"] = "1"


def run_all(
    jobs: Iterable[AnyWork],
    folder: Path,
    workers: int,
    done: Callable[[AnyWork, Row], None],
) -> None:
    """Make all runs in worker processes; call ``done`` as each row is written.

    A worker that dies costs the run that it was at, which counts as failed.
    """
    context = multiprocessing.get_context("spawn")
    waiting = deque(jobs)
    busy: dict[Connection, tuple[BaseProcess, AnyWork]] = {}

    def hire() -> None:
        here, there = context.Pipe()
        process = context.Process(target=_work, args=(there, str(folder)))
        process.start()
        there.close()  # so that the worker's end of the line is its end
        assign(here, process)

    def assign(line: Connection, process: BaseProcess) -> None:
        busy[line] = process, waiting.popleft()
        line.send(busy[line][1])

    try:
        for _ in range(min(workers, len(waiting))):
            hire()
        while busy:
            for line in wait(list(busy)):
                assert isinstance(line, Connection)
                process, job = busy.pop(line)
                try:
                    row = line.recv()
                except (EOFError, OSError):
                    line.close()
                    process.join()
                    reason = f"the process ended with exit code {process.exitcode}"
                    row = lost(job, reason)
                    write_row(job, folder, row)
                    if waiting:
                        hire()
                else:
                    if waiting:
                        assign(line, process)
                    else:
                        line.close()
                        process.join()
                done(job, row)
    finally:
        for process, _ in busy.values():
            process.terminate()
        for process, _ in busy.values():
            process.join()


def _work(line: Connection, folder: str) -> None:
    """Make runs until the other end hangs up."""
    # Ctrl-C reaches all processes of a terminal; the parent ends its workers itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            job = line.recv()
        except EOFError:
            return
        row = run(job, Path(folder))
        write_row(job, Path(folder), row)
        line.send(row)


# --- all together


@contextmanager
def progress(console: Console, total: int) -> Iterator[Callable[[Work, Row], None]]:
    """Show how far it is: a bar on a terminal, lines elsewhere."""
    count = 0

    def line(job: Work, row: Row) -> str:
        nonlocal count
        count += 1
        outcome = job.outcome(row) if row["status"] == "done" else "failed"
        seconds = row["timing"]["wall_seconds"]
        return f"[{count}/{total}] {job.label}: {outcome} ({seconds:.1f} s)"

    if not console.is_terminal:
        yield lambda job, row: print(line(job, row), flush=True)
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress("{task.description}", *columns, console=console) as bar:
        shown = bar.add_task("runs", total=total)

        def advance(job: Work, row: Row) -> None:
            if row["status"] == "failed":
                bar.console.print(line(job, row), style="red", markup=False)
            bar.update(shown, advance=1, description=job.label)

        yield advance


def make_missing(
    jobs: Sequence[AnyWork],
    folder: Path,
    *,
    workers: int,
    fresh: bool,
    console: Console,
    prepare: Callable[[], None],
) -> list[Row] | None:
    """Make the runs that have no finished row yet; return the rows of all.

    ``prepare`` is called before the first run. None after Ctrl-C, when what was
    finished is kept.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if fresh:
        for job in jobs:
            job.file(folder).unlink(missing_ok=True)
    rows = {job: read_row(job, folder) for job in jobs}
    missing = [
        job for job, row in rows.items() if row is None or row["status"] != "done"
    ]
    kept = len(jobs) - len(missing)
    if kept:
        console.print(f"{kept} of {len(jobs)} runs are there already, in {folder}")
    try:
        if missing:
            prepare()
            with progress(console, len(missing)) as done:
                run_all(missing, folder, workers, done)
    except KeyboardInterrupt:
        console.print(
            f"\nStopped. Finished runs are kept in {folder}; the same command (without "
            "--fresh) continues.",
            soft_wrap=True,
        )
        return None
    return [row for job in jobs if (row := read_row(job, folder)) is not None]
