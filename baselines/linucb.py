"""LinUCB: the linear bandit that is optimistic about what it is unsure of.

A visit's reward is taken to be linear in the candidate's features. Chosen is the
candidate with the highest upper confidence bound.

Paper: L. Li, W. Chu, J. Langford, R. Schapire, "A contextual-bandit approach to
personalized news article recommendation" (2010), Algorithm 1.

**Differs from the paper in**: one model for all candidates, where the paper has one an
arm: each URL is visited but once. A constant is added to the features. News: the reward
is novel pages a fetch.

Cost per step: the features of the action set, compiled, times their number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from baselines._features import LinearModel, make_with


@dataclass
class LinUCB(LinearModel):
    """Takes the highest upper confidence bound."""

    alpha: float = 0.5

    def _values(self, features: np.ndarray) -> np.ndarray:
        return features @ self.weights + self.alpha * self._doubt(features)


def make(env: Any, seed: int, **settings: Any) -> LinUCB:
    """Make the agent; settings are its fields."""
    return make_with(LinUCB, seed, settings)
