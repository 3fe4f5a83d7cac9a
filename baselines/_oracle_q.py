"""What the oracle thinks of candidates: the labels that trees and cloning learn from.

Topic and Spider: the discounted rewards of the greedy crawl that starts with the
candidate and goes for the nearest paying page next, among what it has uncovered itself.
News: novel pages a fetch, if it is visited now. This looks into the trace: for training
alone.
"""

from __future__ import annotations

import numpy as np

from baselines.oracle import (
    UNREACHABLE,
    compiled,
    count_novel,
    fetch_all,
    in_links,
    judge_all,
    measure,
)
from gym_webforage.metrics import shown_versions
from gym_webforage.trace import Trace
from gym_webforage.world import World
from gym_webforage.world import layout as L

GAMMA = 0.5  # as in Rennie and McCallum
HORIZON = 8  # visits of the greedy crawl; 0.5 ** 8 is nothing
FRINGE = 512  # URLs that the greedy crawl remembers


class OracleQ:
    """Values of a world's candidates, for one forager."""

    def __init__(self, world: World, forager: int = 0) -> None:
        self.world, self.forager = world, forager
        trace = world.trace
        self._graphs: dict[int, tuple[np.ndarray, ...]] = {}  # by site
        self._crawl, self._steps = (0, -2), 0
        self._seen = np.full(len(trace.urls), -1)
        self._shown = np.empty((trace.most_links + 1, 2), np.int64)
        self._looks = 0

    def values(self, urls: np.ndarray) -> np.ndarray:
        """Return the value of each URL, 0 where there is none (-1)."""
        world = self.world
        if world.rules.kind == "news":
            return self._novel(urls)
        self._refresh()
        found = np.zeros(len(urls))
        greedy_values(
            self._link_start,
            self._link_target,
            self._distance,
            self._worth,
            urls,
            self._room,
            self._seen,
            self._looks,
            found,
        )
        self._looks += len(urls)
        return found

    def pays(self, urls: np.ndarray) -> np.ndarray:
        """Return 1 for each URL that counts if it is visited now (not in News)."""
        self._refresh()
        return self._worth[urls]

    def _novel(self, urls: np.ndarray) -> np.ndarray:
        world = self.world
        found = np.zeros(len(urls))
        novel_rates(
            world.trace_address,
            world.address,
            world.foragers[self.forager].address,
            urls,
            self._seen,
            self._shown,
            self._looks,
            found,
        )
        self._looks += len(urls)
        return found

    # --- Topic and Spider

    def _refresh(self) -> None:
        """Bring up to date what is left to be found."""
        world = self.world
        steps = int(world.foragers[self.forager].ints[L.STEP])
        crawl = id(world.topic), int(world.ints[L.SITE])
        if crawl != self._crawl or steps < self._steps:
            self._begin()
        self._crawl, self._steps = crawl, steps
        taken = self._taken()
        if taken.sum() != self._taken_before:
            self._measure(taken)

    def _begin(self) -> None:
        """Find out what pays in this crawl, and the graph as it finds it."""
        world, trace = self.world, self.world.trace
        site = int(world.ints[L.SITE])
        urls = np.arange(len(trace.urls))
        version = shown_versions(trace, urls, world.start)
        value = np.zeros(len(urls))
        judge_all(world.trace_address, world.address, version, value)
        needed = world.rules.threshold if world.rules.kind == "topic" else 1.0
        pays = (value > 0) & (value >= needed)
        if site >= 0:
            pays &= trace.url_site == site
        self._goals = np.flatnonzero(pays)
        graph = self._graphs.get(site)
        if graph is None:
            graph = (
                *in_links(world, urls, version, site),
                *out_links(trace, version, site),
            )
            self._graphs[site] = graph
        self._in_start, self._in_source, self._link_start, self._link_target = graph
        self._distance = np.empty(len(urls), np.int64)
        self._worth = np.zeros(len(urls))
        self._room = np.empty((FRINGE, 2), np.int64)
        self._measure(self._taken())

    def _taken(self) -> np.ndarray:
        """Return which of the paying pages have paid."""
        goals = self._goals
        return (self.world.paid[goals >> 3] >> (goals & 7) & 1).astype(np.bool_)

    def _measure(self, taken: np.ndarray) -> None:
        left = self._goals[~taken]
        self._worth[:] = 0
        self._worth[left] = 1
        measure(self._in_start, self._in_source, left, self._distance)
        self._taken_before = int(taken.sum())


def out_links(
    trace: Trace, version: np.ndarray, site: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the links of each URL's version, as offsets and targets; dead: none."""
    status = trace.version_status[version]
    alive = (version >= 0) & (status >= 200) & (status < 400)
    if site >= 0:
        alive &= trace.url_site == site
    first = trace.link_start[version]
    counts = np.where(alive, trace.link_start[version + 1] - first, 0)
    start = np.zeros(len(version) + 1, np.int64)
    np.cumsum(counts, out=start[1:])
    places = np.arange(start[-1]) - np.repeat(start[:-1], counts)
    return start, trace.link_target[np.repeat(first, counts) + places]


@compiled
def greedy_values(
    link_start, link_target, distance, worth, urls, room, seen, look, out
):
    """Write the discounted rewards of greedy crawls that start with each URL."""
    for i in range(len(urls)):
        out[i] = 0.0
        if urls[i] < 0:
            continue
        mark = look + i
        seen[urls[i]] = mark
        room[0, 0] = urls[i]
        room[0, 1] = distance[urls[i]]
        size = 1
        discount = 1.0
        for _ in range(HORIZON):
            if size == 0:
                break
            best = 0
            for place in range(1, size):
                if room[place, 1] < room[best, 1]:
                    best = place
            if room[best, 1] >= UNREACHABLE:
                break
            url = room[best, 0]
            size -= 1
            room[best, 0] = room[size, 0]
            room[best, 1] = room[size, 1]
            out[i] += discount * worth[url]
            discount *= GAMMA
            for link in range(link_start[url], link_start[url + 1]):
                target = link_target[link]
                if seen[target] != mark and size < FRINGE:
                    seen[target] = mark
                    room[size, 0] = target
                    room[size, 1] = distance[target]
                    size += 1


@compiled
def novel_rates(T, W, F, urls, seen, shown, looks, out):
    """Write how many novel pages a fetch each visit would bring now."""
    for i in range(len(urls)):
        out[i] = 0.0
        if urls[i] >= 0:
            fetches = fetch_all(T, W, F, urls[i], seen, shown, looks + i)
            out[i] = count_novel(T, W, shown, fetches) / fetches
