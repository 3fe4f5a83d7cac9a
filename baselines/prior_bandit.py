"""A linear bandit that begins with what other crawls have taught, and goes on learning.

What a visit brings is taken to be linear in the candidate's features and in what an
online learner of link text thinks of it. Crawls of other topics and sites say which
weights are usual and how far they differ from one crawl to the next; this is the prior
of a Bayesian regression that the crawl at hand updates after every visit. Chosen is the
candidate with the highest upper confidence bound. The prior is shipped; ``python -m
baselines.train prior_bandit`` makes others.

Paper: L. Li, W. Chu, J. Langford, R. Schapire, "A contextual-bandit approach to
personalized news article recommendation" (2010), for LinUCB; D. Lindley, A. Smith,
"Bayes estimates for the linear model" (1972), for a prior taken from other groups.

**Differs from the paper in**: one model for all candidates, as in `linucb`. The prior's
mean is the ridge regression over all training crawls, each counting the same, of
whether a candidate pays: the trace tells for some candidates of the frontier, also for
those that were not visited. Its covariance is half that of the crawls' own weights
around the mean, half a sphere of the same size, since crawls are few.

Cost per step: the features of the action set and the links of the frontier, compiled,
times the number of features.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from baselines._features import LinearModel
from baselines._weights import Weights, columns_of, load_weights
from baselines.agent import Agent, Info, Transition, world_of
from baselines.online_logistic import OnlineLogistic
from gym_webforage.envs import Known
from gym_webforage.world import World

KINDS = ("topic", "spider")
FLAT = 1e-6  # values that vary less than this are equal
START = 0.05  # weight of each column of the z-sum where nothing was learned yet


@dataclass
class PriorBandit(LinearModel):
    """Takes the highest upper confidence bound; see the module."""

    ridge: float = 5.0  # without weights, as the next
    prior: float = START
    alpha: float = 0.5
    text: OnlineLogistic = field(kw_only=True, repr=False)
    learned: Weights | None = field(default=None, kw_only=True, repr=False)
    places: np.ndarray | None = field(default=None, kw_only=True, repr=False)
    """Which columns the learned prior is about."""

    def __post_init__(self) -> None:
        """Refuse what makes no sense; prepare for a crawl."""
        if self.alpha < 0:
            raise ValueError(f"alpha is {self.alpha!r}, expected 0 or more")
        if self.learned is not None:
            self.training_fetches = int(self.learned.card.get("training_fetches", 0))
        super().__post_init__()

    def reset(self, seed: int | None = None) -> None:
        """Forget the crawl, not what others have taught."""
        super().reset(seed)
        self.text.reset(seed)

    def _begin(self, known: Known) -> None:
        super()._begin(known)
        if self.learned is None:
            # Like the z-sum, in which the link text is one column more.
            size = len(self._first) + 1
            self._first = np.append(self._first[:-1], [self.prior, 0.0])
            self._covariance = np.eye(size) / self.ridge
            self._noise = 1.0
        else:
            arrays = self.learned.arrays
            self._first = arrays["mean"].copy()
            self._covariance = arrays["covariance"].copy()
            self._noise = float(arrays["noise"][0])
        self._moment = np.zeros(len(self._first))
        self.weights = self._first.copy()

    def features(self, info: Info) -> np.ndarray:
        """Return a row for each candidate: columns, link text, and a constant."""
        known: Known = info["known"]
        self.text.prepare(info)
        columns = known.features(scaled=True).astype(np.float64)
        if self.places is not None:
            columns = columns[:, self.places]
        words = self.text.values(np.sort(known.choices))
        words[np.isinf(words)] = self.text.bias  # visited, and to be had again
        spread = words.std()
        words = (words - words.mean()) / (spread if spread > FLAT else np.inf)
        return np.hstack([columns, words[:, None], np.ones((len(words), 1))])

    def _values(self, features: np.ndarray) -> np.ndarray:
        doubt = self.alpha * np.sqrt(self._noise) * self._doubt(features)
        return features @ self.weights + doubt

    # Link text is kept by discovery numbers, which are other ones for a child.
    divide = Agent.divide  # type: ignore[assignment]

    def learn(self, transition: Transition) -> None:
        """Learn from the visit, and from the words of the links that led to it."""
        super().learn(transition)
        self.text.learn(transition)


def make_bandit(
    world: World, learned: Weights | None = None, **settings: Any
) -> PriorBandit:
    """Make the agent, with a prior that was learned or the plain one."""
    places = None if learned is None else learned.places(columns_of(world))
    text = OnlineLogistic(len(world.trace.vocabulary))
    return PriorBandit(text=text, learned=learned, places=places, **settings)


def make(
    env: Any, seed: int, alpha: float = 0.5, gamma: float = 0.0, weights: str = ""
) -> Agent:
    """Make the agent.

    Args:
        env: Where it will crawl, alone or in a fleet.
        seed: Of no meaning: it chooses greedily.
        alpha: How much doubt counts in a candidate's favour.
        gamma: Discount of the best link that a visit brought; 0 looks no further.
        weights: A prior that `baselines.train` wrote, without its ending.
    """
    world = world_of(env)
    learned = load_weights("prior_bandit", world, weights)
    return make_bandit(world, learned, alpha=alpha, gamma=gamma)
