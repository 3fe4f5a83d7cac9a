"""Runs of agents on tasks: one JSON row each, made by worker processes.

A row's file is named after everything that its figures depend on: the task, the agent,
the seed, the trace's content and the code. So a row that is there need not be made
again, and none is ever taken for another.
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
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import baselines
import gym_webforage
from baselines.agent import Agent, run_episode
from benchmarks.tasks import Task

Row = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """A run to make."""

    task: Task
    agent: str  # as `baselines.find` takes it
    seed: int
    digest: str  # of the trace
    code: str  # see `checksum`

    @property
    def name(self) -> str:
        """The agent's name for readers."""
        return agent_name(self.agent)

    @property
    def key(self) -> Row:
        """What the figures depend on."""
        return {
            "task": asdict(self.task),
            "agent": self.name,
            "seed": self.seed,
            "digest": self.digest,
            "version": gym_webforage.__version__,
            "code": self.code,
        }

    def file(self, folder: Path) -> Path:
        """Return the place of the row."""
        key = json.dumps(self.key, sort_keys=True).encode()
        short = hashlib.sha256(key).hexdigest()[:12]
        return folder / f"{self.task.id}-{self.name}-{self.seed}-{short}.json"


def agent_name(agent: str) -> str:
    """Return an agent's name for readers: that of the file, or of the module."""
    return Path(agent).stem if agent.endswith(".py") else agent


def checksum(agent: str) -> str:
    """Return a checksum of the code that a run depends on.

    That is the package, the agent's file and what baselines share.
    """
    home = Path(gym_webforage.__file__).parent
    total = hashlib.sha256()
    shared = [baselines.FOLDER / "agent.py", *sorted(baselines.FOLDER.glob("_*.py"))]
    for file in [*sorted(home.rglob("*.py")), *shared, baselines.find(agent)]:
        total.update(file.read_bytes())
    return total.hexdigest()[:20]


# --- one run


def run(job: Job) -> Row:
    """Make a run; one that fails gives a row, too, with its traceback."""
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        outcome = _play(job)
    except Exception:
        outcome = {"status": "failed", "traceback": traceback.format_exc()}
    return {
        **job.key,
        **outcome,
        # Apart from the figures, since these differ from run to run.
        "timing": {
            "cpu_seconds": time.process_time() - cpu,
            "wall_seconds": time.perf_counter() - wall,
        },
    }


def _play(job: Job) -> Row:
    env = job.task.make()
    agent: Agent = baselines.load(job.agent).make(env, job.seed)
    slots = getattr(agent, "slots", None)
    if slots is not None:
        env = job.task.make(slots)
    result = run_episode(env, agent, seed=job.seed)
    return {
        "status": "done",
        "privileged": bool(getattr(agent, "privileged", False)),
        "training_fetches": int(getattr(agent, "training_fetches", 0)),
        "result": {
            "found": result.found,
            "area": result.area,
            "reward": result.reward,
            "steps": result.steps,
            "fetches": result.fetches,
            "curve": result.curve().tolist(),
            "summary": dict(result.summary),
        },
    }


def lost(job: Job, reason: str) -> Row:
    """Return the row of a run whose process is gone."""
    return {
        **job.key,
        "status": "failed",
        "traceback": f"{reason}\n",
        "timing": {"cpu_seconds": 0.0, "wall_seconds": 0.0},
    }


# --- rows on disk


def write_whole(file: Path, text: str) -> None:
    """Write a file so that it is there either whole or not at all."""
    beside = file.with_name(f".{file.name}-{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, file)


def write_row(job: Job, folder: Path, row: Row) -> None:
    """Keep a row."""
    write_whole(job.file(folder), json.dumps(row, indent=1) + "\n")


def read_row(job: Job, folder: Path) -> Row | None:
    """Return the row of a run, None if there is none that can be read."""
    try:
        row = json.loads(job.file(folder).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return row if isinstance(row, dict) and "status" in row else None


# --- worker processes


def run_all(
    jobs: Iterable[Job], folder: Path, workers: int, done: Callable[[Job, Row], None]
) -> None:
    """Make all runs in worker processes; call ``done`` as each row is written.

    A worker that dies costs the run that it was at, which counts as failed.
    """
    context = multiprocessing.get_context("spawn")
    waiting = deque(jobs)
    busy: dict[Connection, tuple[BaseProcess, Job]] = {}

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
        row = run(job)
        write_row(job, Path(folder), row)
        line.send(row)
