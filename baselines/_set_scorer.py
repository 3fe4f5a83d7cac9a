"""Scores for a whole frontier by a trained set network, in NumPy alone.

The same network as in `baselines._set_policy`, read from its weights: so a trained
crawler runs without PyTorch, and over any number of candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from baselines._weights import State, Weights, columns_of, load_weights
from baselines.agent import Agent, Info, Observation, world_of
from baselines.z_sum import FEATURES
from gym_webforage.envs import Known
from gym_webforage.world import World

CLIP = 5.0  # z-scores beyond this say no more to a network
FLAT = 1e-6  # a column that varies less than this is constant
SAME = 1e-5  # scores closer than this are equal: the first discovered wins

# News has no z-sum among the baselines; this is what a residual adds to there.
NEWS_SIGNS = {"links": 1.0, "in_links": 1.0, "yield": 1.0, "age": -1.0, "visits": -1.0}


def z_signs(columns: Sequence[str]) -> np.ndarray:
    """Return with which weight each column enters the z-sum."""
    signs: dict[str, float] = NEWS_SIGNS
    if FEATURES[0] in columns:
        signs = {name: 1.0 for name in FEATURES}
    return np.array([signs.get(name, 0.0) for name in columns], np.float32)


def z_scores(rows: np.ndarray) -> np.ndarray:
    """Return how far each value is from its column's mean, in standard deviations."""
    middle = rows.mean(axis=0)
    spread = rows.std(axis=0)
    scale = np.where(spread > FLAT, 1 / np.maximum(spread, FLAT), 0)
    return ((rows - middle) * scale).astype(np.float32)


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

    def scores(
        self, rows: np.ndarray, context: np.ndarray, numbers: np.ndarray | None = None
    ) -> np.ndarray:
        """Return one score a row; the order of rows makes no difference to them."""
        arrays = self.arrays
        scaled = z_scores(rows)
        hidden = np.concatenate([rows, np.clip(scaled, -CLIP, CLIP)], axis=1)
        for weight, bias in self._encode:
            hidden = hidden @ weight
            hidden += bias
            np.maximum(hidden, 0, out=hidden)
        pooled = [hidden.mean(axis=0), hidden.max(axis=0)]
        if self.attention:
            logits = hidden @ arrays["queries"].T
            logits -= logits.max(axis=0)
            shares = np.exp(logits)
            shares /= shares.sum(axis=0)
            pooled.append((shares.T @ hidden).ravel())
        whole = np.concatenate([*pooled, context]).astype(np.float32)
        whole = np.maximum(arrays["summary.weight"] @ whole + arrays["summary.bias"], 0)
        hidden = hidden @ self._join
        hidden += arrays["steer.weight"] @ whole + arrays["join.bias"]
        np.maximum(hidden, 0, out=hidden)
        scores = hidden @ arrays["score.weight"][0]
        if self.residual:
            scores += np.exp(arrays["log_scale"]) * (scaled @ arrays["signs"])
        return scores


class ZSumScorer:
    """The sum of z-scores: no training at all."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.signs = z_signs(columns)

    def reset(self) -> None:
        """Nothing is remembered of a crawl."""

    def scores(
        self, rows: np.ndarray, context: np.ndarray, numbers: np.ndarray | None = None
    ) -> np.ndarray:
        """Return one score a row."""
        return z_scores(rows) @ self.signs


@dataclass
class SetForager(Agent):
    """Takes the candidate that a trained network scores best, of the whole frontier.

    In a fleet all share the weights; a child shares its parent's.
    """

    world: World
    weights: Weights
    training_fetches: int = field(default=0, init=False)
    scorer: Any = field(default=None, repr=False)

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

    def reset(self, seed: int | None = None) -> None:
        """Start a crawl."""
        self.scorer.reset()

    def act(self, observation: Observation, info: Info) -> int:
        """Score the frontier, take the best."""
        known: Known = info["known"]
        numbers = np.sort(known.choices)
        rows = known.features()[:, self._places]
        scores = self.scorer.scores(rows, observation["context"], numbers)
        return int(info["action_set"][first_best(scores)])

    def divide(self, rng: np.random.Generator) -> Self:
        """Return a child with the same weights."""
        child = type(self)(self.world, self.weights, scorer=copy(self.scorer))
        child.reset()
        return child

    def save(self) -> dict[str, Any]:
        """Return nothing: what scorers remember only saves time."""
        return {}

    def load(self, state: dict[str, Any]) -> None:
        """Take nothing."""


def make_set_forager(method: str, env: Any, weights: str = "") -> SetForager:
    """Make a forager of a method from shipped or given weights."""
    world = world_of(env)
    return SetForager(world, load_weights(method, world, weights))
