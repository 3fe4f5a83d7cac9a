"""The leaderboard's figures and tables, made from rows."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from scipy import stats

import baselines
import gym_webforage
from benchmarks.tasks import Task
from benchmarks.work import Row

RANDOM, ORACLE = "random_walk", "oracle"  # the ends of the scale
NONE = "-"
WIDE = 104  # columns of a terminal that shows the whole table


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
        f"gym_webforage {gym_webforage.__version__}, {commit()}; seeds 0 to "
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


def commit() -> str:
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


def show(console: Console, by_task: dict[Task, list[Standing]]) -> None:
    """Print the tables."""
    tables = {title(task): task_table(found) for task, found in by_task.items()}
    if len(by_task) > 1:
        tables["all tasks"] = total_table(by_task)
    for name, cells in tables.items():
        table = Table(
            title=name, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD
        )
        if console.width < WIDE:  # the report has all columns
            kept = [i for i, head in enumerate(cells[0]) if head != "min-max"]
            cells = [[line[i] for i in kept] for line in cells]
        for i, head in enumerate(cells[0]):
            # A narrow terminal may break cells between words; names stay whole.
            texts = [line[i] for line in cells]
            pieces = texts if i == 0 else [word for x in texts for word in x.split()]
            width = max(map(len, pieces))
            table.add_column(head, justify="right" if i else "left", min_width=width)
        for line in cells[1:]:
            table.add_row(*line)
        console.print(table)
    console.print(LEGEND, soft_wrap=True)
