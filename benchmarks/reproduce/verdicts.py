"""Whether a claim holds, told from a handful of runs by Student's t intervals.

The claimed side or range is compared with the 95 % interval, and what the interval does
not decide cannot be told. Limits, such as what counts as similar, are conventions of
ours, since the papers give none; reports show the interval, so others can be tried.
Claims are judged one by one, without a correction for their number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

HOLDS, FAILS, OPEN = "holds", "does not", "cannot be told"
LEVEL = 0.95
SIMILAR = 0.10  # a relative difference up to this counts as similar

Values = Sequence[float | None] | np.ndarray


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % interval; the ends are NaN where one run says nothing."""

    mean: float
    low: float
    high: float

    def show(self, digits: int) -> str:
        """Write it with so many digits behind the point."""
        if math.isnan(self.mean):
            return "-"
        if math.isnan(self.low):
            return f"{self.mean:,.{digits}f}"
        ends = f"{self.low:,.{digits}f} to {self.high:,.{digits}f}"
        return f"{self.mean:,.{digits}f} ({ends})"


def known(values: Values) -> np.ndarray:
    """Return the values that are there."""
    there = [x for x in values if x is not None and math.isfinite(x)]
    return np.array(there, np.float64)


def mean(values: Values) -> Interval:
    """Return the mean and its interval."""
    found = known(values)
    if len(found) < 2:
        return Interval(float(found[0]) if len(found) else math.nan, math.nan, math.nan)
    error = float(found.std(ddof=1)) / math.sqrt(len(found))
    return _interval(float(found.mean()), error, len(found) - 1)


def difference(first: Values, second: Values) -> Interval:
    """Return mean(first) - mean(second) of independent runs (Welch)."""
    one, two = known(first), known(second)
    if min(len(one), len(two)) < 2:
        alone = mean(one).mean - mean(two).mean
        return Interval(alone, math.nan, math.nan)
    parts = [values.var(ddof=1) / len(values) for values in (one, two)]
    total = float(sum(parts))
    gap = float(one.mean() - two.mean())
    if total == 0:
        return Interval(gap, gap, gap)
    freedom = total**2 / sum(
        part**2 / (len(values) - 1)
        for part, values in zip(parts, (one, two), strict=True)
    )
    return _interval(gap, math.sqrt(total), float(freedom))


def paired(first: Values, second: Values) -> Interval:
    """Return the mean of first - second, run by run."""
    both = zip(first, second, strict=True)
    return mean([a - b for a, b in both if a is not None and b is not None])


def spread(values: Values) -> Interval:
    """Return the standard deviation over the mean, with its interval (chi-squared)."""
    found = known(values)
    if len(found) < 2 or found.mean() == 0:
        return Interval(math.nan, math.nan, math.nan)
    ratio = float(found.std(ddof=1) / abs(found.mean()))
    freedom = len(found) - 1
    tail = (1 - LEVEL) / 2
    low, high = stats.chi2.ppf([1 - tail, tail], freedom)
    return Interval(
        ratio, ratio * math.sqrt(freedom / low), ratio * math.sqrt(freedom / high)
    )


def _interval(centre: float, error: float, freedom: float) -> Interval:
    half = float(stats.t.ppf((1 + LEVEL) / 2, freedom)) * error
    return Interval(centre, centre - half, centre + half)


# --- verdicts


def above(found: Interval, limit: float = 0.0) -> str:
    """Judge the claim that a mean is larger than a limit."""
    if math.isnan(found.low):
        return OPEN
    return HOLDS if found.low > limit else FAILS if found.high < limit else OPEN


def below(found: Interval, limit: float = 0.0) -> str:
    """Judge the claim that a mean is smaller than a limit."""
    return above(Interval(-found.mean, -found.high, -found.low), -limit)


def within(found: Interval, low: float, high: float) -> str:
    """Judge the claim that a mean lies between two limits."""
    if math.isnan(found.low):
        return OPEN
    if low <= found.low and found.high <= high:
        return HOLDS
    return FAILS if found.high < low or found.low > high else OPEN


def similar(first: Values, second: Values) -> tuple[str, Interval]:
    """Judge the claim that two means differ by at most a tenth of their size.

    Returns the interval of the relative difference as well.
    """
    gap = difference(first, second)
    size = (abs(mean(first).mean) + abs(mean(second).mean)) / 2
    size = size if size else math.nan
    found = Interval(gap.mean / size, gap.low / size, gap.high / size)
    return within(found, -SIMILAR, SIMILAR), found


def always(truths: Sequence[bool]) -> str:
    """Judge the claim that something is so in every run."""
    if not truths:
        return OPEN
    return HOLDS if all(truths) else FAILS if not any(truths) else OPEN


def never_otherwise(truths: Sequence[bool]) -> str:
    """Judge the claim that something never happens, which one run refutes."""
    return OPEN if not truths else HOLDS if all(truths) else FAILS
