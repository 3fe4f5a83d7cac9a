"""Visit any URL of the action set, each as likely as the others.

The control that every method has to beat: it stands for score 0 in the leaderboard.

Paper: none; the random crawler of Menczer, Pant and Srinivasan, "Topical web crawlers:
evaluating adaptive algorithms" (2004), is the same.

**Differs from the paper in**: nothing.

Cost per step: listing the action set, compiled.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np

from baselines.agent import (
    Agent,
    Info,
    Observation,
    State,
    load_random,
    save_random,
)


@dataclass
class RandomWalk(Agent):
    """Chooses uniformly."""

    random: np.random.Generator = field(default_factory=np.random.default_rng)

    def reset(self, seed: int | None = None) -> None:
        """Start the crawl's own stream of chance."""
        # The second number keeps the stream apart from the environment's, which is
        # made from the seed alone.
        self.random = np.random.default_rng(None if seed is None else [seed, 1])

    def act(self, observation: Observation, info: Info) -> int:
        """Draw a URL."""
        return int(self.random.choice(info["action_set"]))

    def divide(self, rng: np.random.Generator) -> RandomWalk:
        """Return another one, with a stream of its own."""
        return RandomWalk(np.random.default_rng(int(rng.integers(2**63))))

    def save(self) -> State:
        """Return the state of its chance."""
        return {"random": save_random(self.random)}

    def load(self, state: State) -> None:
        """Go on from what `save` returned."""
        self.random = load_random(state["random"])


def make(env: gym.Env[Any, Any], seed: int) -> Agent:
    """Make the agent."""
    agent = RandomWalk()
    agent.reset(seed)
    return agent
