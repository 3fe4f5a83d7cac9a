"""A prior value of link text, corrected by where a link stands and leads to.

Sites have places: what one page of a directory is worth, the others tend to be, and so
are the links of one page. The value of a link is the probability that its words give,
plus what temporal differences have taught of its page and of the directory it leads to.

Paper: R. Sutton, "Learning to predict by the methods of temporal differences" (1988);
J. Rennie, A. McCallum, "Using reinforcement learning to spider the web efficiently"
(1999), whose value of a link is known by its words alone, and learnt beforehand.

**Differs from the paper in**: corrections are two tables of numbers, by page and by
directory, which start from 0 in every crawl. After a fetch the value of the link that
was followed is compared with the reward plus the discounted best value of the links
that were new on the page. The words' part is logistic regression that learns during
the crawl (`online_logistic`).

Cost per step: the links of the frontier, compiled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from baselines._link_text import describe
from baselines.agent import Agent, Transition
from baselines.online_logistic import OnlineLogistic
from gym_webforage.envs import Known

KINDS = ("topic", "spider")


@dataclass
class Corrected(OnlineLogistic):
    """Learns words, pages and directories; see the module."""

    gamma: float = 0.5  # of the paper on spidering
    page_rate: float = 0.3
    directory_rate: float = 0.1

    def reset(self, seed: int | None = None) -> None:
        """Forget everything."""
        super().reset(seed)
        self._places: dict[str, int] = {}  # pages and directories, by name
        self._correction = np.zeros(1024)
        self._page = np.zeros(1024, np.int64)  # place of each link
        self._directory = np.zeros(1024, np.int64)
        self._new_rows: list[int] = []

    def _place(self, name: str) -> int:
        number = self._places.setdefault(name, len(self._places))
        if number >= len(self._correction):
            self._correction = np.concatenate([self._correction, np.zeros(number)])
        return number

    def _added(self, row: int, url: int, page: int, known: Known, link: int) -> None:
        if row >= len(self._page):
            more = np.zeros(row, np.int64)
            self._page = np.concatenate([self._page, more])
            self._directory = np.concatenate([self._directory, more])
        self._page[row] = self._place(f"page {page}")
        directory = known.address(url).rpartition("/")[0]
        self._directory[row] = self._place(directory)
        self._new_rows.append(row)

    def _extra(self) -> np.ndarray:
        rows = self._rows
        by_page = self._correction[self._page[:rows]]
        return by_page + self._correction[self._directory[:rows]]

    def _value(self, row: int) -> float:
        place = self._correction[self._page[row]]
        place += self._correction[self._directory[row]]
        return self._probability(row) + place

    def learn(self, transition: Transition) -> None:
        """Correct what is thought of the page and the directory."""
        row = self._row
        expected = self._value(row)
        self._new_rows = []
        super().learn(transition)
        ahead = max(map(self._value, self._new_rows), default=0.0)
        paid = float(transition.info["novel"] > 0)
        error = paid + self.gamma * ahead - expected
        if self._start[row + 1] > self._start[row]:  # roots stand on no page
            self._correction[self._page[row]] += self.page_rate * error
            self._correction[self._directory[row]] += self.directory_rate * error


def make(env: Any, seed: int, **settings: Any) -> Agent:
    """Make the agent; settings are its fields."""
    return Corrected(**describe(env), **settings)
