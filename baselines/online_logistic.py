"""Logistic regression on link text, learnt during the crawl.

After every fetch the links that led to the page are examples: did it count or not? The
URL with the most probable link comes next.

Paper: D. Cohn, L. Atlas, R. Ladner, "Improving generalization with active learning"
(1994), for learning from what was chosen; J. Duchi, E. Hazan, Y. Singer, "Adaptive
subgradient methods" (2011), for the steps (AdaGrad). As a crawler: S. Chakrabarti,
K. Punera, M. Subramanyam, "Accelerated focused crawling through online relevance
feedback" (2002), whose apprentice learns from link context.

**Differs from the paper in**: the apprentice is a naive Bayes classifier that learns
from a baseline crawler's page classifier; here the judge teaches, and there is no
second crawler. In Topic the words of the topic start with weights of their own.

Cost per step: the links of the frontier, compiled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from baselines._link_text import LinkText, describe

KINDS = ("topic", "spider")


@dataclass
class OnlineLogistic(LinkText):
    """Follows the link that most probably leads to what counts."""

    rate: float = 0.5
    decay: float = 1e-4

    def reset(self, seed: int | None = None) -> None:
        """Forget everything."""
        super().reset(seed)
        self._squares = np.full(len(self.weights), 1e-2)
        self._bias_square = 1e-2

    def _take_example(self, row: int, is_found: bool) -> None:
        words = self._words(row)
        unit = 1 / math.sqrt(len(words)) if len(words) else 0.0
        logit = self.bias + unit * float(self.weights[words].sum())
        error = is_found - 1 / (1 + math.exp(-max(-30.0, min(30.0, logit))))
        self._bias_square += error**2
        self.bias += self.rate * error / math.sqrt(self._bias_square)
        tokens, counts = np.unique(words, return_counts=True)
        gradient = error * unit * counts - self.decay * self.weights[tokens]
        self._squares[tokens] += gradient**2
        self.weights[tokens] += self.rate * gradient / np.sqrt(self._squares[tokens])


def make(env: Any, seed: int, **settings: Any) -> OnlineLogistic:
    """Make the agent; settings are its fields."""
    return OnlineLogistic(**describe(env), **settings)
