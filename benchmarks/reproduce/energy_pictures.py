"""The figures of the energy paper: the course of populations by visits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from benchmarks.reproduce import pictures

COLOURS = ("#2f6db3", "#d9731a", "#2a8c68")
NAMES = {"living": "foragers alive", "precision": "precision"}


def courses(
    runs: Mapping[str, Sequence[Mapping[str, np.ndarray]]],
    what: str,
    bounds: Sequence[float] = (),
) -> Figure:
    """Draw one quantity over visits: a colour a setting, a thin line a run."""
    figure = pictures.make_figure(8, 4.2)
    axes = figure.subplots()
    for (name, own), colour in zip(runs.items(), COLOURS, strict=False):
        visits = own[0]["visits"]
        values = np.array([one[what] for one in own])
        for row in values:
            axes.plot(visits, row, color=colour, lw=0.6, alpha=0.35)
            there = np.flatnonzero(np.isfinite(row))
            if what == "living" and len(there) and there[-1] < len(row) - 1:
                axes.plot(visits[there[-1]], row[there[-1]], "x", color=colour, ms=6)
        if what == "living":
            axes.plot(visits, _median(values), color=colour, lw=2, label=name)
            continue
        middle, half = _mean(values)
        axes.plot(visits, middle, color=colour, lw=2, label=name)
        axes.fill_between(visits, middle - half, middle + half, color=colour, alpha=0.2)
    for bound in bounds:
        axes.axhline(bound, color=pictures.FAINT, lw=1, ls="--")
    pictures.plain(axes, "", "visits", NAMES[what])
    if what == "living":
        axes.set_yscale("symlog", linthresh=10)
    axes.set_ylim(bottom=0)
    pictures.key(axes, loc="lower left", bbox_to_anchor=(0, 1), ncols=len(COLOURS))
    return figure


def _median(values: np.ndarray) -> np.ndarray:
    """Return the median of the runs, those that were stopped being above all others.

    Some die out while others are stopped at the cap, and no mean tells of either.
    """
    middle = np.median(np.where(np.isnan(values), np.inf, values), axis=0)
    return np.where(np.isfinite(middle), middle, np.nan)


def _mean(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of the runs and half its interval, where most runs go on."""
    count = np.isfinite(values).sum(axis=0)
    enough = count * 2 > len(values)
    middle = np.full(values.shape[1], np.nan)
    half = middle.copy()
    middle[enough] = np.nanmean(values[:, enough], axis=0)
    several = enough & (count > 2)  # of two the interval is all there is
    deviation = np.nanstd(values[:, several], axis=0, ddof=1)
    factor = stats.t.ppf(0.975, count[several] - 1) / np.sqrt(count[several])
    half[several] = deviation * factor
    return middle, half
