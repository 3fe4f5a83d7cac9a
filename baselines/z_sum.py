"""Nine features of a candidate, each in units of its own spread, added up.

Nothing is trained: a candidate is good if it stands out among the others of the
frontier, by what its links say of the topic, by likeness to links that paid, and by
what its page and directory brought so far. It sets the bar for learners.

Paper: F. Menczer, G. Pant, P. Srinivasan, "Topical web crawlers: evaluating adaptive
algorithms" (2004), for features like these; R. Dawes, "The robust beauty of improper
linear models in decision making" (1979), for adding them up with equal weights.

**Differs from the paper in**: which features are added: those of `FEATURES`, described
with all others in `gym_webforage.world.observe`. In Spider, which has no topic, three
of them are 0 for all, so six are left.

Cost per step: the features of the whole frontier, compiled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from baselines._features import positions
from baselines.agent import Agent, Info, Observation

KINDS = ("topic", "spider")

FEATURES = (
    "anchor",
    "near",
    "url",
    "anchor_paid",
    "near_paid",
    "url_paid",
    "source",
    "source_rate",
    "directory_rate",
)


@dataclass
class ZSum(Agent):
    """Takes the candidate with the highest sum of z-scores."""

    def act(self, observation: Observation, info: Info) -> int:
        """Take the best, the one discovered first if equal."""
        known = info["known"]
        chosen = positions(known, FEATURES)
        total = known.features(scaled=True)[:, chosen].sum(axis=1)
        return int(info["action_set"][np.argmax(total)])

    def divide(self, rng: np.random.Generator) -> ZSum:
        """Return a child; there is nothing to hand on."""
        return ZSum()


def make(env: Any, seed: int) -> Agent:
    """Make the agent."""
    return ZSum()
