"""Visit the URL that most of the pages seen so far link to.

The importance of a page is taken to be the number of pages that link to it, and of
those the crawler knows the ones that it has fetched. It asks nothing about topic or
targets: the measure of what links alone are worth.

Paper: J. Cho, H. Garcia-Molina, L. Page, "Efficient crawling through URL ordering"
(1998), the ordering metric IB'(p).

**Differs from the paper in**: a page counts once, however many links to the same URL it
holds. The frontier is ordered anew after each fetch and not every so often. Ties go to
the URL discovered first, which makes the first steps breadth-first.

Cost per step: the links of the fetched page (a heap).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from baselines._frontier import Frontier
from baselines.agent import Agent, Info, Observation, Transition, frontier_world
from gym_webforage.envs import Known

KINDS = ("topic", "spider")


@dataclass
class Backlink(Agent):
    """Most pages that link to it first."""

    frontier: Frontier = field(default_factory=Frontier, init=False)

    def reset(self, seed: int | None = None) -> None:
        """Forget the frontier."""
        self.frontier = Frontier()

    def act(self, observation: Observation, info: Info) -> int:
        """Take the URL with most links; before the first visit, a root."""
        return self.frontier.take_with(info["known"].new)

    def learn(self, transition: Transition) -> None:
        """Count the page that was fetched for each URL that it links to."""
        known: Known = transition.info["known"]
        page = int(transition.info["url"])
        if not known.is_fetched(page):
            return
        frontier = self.frontier
        for target in dict.fromkeys(known.targets(page).tolist()):
            if not frontier.is_done(target):
                frontier.add(target, frontier.value.get(target, 0.0) + 1)


def make(env: Any, seed: int) -> Backlink:
    """Make the agent."""
    frontier_world(env)
    return Backlink()
