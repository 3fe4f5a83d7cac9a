"""Who finds more, sooner, for fewer fetches: all baselines on all tasks, ranked.

Every run is kept as a row on disk as soon as it ends, so starting again continues.
Scores are scaled for each seed from the random walk (0) to the oracle (1).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.table import Table
from scipy import stats

import baselines
import gym_webforage
from benchmarks.runs import (
    Job,
    Row,
    agent_name,
    checksum,
    read_row,
    run_all,
    write_whole,
)
from benchmarks.tasks import QUICK, TASKS, Task
from gym_webforage import load_trace

RANDOM, ORACLE = "random_walk", "oracle"
NONE = "-"


# --- figures


@dataclass(frozen=True)
class Standing:
    """What an agent achieved on a task, over its seeds."""

    agent: str
    rows: list[Row]  # by seed, the failed ones included
    scores: list[float]  # of the seeds that have one

    @property
    def done(self) -> list[Row]:
        """The rows of runs that did not fail."""
        return [row for row in self.rows if row["status"] == "done"]

    @property
    def failed(self) -> int:
        """How many runs failed."""
        return len(self.rows) - len(self.done)

    @property
    def score(self) -> float | None:
        """The mean score; an agent that failed on any seed has none."""
        whole = self.scores and not self.failed
        return float(np.mean(self.scores)) if whole else None

    def figures(self, name: str) -> list[float]:
        """Return one figure of all runs that did not fail."""
        return [row["result"][name] for row in self.done]


def rank(rows: Sequence[Row]) -> list[Standing]:
    """Return the agents of one task, the best first, those without a score last."""
    found = {
        (row["agent"], row["seed"]): row["result"]["found"]
        for row in rows
        if row["status"] == "done"
    }

    def score(agent: str, seed: int) -> float | None:
        own, low, high = (found.get((x, seed)) for x in (agent, RANDOM, ORACLE))
        if own is None or low is None or high is None or low == high:
            return None
        return (own - low) / (high - low)

    standings = []
    for agent in dict.fromkeys(row["agent"] for row in rows):
        own = sorted((r for r in rows if r["agent"] == agent), key=lambda r: r["seed"])
        scores = [score(agent, row["seed"]) for row in own]
        standings.append(Standing(agent, own, [x for x in scores if x is not None]))

    def order(standing: Standing) -> tuple[bool, float, float, str]:
        number = standing.score
        found = float(np.mean(standing.figures("found") or [0]))
        return number is None, -(number or 0.0), -found, standing.agent

    return sorted(standings, key=order)


def interval(values: Sequence[float]) -> float | None:
    """Return half the width of the mean's 95 % interval (Student's t)."""
    count = len(values)
    if count < 2:
        return None
    error = np.std(values, ddof=1) / np.sqrt(count)
    return float(stats.t.ppf(0.975, count - 1) * error)


# --- tables


Cells = list[list[str]]


def task_table(standings: Sequence[Standing]) -> Cells:
    """Return one task's table, its head first."""
    columns: dict[str, Callable[[Standing], str]] = {
        "agent": _agent,
        "found (min-max)": lambda s: _spread(s.figures("found")),
        "area": lambda s: _mean(s.figures("area"), 1),
        "score ± 95 %": _score,
        "min-max": _range,
        "fetches": lambda s: _mean(s.figures("fetches")),
    }
    if any(row["training_fetches"] for s in standings for row in s.done):
        columns["before"] = lambda s: _mean([r["training_fetches"] for r in s.done])
    if any(row["result"]["summary"]["illegal"] for s in standings for row in s.done):
        columns["illegal"] = lambda s: _mean(
            [row["result"]["summary"]["illegal"] for row in s.done], 1
        )
    columns["CPU s"] = lambda s: _mean(
        [row["timing"]["cpu_seconds"] for row in s.done], 1
    )
    body = [[make(standing) for make in columns.values()] for standing in standings]
    return [list(columns), *body]


def total_table(by_task: dict[Task, list[Standing]]) -> Cells:
    """Return the mean score over all tasks, the best first."""
    scores: dict[str, list[float | None]] = {}
    for standings in by_task.values():
        for standing in standings:
            scores.setdefault(standing.agent, []).append(standing.score)
    means = {
        agent: float(np.mean([x for x in own if x is not None]))
        for agent, own in scores.items()
        if None not in own
    }
    ranked = sorted(scores, key=lambda agent: (-means.get(agent, -np.inf), agent))
    body = []
    for agent in ranked:
        mean = f"{means[agent]:.3f}" if agent in means else NONE
        each = [NONE if x is None else f"{x:.3f}" for x in scores[agent]]
        body.append([agent, mean, *each])
    return [["agent", "mean score", *(task.id for task in by_task)], *body]


def _agent(standing: Standing) -> str:
    sees_all = any(row["privileged"] for row in standing.done)
    return f"{standing.agent} *" if sees_all else standing.agent


def _mean(values: Sequence[float], digits: int = 0) -> str:
    return f"{np.mean(values):,.{digits}f}" if values else NONE


def _spread(values: Sequence[float]) -> str:
    if not values:
        return NONE
    return f"{np.mean(values):,.1f} ({min(values):,.0f}-{max(values):,.0f})"


def _score(standing: Standing) -> str:
    if standing.failed:
        return f"failed ({standing.failed} of {len(standing.rows)})"
    if standing.score is None:
        return NONE
    half = interval(standing.scores)
    if half is None or standing.agent in (RANDOM, ORACLE):  # the ends of the scale
        return f"{standing.score:.3f}"
    return f"{standing.score:.3f} ± {half:.3f}"


def _range(standing: Standing) -> str:
    if standing.score is None:
        return NONE
    return f"{min(standing.scores):.3f} to {max(standing.scores):.3f}"


LEGEND = """\
found: pages that count, within the budget, mean over the seeds. area: mean of what was
found so far over the whole budget, so sooner is more. score: found, scaled for each
seed from the random walk (0) to the oracle (1); the oracle is greedy, so more than 1 is
possible. CPU s: of a whole run, compiling included. *: looks into the trace."""


def title(task: Task) -> str:
    """Say what a task is."""
    unit = " fetches" if isinstance(task.budget, int) else ""
    return f"{task.id}: {task.finds} in {task.budget}{unit} on {task.trace}"


def markdown(cells: Cells) -> str:
    """Write a table in Markdown."""
    lines = [cells[0], ["---", *["---:"] * (len(cells[0]) - 1)], *cells[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def report(by_task: dict[Task, list[Standing]], rows: Sequence[Row]) -> str:
    """Write the whole leaderboard in Markdown."""
    seeds = len({row["seed"] for row in rows})
    parts = [
        "# Leaderboard",
        f"gym_webforage {gym_webforage.__version__}, {_commit()}; seeds 0 to "
        f"{seeds - 1}, split `test`.",
        LEGEND,
    ]
    for task, standings in by_task.items():
        parts += [f"## {title(task)}", markdown(task_table(standings))]
    if len(by_task) > 1:
        parts += ["## All tasks", markdown(total_table(by_task))]
    failed = [row for row in rows if row["status"] == "failed"]
    if failed:
        parts.append("## Failed runs")
    for row in failed:
        name = f"{row['task']['id']}, {row['agent']}, seed {row['seed']}"
        parts.append(f"**{name}**\n\n```\n{row['traceback'].rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def _commit() -> str:
    """Name the checkout's commit."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        found = subprocess.run(
            command, cwd=baselines.FOLDER, capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return "commit unknown"
    name = found.stdout.strip()
    return f"commit {name}" if name and not found.returncode else "commit unknown"


# --- the command


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.leaderboard",
        description="Run the baselines on the tasks and rank them. Finished runs are "
        "kept, so starting again continues; failed ones are tried again.",
        epilog="Exit code: 0, or 1 if a run failed, 130 after Ctrl-C.",
    )
    made.add_argument(
        "--seeds", type=_positive, default=3, metavar="N", help="seeds a task (3)"
    )
    made.add_argument(
        "--tasks",
        nargs="+",
        metavar="TASK",
        help=f"only these: {', '.join(task.id for task in TASKS)}",
    )
    made.add_argument(
        "--agents",
        nargs="+",
        metavar="NAME",
        help=f"only these of the baselines: {', '.join(baselines.names())}; "
        f"{RANDOM} and {ORACLE} always run, for the scale",
    )
    made.add_argument(
        "--agent",
        action="append",
        default=[],
        metavar="MODULE",
        help="also an agent of your own: a module or .py file with make(env, seed); "
        "may be given again",
    )
    made.add_argument(
        "--quick",
        action="store_true",
        help="small traces and budgets, to see whether an agent runs",
    )
    made.add_argument(
        "--workers",
        type=_positive,
        default=min(2, os.cpu_count() or 1),
        metavar="N",
        help="processes (2)",
    )
    made.add_argument(
        "--out",
        type=Path,
        default=Path("runs/leaderboard"),
        metavar="DIR",
        help="where rows and report go (runs/leaderboard)",
    )
    made.add_argument(
        "--fresh", action="store_true", help="make all runs anew, finished or not"
    )
    return made


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def plan(tasks: Sequence[Task], agents: Sequence[str], seeds: int) -> list[Job]:
    """Return all runs; this loads the traces, and makes those that are not there."""
    digests = {task.trace: load_trace(task.trace).digest for task in tasks}
    codes = {agent: checksum(agent) for agent in agents}
    return [
        Job(task, agent, seed, digests[task.trace], codes[agent])
        for task in tasks
        for seed in range(seeds)
        for agent in agents
    ]


def warm_up(tasks: Sequence[Task]) -> None:
    """Compile the kernels here, once, and not in every worker at the same time."""
    for task in {task.env: task for task in tasks}.values():
        env = task.make()
        _, info = env.reset(seed=0)
        env.step(int(info["action_set"][0]))


@contextmanager
def progress(console: Console, total: int) -> Iterator[Callable[[Job, Row], None]]:
    """Show how far it is: a bar on a terminal, lines elsewhere."""
    count = 0

    def line(job: Job, row: Row) -> str:
        nonlocal count
        count += 1
        outcome = "failed"
        if row["status"] == "done":
            outcome = f"{row['result']['found']:,} {job.task.finds}"
        seconds = row["timing"]["wall_seconds"]
        run = f"{job.task.id}, {job.name}, seed {job.seed}"
        return f"[{count}/{total}] {run}: {outcome} ({seconds:.1f} s)"

    if not console.is_terminal:
        yield lambda job, row: print(line(job, row), flush=True)
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress("{task.description}", *columns, console=console) as bar:
        shown = bar.add_task("runs", total=total)

        def advance(job: Job, row: Row) -> None:
            if row["status"] == "failed":
                bar.console.print(line(job, row), style="red", markup=False)
            bar.update(shown, advance=1, description=f"{job.task.id}, {job.name}")

        yield advance


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    described = parser()
    given = described.parse_args(arguments)
    tasks = QUICK if given.quick else TASKS
    if given.tasks:
        names = [task.id for task in tasks]
        for name in given.tasks:
            if name not in names and f"quick-{name}" not in names:
                described.error(f"there is no task {name!r}: {', '.join(names)}")
        tasks = tuple(t for t in tasks if t.id.removeprefix("quick-") in given.tasks)
    agents = [*(given.agents or baselines.names()), RANDOM, ORACLE, *given.agent]
    agents = list(dict.fromkeys(agents))
    for agent in agents:
        try:
            baselines.find(agent)
        except LookupError as error:
            described.error(str(error))
    names = [agent_name(agent) for agent in agents]
    if len(set(names)) < len(names):
        described.error(f"two agents have the same name: {', '.join(names)}")
    # Workers inherit these; small networks run fastest with one thread a process.
    for library in ("OMP", "MKL", "OPENBLAS"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
    return compete(
        tasks,
        agents,
        seeds=given.seeds,
        workers=given.workers,
        out=given.out,
        fresh=given.fresh,
        console=console,
    )


def compete(
    tasks: Sequence[Task],
    agents: Sequence[str],
    *,
    seeds: int,
    workers: int,
    out: Path,
    fresh: bool,
    console: Console,
) -> int:
    """Make the runs that are missing, print and write the leaderboard."""
    folder = out / "rows"
    folder.mkdir(parents=True, exist_ok=True)
    console.print("Preparing the traces (the first time takes some seconds) ...")
    jobs = plan(tasks, agents, seeds)
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
            warm_up(tasks)
            with progress(console, len(missing)) as done:
                run_all(missing, folder, workers, done)
    except KeyboardInterrupt:
        console.print(
            f"\nStopped. Finished runs are kept in {folder}; the same command (without "
            "--fresh) continues.",
            soft_wrap=True,
        )
        return 130
    found = [row for job in jobs if (row := read_row(job, folder)) is not None]
    by_task = {
        task: rank([row for row in found if row["task"]["id"] == task.id])
        for task in tasks
    }
    show(console, by_task)
    file = out / "leaderboard.md"
    write_whole(file, report(by_task, found))
    failed = [row for row in found if row["status"] != "done"]
    for row in failed:
        reason = row["traceback"].rstrip().rpartition("\n")[-1]
        run = f"{row['task']['id']}, {row['agent']}, seed {row['seed']}"
        console.print(f"failed: {run}: {reason}", markup=False, soft_wrap=True)
    console.print(f"The report is {file}, its rows are in {folder}", soft_wrap=True)
    return 1 if failed else 0


def show(console: Console, by_task: dict[Task, list[Standing]]) -> None:
    """Print the tables."""
    tables = {title(task): task_table(found) for task, found in by_task.items()}
    if len(by_task) > 1:
        tables["all tasks"] = total_table(by_task)
    for name, cells in tables.items():
        table = Table(
            title=name, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD
        )
        for i, head in enumerate(cells[0]):
            table.add_column(head, justify="right" if i else "left")
        for line in cells[1:]:
            table.add_row(*line)
        console.print(table)
    console.print(LEGEND, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
