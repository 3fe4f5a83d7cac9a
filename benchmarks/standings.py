"""The leaderboard's tables, made from the board: for the terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks.board import Board, Group, GroupStanding, TaskBoard, TaskStanding

__all__ = ["group_table", "markdown", "report", "show", "task_table"]

NONE = "-"
Cells = list[list[str]]

LEGEND = """\
- rank: the best place that the interval allows, and the last; equal where intervals
  overlap. Those that look into the trace (*) or miss a task of the group have none.
- score: what was found, scaled for each task and seed from the random walk (0) to the
  oracle (1); the interquartile mean over tasks and seeds, and its 95 % interval
  (stratified bootstrap over seeds). The oracle is greedy: more than 1 is possible.
- area: the same of the area under the curve of finds against the budget, so that who
  finds the same sooner has more.
- beats next: how probably it finds more than the agent in the next line, on the same
  task and seed.
- steps: environment steps of a run. CPU s: of a whole run, making and training the
  agent included. Both are medians.
- sees: what it had beside the links and texts of the crawl: the trace itself, fetches
  or data before the crawl (pre-training), a window of so many slots on the action set;
  "online" takes in what each step brings.
- failed: a run that failed counts as one that found nothing."""

TASK_LEGEND = """\
found: pages that count, within the budget, mean over the seeds with its 95 % interval;
at 25 % and at 50 %: by so much of the budget; area: mean over the whole budget of what
was found so far; fetches: of a run."""


# --- tables


def group_table(board: Board, group: Group) -> Cells:
    """Return the ranking of a group, its head first."""
    head = ["agent", "rank", "score", "95 %", "area"]
    tasks = group["tasks"] if len(group["tasks"]) > 1 else []
    titles = [*head, *tasks, "beats next", "steps", "CPU s", "sees", "failed"]
    body = []
    for standing in group["standings"]:
        cells = [standing["per_task"].get(task) for task in tasks]
        body.append(
            [
                _agent(standing["agent"], standing["privileged"]),
                _rank(standing),
                _number(standing["score"]),
                _interval(standing["low"], standing["high"]),
                _number(standing["area_score"]),
                *[_number(cell["score"] if cell else None) for cell in cells],
                _beats_next(board, group, standing["agent"]),
                f"{standing['steps']:,.0f}",
                f"{standing['cpu_seconds']:.2f}",
                standing["sees"],
                _failed(standing["failed"], standing["runs"]),
            ]
        )
    return _without_empty([titles, *body], "failed")


def task_table(task: TaskBoard) -> Cells:
    """Return one task's table, its head first."""
    titles = ["agent", "rank", "found", "95 %", "at 25 %", "at 50 %", "area", "score"]
    titles += ["95 % of score", "fetches", "CPU s", "illegal", "failed"]
    body = [
        [
            _agent(standing["agent"], standing["sees"]["privileged"]),
            _rank(standing),
            f"{standing['found_mean']:,.1f}",
            _interval(standing["found_low"], standing["found_high"], 0),
            f"{standing['found_at']['25 %']:,.1f}",
            f"{standing['found_at']['50 %']:,.1f}",
            f"{standing['area']:,.1f}",
            _number(standing["score"]),
            _interval(standing["low"], standing["high"]),
            f"{standing['fetches']:,.0f}",
            f"{standing['cpu_seconds']:.2f}",
            f"{standing['illegal']:.1f}" if standing["illegal"] else "",
            _failed(standing["failed"], standing["runs"]),
        ]
        for standing in task["standings"]
    ]
    return _without_empty(_without_empty([titles, *body], "failed"), "illegal")


def _without_empty(cells: Cells, title: str) -> Cells:
    at = cells[0].index(title)
    if any(line[at] for line in cells[1:]):
        return cells
    return [line[:at] + line[at + 1 :] for line in cells]


def _agent(name: str, privileged: bool) -> str:
    return f"{name} *" if privileged else name


def _rank(standing: GroupStanding | TaskStanding) -> str:
    rank, last = standing["rank"], standing["rank_last"]
    if rank is None:
        return NONE
    return f"{rank}" if rank == last else f"{rank}-{last}"


def _number(value: float | None) -> str:
    return NONE if value is None else f"{value:.3f}"


def _interval(low: float | None, high: float | None, digits: int = 2) -> str:
    if low is None or high is None:
        return NONE
    return f"{low:,.{digits}f} to {high:,.{digits}f}"


def _failed(failed: int, runs: int) -> str:
    return f"{failed} of {runs}" if failed else ""


def _beats_next(board: Board, group: Group, agent: str) -> str:
    found = board["improvement"][group["id"]]
    at = found["agents"].index(agent)
    if at + 1 >= len(found["agents"]) or found["mean"][at][at + 1] is None:
        return NONE
    return f"{found['mean'][at][at + 1]:.2f}"


# --- Markdown


def markdown(cells: Cells) -> str:
    """Write a table in Markdown."""
    lines = [cells[0], ["---", *["---:"] * (len(cells[0]) - 1)], *cells[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def heading(task: TaskBoard) -> str:
    """Name a task and say what it is."""
    return f"{task['id']}: {task['title']}"


def scale_note(task: TaskBoard) -> str:
    """Say how many seeds have a scale, if not all."""
    if task["scaled_seeds"] == task["seeds"]:
        return ""
    return (
        f"{task['scaled_seeds']} of {task['seeds']} seeds have a scale: on the others "
        "the oracle does not find clearly more than a random walk."
    )


def report(board: Board) -> str:
    """Write the whole leaderboard in Markdown."""
    made = board["made"]
    libraries = ", ".join(
        f"{name} {version}"
        for name, version in made["versions"].items()
        if name != "gym_webforage"  # said before
    )
    parts = [
        "# Leaderboard",
        f"gym_webforage {made['version']}, {made['commit']}; {made['rows']:,} runs, "
        f"{made['seeds']} seeds, split `test`. {libraries}. Made by "
        f"`{made['command']}`.",
        LEGEND,
    ]
    for group in board["groups"]:
        parts += [f"## {group['title']}", markdown(group_table(board, group))]
    parts += ["# Tasks", TASK_LEGEND]
    for task in board["tasks"]:
        parts += [f"## {heading(task)}", scale_note(task), markdown(task_table(task))]
    if board["failures"]:
        parts.append("# Failed runs")
    for failure in board["failures"]:
        name = f"{failure['task']}, {failure['agent']}, seed {failure['seed']}"
        parts.append(f"**{name}**\n\n```\n{failure['traceback'].rstrip()}\n```")
    return "\n\n".join(part for part in parts if part) + "\n"


def summary_table(board: Board) -> Cells:
    """Return one line an agent: its score and rank in every group."""
    groups = board["groups"]
    places = [{s["agent"]: s for s in group["standings"]} for group in groups]
    agents = dict.fromkeys(agent for own in places for agent in own)
    body = []
    for agent in agents:
        line = [
            _agent(agent, any(agent in p and p[agent]["privileged"] for p in places))
        ]
        for own in places:
            standing = own.get(agent)
            if standing is None or standing["score"] is None:
                line.append("")
            else:
                rank = _rank(standing)
                place = f" ({rank})" if rank != NONE else ""
                score = round(standing["score"], 2) + 0.0  # no minus before nothing
                line.append(f"{score:.2f}{place}")
        body.append(line)

    def best(line: list[str]) -> float:
        found = [float(cell.split()[0]) for cell in line[1:] if cell]
        return -max(found, default=-9.0)

    body.sort(key=lambda line: (best(line), line[0]))
    return [["agent", *(group["id"] for group in groups)], *body]


# --- the terminal


def show(console: Console, board: Board) -> None:
    """Print what the columns mean, and the rankings; the report has all tasks."""
    for point in LEGEND.removeprefix("- ").split("\n- "):
        grid = Table.grid(padding=(0, 1))
        grid.add_row("-", Text(" ".join(point.split())))
        console.print(grid)
    console.print()
    for group in board["groups"]:
        _print(console, group, group_table(board, group))


def _print(console: Console, group: Group, cells: Cells) -> None:
    table = Table(
        title=group["title"],
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
    )
    titles = [title.removeprefix(f"{group['id']}-") for title in cells[0]]
    widths = [max(map(len, column)) for column in zip(titles, *cells[1:], strict=True)]
    kept = list(range(len(titles)))
    # A narrow terminal shows what matters most; the report has all columns.
    extras = ["steps", "CPU s", "beats next", "area", "sees", *group["tasks"][::-1]]
    for extra in extras:
        wide = 2 + sum(widths[i] + 3 for i in kept)
        if wide > console.width and extra in cells[0]:
            kept.remove(cells[0].index(extra))
    for i in kept:
        justify = "right" if 0 < i and titles[i] != "sees" else "left"
        table.add_column(titles[i], justify=justify, no_wrap=True)
    for line in cells[1:]:
        table.add_row(*(line[i] for i in kept))
    console.print(table)


def failed_lines(board: Board) -> Sequence[str]:
    """Return a line for each failed run."""
    lines = []
    for failure in board["failures"]:
        reason = failure["traceback"].rstrip().rpartition("\n")[-1]
        run = f"{failure['task']}, {failure['agent']}, seed {failure['seed']}"
        lines.append(f"failed: {run}: {reason}")
    return lines
