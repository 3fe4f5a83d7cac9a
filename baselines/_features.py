"""Online learners over the candidates' features: a linear model, learnt in the crawl.

What a visit brings is taken to be linear in the candidate's features, z-scored over the
frontier. Ridge regression over the visits so far gives weights and how sure they are;
what the agents do with both is where they differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np

from baselines.agent import Agent, Info, Observation, Transition
from gym_webforage.envs import Known


def positions(known: Known, names: Sequence[str]) -> list[int]:
    """Return where features stand among all."""
    return [known.feature_names.index(name) for name in names]


@dataclass
class LinearModel(Agent):
    """Ridge regression of what visits bring on the features of candidates.

    With ``gamma`` a visit is also worth the discounted value of the best link that it
    brought. ``prior`` is the weight that each feature of `z_sum` has before any visit.
    """

    ridge: float = 1.0
    gamma: float = 0.0
    prior: float = 0.0

    def __post_init__(self) -> None:
        """Prepare for a crawl."""
        for name in ("ridge", "gamma", "prior"):
            value = getattr(self, name)
            if value < 0 or (name == "ridge" and value == 0):
                raise ValueError(f"{name} is {value!r}, expected a positive number")
        self.reset()

    def reset(self, seed: int | None = None) -> None:
        """Forget everything: every crawl has its own topic or site."""
        # The environment draws from the seed alone: this is another stream.
        self.random = np.random.default_rng(None if seed is None else [seed, 1])
        self._covariance = np.zeros((0, 0))
        self._visited: np.ndarray | None = None  # features of the last visit
        self._brought = 0.0

    def _begin(self, known: Known) -> None:
        names = known.feature_names
        size = len(names) + 1  # and a constant
        self._covariance = np.eye(size) / self.ridge
        self._first = np.zeros(size)
        if self.prior:
            from baselines.z_sum import FEATURES

            self._first[positions(known, FEATURES)] = self.prior
        self._moment = np.zeros(size)
        self.weights = self._first.copy()

    def features(self, info: Info) -> np.ndarray:
        """Return a row for each candidate, a constant at its end."""
        scaled = info["known"].features(scaled=True).astype(np.float64)
        return np.hstack([scaled, np.ones((len(scaled), 1))])

    def act(self, observation: Observation, info: Info) -> int:
        """Take the candidate of highest value, the one discovered first if equal."""
        if not len(self._covariance):
            self._begin(info["known"])
        features = self.features(info)
        if self._visited is not None:
            self._update(info, features)
        best = int(np.argmax(self._values(features)))
        self._visited = features[best].copy()
        return int(info["action_set"][best])

    def _values(self, features: np.ndarray) -> np.ndarray:
        """Return what candidates are worth."""
        raise NotImplementedError

    def divide(self, rng: np.random.Generator) -> Self:
        """Return a child that has learned the same, and goes on by itself."""
        child = deepcopy(self)
        child.random = np.random.default_rng(int(rng.integers(2**63)))
        child._visited = None  # that visit was its parent's
        return child

    def _doubt(self, features: np.ndarray) -> np.ndarray:
        """Return how unsure the values are, in units of the noise."""
        spread = np.einsum("ij,ij->i", features @ self._covariance, features)
        return np.sqrt(np.maximum(spread, 0))

    def learn(self, transition: Transition) -> None:
        """Note what the visit brought; weights change when its links are known."""
        info = transition.info
        self._brought = info["novel"] / max(1, info["fetched"])

    def _update(self, info: Info, features: np.ndarray) -> None:
        x = self._visited
        assert x is not None
        value = self._brought
        if self.gamma:
            is_new = np.isin(info["action_set"], info["known"].new)
            ahead = features[is_new] @ self.weights
            value += self.gamma * float(np.clip(ahead, 0, 1).max(initial=0))
        # The rank-one change of the inverse (Sherman and Morrison).
        reach = self._covariance @ x
        self._covariance -= np.outer(reach, reach) / (1 + x @ reach)
        self._moment += x * (value - x @ self._first)
        self.weights = self._first + self._covariance @ self._moment


Model = TypeVar("Model", bound=LinearModel)


def make_with(agent: type[Model], seed: int, settings: dict[str, Any]) -> Model:
    """Make an agent with its settings."""
    made = agent(**settings)
    made.reset(seed)
    return made
