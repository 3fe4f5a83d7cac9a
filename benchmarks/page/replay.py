"""A crawl recorded for the page: what each step brought, and a map of the pages.

Everything is integers and short lists, so that several crawls fit into one small file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import baselines
from baselines.agent import make_agent, run_episode, world_of
from baselines.fleet import run_fleet
from benchmarks.runs import agent_name
from benchmarks.tasks import Task
from gym_webforage.envs.fleet import FleetAECEnv
from gym_webforage.envs.territory import MOST_DRAWN, Territory
from gym_webforage.trace.trace import to_iso
from gym_webforage.world import World
from gym_webforage.world import layout as L

MOST_LINKS = 1_500  # drawn beside those by which pages were found
SCALE = 10_000  # the map's longer side, in whole numbers
ALIVE, DEAD, ILLEGAL = range(3)  # what became of a step


class _Enough(Exception):
    """Ends a crawl of which enough was seen."""


@dataclass
class _Step:
    """What a step brought; URLs are ids of the trace."""

    forager: int
    url: int  # -1 for an illegal action
    version: int
    outcome: int
    time: int
    fetches: int
    reward: float
    fetched: list[int]
    paid: list[tuple[int, float]]
    found: list[int]
    frontier: int = 0
    ends_path: bool = False


@dataclass
class _Notes:
    """What the log does not tell, by forager and step, taken down during the crawl."""

    world: World
    steps: int
    frontier: dict[tuple[int, int], int] = field(default_factory=dict)
    path_ends: set[tuple[int, int]] = field(default_factory=set)
    births: Sequence[tuple[int, int, int]] = ()
    deaths: Sequence[tuple[int, int]] = ()
    founders: int = 1
    whole: bool = True
    seen: int = 0

    def take(self, number: int) -> None:
        """Look at a forager that has just taken a step."""
        forager = self.world.foragers[number]
        key = number, int(forager.ints[L.STEP])
        self.frontier[key] = forager.action_set_size()
        if forager.ints[L.AT_START]:
            self.path_ends.add(key)
        self.seen += 1
        if self.seen >= self.steps:
            self.whole = False
            raise _Enough


def record(task: Task, agent: str, seed: int, steps: int = 300) -> dict[str, Any]:
    """Let an agent crawl a task and return its first ``steps`` steps for the page.

    Args:
        task: What is crawled, by one forager or by a fleet in turns.
        agent: As `baselines.load` takes it.
        seed: Sets what the task draws and the agent's chance.
        steps: At most so many steps, of all foragers together.
    """
    if steps < 1:
        raise ValueError(f"steps is {steps}, expected at least 1")
    world, notes = _crawl(task, agent, seed, steps)
    crawl = list(_steps(world, notes))
    drawn = _drawn(_roots(world), crawl)
    number = {url: i for i, url in enumerate(drawn)}
    known = len(_roots(world)) + sum(len(step.found) for step in crawl)
    return {
        "task": task.id,
        "agent": agent_name(agent),
        "seed": seed,
        "kind": world.rules.kind,
        "finds": task.finds,
        "trace": world.trace.name,
        "about": _about(world),
        "start": to_iso(world.start),
        "whole": notes.whole,
        "hidden": known - len(drawn),
        "pages": _pages(world, crawl, drawn, number),
        "steps": _columns(world, crawl, notes, number),
        "paid": _paid(crawl, number),
        "joined": _joined(world, crawl, number),
        "links": _links(world, crawl, number),
    }


# --- the crawl


def _crawl(task: Task, agent: str, seed: int, steps: int) -> tuple[World, _Notes]:
    module = baselines.load(agent)
    env, crawler = make_agent(module, task.make, seed)
    if isinstance(env.unwrapped, FleetAECEnv):
        return _crawl_of_fleet(env, module, seed, steps)
    world = world_of(env)
    notes = _Notes(world, steps)
    try:
        run_episode(env, crawler, seed=seed, on_step=lambda step: notes.take(0))
    except _Enough:
        pass
    return world, notes


def _crawl_of_fleet(
    env: Any, module: Any, seed: int, steps: int
) -> tuple[World, _Notes]:
    inner = env.unwrapped
    world = world_of(env)
    notes = _Notes(world, steps)
    numbers = inner.crew.numbers
    try:
        run_fleet(
            env,
            module.make,
            seed=seed,
            on_step=lambda name, agent, step: notes.take(numbers[name]),
        )
    except _Enough:
        pass
    fleet = inner.fleet
    notes.founders = fleet.founders
    notes.births, notes.deaths = list(fleet.births), list(fleet.deaths)
    return world, notes


def _roots(world: World) -> list[int]:
    forager = world.foragers[0]
    ledger = forager.ledger[: forager.ints[L.KNOWN]]
    return ledger[ledger[:, L.FOUND_AT] == 0, L.URL].tolist()


def _steps(world: World, notes: _Notes) -> Iterator[_Step]:
    """Yield the steps in the order of the log."""
    events = world.events()
    key = np.c_[events["forager"], events["step"]]
    if not len(key):
        return
    first = np.flatnonzero(np.r_[True, (key[1:] != key[:-1]).any(axis=1)])
    found = _found(world)
    known = set(_roots(world))
    for low, high in zip(first, [*first[1:], len(key)], strict=True):
        rows = {name: column[low:high].tolist() for name, column in events.items()}
        own = int(rows["forager"][0]), int(rows["step"][0])
        # A newborn's ledger begins with what its parent knew, which is nothing new.
        new = [url for url in found.get(own, []) if url not in known]
        known.update(new)
        yield _step(rows, new, notes.frontier.get(own, 0), own in notes.path_ends)


def _step(
    rows: Mapping[str, list[Any]], found: list[int], frontier: int, ends_path: bool
) -> _Step:
    flags = rows["flags"]
    if flags[0] & L.ILLEGAL:
        outcome = ILLEGAL
    else:
        outcome = DEAD if flags[0] & L.DEAD else ALIVE
    return _Step(
        forager=rows["forager"][0],
        url=rows["url"][0] if flags[0] & L.VISITED else -1,
        version=rows["version"][0],
        outcome=outcome,
        time=max(rows["time"]),
        fetches=len(flags),
        reward=float(sum(rows["value"])),
        fetched=[
            url
            for url, flag in zip(rows["url"][1:], flags[1:], strict=True)
            if not flag & L.DEAD
        ],
        paid=[
            (url, value)
            for url, flag, value in zip(rows["url"], flags, rows["value"], strict=True)
            if flag & L.NOVEL
        ],
        found=found,
        frontier=frontier,
        ends_path=ends_path,
    )


def _found(world: World) -> dict[tuple[int, int], list[int]]:
    """Return the URLs that each step of each forager brought it to know."""
    found: dict[tuple[int, int], list[int]] = {}
    for number, forager in enumerate(world.foragers):
        ledger = forager.ledger[: forager.ints[L.KNOWN]]
        for step, url in ledger[:, [L.FOUND_AT, L.URL]].tolist():
            found.setdefault((number, step), []).append(url)
    return found


# --- the map


def _drawn(roots: Sequence[int], crawl: Sequence[_Step]) -> list[int]:
    """Return the pages to draw: roots, visited, paid, then a few of every visit."""
    chosen = dict.fromkeys(roots[: MOST_DRAWN // 2])
    chosen.update(dict.fromkeys(step.url for step in crawl if step.url >= 0))
    paid = [page for step in crawl for page in step.paid]
    paid.sort(key=lambda page: -page[1])
    others = [
        (place, i, url)
        for i, step in enumerate(crawl)
        for place, url in enumerate(step.found)
    ]
    for url in [*(url for url, _ in paid), *(url for *_, url in sorted(others))]:
        if len(chosen) >= MOST_DRAWN:
            break
        chosen[url] = None
    return list(chosen)


def _pages(
    world: World,
    crawl: Sequence[_Step],
    drawn: Sequence[int],
    number: Mapping[int, int],
) -> dict[str, Any]:
    """Return place, address, and when and where each drawn page was found."""
    territory = Territory()
    roots = [url for url in _roots(world) if url in number]
    territory.start(roots)
    found = dict.fromkeys(roots, 0)
    for i, step in enumerate(crawl, 1):
        if step.url < 0:
            continue
        new = [url for url in step.found if url in number]
        found.update(dict.fromkeys(new, i))
        territory.visit(i, step.url, new)
        for url, value in step.paid:
            if url in number:
                territory.pay(i, url, value, step.url)
    place = np.array([territory.place[url] for url in drawn])
    place -= place.min(axis=0)
    place = np.rint(place * (SCALE / max(1.0, float(place.max())))).astype(int)
    addresses = [world.trace.urls[url] for url in drawn]
    base = os.path.commonprefix(addresses)  # noqa: RUF071 (by characters is meant)
    return {
        "x": place[:, 0].tolist(),
        "y": place[:, 1].tolist(),
        "found": [found.get(url, 0) for url in drawn],
        "parent": [number.get(territory.parent.get(url, -1), -1) for url in drawn],
        "base": base,
        "url": [address.removeprefix(base) for address in addresses],
    }


# --- columns


def _about(world: World) -> str:
    """Say what was crawled for, or where."""
    parts = []
    if world.topic is not None:
        parts.append(f"topic {world.topic.name}")
    if world.ints[L.SITE] >= 0:
        parts.append(f"site {world.trace.sites[int(world.ints[L.SITE])]}")
    return ", ".join(parts)


def _columns(
    world: World, crawl: Sequence[_Step], notes: _Notes, number: Mapping[int, int]
) -> dict[str, list[Any]]:
    known = np.cumsum([len(_roots(world)), *(len(step.found) for step in crawl)])
    columns: dict[str, list[Any]] = {
        "forager": [step.forager for step in crawl],
        "page": [number.get(step.url, -1) for step in crawl],
        "outcome": [step.outcome for step in crawl],
        "time": [round((step.time - world.start) / 1000) for step in crawl],
        "fetches": [step.fetches for step in crawl],
        "reward": [_short(step.reward) for step in crawl],
        "finds": [len(step.paid) for step in crawl],
        "known": known[1:].tolist(),
        "frontier": [step.frontier for step in crawl],
        "ends_path": [int(step.ends_path) for step in crawl],
    }
    if len(world.foragers) > 1 or notes.founders > 1:
        born = np.array([time for time, *_ in notes.births])
        died = np.array([time for time, _ in notes.deaths])
        columns["alive"] = [
            notes.founders + int((born <= step.time).sum() - (died <= step.time).sum())
            for step in crawl
        ]
    return columns


def _paid(crawl: Sequence[_Step], number: Mapping[int, int]) -> list[float]:
    """Return step, page, value of all drawn pages that paid, one after the other."""
    return [
        x
        for i, step in enumerate(crawl)
        for url, value in step.paid
        if url in number
        for x in (i, number[url], _short(value))
    ]


def _joined(
    world: World, crawl: Sequence[_Step], number: Mapping[int, int]
) -> list[int]:
    """Return step, page of what joined the frontier (News, where pages come back)."""
    if world.rules.kind != "news":
        return []
    return [
        x
        for i, step in enumerate(crawl)
        for url in step.fetched
        if url in number
        for x in (i, number[url])
    ]


def _links(
    world: World, crawl: Sequence[_Step], number: Mapping[int, int]
) -> list[int]:
    """Return from, to of links between pages that the crawl visited."""
    visited = {step.url: step.version for step in crawl if step.version >= 0}
    pairs = [
        (number[url], number[target])
        for url, version in visited.items()
        for target in dict.fromkeys(world.trace.links_of(version).tolist())
        if target in visited and target != url
    ]
    return [x for pair in pairs[:MOST_LINKS] for x in pair]


def _short(value: float) -> float:
    """Return a number with few digits, whole if it is."""
    value = round(value, 4)
    return int(value) if value == int(value) else value
