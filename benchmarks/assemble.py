"""Make the board, all that a leaderboard says, from its rows.

A failed run counts as one that found nothing: it stays in every figure, and its
standing says how many failed. A task's seed whose oracle does not find clearly more
than a random walk, or whose random walk or oracle failed, has no scale and gives no
score to anyone; the task says how many seeds have one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks import scores as S
from benchmarks.board import (
    Board,
    Cell,
    Curve,
    Failure,
    Fleet,
    Group,
    GroupStanding,
    Improvement,
    Made,
    Profile,
    Sees,
    TaskBoard,
    TaskStanding,
)
from benchmarks.scores import RESAMPLES, Interval, Scores
from benchmarks.tasks import GROUPS, Task
from benchmarks.work import Row

RANDOM, ORACLE = "random_walk", "oracle"  # the ends of the scale
SHARES = {"25 %": 5, "50 %": 10, "75 %": 15, "100 %": 20}  # places in a curve
POINTS = 21


def make_board(rows: Sequence[Row], *, command: str = "") -> Board:
    """Return the board of these rows. Those of agents that took no part say nothing."""
    rows = sorted(rows, key=lambda row: (row["agent"], row["seed"]))
    tasks: dict[str, Task] = {}
    by_task: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        if row["status"] != "unsuited":
            name = row["task"]["id"]
            tasks.setdefault(name, Task.from_key(row["task"]))
            by_task.setdefault(name, {}).setdefault(row["agent"], []).append(row)
    order = {name: i for i, name in enumerate(GROUPS)}
    names = sorted(tasks, key=lambda name: (order[tasks[name].group], name))
    found = {name: _scores(by_task[name]) for name in names}
    groups = [
        _group(group, [n for n in names if tasks[n].group == group], by_task, found)
        for group in dict.fromkeys(tasks[name].group for name in names)
    ]
    return Board(
        made=_made(rows, command),
        groups=groups,
        tasks=[_task(tasks[name], by_task[name], found[name]) for name in names],
        failures=_failures(rows),
        fleets=_fleets(rows),
        improvement={group["id"]: _improvement(group, found) for group in groups},
        profiles={group["id"]: _profile(group, found) for group in groups},
    )


def _made(rows: Sequence[Row], command: str) -> Made:
    told = [row["made"] for row in rows if "made" in row]
    versions = {name: v for made in told for name, v in made["versions"].items()}
    commits = sorted({made["commit"] for made in told})
    return Made(
        version=rows[0]["version"] if rows else "",
        commit=", ".join(commits),
        command=command or (told[0]["command"] if told else ""),
        seeds=len({row["seed"] for row in rows}),
        rows=len([row for row in rows if row["status"] != "unsuited"]),
        versions=dict(sorted(versions.items())),
        resamples=RESAMPLES,
    )


# --- from rows to arrays


def figure(row: Row, name: str) -> float:
    """Return a figure of a run, 0 if it failed."""
    return float(row["result"][name]) if row["status"] == "done" else 0.0


def _scores(by_agent: Mapping[str, Sequence[Row]]) -> Scores:
    agents = tuple(by_agent)
    seeds = tuple(sorted({row["seed"] for own in by_agent.values() for row in own}))
    place = {seed: i for i, seed in enumerate(seeds)}
    shape = (len(agents), len(seeds))
    found, area = np.full(shape, np.nan), np.full(shape, np.nan)
    ends = {end: np.full((2, len(seeds)), np.nan) for end in (RANDOM, ORACLE)}
    for i, own in enumerate(by_agent.values()):
        for row in own:
            at = place[row["seed"]]
            found[i, at], area[i, at] = figure(row, "found"), figure(row, "area")
            if row["agent"] in ends and row["status"] == "done":
                ends[row["agent"]][:, at] = found[i, at], area[i, at]
    (low, low_area), (high, high_area) = ends[RANDOM], ends[ORACLE]
    return Scores(agents, seeds, found, area, low, high, low_area, high_area)


def _strata(
    tasks: Sequence[str], found: Mapping[str, Scores], agent: str, name: str = "score"
) -> dict[str, np.ndarray]:
    """Return an agent's scores by task, of those tasks that it played."""
    strata = {}
    for task in tasks:
        row = found[task].row(agent)
        if row is not None:
            values = getattr(found[task], name)[row]
            strata[task] = values[~np.isnan(values)]
    return strata


def _parts(
    interval: Interval | None,
) -> tuple[float | None, float | None, float | None]:
    return (None, None, None) if interval is None else interval


def _median(values: Sequence[float]) -> float:
    return float(np.median(values)) if len(values) else 0.0


# --- groups


def _group(
    group: str,
    tasks: list[str],
    by_task: Mapping[str, Mapping[str, Sequence[Row]]],
    found: Mapping[str, Scores],
) -> Group:
    agents = list(dict.fromkeys(agent for task in tasks for agent in by_task[task]))
    intervals = {a: S.stratified(_strata(tasks, found, a)) for a in agents}
    rows = {a: [r for t in tasks for r in by_task[t].get(a, ())] for a in agents}
    played = {a: [t for t in tasks if a in by_task[t]] for a in agents}
    sees = {agent: _sees(rows[agent]) for agent in agents}
    ranked = [
        a for a in agents if len(played[a]) == len(tasks) and not sees[a]["privileged"]
    ]
    places = _places(ranked, intervals)
    standings = []
    for agent in agents:
        score, low, high = _parts(intervals[agent])
        rank, last, ties = places.get(agent, (None, None, []))
        area = S.stratified(_strata(tasks, found, agent, "area_score"))
        own, done = rows[agent], [r for r in rows[agent] if r["status"] == "done"]
        standings.append(
            GroupStanding(
                agent=agent,
                rank=rank,
                rank_last=last,
                rank_ties=ties,
                score=score,
                low=low,
                high=high,
                area_score=area.value if area else None,
                tasks_run=len(played[agent]),
                per_task={t: _cell(t, by_task[t][agent], found) for t in played[agent]},
                cpu_seconds=_median([r["timing"]["cpu_seconds"] for r in done]),
                steps=_median([r["result"]["steps"] for r in done]),
                training_fetches=sees[agent]["training_fetches"],
                privileged=sees[agent]["privileged"],
                trains=sees[agent]["trains"],
                sees=sees[agent]["text"],
                failed=len(own) - len(done),
                runs=len(own),
            )
        )
    standings.sort(key=_order)
    return Group(id=group, title=GROUPS[group], tasks=tasks, standings=standings)


def _places(
    agents: Sequence[str], intervals: Mapping[str, Interval | None]
) -> dict[str, tuple[int | None, int | None, list[str]]]:
    places = S.ranks([intervals[agent] for agent in agents])
    return {
        agent: (rank, last, [agents[i] for i in ties])
        for agent, (rank, last, ties) in zip(agents, places, strict=True)
    }


def _order(standing: Mapping[str, Any]) -> tuple[bool, float, float, str]:
    score, found = standing["score"], standing.get("found_mean", 0.0)
    return score is None, -(score or 0.0), -found, standing["agent"]


def _cell(task: str, rows: Sequence[Row], found: Mapping[str, Scores]) -> Cell:
    interval = S.stratified(_strata([task], found, rows[0]["agent"]))
    score, low, high = _parts(interval)
    return Cell(
        score=score,
        low=low,
        high=high,
        found=float(np.mean([figure(row, "found") for row in rows])),
        failed=sum(row["status"] == "failed" for row in rows),
    )


def _sees(rows: Sequence[Row]) -> Sees:
    """Say what a method was allowed to see beside the crawl itself."""
    done = [row for row in rows if row["status"] == "done"]
    privileged = any(row["privileged"] for row in done)
    trains = any(row["trains"] for row in done)
    fetches = float(np.mean([row["training_fetches"] for row in done] or [0]))
    slots = next((row["slots"] for row in done if row["slots"]), None)
    parts = ["the trace"] if privileged else []
    if trains:
        parts.append(f"{fetches:,.0f} fetches before" if fetches else "training data")
    if slots:
        parts.append(f"{slots} slots")
    if any(row["learns"] for row in done):
        parts.append("online")
    return Sees(
        privileged=privileged,
        trains=trains,
        training_fetches=fetches,
        slots=slots,
        text=", ".join(parts) or "links alone",
    )


# --- tasks


def _task(
    task: Task, by_agent: Mapping[str, Sequence[Row]], found: Scores
) -> TaskBoard:
    intervals = {
        agent: S.stratified(_strata([task.id], {task.id: found}, agent))
        for agent in by_agent
    }
    sees = {agent: _sees(rows) for agent, rows in by_agent.items()}
    places = _places([a for a in by_agent if not sees[a]["privileged"]], intervals)
    standings = [
        _task_standing(
            task.id,
            rows,
            intervals[agent],
            S.stratified(_strata([task.id], {task.id: found}, agent, "area_score")),
            places.get(agent, (None, None, [])),
            sees[agent],
        )
        for agent, rows in by_agent.items()
    ]
    standings.sort(key=_order)
    return TaskBoard(
        id=task.id,
        group=task.group,
        kind=task.kind,
        fleet=str(task.fleet) if task.fleet else "",
        trace=task.trace_name,
        budget=task.budget,
        finds=task.finds,
        title=task.title,
        scaled_seeds=int(found.scaled.sum()),
        seeds=len(found.seeds),
        standings=standings,
    )


def _task_standing(
    task: str,
    rows: Sequence[Row],
    interval: Interval | None,
    area: Interval | None,
    place: tuple[int | None, int | None, list[str]],
    sees: Sees,
) -> TaskStanding:
    score, low, high = _parts(interval)
    done = [row for row in rows if row["status"] == "done"]
    curves = np.array(
        [
            row["result"]["curve"] if row["status"] == "done" else [0] * POINTS
            for row in rows
        ],
        float,
    )
    mean, below, above = S.mean_interval(curves, task)
    below, above = (mean if x is None else x for x in (below, above))
    alone = len(rows) < 2
    return TaskStanding(
        agent=rows[0]["agent"],
        rank=place[0],
        rank_last=place[1],
        rank_ties=place[2],
        score=score,
        low=low,
        high=high,
        found_mean=float(mean[-1]),
        found_low=None if alone else float(below[-1]),
        found_high=None if alone else float(above[-1]),
        area=float(np.mean([figure(row, "area") for row in rows])),
        area_score=area.value if area else None,
        found_at={share: float(mean[at]) for share, at in SHARES.items()},
        curve=Curve(
            x=np.linspace(0, 1, POINTS).round(3).tolist(),
            mean=mean.round(3).tolist(),
            low=below.round(3).tolist(),
            high=above.round(3).tolist(),
        ),
        fetches=float(np.mean([figure(row, "fetches") for row in done] or [0])),
        steps=float(np.mean([figure(row, "steps") for row in done] or [0])),
        cpu_seconds=_median([row["timing"]["cpu_seconds"] for row in done]),
        illegal=float(
            np.mean([row["result"]["summary"]["illegal"] for row in done] or [0])
        ),
        failed=len(rows) - len(done),
        runs=len(rows),
        sees=sees,
    )


# --- the rest


def _failures(rows: Sequence[Row]) -> list[Failure]:
    return [
        Failure(
            task=row["task"]["id"],
            agent=row["agent"],
            seed=row["seed"],
            traceback=row["traceback"],
        )
        for row in rows
        if row["status"] == "failed"
    ]


def _fleets(rows: Sequence[Row]) -> list[Fleet]:
    return [
        Fleet(
            task=row["task"]["id"],
            agent=row["agent"],
            seed=row["seed"],
            **row["result"]["course"],
        )
        for row in rows
        if row["status"] == "done" and "course" in row["result"]
    ]


def _improvement(group: Group, found: Mapping[str, Scores]) -> Improvement:
    agents = [standing["agent"] for standing in group["standings"]]
    parts = S.improvement({task: found[task] for task in group["tasks"]}, agents)
    mean, low, high = (
        [[None if np.isnan(x) else round(x, 3) for x in line] for line in part.tolist()]
        for part in parts
    )
    return Improvement(agents=agents, mean=mean, low=low, high=high)


def _profile(group: Group, found: Mapping[str, Scores]) -> Profile:
    made = Profile(threshold=S.THRESHOLDS.tolist(), share={}, low={}, high={})
    for standing in group["standings"]:
        agent = standing["agent"]
        share, low, high = S.profile(_strata(group["tasks"], found, agent))
        if len(share):
            made["share"][agent] = share.round(3).tolist()
            made["low"][agent] = low.round(3).tolist()
            made["high"][agent] = high.round(3).tolist()
    return made
