"""Control: remember the good pages of earlier crawls, and go to those first.

A crawler that learns across repeated crawls of the same web, as the learning automata
do, has to beat this: a list. Relevant pages (Spider: targets) of earlier crawls are
fetched as soon as a link to them is known; everything else is best-first.

Paper: none; a control for J. Akbari Torkestani, "An adaptive focused Web crawling
algorithm based on learning automata" (2012).

**Differs from the paper in**: there is no paper. A new agent makes ``crawls`` crawls of
the same topic (or site) from the same roots before, each with the whole budget, in a
world of its own; they are counted as training fetches. After that every crawl adds to
the list, and takes off it what turned out to be no good. ``paths=True`` also remembers
the pages on which the good ones were found, back to the root, and fetches them next: it
knows the way, not only the places. ``otherwise="breadth_first"`` has the rest in order
of discovery. Nothing is kept for another topic or site. A remembered page that no known
page links to waits until it is found. Ties go to the URL discovered first.

Cost per step: that of `best_first.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from baselines._examples import crawl_before, subject
from baselines._frontier import Frontier
from baselines.agent import (
    Agent,
    Info,
    Observation,
    State,
    Transition,
    check_flag,
    frontier_world,
)
from baselines.best_first import BestFirstSpider, BestFirstTopic
from gym_webforage.envs import Known
from gym_webforage.world import World

KINDS = ("topic", "spider")

Otherwise = Literal["best_first", "breadth_first"]


@dataclass
class InOrder(Agent):
    """Breadth-first with a frontier, in order of discovery."""

    frontier: Frontier = field(default_factory=Frontier, init=False)

    def reset(self, seed: int | None = None) -> None:
        """Forget the frontier."""
        self.frontier = Frontier()

    def act(self, observation: Observation, info: Info) -> int:
        """Take the URL discovered first."""
        return self.frontier.take()

    def save(self) -> State:
        """Return the frontier."""
        return {"frontier": self.frontier.save()}

    def load(self, state: State) -> None:
        """Go on from what `save` returned."""
        self.frontier.load(state["frontier"])


@dataclass
class RememberLastCrawl(Agent):
    """Known good pages first."""

    world: World
    rest: BestFirstTopic | BestFirstSpider | InOrder
    """Whoever chooses when no remembered page is in sight."""
    seed: int = 0
    crawls: int = 1
    paths: bool = False

    good: set[int] = field(default_factory=set, init=False)
    """Pages that were relevant when they were last fetched."""
    way: set[int] = field(default_factory=set, init=False)
    """Pages by way of which good ones were found."""
    subject: str = field(default="", init=False)
    training_fetches: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Prepare for a crawl."""
        self.reset()

    def reset(self, seed: int | None = None) -> None:
        """Start a crawl; the good pages are kept."""
        self.rest.reset(seed)
        self._met = Frontier()  # remembered pages that wait
        self._is_new = True

    def act(self, observation: Observation, info: Info) -> int:
        """Take a good page that is known, else one on the way to one, else the rest."""
        if self._is_new:
            self._is_new = False
            if subject(info) != self.subject:
                self._crawl_before(info)
        for url in info["known"].new.tolist():
            self.rest.frontier.add(url, 0.0)
            if url in self.good or (self.paths and url in self.way):
                self._met.add(url, float(url in self.good))
        if not self._met.value:
            return self.rest.act(observation, info)
        url = self._met.take()
        self.rest.frontier.drop(url)
        return url

    def _crawl_before(self, info: Info) -> None:
        """Make the first crawls of a subject."""
        self.subject = subject(info)
        self.good, self.way = set(), set()
        if not self.crawls:
            return
        student = make_for(self.world, self.seed, 0, self.paths, self.otherwise)
        for _ in range(self.crawls):
            _, fetches = crawl_before(self.world, info, lambda *_: student, self.seed)
            self.training_fetches += fetches
        self.good, self.way = student.good, student.way

    @property
    def otherwise(self) -> Otherwise:
        """What the rest goes by."""
        return "breadth_first" if isinstance(self.rest, InOrder) else "best_first"

    def learn(self, transition: Transition) -> None:
        """Remember a good page and the way to it; forget one that is no more good."""
        self.rest.learn(transition)
        known: Known = transition.info["known"]
        page = int(transition.info["url"])
        if transition.info["novel"] == 0:
            self.good.discard(page)
            return
        self.good.add(page)
        while (page := known.source(page)) >= 0:
            self.way.add(page)

    def save(self) -> State:
        """Return what is remembered, and where the crawl is."""
        return {
            "good": np.array(sorted(self.good), np.int64),
            "way": np.array(sorted(self.way), np.int64),
            "subject": self.subject,
            "training_fetches": self.training_fetches,
            "is_new": self._is_new,
            "met": self._met.save(),
            "rest": self.rest.save(),
        }

    def load(self, state: State) -> None:
        """Go on from what `save` returned."""
        self.reset()
        self.good = set(state["good"].tolist())
        self.way = set(state["way"].tolist())
        self.subject = state["subject"]
        self.training_fetches = int(state["training_fetches"])
        self._is_new = bool(state["is_new"])
        self._met.load(state["met"])
        self.rest.load(state["rest"])


def make_for(
    world: World, seed: int, crawls: int, paths: bool, otherwise: Otherwise
) -> RememberLastCrawl:
    """Make the agent for a world."""
    rest: BestFirstTopic | BestFirstSpider | InOrder = InOrder()
    if otherwise == "best_first":
        is_topic = world.rules.kind == "topic"
        rest = BestFirstTopic() if is_topic else BestFirstSpider()
    return RememberLastCrawl(world, rest, seed, crawls, paths)


def make(
    env: Any,
    seed: int,
    crawls: int = 1,
    paths: bool = False,
    otherwise: Otherwise = "best_first",
) -> RememberLastCrawl:
    """Make the agent."""
    if isinstance(crawls, bool) or not isinstance(crawls, int) or crawls < 0:
        raise ValueError(f"crawls is {crawls!r}, expected 0 or more")
    check_flag("paths", paths)
    if otherwise not in get_args(Otherwise):
        raise ValueError(
            f"otherwise is {otherwise!r}, expected best_first or breadth_first"
        )
    return make_for(frontier_world(env), seed, crawls, paths, otherwise)
