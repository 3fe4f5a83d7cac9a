"""Naive Bayes on link text, learnt during the crawl.

After every fetch the words of the links that led to the page count for one of two
classes: it was found to count, or not. The URL with the highest odds comes next.

Paper: S. Chakrabarti, K. Punera, M. Subramanyam, "Accelerated focused crawling through
online relevance feedback" (2002), whose apprentice is a naive Bayes classifier of link
context; A. McCallum, K. Nigam, "A comparison of event models for naive Bayes text
classification" (1998), the multinomial one.

**Differs from the paper in**: words are not told apart by their distance in the page's
tree, but by where they stand: anchor, near it, URL, title. The judge is the teacher.
Odds are those per word (their geometric mean), since words near a link repeat each
other. In Topic the words of the topic start with weights of their own.

Cost per step: the links of the frontier, compiled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from baselines._link_text import LinkText, describe
from baselines.agent import Info

KINDS = ("topic", "spider")


@dataclass
class OnlineNaiveBayes(LinkText):
    """Follows the link whose words have the best odds."""

    smoothing: float = 1.0

    power = 1.0

    def reset(self, seed: int | None = None) -> None:
        """Forget everything."""
        super().reset(seed)
        self._first = np.zeros(len(self.weights))
        self._counts = np.zeros((2, len(self.weights)))
        self._totals = np.zeros(2)

    def _begin(self, info: Info) -> None:
        super()._begin(info)
        self._first = self.weights.copy()

    def _take_example(self, row: int, is_found: bool) -> None:
        words = self._words(row)
        np.add.at(self._counts[int(is_found)], words, 1)
        self._totals[int(is_found)] += len(words)
        smoothed = self._counts[:, words] + self.smoothing
        size = self.smoothing * len(self.weights)
        # The totals change all weights by the same, so this is kept apart.
        self.weights[words] = (
            self._first[words] + np.log(smoothed[1]) - np.log(smoothed[0])
        )
        self.per_word = math.log(self._totals[0] + size)
        self.per_word -= math.log(self._totals[1] + size)


def make(env: Any, seed: int, **settings: Any) -> OnlineNaiveBayes:
    """Make the agent; settings are its fields."""
    return OnlineNaiveBayes(**describe(env), **settings)
