"""The figures of topical crawls: precision and finds against downloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproduce.pictures import INK, key, make_figure, plain
from benchmarks.reproduce.verdicts import mean

WHEEL = (
    "#d9731a",
    "#2f6db3",
    "#2a8c68",
    "#a23b72",
    "#7a5cc0",
    "#b89b2b",
    "#5b7a8c",
    "#c24d4d",
    "#3fa7c4",
    "#e58fb1",
    "#9aa61f",
    "#8796a5",
    "#111111",
)
Curves = Mapping[str, np.ndarray]  # relevant pages found: a row a run, a column a point


def over_downloads(
    panels: Mapping[str, Curves], budget: int, what: str = "precision"
) -> Figure:
    """Draw what crawlers found against downloads, a panel a topic; mean of the runs."""
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure = make_figure(3.6 * columns + 1.6, 2.9 * rows + 0.3)
    axes: Any = figure.subplots(rows, columns, squeeze=False, sharex=True)
    drawn = None
    for place, (title, curves) in zip(axes.ravel(), panels.items(), strict=False):
        for number, (name, found) in enumerate(curves.items()):
            downloads = np.linspace(0, budget, found.shape[1] + 1)[1:]
            shown = found / downloads if what == "precision" else found
            style = "--" if name in ("oracle", "random_walk") else "-"
            place.plot(
                downloads,
                shown.mean(axis=0),
                style,
                color=WHEEL[number % len(WHEEL)],
                lw=2.0 if name == "LAFC" else 1.2,
                marker="o" if name == "LAFC" else None,
                ms=3,
                label=name,
            )
        plain(place, title, "downloads", what)
        place.set_ylim(0)
        drawn = drawn or place
    for place in axes.ravel()[len(panels) :]:
        place.set_visible(False)
    if drawn is not None:
        handles, names = drawn.get_legend_handles_labels()
        figure.legend(
            handles, names, loc="outside right upper", fontsize=8, labelcolor=INK
        )
    return figure


def by_crawl(curves: Mapping[str, Sequence[Sequence[float]]]) -> Figure:
    """Draw the precision of each of the repeated crawls, with 95 % intervals."""
    figure = make_figure(5.2, 3.2)
    axes: Any = figure.subplots()
    for number, (name, rows) in enumerate(curves.items()):
        found = [mean(values) for values in zip(*rows, strict=True)]
        x = np.arange(1, len(found) + 1) + 0.06 * (number - len(curves) / 2)
        middle = np.array([one.mean for one in found])
        ends = np.array([[one.mean - one.low, one.high - one.mean] for one in found])
        axes.errorbar(
            x,
            middle,
            np.nan_to_num(ends).T,
            color=WHEEL[number % len(WHEEL)],
            marker="o",
            ms=3,
            lw=1.3,
            capsize=2,
            label=name,
        )
    plain(axes, "", "crawl", "precision")
    axes.set_ylim(0)
    axes.xaxis.get_major_locator().set_params(integer=True)
    key(axes, loc="lower right")
    return figure
