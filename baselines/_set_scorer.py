"""Scores for a whole frontier by a trained set network, in NumPy alone.

The same network as in `baselines._set_policy`, read from its weights: so a trained
crawler runs without PyTorch, and over any number of candidates.

A large frontier changes little from one step to the next. `SetForager` scores all of it
now and then, and keeps what the network takes from the whole (means, spreads, pooled
summary: a `Survey`); in between it scores, as they are now, the best of the last time
and whatever is new or was fetched since.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from baselines._weights import State, Weights, columns_of, load_weights
from baselines.agent import Agent, Info, Observation, world_of
from baselines.z_sum import FEATURES
from gym_webforage.envs import Known
from gym_webforage.world import World

CLIP = 5.0  # z-scores beyond this say no more to a network
FLAT = 1e-6  # a column that varies less than this is constant
SAME = 1e-5  # scores closer than this are equal: the first discovered wins
FEW = 256  # candidates that are kept in view between two looks at the whole frontier

# News has no z-sum among the baselines; this is what a residual adds to there.
NEWS_SIGNS = {"links": 1.0, "in_links": 1.0, "yield": 1.0, "age": -1.0, "visits": -1.0}


def z_signs(columns: Sequence[str]) -> np.ndarray:
    """Return with which weight each column enters the z-sum."""
    signs: dict[str, float] = NEWS_SIGNS
    if FEATURES[0] in columns:
        signs = {name: 1.0 for name in FEATURES}
    return np.array([signs.get(name, 0.0) for name in columns], np.float32)


class Survey(NamedTuple):
    """What scores take from the whole set of candidates."""

    middle: np.ndarray
    """The mean of each column."""
    scale: np.ndarray
    """One over the standard deviation of each column, 0 where it is constant."""
    pooled: np.ndarray
    """What the encoded candidates have in common; empty without a network."""


def survey_of(rows: np.ndarray) -> Survey:
    """Return means and spreads; nothing is pooled."""
    spread = rows.std(axis=0)
    scale = np.where(spread > FLAT, 1 / np.maximum(spread, FLAT), 0)
    return Survey(rows.mean(axis=0), scale, np.empty(0, np.float32))


def z_scores(rows: np.ndarray, survey: Survey | None = None) -> np.ndarray:
    """Return how far each value is from its column's mean, in standard deviations."""
    if survey is None:
        survey = survey_of(rows)
    return ((rows - survey.middle) * survey.scale).astype(np.float32)


def best_few(scores: np.ndarray, few: int) -> tuple[np.ndarray, float]:
    """Return the places of the best, in order, and the lowest score among them.

    Of equal scores the first are taken.
    """
    floor = np.partition(scores, -few)[-few]
    better = np.flatnonzero(scores > floor)
    equal = np.flatnonzero(scores == floor)[: few - len(better)]
    return np.sort(np.concatenate([better, equal])), float(floor)


def first_best(scores: np.ndarray) -> int:
    """Return the first of the best scores, whatever rounding did to equal ones."""
    return int(np.argmax(scores >= scores.max() - SAME))


class SetScorer:
    """A trained set network."""

    def __init__(self, arrays: State, residual: bool, attention: bool) -> None:
        self.arrays = arrays
        self.residual = residual
        self.attention = attention
        self._encode = [
            (np.ascontiguousarray(arrays[f"{part}.weight"].T), arrays[f"{part}.bias"])
            for part in ("encode.0", "encode.2")
        ]
        self._join = np.ascontiguousarray(arrays["join.weight"].T)

    def reset(self) -> None:
        """Nothing is remembered of a crawl."""

    def score(
        self,
        rows: np.ndarray,
        context: np.ndarray,
        numbers: np.ndarray | None = None,
        survey: Survey | None = None,
    ) -> tuple[np.ndarray, Survey]:
        """Return one score a row; the order of rows makes no difference to them.

        With a ``survey`` these are some of the candidates that it was made of, else all
        of them; it is returned for the next time.
        """
        arrays = self.arrays
        among = survey_of(rows) if survey is None else survey
        scaled = z_scores(rows, among)
        hidden = np.concatenate([rows, np.clip(scaled, -CLIP, CLIP)], axis=1)
        for weight, bias in self._encode:
            hidden = hidden @ weight
            hidden += bias
            np.maximum(hidden, 0, out=hidden)
        if survey is None:
            among = among._replace(pooled=self._pool(hidden))
        whole = np.concatenate([among.pooled, context]).astype(np.float32)
        whole = np.maximum(arrays["summary.weight"] @ whole + arrays["summary.bias"], 0)
        hidden = hidden @ self._join
        hidden += arrays["steer.weight"] @ whole + arrays["join.bias"]
        np.maximum(hidden, 0, out=hidden)
        scores = hidden @ arrays["score.weight"][0]
        if self.residual:
            scores += np.exp(arrays["log_scale"]) * (scaled @ arrays["signs"])
        return scores, among

    def _pool(self, hidden: np.ndarray) -> np.ndarray:
        pooled = [hidden.mean(axis=0), hidden.max(axis=0)]
        if self.attention:
            logits = hidden @ self.arrays["queries"].T
            logits -= logits.max(axis=0)
            shares = np.exp(logits)
            shares /= shares.sum(axis=0)
            pooled.append((shares.T @ hidden).ravel())
        return np.concatenate(pooled)


class ZSumScorer:
    """The sum of z-scores: no training at all."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.signs = z_signs(columns)

    def reset(self) -> None:
        """Nothing is remembered of a crawl."""

    def score(
        self,
        rows: np.ndarray,
        context: np.ndarray,
        numbers: np.ndarray | None = None,
        survey: Survey | None = None,
    ) -> tuple[np.ndarray, Survey]:
        """Return one score a row, and means and spreads."""
        survey = survey_of(rows) if survey is None else survey
        return z_scores(rows, survey) @ self.signs, survey


@dataclass
class SetForager(Agent):
    """Takes the candidate that a trained network scores best, of the whole frontier.

    A frontier of more than ``few`` is scored as a whole once as many candidates as it
    has were scored one by one since, or once the best in view is no better than what
    was left out of view; ``few=None`` scores all of it at every step. In a fleet all
    share the weights; a child shares its parent's.
    """

    world: World
    weights: Weights
    training_fetches: int = field(default=0, init=False)
    scorer: Any = field(default=None, repr=False)
    few: int | None = FEW

    def __post_init__(self) -> None:
        """Read the weights."""
        card = self.weights.card
        self.training_fetches = int(card.get("training_fetches", 0))
        self._places = self.weights.places(columns_of(self.world))
        if self.scorer is None:
            settings = card["settings"]
            self.scorer = SetScorer(
                self.weights.arrays, settings["residual"], settings["attention"]
            )
        self._view: View | None = None

    def reset(self, seed: int | None = None) -> None:
        """Start a crawl."""
        self.scorer.reset()
        self._view = None

    def act(self, observation: Observation, info: Info) -> int:
        """Score the frontier, take the best."""
        known: Known = info["known"]
        numbers, context = known.choices, observation["context"]
        is_small = self.few is None or len(numbers) <= self.few
        if self._view is not None:
            self._view.touched.append(known.learnt)
            if not is_small:
                chosen = self._choose_in_view(self._view, known, numbers, context)
                if chosen >= 0:
                    return chosen
        numbers.sort()
        rows = known.features()[:, self._places]
        scores, survey = self.scorer.score(rows, context, numbers)
        if not is_small:
            assert self.few is not None
            best, floor = best_few(scores, self.few)
            self._view = View(survey, numbers[best], floor, len(known))
        return _url(known, numbers[first_best(scores)])

    def _choose_in_view(
        self, view: View, known: Known, numbers: np.ndarray, context: np.ndarray
    ) -> int:
        """Return the best in view, -1 if it is time to look at the whole again."""
        there = view.among(numbers, len(known))
        view.scored += len(there)
        if not len(there) or view.scored > len(numbers):
            return -1
        rows = known.features(known.urls_of(there))[:, self._places]
        scores, _ = self.scorer.score(rows, context, there, view.survey)
        if scores.max() < view.floor:
            return -1
        return _url(known, there[first_best(scores)])

    def divide(self, rng: np.random.Generator) -> Self:
        """Return a child with the same weights."""
        child = type(self)(
            self.world, self.weights, scorer=copy(self.scorer), few=self.few
        )
        child.reset()
        return child

    def save(self) -> dict[str, Any]:
        """Return what is in view; what scorers remember only saves time."""
        return {} if self._view is None else self._view.save()

    def load(self, state: dict[str, Any]) -> None:
        """Take what `save` returned."""
        self._view = View.load(state) if state else None


@dataclass
class View:
    """What a forager looks at until it scores the whole frontier again."""

    survey: Survey
    best: np.ndarray
    """Discovery numbers of the best of the last time."""
    floor: float
    """The lowest score among these: nothing else had more."""
    known: int
    """How many URLs were known then; later ones are new."""
    scored: int = 0
    """How many candidates were scored since, counted once for each time."""
    touched: list[np.ndarray] = field(default_factory=list)
    """Discovery numbers of what was fetched since."""

    def among(self, numbers: np.ndarray, known: int) -> np.ndarray:
        """Return what is in view out of the action set, in order of discovery."""
        allowed, seen = np.zeros((2, known), np.bool_)
        allowed[numbers] = True
        seen[self.best] = True
        seen[self.known :] = True
        for fetched in self.touched:
            seen[fetched] = True
        return np.flatnonzero(allowed & seen)

    def save(self) -> dict[str, Any]:
        """Return all of it as arrays and numbers."""
        touched = np.concatenate([np.empty(0, np.int64), *self.touched])
        mine = {"best": self.best, "touched": np.unique(touched)}
        numbers = {"floor": self.floor, "known": self.known, "scored": self.scored}
        return {**self.survey._asdict(), **mine, **numbers}

    @classmethod
    def load(cls, state: dict[str, Any]) -> View:
        """Return what `save` was called for."""
        survey = Survey(*(np.asarray(state[name]) for name in Survey._fields))
        view = cls(
            survey,
            np.asarray(state["best"]),
            float(state["floor"]),
            int(state["known"]),
            int(state["scored"]),
        )
        view.touched.append(np.asarray(state["touched"]))
        return view


def _url(known: Known, number: np.integer[Any]) -> int:
    return int(known.urls_of(np.array([number]))[0])


def make_set_forager(method: str, env: Any, weights: str = "") -> SetForager:
    """Make a forager of a method from shipped or given weights."""
    world = world_of(env)
    return SetForager(world, load_weights(method, world, weights))
