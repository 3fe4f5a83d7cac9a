"""Visit URLs in the order in which they were discovered.

Pages near the roots come first, which in Topic and Spider is a plain queue. In News,
where pages are visited again, every path is a new crawl of this kind from a root.

Paper: M. Najork, J. L. Wiener, "Breadth-first search crawling yields high-quality
pages" (2001).

**Differs from the paper in**: News, which the paper has nothing like. There a path
starts at the root that was visited longest ago (before its first visit: the first
root), and goes on with the frontier's URL of lowest discovery number, counted since
the crawl began and not since the path did.

Cost per step: Topic and Spider, the new URLs; News, listing the action set, compiled.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from baselines.agent import Agent, Info, Observation, frontier_world
from gym_webforage.world.layout import CONTEXT_COLUMNS

AT_START = CONTEXT_COLUMNS.index("at_start")


@dataclass
class BreadthFirst(Agent):
    """The queue for Topic and Spider: what was visited never comes back."""

    queue: deque[int] = field(default_factory=deque)
    queued: int = 0  # so many of the known URLs were ever in the queue

    def reset(self, seed: int | None = None) -> None:
        """Empty the queue."""
        self.queue.clear()
        self.queued = 0

    def act(self, observation: Observation, info: Info) -> int:
        """Queue what was discovered since; take the first."""
        known = info["known"]
        numbers = np.arange(self.queued, len(known))
        self.queue.extend(known.urls_of(numbers).tolist())
        self.queued = len(known)
        return self.queue.popleft()

    def divide(self, rng: np.random.Generator) -> BreadthFirst:
        """Return a child with the same queue, since it has the same frontier."""
        return BreadthFirst(self.queue.copy(), self.queued)


@dataclass
class BreadthFirstNews(Agent):
    """One breadth-first crawl after another, the roots in turn."""

    roots: deque[int] = field(default_factory=deque)

    def reset(self, seed: int | None = None) -> None:
        """Forget the roots."""
        self.roots.clear()

    def act(self, observation: Observation, info: Info) -> int:
        """Take the next root or the oldest URL of the frontier."""
        if not self.roots:
            self.roots.extend(info["known"].new.tolist())
        if observation["context"][AT_START]:
            chosen = self.roots[0]
        else:
            chosen = int(info["action_set"][0])
        if chosen in self.roots:  # visited: it is last in turn now
            self.roots.remove(chosen)
            self.roots.append(chosen)
        return chosen

    def divide(self, rng: np.random.Generator) -> BreadthFirstNews:
        """Return a child that takes the roots in the same order."""
        return BreadthFirstNews(self.roots.copy())


def make(env: Any, seed: int) -> Agent:
    """Make the agent for the environment's kind."""
    is_news = frontier_world(env).rules.kind == "news"
    return BreadthFirstNews() if is_news else BreadthFirst()
