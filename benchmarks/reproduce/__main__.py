"""The command: run a paper's experiment, and write its report."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from rich.console import Console

import gym_webforage
from benchmarks.leaderboard import positive
from benchmarks.reproduce import automata, energy, evolution, selection, spidering
from benchmarks.reproduce.fleets import CHECKPOINTS
from benchmarks.reproduce.results import Results, Settings, failures
from benchmarks.runs import commit
from benchmarks.work import Work, make_missing, one_thread, write_whole
from gym_webforage import TraceError, TraceNotFoundError

PAPERS: dict[str, ModuleType] = {
    "selection": selection,
    "evolution": evolution,
    "automata": automata,
    "energy": energy,
    "spidering": spidering,
}
SEEDS, QUICK_SEEDS = 10, 2


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.reproduce",
        description="Run the experiments of a paper anew and write a report with its "
        "figures beside ours. Finished runs are kept, so starting again continues.",
        epilog="Exit code: 0, or 1 if a run failed, 130 after Ctrl-C.",
    )
    made.add_argument("paper", choices=[*PAPERS, "all"], help="whose experiment")
    made.add_argument(
        "--quick", action="store_true", help="small traces, short runs, two seeds"
    )
    made.add_argument(
        "--seeds",
        type=positive,
        metavar="N",
        help=f"runs of each kind ({SEEDS}; quick: {QUICK_SEEDS})",
    )
    made.add_argument(
        "--traces",
        nargs="+",
        default=[],
        metavar="PATH",
        help="also on these traces (names or folders)",
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
        metavar="DIR",
        help="where rows, figures and report go (runs/reproduce/<paper>)",
    )
    made.add_argument(
        "--logdir", type=Path, metavar="DIR", help="also log all runs for TensorBoard"
    )
    made.add_argument(
        "--fresh", action="store_true", help="make all runs anew, finished or not"
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    described = parser()
    given = described.parse_args(arguments)
    names = list(PAPERS) if given.paper == "all" else [given.paper]
    seeds = given.seeds or (QUICK_SEEDS if given.quick else SEEDS)
    settings = Settings(given.quick, seeds, tuple(given.traces))
    one_thread()
    console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
    answer = 0
    for name in names:
        out = given.out or Path("runs/reproduce")
        if given.out is None or len(names) > 1:
            out = out / (f"{name}-quick" if given.quick else name)
        try:
            code = reproduce(
                name,
                settings,
                out=out,
                workers=given.workers,
                fresh=given.fresh,
                logdir=given.logdir,
                console=console,
            )
        except (TraceError, TraceNotFoundError) as error:
            described.error(str(error))
        if code == 130:
            return code
        answer = max(answer, code)
    return answer


def reproduce(
    name: str,
    settings: Settings,
    *,
    out: Path,
    workers: int,
    fresh: bool,
    logdir: Path | None,
    console: Console,
) -> int:
    """Make the runs of a paper that are missing, draw and write its report."""
    paper = PAPERS[name]
    console.print(f"{paper.TITLE}: preparing the traces ...")
    experiment = paper.Experiment(settings)
    runs = experiment.runs()
    folder = out / "rows"
    if fresh:
        shutil.rmtree(out / CHECKPOINTS, ignore_errors=True)
    rows = make_missing(
        runs,
        folder,
        workers=workers,
        fresh=fresh,
        console=console,
        prepare=lambda: warm_up(runs),
    )
    if rows is None:
        return 130
    console.print("Drawing the figures ...")
    results = Results(runs, rows, folder)
    parts = [
        f"# {paper.TITLE}",
        f"gym_webforage {gym_webforage.__version__}, {commit()}.",
        experiment.report(results, out),
        failures(runs, rows),
    ]
    file = out / "report.md"
    write_whole(file, "\n\n".join(part for part in parts if part) + "\n")
    if logdir is not None:
        for run in runs:
            if run.name in results.rows:
                run.log(folder, logdir / name / re.sub(r"[^\w.]+", "-", run.label))
        console.print(f"The runs are logged in {logdir / name}", soft_wrap=True)
    failed = [run.label for run in runs if run.name not in results.rows]
    for label in failed:
        console.print(f"failed: {label}", markup=False, soft_wrap=True)
    console.print(f"The report is {file}", soft_wrap=True)
    return 1 if failed else 0


def warm_up(runs: Sequence[Work]) -> None:
    """Compile the kernels here, once, and not in every worker at the same time."""
    for one in {run.family: run for run in reversed(runs)}.values():
        # What fails here will fail again, and be reported then.
        with suppress(Exception):
            one.warm_up()


if __name__ == "__main__":
    sys.exit(main())
