"""The leaderboard's statistics: pure functions on arrays, seeded, without a loop a run.

Runs of one seed draw the same start, topic and site for all agents, so they are pairs:
resampling takes the same seeds for every agent. Each task is a stratum of its own,
whose seeds are resampled with replacement (Agarwal et al., "Deep reinforcement learning
at the edge of the statistical precipice", 2021).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

Array = np.ndarray

RESAMPLES = 2_000
MIN_GAP = 5  # pages that the oracle finds more than a random walk, else no scale
CUT = 0.25  # of the runs at either end that an interquartile mean leaves out
THRESHOLDS = np.round(np.arange(-0.5, 1.2501, 0.05), 2)


class Interval(NamedTuple):
    """A figure and its 95 % interval; of a single run there is none."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Scores:
    """The runs of one task: a row an agent, a column a seed, NaN where none is."""

    agents: tuple[str, ...]
    seeds: tuple[int, ...]
    found: Array
    area: Array
    low: Array  # found by a random walk, by seed, and then its area
    high: Array  # by the oracle
    low_area: Array
    high_area: Array

    @property
    def scaled(self) -> Array:
        """Which seeds have a scale: the oracle finds clearly more than chance."""
        with np.errstate(invalid="ignore"):
            return (self.high - self.low >= MIN_GAP) & (self.high_area > self.low_area)

    @property
    def score(self) -> Array:
        """Found, from the random walk (0) to the oracle (1), of the scaled seeds."""
        kept = self.scaled
        low, high = self.low[kept], self.high[kept]
        return (self.found[:, kept] - low) / (high - low)

    @property
    def area_score(self) -> Array:
        """The same of the areas under the curves."""
        kept = self.scaled
        low, high = self.low_area[kept], self.high_area[kept]
        return (self.area[:, kept] - low) / (high - low)

    def row(self, agent: str) -> int | None:
        """Return an agent's row, None if it did not run."""
        return self.agents.index(agent) if agent in self.agents else None


# --- resampling


def draws(seeds: int, name: str, resamples: int = RESAMPLES) -> Array:
    """Return which seeds each resample takes, (resamples, seeds), drawn by a name."""
    rng = np.random.default_rng([*name.encode()])
    return rng.integers(seeds, size=(resamples, seeds))


def weights(drawn: Array) -> Array:
    """Return how much each seed counts in each resample; rows sum to 1."""
    resamples, seeds = drawn.shape
    flat = np.repeat(np.arange(resamples), seeds) * seeds + drawn.reshape(-1)
    counted = np.bincount(flat, minlength=resamples * seeds)
    return counted.reshape(resamples, seeds) / seeds


def interquartile_mean(values: Array) -> Array:
    """Return the mean of the middle half along the last axis."""
    ordered = np.sort(values, axis=-1)
    cut = int(CUT * ordered.shape[-1])
    return ordered[..., cut : ordered.shape[-1] - cut].mean(axis=-1)


def percentiles(resampled: Array) -> tuple[Array, Array]:
    """Return the borders of the middle 95 % along the first axis."""
    low, high = np.percentile(resampled, [2.5, 97.5], axis=0)
    return low, high


def stratified(strata: Mapping[str, Array]) -> Interval | None:
    """Return the interquartile mean over all strata (by task), and its interval."""
    kept = {name: values for name, values in strata.items() if len(values)}
    if not kept:
        return None
    value = float(interquartile_mean(np.concatenate(list(kept.values()))))
    if all(len(values) == 1 for values in kept.values()):
        return Interval(value, None, None)
    resampled = np.concatenate(
        [values[draws(len(values), name)] for name, values in kept.items()], axis=1
    )
    low, high = percentiles(interquartile_mean(resampled))
    return Interval(value, float(low), float(high))


def mean_interval(values: Array, name: str) -> tuple[Array, Array | None, Array | None]:
    """Return means over the first axis (seeds), and the borders of their intervals."""
    mean = values.mean(axis=0)
    if len(values) < 2:
        return mean, None, None
    resampled = weights(draws(len(values), name)) @ values
    return mean, *percentiles(resampled)


# --- comparisons


def ranks(
    intervals: Sequence[Interval | None],
) -> list[tuple[int | None, int | None, list[int]]]:
    """Return for each its best and its last possible place, and whom it ties with.

    Places go by intervals: one is better than another if its whole interval lies
    above. A single run has no interval, and stands for itself.
    """
    ends = [
        None if x is None else (_or(x.low, x.value), _or(x.high, x.value))
        for x in intervals
    ]
    found = []
    for i, own in enumerate(ends):
        if own is None:
            found.append((None, None, []))
            continue
        others = [(j, x) for j, x in enumerate(ends) if j != i and x is not None]
        better = sum(low > own[1] for _, (low, _) in others)
        worse = sum(high < own[0] for _, (_, high) in others)
        ties = [j for j, (low, high) in others if low <= own[1] and high >= own[0]]
        found.append((1 + better, len(others) + 1 - worse, ties))
    return found


def _or(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


def improvement(
    tasks: Mapping[str, Scores], agents: Sequence[str]
) -> tuple[Array, Array, Array]:
    """Return how probably each agent finds more than each other, low and high.

    The mean over the tasks that both played of the share of seeds on which the first
    found more, equal finds counting half; NaN where they share none.
    """
    count = len(agents)
    total = np.zeros((RESAMPLES, count, count))
    exact = np.zeros((count, count))
    shared = np.zeros((count, count))
    for name, scores in tasks.items():
        found = np.full((count, len(scores.seeds)), np.nan)
        for i, agent in enumerate(agents):
            if (row := scores.row(agent)) is not None:
                found[i] = scores.found[row]
        with np.errstate(invalid="ignore"):
            more = np.greater(found[:, None], found)
            wins = more + 0.5 * np.equal(found[:, None], found)
        played = np.logical_not(np.any(np.isnan(found), axis=1)).reshape(-1)
        both = played[:, None] & played
        wins[~both] = 0.0
        weight = weights(draws(len(scores.seeds), name))
        total += np.einsum("bs,ijs->bij", weight, wins, optimize=True)
        exact += wins.mean(axis=2)
        shared += both
    with np.errstate(invalid="ignore", divide="ignore"):
        low, high = percentiles(total / shared)
        return exact / shared, low, high


def profile(strata: Mapping[str, Array]) -> tuple[Array, Array, Array]:
    """Return the share of runs with a score above each threshold, low and high."""
    shares, resampled = [], []
    for name, values in strata.items():
        if len(values):
            above = (values[:, None] > THRESHOLDS).astype(float)
            shares.append(above.mean(axis=0))
            resampled.append(weights(draws(len(values), name)) @ above)
    if not shares:
        empty = np.zeros(0)
        return empty, empty, empty
    low, high = percentiles(np.mean(resampled, axis=0))
    return np.mean(shares, axis=0), low, high
