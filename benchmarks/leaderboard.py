"""Who finds more, sooner, for fewer fetches: all baselines on all tasks, ranked.

Every run is kept as a row on disk as soon as it ends, so starting again continues.
Scores are scaled for each seed from the random walk (0) to the oracle (1).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

import baselines
from benchmarks.runs import Job, agent_name, checksum
from benchmarks.standings import ORACLE, RANDOM, rank, report, show
from benchmarks.tasks import QUICK, TASKS, Task
from benchmarks.work import make_missing, one_thread, write_whole
from gym_webforage import load_trace


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.leaderboard",
        description="Run the baselines on the tasks and rank them. Finished runs are "
        "kept, so starting again continues; failed ones are tried again.",
        epilog="Exit code: 0, or 1 if a run failed, 130 after Ctrl-C.",
    )
    made.add_argument(
        "--seeds", type=positive, default=10, metavar="N", help="seeds a task (10)"
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
        help="also an agent of your own: a module or .py file with make(env, seed), or "
        "a baseline with settings (linear_td:alpha=0.2); may be given again",
    )
    made.add_argument(
        "--quick",
        action="store_true",
        help="small traces and budgets, to see whether an agent runs",
    )
    made.add_argument(
        "--workers",
        type=positive,
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
        "--logdir",
        default="",
        metavar="DIR",
        help="also log the runs that are made for TensorBoard, below DIR",
    )
    made.add_argument(
        "--fresh", action="store_true", help="make all runs anew, finished or not"
    )
    return made


def positive(text: str) -> int:
    """Read a positive number of a command line."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def plan(
    tasks: Sequence[Task], agents: Sequence[str], seeds: int, logdir: str = ""
) -> list[Job]:
    """Return all runs; this loads the traces, and makes those that are not there."""
    digests = {task.trace: load_trace(task.trace).digest for task in tasks}
    codes = {agent: checksum(agent) for agent in agents}
    return [
        Job(task, agent, seed, digests[task.trace], codes[agent], logdir)
        for task in tasks
        for seed in range(seeds)
        for agent in agents
        if task.kind in kinds(agent)
    ]


def kinds(agent: str) -> tuple[str, ...]:
    """Return what an agent is made for; one that cannot be loaded fails as a run."""
    try:
        return baselines.kinds(agent)
    except Exception:
        return ("news", "topic", "spider")


def warm_up(tasks: Sequence[Task]) -> None:
    """Compile the kernels here, once, and not in every worker at the same time."""
    for task in {task.env: task for task in tasks}.values():
        env = task.make()
        _, info = env.reset(seed=0)
        env.step(int(info["action_set"][0]))


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
        tasks = tuple(
            task
            for task in tasks
            if {task.id, task.id.removeprefix("quick-")} & set(given.tasks)
        )
    agents = [*(given.agents or baselines.names()), RANDOM, ORACLE, *given.agent]
    agents = list(dict.fromkeys(agents))
    for agent in agents:
        try:
            (baselines.load if ":" in agent else baselines.find)(agent)
        except (LookupError, TypeError) as error:
            described.error(str(error))
    names = [agent_name(agent) for agent in agents]
    if len(set(names)) < len(names):
        described.error(f"two agents have the same name: {', '.join(names)}")
    one_thread()
    console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
    return compete(
        tasks,
        agents,
        seeds=given.seeds,
        workers=given.workers,
        out=given.out,
        fresh=given.fresh,
        console=console,
        logdir=given.logdir,
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
    logdir: str = "",
) -> int:
    """Make the runs that are missing, print and write the leaderboard."""
    folder = out / "rows"
    console.print("Preparing the traces (the first time takes some seconds) ...")
    found = make_missing(
        plan(tasks, agents, seeds, logdir),
        folder,
        workers=workers,
        fresh=fresh,
        console=console,
        prepare=lambda: warm_up(tasks),
    )
    if found is None:
        return 130
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


if __name__ == "__main__":
    sys.exit(main())
