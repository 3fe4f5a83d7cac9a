"""Who finds more, sooner, for fewer fetches: all baselines on all tasks, ranked.

Every run is kept as a row on disk as soon as it ends, so starting again continues.
Scores are scaled for each task and seed from the random walk (0) to the oracle (1).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import Console

import baselines
from benchmarks.assemble import ORACLE, RANDOM, make_board
from benchmarks.board import Board
from benchmarks.publish import publish, read_published
from benchmarks.runs import Job, agent_name, checksum
from benchmarks.standings import failed_lines, report, show
from benchmarks.tasks import QUICK, TASKS, Task, chosen, tasks_on
from benchmarks.work import Runner, make_missing, one_thread, run, write_whole
from gym_webforage import TraceError, TraceNotFoundError, load_trace

SEEDS, FULL_SEEDS = 5, 10
REPLAYED = 300  # steps of an episode on the page


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.leaderboard",
        description="Run the baselines on the tasks and rank them; without options on "
        f"the core tasks with {SEEDS} seeds, some minutes on two cores. Finished runs "
        "are kept, so starting again continues; failed ones are tried again. "
        "`python -m benchmarks.leaderboard verify` makes some runs anew and compares.",
        epilog="Exit code: 0, or 1 if a run failed, 130 after Ctrl-C.",
    )
    extent = made.add_mutually_exclusive_group()
    extent.add_argument(
        "--full",
        action="store_true",
        help=f"all tasks, {FULL_SEEDS} seeds: the one that is published",
    )
    extent.add_argument(
        "--quick",
        action="store_true",
        help="small traces and budgets, to see whether an agent runs",
    )
    made.add_argument(
        "--seeds",
        type=positive,
        metavar="N",
        help=f"seeds a task ({SEEDS}; full: {FULL_SEEDS})",
    )
    made.add_argument(
        "--tasks",
        nargs="+",
        metavar="TASK",
        help=f"only these tasks or groups: {', '.join(task.id for task in TASKS)}",
    )
    made.add_argument(
        "--traces",
        nargs="+",
        default=[],
        metavar="PATH",
        help="also on these traces, in all kinds of tasks that they hold something for",
    )
    made.add_argument(
        "--agents",
        nargs="+",
        metavar="NAME",
        help=f"only these of the baselines: {', '.join(baselines.names())}; "
        "or of a kind: news, topic, spider; "
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
        "--workers",
        type=positive,
        default=min(2, os.cpu_count() or 1),
        metavar="N",
        help="processes (2, or 1 if there is one CPU only)",
    )
    made.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="make the runs on a Ray cluster instead (auto, or HOST:PORT)",
    )
    made.add_argument(
        "--out",
        type=Path,
        default=Path("runs/leaderboard"),
        metavar="DIR",
        help="where rows and report go (runs/leaderboard)",
    )
    made.add_argument(
        "--logdir", type=Path, metavar="DIR", help="also log for TensorBoard, below DIR"
    )
    made.add_argument(
        "--publish",
        action="store_true",
        help="also write benchmarks/LEADERBOARD.md, its rows and the README's table",
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    typed = list(sys.argv[1:] if arguments is None else arguments)
    if typed[:1] == ["verify"]:
        from benchmarks.verify import main as verify

        return verify(typed[1:])
    described = parser()
    given = described.parse_args(typed)
    one_thread()
    console = Console(width=None if sys.stdout.isatty() else 130, highlight=False)
    try:
        tasks = pick_tasks(given)
        agents = pick_agents(given)
    except (LookupError, TraceError, TraceNotFoundError) as error:
        described.error(str(error))
    runner: Runner | None = None
    if given.ray:
        from benchmarks.ray_work import on_cluster

        runner = on_cluster(given.ray)
    seeds = given.seeds or (FULL_SEEDS if given.full else SEEDS)
    # Places on this machine are nobody's business, and change no figure.
    command = "python -m benchmarks.leaderboard " + " ".join(_public(typed))
    return compete(
        tasks,
        agents,
        seeds=seeds,
        workers=given.workers,
        out=given.out,
        fresh=given.fresh,
        console=console,
        command=command.strip(),
        logdir=given.logdir,
        runner=runner,
        is_published=given.publish,
    )


def _public(typed: Sequence[str]) -> list[str]:
    """Return a command line without what only says where files go, or how fast."""
    kept, skip = [], False
    for word in typed:
        if word in ("--out", "--logdir", "--workers", "--ray"):
            skip = True
        elif word in ("--fresh", "--publish"):
            pass
        elif skip:
            skip = False
        else:
            kept.append(Path(word).name if os.sep in word else word)
    return kept


def pick_tasks(given: argparse.Namespace) -> list[Task]:
    """Return the tasks that the command line asks for."""
    tasks = list(QUICK if given.quick else TASKS)
    own = [task for trace in given.traces for task in tasks_on(trace)]
    for trace in given.traces:
        if not any(task.trace_name == Path(trace).name for task in own):
            raise LookupError(
                f"the trace {trace} has nothing to rank by: no page in several "
                "versions, no labels, no targets"
            )
    if given.tasks:
        try:
            return chosen([*tasks, *own], given.tasks)
        except LookupError as error:
            raise LookupError(
                f"among the quick tasks {error}" if given.quick else str(error)
            ) from None
    if not given.full and not given.quick:
        tasks = [task for task in tasks if task.core]
    return [*tasks, *own]


def pick_agents(given: argparse.Namespace) -> list[str]:
    """Return the agents that the command line asks for, and the ends of the scale."""
    named: list[str] = []
    for name in given.agents or baselines.names():
        if name in ("news", "topic", "spider"):
            named += [own for own in baselines.names() if name in kinds(own)]
        else:
            named.append(name)
    agents = list(dict.fromkeys([*named, RANDOM, ORACLE, *given.agent]))
    for agent in agents:
        try:
            baselines.load(agent)
        except baselines.NoAgentError:
            raise
        except Exception:
            pass  # it fails as a run, which keeps the traceback
    names = [agent_name(agent) for agent in agents]
    if len(set(names)) < len(names):
        raise LookupError(f"two agents have the same name: {', '.join(names)}")
    return agents


def kinds(agent: str) -> tuple[str, ...]:
    """Return what an agent is made for; one that cannot be loaded fails as a run."""
    try:
        return baselines.kinds(agent)
    except Exception:
        return ("news", "topic", "spider")


def plan(
    tasks: Sequence[Task], agents: Sequence[str], seeds: int, command: str = ""
) -> list[Job]:
    """Return all runs; this loads the traces, and makes those that are not there."""
    digests = {task.trace: load_trace(task.trace).digest for task in tasks}
    codes = {agent: checksum(agent) for agent in agents}
    suited = {agent: kinds(agent) for agent in agents}
    return [
        Job(task, agent, seed, digests[task.trace], codes[agent], command)
        for seed in range(seeds)
        for task in tasks
        for agent in agents
        if task.kind in suited[agent]
    ]


def warm_up(tasks: Sequence[Task]) -> None:
    """Compile the kernels here, once, and not in every worker at the same time."""
    small = {task.group: task for task in QUICK}
    for kind in {task.kind for task in tasks}:
        for agent in (RANDOM, ORACLE):
            # What fails here will fail again, and be reported then.
            with suppress(Exception):
                run(Job(small[kind], agent, 0, "", ""), Path())


def likely_seconds() -> Callable[[Job], float | None]:
    """Return what knows how long a run takes: as its like took, if it was published."""
    known: dict[tuple[str, str], float] = {}
    for row in read_published():
        name = row["task"]["id"], row["agent"]
        known[name] = max(known.get(name, 0.0), row["timing"]["cpu_seconds"])
    return lambda job: known.get((job.task.id, agent_name(job.agent)))


def compete(
    tasks: Sequence[Task],
    agents: Sequence[str],
    *,
    seeds: int,
    workers: int,
    out: Path,
    fresh: bool,
    console: Console,
    command: str = "",
    logdir: Path | None = None,
    runner: Runner | None = None,
    is_published: bool = False,
) -> int:
    """Make the runs that are missing, print and write the leaderboard."""
    folder = out / "rows"
    console.print("Preparing the traces (the first time takes some seconds) ...")
    rows = make_missing(
        plan(tasks, agents, seeds, command),
        folder,
        workers=workers,
        fresh=fresh,
        console=console,
        prepare=lambda: warm_up(tasks),
        runner=runner,
        likely=likely_seconds(),
    )
    if rows is None:
        return 130
    board = make_board(rows, command=command)
    write_whole(out / "board.json", json.dumps(board))
    write_whole(out / "leaderboard.md", report(board))
    page = write_page(out, board, tasks, console)
    if logdir is not None:
        from benchmarks.tensorboard_log import log_board

        log_board(logdir, board)
        console.print(f"TensorBoard's files are in {logdir}", soft_wrap=True)
    if is_published:
        for file in publish(rows):
            console.print(f"Written: {file}", soft_wrap=True)
    show(console, board)
    for line in failed_lines(board):
        console.print(line, markup=False, soft_wrap=True)
    console.print(
        f"The report is {out / 'leaderboard.md'}, its rows are in {folder}; to look at "
        f"in a browser: {page.resolve().as_uri()}",
        soft_wrap=True,
    )
    return 1 if board["failures"] else 0


def write_page(
    out: Path, board: Board, tasks: Sequence[Task], console: Console
) -> Path:
    """Write the page, with a replay of a good run of every group."""
    from benchmarks.page import render
    from benchmarks.page.replay import record

    console.print("Recording a crawl of each group for the page ...")
    replays: list[dict[str, Any]] = []
    for group in board["groups"]:
        task = next(task for task in tasks if task.group == group["id"])
        best = [s["agent"] for s in group["standings"] if not s["privileged"]]
        # The best that runs; one that fails has a traceback in the report already.
        for agent in [name for name in best if name in baselines.names()][:1]:
            with suppress(Exception):
                replays.append(record(task, agent, 0, REPLAYED))
    file = out / "leaderboard.html"
    write_whole(file, render({**board, "replays": replays}))
    return file


if __name__ == "__main__":
    sys.exit(main())
