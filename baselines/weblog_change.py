"""A weblog of start pages, with paths that go where most is expected to have changed.

Paths start from one of the best pages of a weblog, as those of `weblog` do. Within a
path the next page is the one whose visit promises most new pages a fetch, by estimated
rates of change (`change_rate`), where `weblog` follows a fixed random direction.

Paper: Zs. Palotai, Cs. Farkas, A. Lőrincz, "Selection in scale-free small world"
(2005), Algorithm 1, for the weblog; J. Cho, H. Garcia-Molina (2003), for the rates.

**Differs from the paper in**: the choice within a path, and that no page states are
needed. A child halves its parent's weblog at random, and knows what it knows of pages.

Cost per step: the pages fetched, and the links of all pages of the frontier, compiled.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from baselines._forager import halve, update_weblog
from baselines.agent import (
    Info,
    Observation,
    State,
    Transition,
    load_random,
    save_random,
)
from baselines.change_rate import KINDS as KINDS
from baselines.change_rate import ChangeRate, Policy, describe


@dataclass
class WeblogChange(ChangeRate):
    """Starts from its weblog, goes on by rates of change."""

    weblog_size: int = 100
    start_size: int = 10
    beta: float = 0.3

    weblog: dict[int, float] = field(default_factory=dict, init=False, repr=False)

    def reset(self, seed: int | None = None) -> None:
        """Forget everything."""
        super().reset(seed)
        # The environment draws from the seed alone: this is another stream.
        self.random = np.random.default_rng(None if seed is None else [seed, 1])
        self.weblog = {}
        self._path: list[tuple[int, float]] = []

    def act(self, observation: Observation, info: Info) -> int:
        """Begin a path from the weblog, or go on with one."""
        known = info["known"]
        if not known.at_start:
            return super().act(observation, info)
        if not self.weblog:  # only the roots are known
            self.weblog = dict.fromkeys(known.urls[: self.weblog_size].tolist(), 0.0)
        if self._path:
            urls, rewards = zip(*self._path, strict=True)
            self.weblog = update_weblog(
                self.weblog, urls, rewards, self.beta, self.weblog_size
            )
            self._path = []
        starts = list(self.weblog)[: self.start_size]
        return starts[int(self.random.integers(len(starts)))]

    def learn(self, transition: Transition) -> None:
        """Note the step for the weblog as well."""
        super().learn(transition)
        self._path.append((transition.action, transition.reward))

    def divide(self, rng: np.random.Generator) -> Self:
        """Return a child with half of the weblog."""
        child = super().divide(rng)
        child.random = np.random.default_rng(int(rng.integers(2**63)))
        child._path = []
        self.weblog, child.weblog = halve(self.weblog, rng)
        return child

    def save(self) -> State:
        """Add the weblog and the path that will change it."""
        path = np.array(self._path, np.float64).reshape(-1, 2)
        weblog = np.array(list(self.weblog.items()), np.float64).reshape(-1, 2)
        random = save_random(self.random)
        return {**super().save(), "weblog": weblog, "path": path, "random": random}

    def load(self, state: State) -> None:
        """Go on from what `save` returned."""
        super().load(state)
        self.weblog = {int(url): value for url, value in state["weblog"].tolist()}
        self._path = [(int(url), reward) for url, reward in state["path"].tolist()]
        self.random = load_random(state["random"])


def make(
    env: Any, seed: int, policy: Policy = "novelty", **settings: Any
) -> WeblogChange:
    """Make the agent; settings are its fields."""
    agent = WeblogChange(**describe(env), policy=policy, **settings)
    agent.reset(seed)
    return agent
