"""Make a sample of the rows anew, and compare everything but the time it took."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import baselines
from benchmarks.leaderboard import positive
from benchmarks.live import watching
from benchmarks.publish import unpack
from benchmarks.runs import Job, agent_name, checksum, versions
from benchmarks.tasks import Task
from benchmarks.work import Row, in_processes, one_thread, read_row
from gym_webforage import TraceError, TraceNotFoundError, load_trace

APART = ("timing", "made", "traceback")  # of a row, which differ from time to time


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.leaderboard verify",
        description="Make a sample of finished runs anew, and compare all figures.",
        epilog="Exit code: 0, or 1 if a figure differs.",
    )
    made.add_argument(
        "--sample", type=positive, default=20, metavar="N", help="so many rows (20)"
    )
    made.add_argument(
        "--seed", type=int, default=0, metavar="N", help="which rows: another draw (0)"
    )
    made.add_argument(
        "--rows",
        type=Path,
        default=Path("runs/leaderboard/rows"),
        metavar="PATH",
        help="a folder of rows, or a packed file such as the published "
        "benchmarks/results/rows.jsonl.gz (runs/leaderboard/rows)",
    )
    made.add_argument(
        "--agent",
        action="append",
        default=[],
        metavar="MODULE",
        help="where an agent of your own stands, if the rows have one",
    )
    made.add_argument(
        "--traces",
        nargs="+",
        default=[],
        metavar="PATH",
        help="where traces of your own stand, if the rows have such",
    )
    made.add_argument(
        "--workers",
        type=positive,
        default=min(2, os.cpu_count() or 1),
        metavar="N",
        help="processes (2, or 1 if there is one CPU only)",
    )
    return made


def read_rows(place: Path) -> list[Row]:
    """Return all rows of a folder or of a packed file."""
    if place.is_file():
        return unpack(place.read_bytes())
    if not place.is_dir():
        raise FileNotFoundError(f"there are no rows in {place}")
    return [json.loads(file.read_text()) for file in sorted(place.glob("*.json"))]


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    described = parser()
    given = described.parse_args(arguments)
    one_thread()
    try:
        rows = [row for row in read_rows(given.rows) if row["status"] != "failed"]
    except (OSError, ValueError) as error:
        described.error(str(error))
    console = Console(highlight=False)
    if not rows:
        described.error(f"there are no finished rows in {given.rows}")
    rng = np.random.default_rng(given.seed)
    picked = rng.permutation(len(rows))[: given.sample].tolist()
    agents = {agent_name(agent): agent for agent in given.agent}
    traces = {Path(trace).name: trace for trace in given.traces}
    console.print("Preparing the traces (the first time takes some seconds) ...")
    jobs = []
    for row in (rows[i] for i in picked):
        try:
            jobs.append((job_of(row, agents, traces), row))
        except TraceNotFoundError as error:
            described.error(f"{error} Say where it stands: --traces PATH")
        except TraceError as error:
            described.error(str(error))
        except LookupError as error:
            described.error(f"{error}; say where it stands: --agent MODULE")
    return verify(jobs, given.workers, console)


def verify(jobs: Sequence[tuple[Job, Row]], workers: int, console: Console) -> int:
    """Make these rows anew; return 1 if any differs."""
    differing = 0
    other_code = sum(job.code != row["code"] for job, row in jobs)
    with tempfile.TemporaryDirectory() as folder:
        with watching(console, len(jobs)) as watch:
            in_processes(workers)([job for job, _ in jobs], Path(folder), watch)
        for job, row in jobs:
            made = read_row(job, Path(folder)) or {"status": "no row"}
            lines = list(differences(row, made))
            differing += bool(lines)
            for line in lines:
                console.print(f"{job.label}: {line}", markup=False, soft_wrap=True)
            if made["status"] == "failed":
                console.print(made["traceback"], markup=False, soft_wrap=True)
    if other_code:
        console.print(
            f"{other_code} rows were made by other code than the one that is here."
        )
    theirs = {k: v for _, row in jobs for k, v in row["made"]["versions"].items()}
    ours = versions()
    for name in sorted(theirs.keys() & ours.keys()):
        if theirs[name] != ours[name]:
            console.print(f"{name} was {theirs[name]}, and is {ours[name]} here.")
    console.print(f"{len(jobs) - differing} of {len(jobs)} rows are the same.")
    return 1 if differing else 0


def job_of(row: Row, agents: dict[str, str], traces: dict[str, str]) -> Job:
    """Return the run that makes a row anew."""
    agent = agents.get(row["agent"]) or str(row["agent"])
    place = traces.get(row["task"]["trace"]) or str(row["task"]["trace"])
    task = Task.from_key(row["task"], place)
    baselines.find(agent)
    return Job(task, agent, row["seed"], load_trace(place).digest, checksum(agent))


def differences(old: Any, new: Any, where: str = "") -> Iterator[str]:
    """Return a line for each figure that differs; what a packed row lacks is passed."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in old.items():
            if not where and key in (*APART, "code"):
                continue
            yield from differences(value, new.get(key), f"{where}.{key}".lstrip("."))
    elif old != new:
        yield f"{where} was {old!r}, and is {new!r} now"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
