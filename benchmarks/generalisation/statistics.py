"""Scores on a common scale, and paired differences over tasks and training seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from benchmarks.reproduce.verdicts import LEVEL, Interval

WON, TIED, LOST, ALONE = "won", "tied", "lost", "one task"


@dataclass(frozen=True)
class Scores:
    """Scores of a method in one study: for each fold an array, tasks by seeds.

    A method without chance has one seed. NaN: the task has no scale.
    """

    folds: tuple[np.ndarray, ...]

    @property
    def by_task(self) -> np.ndarray:
        """The mean over seeds, one number for each task that has a scale."""
        found = np.concatenate([fold.mean(axis=1) for fold in self.folds])
        return found[np.isfinite(found)]

    @property
    def mean(self) -> float:
        """The mean over tasks and seeds."""
        found = self.by_task
        return float(found.mean()) if len(found) else math.nan

    def minus(self, other: Scores) -> Scores:
        """Return the differences, task by task and seed by seed."""
        return Scores(
            tuple(a - b for a, b in zip(self.folds, other.folds, strict=True))
        )


def scaled(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Scale each task's row from the random walk's mean (0) to the oracle's (1)."""
    bottom = low.mean(axis=1, keepdims=True)
    span = high.mean(axis=1, keepdims=True) - bottom
    return (values - bottom) / np.where(span > 0, span, np.nan)


def interval(scores: Scores) -> Interval:
    """Return the mean with a 95 % interval over tasks and training seeds.

    Tasks are a sample, and so are trained models, of which each fold has one a seed.
    The variance of the mean is that of the tasks' means over their number, and what
    models of a fold differ by as a whole (two-way analysis of variance without
    replication, tasks by seeds). Degrees of freedom by Satterthwaite. Where a fold has
    one task, its models' differences are part of the task's already.
    """
    folds = [fold[np.isfinite(fold).all(axis=1)] for fold in scores.folds]
    means = np.concatenate([fold.mean(axis=1) for fold in folds])
    count = len(means)
    if count < 2:
        return Interval(float(means[0]) if count else math.nan, math.nan, math.nan)
    centre = float(means.mean())
    parts = [(float(means.var(ddof=1)) / count, count - 1)]
    parts.append(_of_models(folds, count))
    total = sum(variance for variance, _ in parts)
    if total <= 0:
        return Interval(centre, centre, centre)
    freedom = total**2 / sum(
        variance**2 / degrees for variance, degrees in parts if variance > 0
    )
    half = float(stats.t.ppf((1 + LEVEL) / 2, freedom)) * math.sqrt(total)
    return Interval(centre, centre - half, centre + half)


def _of_models(folds: Sequence[np.ndarray], count: int) -> tuple[float, int]:
    """Return what models add to the variance of the mean, and its freedom."""
    variance, degrees = 0.0, 0
    for fold in folds:
        tasks, seeds = fold.shape
        if tasks < 2 or seeds < 2:
            continue
        by_seed = fold.mean(axis=0)
        rest = fold - fold.mean(axis=1, keepdims=True) - by_seed + fold.mean()
        noise = float((rest**2).sum()) / ((tasks - 1) * (seeds - 1))
        # Of a model as a whole, without what chance leaves in a mean over tasks.
        own = max(0.0, float(by_seed.var(ddof=1)) - noise / tasks)
        variance += (tasks / count) ** 2 * own / seeds
        degrees += seeds - 1
    return variance, max(1, degrees)


def verdict(gap: Interval) -> str:
    """Say what a difference means: won or lost if its interval excludes zero."""
    if math.isnan(gap.low):
        return ALONE
    return WON if gap.low > 0 else LOST if gap.high < 0 else TIED
