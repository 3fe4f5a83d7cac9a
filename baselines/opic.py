"""Visit the URL that holds most cash: page importance, computed while crawling.

The roots share a cash of 1. A page that is fetched gives all it has to the pages that
it links to and to a virtual page, in equal parts; the virtual page, when it is the
richest, gives all to every known page. What has passed through a page tends to its
importance, as PageRank has it, and no link need be stored.

Paper: S. Abiteboul, M. Preda, G. Cobena, "Adaptive on-line page importance computation"
(2003), OPIC with the greedy policy.

**Differs from the paper in**: a page is fetched once, as these worlds have it, so cash
that reaches it later stays there and never comes back. The pages of a web to be
discovered cannot hold 1/n each from the beginning: the roots hold all of it, as the
paper does for a growing graph. Without fetching pages again there is nothing to
estimate over a sliding window, the adaptive part. A dead page gives all to the virtual
page, several links of a page to one URL are one. ``virtual=False`` has pages give to
their links alone, and keeps what dead ends give out of the game. Ties go to the URL
discovered first.

Cost per step: the links of the fetched page (a heap). A gift to every page costs
nothing: it moves a common level.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from baselines._frontier import Frontier
from baselines.agent import (
    Agent,
    Info,
    Observation,
    Transition,
    check_flag,
    frontier_world,
)
from gym_webforage.envs import Known

KINDS = ("topic", "spider")


@dataclass
class Opic(Agent):
    """Richest page first."""

    virtual: bool = True  # pages and virtual page give to each other

    frontier: Frontier = field(default_factory=Frontier, init=False)
    level: float = field(default=0.0, init=False)
    """What the virtual page gave so far to one who was known from the beginning."""
    virtual_cash: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        """Prepare for a crawl."""
        check_flag("virtual", self.virtual)
        self.reset()

    def reset(self, seed: int | None = None) -> None:
        """Take all cash back."""
        self.frontier = Frontier()
        self.level = self.virtual_cash = 0.0
        # Cash less level. Gifts to all leave it as it is, so waiting URLs are ordered
        # by it, whenever each was discovered.
        self._above: dict[int, float] = {}

    @property
    def cash(self) -> dict[int, float]:
        """The cash of every known URL."""
        return {url: above + self.level for url, above in self._above.items()}

    @property
    def total(self) -> float:
        """All cash there is: 1, up to rounding."""
        return sum(self.cash.values()) + self.virtual_cash

    def act(self, observation: Observation, info: Info) -> int:
        """Take the richest URL; at the start, the roots share everything."""
        if not self._above:
            roots = info["known"].new.tolist()
            for root in roots:
                self._receive(root, 1 / len(roots))
        self._give_to_all()
        return self.frontier.take()

    def learn(self, transition: Transition) -> None:
        """Give the cash of the page that was fetched to those that it links to."""
        known: Known = transition.info["known"]
        page = int(transition.info["url"])
        cash = self._above[page] + self.level
        self._above[page] = -self.level
        targets = known.targets(page).tolist() if known.is_fetched(page) else []
        receivers = list(dict.fromkeys(targets))
        parts = len(receivers) + (self.virtual or not receivers)
        for target in receivers:
            self._receive(target, cash / parts)
        if parts > len(receivers):
            self.virtual_cash += cash / parts

    def _receive(self, url: int, cash: float) -> None:
        above = self._above.get(url, -self.level) + cash
        self._above[url] = above
        if not self.frontier.is_done(url):
            self.frontier.add(url, above)

    def _give_to_all(self) -> None:
        """Let the virtual page have its turn if it is the richest."""
        if self.virtual and self.virtual_cash > self.frontier.best() + self.level:
            self.level += self.virtual_cash / len(self._above)
            self.virtual_cash = 0.0


def make(env: Any, seed: int, virtual: bool = True) -> Opic:
    """Make the agent."""
    frontier_world(env)
    return Opic(virtual)
