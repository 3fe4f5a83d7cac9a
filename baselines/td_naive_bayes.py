"""Values learnt on other sites, corrected by where a link stands and leads to.

The value of a link is what naive Bayes has learnt on other sites to expect of its words
(`naive_bayes_q`), plus what temporal differences teach during the crawl of its page and
of the directory that it leads to.

Paper: J. Rennie, A. McCallum, "Using reinforcement learning to spider the web
efficiently" (1999); R. Sutton, "Learning to predict by the methods of temporal
differences" (1988).

**Differs from the paper in**: the corrections, two tables of numbers, by page and by
directory. After a fetch the value of the link that was followed is compared with the
reward plus the discounted best value of the links that were new on the page.

Cost per step: the words of the fetched page's links, and one sum a link of the
frontier, in NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop
from typing import Any

import numpy as np

from baselines._places import Places
from baselines.agent import Info, Observation, State, Transition
from baselines.naive_bayes_q import ELSEWHERE, NaiveBayesQ, Teacher
from baselines.naive_bayes_q import make as make_plain
from gym_webforage.envs import Known

KINDS = ("spider",)
TRAINS = True


@dataclass
class CorrectedNaiveBayes(NaiveBayesQ):
    """Naive Bayes values that learn where they are wrong."""

    gamma: float = 0.5  # of the paper
    page_rate: float = 0.3
    directory_rate: float = 0.1

    places: Places = field(init=False, repr=False)

    def reset(self, seed: int | None = None) -> None:
        """Forget the crawl."""
        super().reset(seed)
        self.places = Places(self.page_rate, self.directory_rate)
        self._rows = 0
        self._url = np.zeros(1024, np.int64)  # that each link leads to
        self._value = np.zeros(1024)  # by its words
        self._followed = -1  # row of the link followed last; -1: a root

    def act(self, observation: Observation, info: Info) -> int:
        """Take the URL with the best link; first the roots."""
        if self._reader is None:
            self._begin(info)
        if self.heap:
            url = heappop(self.heap)[2]
            self._done[url] = True
            self._followed = -1
            return url
        rows = slice(0, self._rows)
        value = self._value[rows] + self.places.extra(self._rows)
        value[self._done[self._url[rows]]] = -np.inf
        best = np.flatnonzero(value == value.max())
        # Equal values go to the URL discovered first.
        row = int(best[np.argmin(self._number[self._url[best]])])
        self._followed = row
        url = int(self._url[row])
        self._done[url] = True
        return url

    def learn(self, transition: Transition) -> None:
        """Value the new links, and correct the places of the one followed."""
        info = transition.info
        known: Known = info["known"]
        page = int(info["url"])
        new = known.new
        self._number[new] = np.arange(len(known) - len(new), len(known))
        ahead = self._add_links(known, page) if known.is_fetched(page) else 0.0
        row = self._followed
        if row >= 0:
            expected = float(self._value[row]) + self.places.of(row)
            paid = float(info["novel"] > 0)
            self.places.correct(row, paid + self.gamma * ahead - expected)

    def _add_links(self, known: Known, page: int) -> float:
        """Put a page's links on the frontier; return the best value among them."""
        target = known.targets(page)
        words = self._values(known, page, len(target))
        best = 0.0
        for i in np.flatnonzero(~self._done[target]).tolist():
            row = self._rows
            self._rows += 1
            if self._rows > len(self._url):
                self._url = np.concatenate([self._url, np.zeros(row, np.int64)])
                self._value = np.concatenate([self._value, np.zeros(row)])
            self._url[row], self._value[row] = target[i], words[i]
            self.places.add(row, int(target[i]), page, known)
            best = max(best, float(words[i]) + self.places.of(row))
        return best

    def divide(self, rng: np.random.Generator) -> CorrectedNaiveBayes:
        """Return another one that has learned the same on other sites."""
        rates = (self.gamma, self.page_rate, self.directory_rate)
        return CorrectedNaiveBayes(self.teacher, self.training_fetches, *rates)

    def save(self) -> State:
        """Refuse: what is known of places is not kept."""
        raise TypeError(f"{type(self).__name__} cannot be saved")

    def load(self, state: State) -> None:
        """Refuse, as `save` does."""
        raise TypeError(f"{type(self).__name__} cannot be loaded")


def make(
    env: Any,
    seed: int,
    bins: int = 3,
    text: str = "related",
    endings: bool = True,
    model: str = "",
    elsewhere: str = ELSEWHERE,
    **settings: float,
) -> CorrectedNaiveBayes:
    """Make the agent: arguments of `naive_bayes_q`, others are its own fields."""
    plain = make_plain(env, seed, bins, text, endings, model, elsewhere)
    teacher: Teacher = plain.teacher
    return CorrectedNaiveBayes(teacher, plain.training_fetches, **settings)
