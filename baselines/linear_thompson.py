"""Linear Thompson sampling: act by weights drawn as probable as they are.

A visit's reward is taken to be linear in the candidate's features. Every step draws
weights from what is believed of them, and takes the best candidate by these.

Paper: S. Agrawal, N. Goyal, "Thompson sampling for contextual bandits with linear
payoffs" (2013), Algorithm 1.

**Differs from the paper in**: the spread ``v`` is a setting, not the one of the proof,
which is meant for the worst case. A constant is added to the features. News: the reward
is novel pages a fetch.

Cost per step: the features of the action set, compiled, and a root of a small matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from baselines._features import LinearModel, make_with


@dataclass
class LinearThompson(LinearModel):
    """Draws weights, then is greedy."""

    v: float = 0.2

    def _values(self, features: np.ndarray) -> np.ndarray:
        root = np.linalg.cholesky(self._covariance)
        noise = self.random.standard_normal(len(root))
        return features @ (self.weights + self.v * (root @ noise))


def make(env: Any, seed: int, **settings: Any) -> LinearThompson:
    """Make the agent; settings are its fields."""
    return make_with(LinearThompson, seed, settings)
