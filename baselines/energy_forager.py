"""Pick a link by chance, the likelier the closer its context is to the topic.

An agent of an endogenous-fitness population: it stands on a page, draws one of the
links, and lives or dies by what it finds. Births and deaths are the fleet's
(`population=EnergyPopulation(...)`, `reach="links"`); a child is a clone.

Paper: A. Mouton, P.-F. Marteau, "Population control for multi-agents based topical
crawlers" (2008); F. Menczer, R. K. Belew, "Adaptive retrieval agents: internalizing
local context and scaling up to the web" (2000), for the stochastic choice.

**Differs from the paper in**: the paper says that links are picked by the tf-idf
similarity of their contexts and that the process is stochastic, but not how: here with
probability proportional to exp(``greed`` * similarity), as in Menczer and Belew. The
context is the anchor and the text near the link, whichever is closer. How often an
agent turns to a page with energy left is not said, either: while there are such pages,
in the share ``wander`` of its steps, and then all are equally likely. The optional
learning of the paper's Algorithm 1 is left out, as in its experiments. Over a frontier
(a single crawler) the draw is among all of it.

Cost per step: the links of the page (or the frontier), as arrays.
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
    check_number,
    load_random,
    save_random,
)

KINDS = ("topic",)


@dataclass
class EnergyForager(Agent):
    """Draws links by the similarity of their contexts."""

    greed: float = 10.0
    wander: float = 0.1
    random: np.random.Generator = field(default_factory=np.random.default_rng)

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        check_number("greed", self.greed, 0, 500)
        check_number("wander", self.wander, 0, 1)

    def reset(self, seed: int | None = None) -> None:
        """Start the crawl's own stream of chance."""
        # The second number keeps the stream apart from the environment's, which is
        # made from the seed alone.
        self.random = np.random.default_rng(None if seed is None else [seed, 1])

    def act(self, observation: Observation, info: Info) -> int:
        """Draw a link, or now and then a page with energy left."""
        if self.random.random() < self.wander:
            pages = info["with_energy"]
            if len(pages):
                return int(pages[self.random.integers(len(pages))])
        known = info["known"]
        numbers = known.choices
        likeness = known.likeness_of(numbers)[:, :2].max(axis=1)
        # From the largest on, which exp can take.
        weights = np.exp(self.greed * (likeness - likeness.max()))
        place = np.searchsorted(weights.cumsum(), self.random.random() * weights.sum())
        return int(known.urls_of(numbers[min(place, len(numbers) - 1) :][:1])[0])

    def divide(self, rng: np.random.Generator) -> EnergyForager:
        """Return a clone, with a stream of chance of its own."""
        random = np.random.default_rng(int(rng.integers(2**63)))
        return EnergyForager(self.greed, self.wander, random)

    def save(self) -> State:
        """Return the state of its chance."""
        return {"random": save_random(self.random)}

    def load(self, state: State) -> None:
        """Go on from what `save` returned."""
        self.random = load_random(state["random"])


def make(
    env: gym.Env[Any, Any], seed: int, *, greed: float = 10.0, wander: float = 0.1
) -> Agent:
    """Make the agent."""
    agent = EnergyForager(greed, wander)
    agent.reset(seed)
    return agent
