"""What the energy paper says of its populations, and whether it is so here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.reproduce import verdicts
from benchmarks.reproduce.energy_runs import FOUNDERS, Series
from benchmarks.reproduce.results import Claim

COST = 0.5
UPPER, LOWER, LONG_GAIN = 250, 100, 30.0

# By the relevance from which on a page gives more than it costs.
LINEAR = {
    f"linear, rate {rate:g}": (("cost", COST), ("model", "linear"), ("rate", rate))
    for rate in (1.0, 2.5, 10.0)
}
SIGMOID = {
    f"sigmoid, C {cost:g}, G {gain:g}": (("cost", cost), ("gain", gain))
    for cost, gain in ((COST, 8.0), (0.2, 8.0), (COST, 15.0))
}
LONG = {
    "without buffer": (("cost", COST), ("gain", LONG_GAIN)),
    "with buffer": (
        ("cost", COST),
        ("gain", LONG_GAIN),
        ("lower", LOWER),
        ("upper", UPPER),
    ),
}
DIES, USABLE, EXPLODES = LINEAR
PLAIN, BOUNDED = LONG
SIMPLE = next(iter(SIGMOID))

Values = Callable[[str, str], list[Any]]
"""Takes a setting and a figure; returns it by run."""
Courses = Callable[[str], list[Series]]
"""Takes a setting; returns the courses of its runs."""


def judge(values: Values, courses: Courses) -> list[Claim]:
    """Judge all claims."""
    return [
        *_fates(values),
        *_growth(values),
        _precision_gain(courses),
        *_bounds(values),
        *_precision_lag(courses),
    ]


def _fates(values: Values) -> list[Claim]:
    """Figure 2: the linear model dies, explodes or is usable, by its rate."""
    dead = [end == 0 for end in values(DIES, "last")]
    grown = [bool(reason) for reason in values(EXPLODES, "stopped")]
    usable = _usable(values, USABLE)
    tame = [_usable(values, setting) for setting in SIGMOID]
    every = [all(three) for three in zip(*tame, strict=True)]
    counts = ", ".join(str(sum(own)) for own in tame)
    return [
        _always("linear: with a low rate the population dies out", "Figure 2", dead),
        _always("linear: with a high rate it explodes", "Figure 2", grown),
        _always("linear: with the rate between it is usable", "Figure 2", usable),
        Claim(
            "sigmoid: usable with all three settings",
            "Figure 3",
            f"{sum(every)} of {len(every)} runs; with each: {counts}",
            verdicts.always(every),
        ),
    ]


def _usable(values: Values, setting: str) -> list[bool]:
    ends, stopped = values(setting, "last"), values(setting, "stopped")
    return [end > 0 and not cap for end, cap in zip(ends, stopped, strict=True)]


def _always(text: str, paper: str, truths: Sequence[bool]) -> Claim:
    measured = f"{sum(truths)} of {len(truths)} runs"
    return Claim(text, paper, measured, verdicts.always(truths))


def _growth(values: Values) -> list[Claim]:
    """Figure 3: the sigmoid's population grows, and depends less on parameters."""
    found = []
    for setting in SIGMOID:
        gap = verdicts.mean([x - FOUNDERS for x in values(setting, "as_it_ended")])
        text = f"{setting}: the population grows over time"
        measured = f"end - start: {gap.show(0)}"
        found.append(Claim(text, "Figure 3", measured, verdicts.above(gap)))

    def spread(settings: Sequence[str]) -> list[float]:
        ends = np.array([values(setting, "as_it_ended") for setting in settings])
        return np.ptp(np.log10(1 + ends), axis=0).tolist() if ends.size else []

    gap = verdicts.paired(spread(list(LINEAR)), spread(list(SIGMOID)))
    text = "the sigmoid's population depends less on the parameters"
    alive = [one for setting in SIGMOID for one in _usable(values, setting)]
    # Populations that all die out depend on no parameter, either.
    measured = f"range of log10 of the end, linear - sigmoid: {gap.show(2)}; "
    measured += f"usable with the sigmoid: {sum(alive)} of {len(alive)}"
    found.append(Claim(text, "Figures 2, 3", measured, verdicts.above(gap)))
    return found


def _precision_gain(courses: Courses) -> Claim:
    """Figure 4: the sigmoid is more precise."""
    gaps = []
    for linear, sigmoid in zip(courses(USABLE), courses(SIMPLE), strict=False):
        gap = sigmoid["precision"] - linear["precision"]
        there = gap[np.isfinite(gap)]
        gaps.append(float(there[-1]) if len(there) else None)
    gap = verdicts.mean(gaps)
    return Claim(
        "the sigmoid has the higher precision",
        "Figure 4",
        f"{SIMPLE} - {USABLE}, at the last visit of both: {gap.show(3)}",
        verdicts.above(gap),
    )


def _bounds(values: Values) -> list[Claim]:
    """Figure 5: the buffer bounds the population."""
    high, low = values(BOUNDED, "highest"), values(BOUNDED, "lowest")
    most = UPPER + round(LONG_GAIN)
    inside = [h <= most and b >= LOWER for h, b in zip(high, low, strict=True)]
    gap = verdicts.paired(values(PLAIN, "range"), values(BOUNDED, "range"))
    near = verdicts.mean(values(BOUNDED, "near_upper"))
    ends = f"{min(low, default=0)} to {max(high, default=0)}"
    return [
        Claim(
            f"with the buffer the population stays in {LOWER} to {UPPER} + G",
            "Figure 5",
            f"{ends}; {sum(inside)} of {len(inside)} runs",
            verdicts.never_otherwise(inside),
        ),
        Claim(
            "without the buffer it varies more",
            "Figure 5",
            f"log10(highest / lowest), without - with: {gap.show(2)}",
            verdicts.above(gap),
        ),
        Claim(
            "with the buffer it is near the upper bound most of the time",
            "Figure 5",
            f"share of visits from {0.9 * UPPER:g} foragers on: {near.show(2)}",
            verdicts.above(near, 0.5),
        ),
    ]


def _precision_lag(courses: Courses) -> list[Claim]:
    """Figure 6: the buffer delays, but does not lower, the precision."""

    def at(share: float) -> list[float | None]:
        gaps = []
        for plain, bounded in zip(courses(PLAIN), courses(BOUNDED), strict=False):
            gap = plain["precision"] - bounded["precision"]
            there = np.flatnonzero(np.isfinite(gap))
            place = min(int(share * len(gap)), len(gap) - 1)
            there = there[there <= place]
            gaps.append(float(gap[there[-1]]) if len(there) else None)
        return gaps

    early, late = at(0.25), at(1.0)
    first = verdicts.mean(early)
    sizes = [[None if x is None else abs(x) for x in gaps] for gaps in (early, late)]
    shrinks = verdicts.paired(*sizes)
    rise = [
        float(x["precision"][-1] - x["precision"][len(x["precision"]) // 4])
        for x in courses(BOUNDED)
    ]
    grows = verdicts.mean(rise)
    return [
        Claim(
            "with the buffer the precision is a little lower at first",
            "Figure 6",
            f"without - with, after a quarter: {first.show(3)}",
            verdicts.above(first),
        ),
        Claim(
            "the difference shrinks",
            "Figure 6",
            f"its size after a quarter - at the end: {shrinks.show(3)}",
            verdicts.above(shrinks),
        ),
        Claim(
            "the precision grows over time",
            "Figure 6",
            f"with buffer, end - first quarter: {grows.show(3)}",
            verdicts.above(grows),
        ),
    ]
