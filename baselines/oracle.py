"""Look into the trace and go for the nearest reward: the yardstick, no crawler.

Topic and Spider: of the frontier, the URL with the fewest links to a page that pays and
is not fetched (0: it is one). News: the action that brings most novel pages a fetch,
with all current versions known. It stands for score 1 in the leaderboard.

Paper: J. Rennie, A. McCallum, "Using reinforcement learning to spider the web
efficiently" (1999), whose Optimal knows the site in the same way.

**Differs from the paper in**: Topic and News. Neither rule is provably best: they are
greedy, one step at a time, so a score above 1 is possible. Ties go to the more relevant
page in Topic, then to the URL discovered first. Distances are those of the web as the
crawl starts. In News the end of a step, when ages are taken, is taken to be one
``fetch_seconds`` a fetch away. In a fleet each forager has an oracle of its own, which
knows what others were paid for but not where they will go.

Cost per step: Topic and Spider, the new URLs, and one search of the whole graph
whenever all paying pages on the frontier are used up; News, every link of every page in
the action set. All compiled.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from baselines.agent import Agent, Info, Observation, frontier_world
from gym_webforage.metrics import shown_versions
from gym_webforage.world import World
from gym_webforage.world import layout as L
from gym_webforage.world.compile import compiled, i32, i64, u8
from gym_webforage.world.focused import relevance
from gym_webforage.world.ledger import find
from gym_webforage.world.pages import is_alive, is_page, version_at

UNREACHABLE = 2**30


@dataclass
class NearestReward(Agent):
    """The oracle of Topic and Spider."""

    world: World

    privileged = True

    def __post_init__(self) -> None:
        """Prepare for a crawl."""
        self.reset()

    def reset(self, seed: int | None = None) -> None:
        """Start a crawl; what pays is looked up when it has begun."""
        self._has_begun = False

    def act(self, observation: Observation, info: Info) -> int:
        """Take the URL nearest to a reward."""
        if not self._has_begun:
            self._begin()
        known = info["known"]
        numbers = np.arange(self._discovered, len(known))
        for number, url in enumerate(known.urls_of(numbers).tolist(), self._discovered):
            heappush(self._heap, self._entry(url, number))
        self._discovered = len(known)
        if len(self.world.foragers) > 1:
            self._cross_off()
        # Distances only grow while rewards are taken, and one of 0 is always right.
        if self._heap[0][0] > 0 and self._is_outdated:
            self._measure()
            self._heap = [self._entry(url, i) for _, _, i, url in self._heap]
            heapify(self._heap)
        url = heappop(self._heap)[-1]
        if self._pays[url]:
            self._pays[url] = False
            self._is_outdated = True
        return url

    def _cross_off(self) -> None:
        """Note what has been paid to other foragers."""
        paid = np.unpackbits(
            self.world.paid, count=len(self._pays), bitorder="little"
        ).view(np.bool_)
        if np.any(self._pays & paid):
            self._pays &= ~paid
            self._is_outdated = True
        # One that does not pay any more is at least a link away from one that does.
        while self._heap[0][0] == 0 and not self._pays[self._heap[0][-1]]:
            _, value, number, url = heappop(self._heap)
            heappush(self._heap, (1, value, number, url))

    def divide(self, rng: np.random.Generator) -> NearestReward:
        """Return a child, whose forager has the same frontier."""
        child = copy.copy(self)
        child._heap = self._heap.copy()
        child._pays = self._pays.copy()
        child._distance = self._distance.copy()
        return child

    def _entry(self, url: int, number: int) -> tuple[int, float, int, int]:
        return int(self._distance[url]), -float(self._value[url]), number, url

    def _begin(self) -> None:
        """Find out what pays, and the graph as the crawl finds it."""
        world, trace = self.world, self.world.trace
        urls = np.arange(len(trace.urls))
        version = shown_versions(trace, urls, world.start)
        self._value = np.zeros(len(urls))
        judge_all(world.trace_address, world.address, version, self._value)
        needed = world.rules.threshold if world.rules.kind == "topic" else 1.0
        self._pays = (self._value > 0) & (self._value >= needed)
        site = int(world.ints[L.SITE])
        if site >= 0:
            self._pays &= trace.url_site == site
        self._in_start, self._in_source = in_links(world, urls, version, site)
        self._distance = np.empty(len(urls), np.int64)
        self._measure()
        self._heap: list[tuple[int, float, int, int]] = []
        self._discovered = 0
        self._has_begun = True

    def _measure(self) -> None:
        goals = np.flatnonzero(self._pays)
        measure(self._in_start, self._in_source, goals, self._distance)
        self._is_outdated = False


@dataclass
class MostNovel(Agent):
    """The oracle of News."""

    world: World

    privileged = True

    def __post_init__(self) -> None:
        """Make the kernel's memory."""
        trace = self.world.trace
        self._seen = np.full(len(trace.urls), -1)
        self._shown = np.empty((trace.most_links + 1, 2), np.int64)
        self._looks = 0

    def act(self, observation: Observation, info: Info) -> int:
        """Take the action with most novel pages a fetch."""
        world = self.world
        choices = info["action_set"]
        best = most_novel(
            world.trace_address,
            world.address,
            world.foragers[info["known"].forager].address,
            choices,
            self._seen,
            self._shown,
            self._looks,
        )
        self._looks += len(choices)
        return int(choices[best])

    def divide(self, rng: np.random.Generator) -> MostNovel:
        """Return another one; it has no memory."""
        return MostNovel(self.world)


def in_links(
    world: World, urls: np.ndarray, version: np.ndarray, site: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each URL which alive pages link to it, as offsets and sources."""
    trace = world.trace
    status = trace.version_status[version]
    alive = (version >= 0) & (status >= 200) & (status < 400)
    if site >= 0:
        alive &= trace.url_site == site
    urls, version = urls[alive], version[alive]
    first = trace.link_start[version]
    counts = trace.link_start[version + 1] - first
    source = np.repeat(urls, counts)
    before = np.cumsum(counts) - counts
    link = np.arange(len(source)) + np.repeat(first - before, counts)
    target = trace.link_target[link]
    start = np.zeros(len(trace.urls) + 1, np.int64)
    np.cumsum(np.bincount(target, minlength=len(trace.urls)), out=start[1:])
    return start, source[np.argsort(target, kind="stable")]


# --- kernels


@compiled
def judge_all(T, W, version, value):
    """Write what each URL would pay."""
    for url in range(len(version)):
        value[url] = relevance(T, W, url, version[url])


@compiled
def measure(start, source, goals, distance):
    """Write the number of links from each URL to the nearest of the goals."""
    distance[:] = UNREACHABLE
    queue = np.empty(len(distance), np.int64)
    tail = len(goals)
    queue[:tail] = goals
    distance[goals] = 0
    head = 0
    while head < tail:
        url = queue[head]
        head += 1
        for i in range(start[url], start[url + 1]):
            page = source[i]
            if distance[page] == UNREACHABLE:
                distance[page] = distance[url] + 1
                queue[tail] = page
                tail += 1


@compiled
def most_novel(T, W, F, choices, seen, shown, looks):
    """Return which of the choices brings most novel pages a fetch, the first if equal.

    ``seen`` holds for each URL the last look at which it was counted, ``shown`` is
    room for the versions and URLs that a visit fetches.
    """
    best = 0
    most = -1.0
    for i in range(len(choices)):
        fetches = fetch_all(T, W, F, choices[i], seen, shown, looks + i)
        novel = count_novel(T, W, shown, fetches) / fetches
        if novel > most:
            best, most = i, novel
    return best


@compiled
def fetch_all(T, W, F, url, seen, shown, look):
    """List what a visit would fetch; return how much it is."""
    world = i64(W[L.WORLD_INTS])
    ledger = i32(F[L.LEDGER])
    link_start, link_target = i64(T[L.LINK_START]), i32(T[L.LINK_TARGET])
    url_site = i32(T[L.URL_SITE])
    site = world[L.SITE]
    path = i64(F[L.FORAGER_INTS])[L.PATH]
    version = version_at(T, url, world[L.CLOCK])
    seen[url] = look
    shown[0, 0] = version
    shown[0, 1] = url
    count = 1
    if not is_alive(T, version):
        return count
    for link in range(link_start[version], link_start[version + 1]):
        target = link_target[link]
        if seen[target] == look or (site >= 0 and url_site[target] != site):
            continue
        seen[target] = look
        if not world[L.REFETCH_VISITED]:
            row = find(F, target) * L.LEDGER_COLUMNS
            if (
                row >= 0
                and ledger[row + L.IN_PATH] == path
                and ledger[row + L.PLACE] == L.WAS_VISITED
            ):
                continue
        shown[count, 0] = version_at(T, target, world[L.CLOCK])
        shown[count, 1] = target
        count += 1
    return count


@compiled
def count_novel(T, W, shown, fetches):
    """Return how many of the fetched pages nobody has sent and are young enough."""
    world = i64(W[L.WORLD_INTS])
    published = i64(T[L.PUBLISHED])
    paid = u8(W[L.PAID_BITS])
    oldest = world[L.CLOCK] + fetches * world[L.FETCH_TIME] - world[L.MAX_AGE]
    count = 0
    for i in range(fetches):
        version = shown[i, 0]
        if not is_page(T, version) or published[version] < oldest:
            continue
        document = shown[i, world[L.DOCUMENT_IS_URL]]
        count += not paid[document >> 3] >> (document & 7) & 1
    return count


def make(env: Any, seed: int) -> Agent:
    """Make the agent for the environment's kind, with the world in its hands."""
    world = frontier_world(env)
    is_news = world.rules.kind == "news"
    return MostNovel(world) if is_news else NearestReward(world)
