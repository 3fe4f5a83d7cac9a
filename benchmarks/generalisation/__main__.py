"""The command: train on some tasks, test on others, say what won, tied and lost."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

import gym_webforage
from benchmarks.generalisation import methods
from benchmarks.generalisation.report import FIGURE, differences, report, summary
from benchmarks.generalisation.results import outcome
from benchmarks.generalisation.studies import (
    RECORDINGS,
    SHIPPED,
    Size,
    Study,
    make_studies,
)
from benchmarks.generalisation.trials import MODELS, plan, warm_up
from benchmarks.leaderboard import positive
from benchmarks.reproduce.pictures import save
from benchmarks.reproduce.results import failures
from benchmarks.runs import commit
from benchmarks.work import make_missing, one_thread, write_whole
from gym_webforage import TraceError, TraceNotFoundError

SEEDS, QUICK_SEEDS = 3, 2
STEPS, QUICK_STEPS = 30_000, 512
QUICK = Size(4, fetches=40, few_fetches=80, time="2h", folds=1, small=True)


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.generalisation",
        description="Train on some topics, sites, traces or days, test on others, and "
        "report paired differences with intervals. Finished trials are kept, so "
        "starting again continues.",
        epilog="Exit code: 0, or 1 if a trial failed, 130 after Ctrl-C.",
    )
    names = [*SHIPPED, RECORDINGS]
    made.add_argument(
        "--quick", action="store_true", help="small traces, few methods and steps"
    )
    made.add_argument(
        "--studies",
        nargs="+",
        choices=names,
        default=names,
        metavar="STUDY",
        help=f"only these: {', '.join(names)} (those of --traces)",
    )
    made.add_argument(
        "--methods",
        nargs="+",
        metavar="NAME",
        help=f"only these: {', '.join(methods.defaults())}, or other baselines; "
        f"{' and '.join(methods.SCALE)} always run, for the scale",
    )
    made.add_argument(
        "--traces",
        nargs="+",
        default=[],
        metavar="PATH",
        help="recordings: labelled ones are parted by subject, those with targets on "
        "several sites by site, those with many versions by time",
    )
    made.add_argument(
        "--seeds",
        type=positive,
        metavar="N",
        help=f"training seeds ({SEEDS}; quick: {QUICK_SEEDS})",
    )
    made.add_argument(
        "--tasks",
        type=positive,
        metavar="N",
        help=f"tasks to test on, a study ({Size.tasks}; quick: {QUICK.tasks})",
    )
    made.add_argument(
        "--steps",
        type=positive,
        metavar="N",
        help=f"environment steps of a training ({STEPS}; quick: {QUICK_STEPS})",
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
        help="where rows, models, figure and report go (runs/generalisation)",
    )
    made.add_argument(
        "--fresh", action="store_true", help="make all trials anew, finished or not"
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    described = parser()
    given = described.parse_args(arguments)
    size = QUICK if given.quick else Size()
    if given.tasks:
        size = replace(size, tasks=given.tasks)
    one_thread()
    console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
    console.print("Preparing the traces (the first time takes some seconds) ...")
    default = methods.known(methods.QUICK) if given.quick else methods.defaults()
    try:
        names = methods.check(given.methods or default)
        studies = make_studies(given.studies, given.traces, size)
    except (
        LookupError,
        TypeError,
        ValueError,
        TraceError,
        TraceNotFoundError,
    ) as error:
        described.error(str(error))
    if not studies:
        described.error("--studies recordings: give some with --traces")
    folder = "generalisation-quick" if given.quick else "generalisation"
    return compare(
        studies,
        names,
        seeds=given.seeds or (QUICK_SEEDS if given.quick else SEEDS),
        steps=given.steps or (QUICK_STEPS if given.quick else STEPS),
        workers=given.workers,
        out=given.out or Path("runs") / folder,
        fresh=given.fresh,
        console=console,
    )


def compare(
    studies: Sequence[Study],
    names: Sequence[str],
    *,
    seeds: int,
    steps: int,
    workers: int,
    out: Path,
    fresh: bool,
    console: Console,
) -> int:
    """Make the trials that are missing, then draw and write the report."""
    if fresh:
        shutil.rmtree(out / MODELS, ignore_errors=True)
    folds = [fold for study in studies for fold in study.folds]
    trials = plan(folds, names, seeds, steps)
    rows = make_missing(
        trials,
        out / "rows",
        workers=workers,
        fresh=fresh,
        console=console,
        prepare=lambda: warm_up(folds),
    )
    if rows is None:
        return 130
    by_name = {trial.name: row for trial, row in zip(trials, rows, strict=True)}
    outcomes = [outcome(study, trials, by_name) for study in studies]
    save(differences(outcomes), out / FIGURE)
    parts = [
        "# Generalisation",
        f"gym_webforage {gym_webforage.__version__}, {commit()}.",
        report(outcomes, seeds=seeds, steps=steps),
        failures(trials, rows),
    ]
    file = out / "report.md"
    write_whole(file, "\n\n".join(part for part in parts if part) + "\n")
    for one in outcomes:
        if one.scores["area"]:
            console.print(summary(one), markup=False, soft_wrap=True)
    failed = [row for row in rows if row["status"] != "done"]
    for row in failed:
        reason = row["traceback"].rstrip().rpartition("\n")[-1]
        told = f"{row['study']}, {row['method']}, seed {row['seed']}"
        console.print(f"failed: {told}: {reason}", markup=False, soft_wrap=True)
    console.print(f"The report is {file}", soft_wrap=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
