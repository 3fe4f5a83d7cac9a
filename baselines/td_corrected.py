"""Link text learnt during the crawl, corrected by where a link stands and leads to.

The value of a link is the probability that its words give (`online_logistic`), plus
what temporal differences have taught of its page and of the directory it leads to.

Paper: R. Sutton, "Learning to predict by the methods of temporal differences" (1988);
J. Rennie, A. McCallum, "Using reinforcement learning to spider the web efficiently"
(1999), whose value of a link is known by its words alone, and learnt beforehand.

**Differs from the paper in**: corrections are two tables of numbers, by page and by
directory. After a fetch the value of the link that was followed is compared with the
reward plus the discounted best value of the links that were new on the page.
`td_naive_bayes` does the same on top of values learnt on other sites.

Cost per step: the links of the frontier, compiled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from baselines._link_text import describe
from baselines._places import Places
from baselines.agent import Transition
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
        self.places = Places(self.page_rate, self.directory_rate)
        self._new_rows: list[int] = []

    def _added(self, row: int, url: int, page: int, known: Known, link: int) -> None:
        self.places.add(row, url, page, known)
        self._new_rows.append(row)

    def _extra(self) -> np.ndarray:
        return self.places.extra(self._rows)

    def _value(self, row: int) -> float:
        return self._probability(row) + self.places.of(row)

    def learn(self, transition: Transition) -> None:
        """Correct what is thought of the page and the directory."""
        row = self._row
        expected = self._value(row)
        self._new_rows = []
        super().learn(transition)
        ahead = max(map(self._value, self._new_rows), default=0.0)
        paid = float(transition.info["novel"] > 0)
        if self._start[row + 1] > self._start[row]:  # roots stand on no page
            self.places.correct(row, paid + self.gamma * ahead - expected)


def make(env: Any, seed: int, **settings: Any) -> Corrected:
    """Make the agent; settings are its fields."""
    return Corrected(**describe(env), **settings)
