"""The figures of topical crawls: precision and finds against downloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproduce.pictures import FAINT, INK, make_figure, plain
from benchmarks.reproduce.verdicts import mean

# Colours for the paper's four and what they have to beat, one for all variants of a
# method; the rest is grey, told apart by its dashes.
STYLES: dict[str, tuple[str, Any]] = {
    "LAFC": ("#d9731a", "-"),
    "BPM": ("#2f6db3", "-"),
    "HW": ("#2a8c68", "-"),
    "LJM": ("#a23b72", "-"),
    "best_first": ("#7a5cc0", "-"),
    "best_first, parent page": ("#7a5cc0", ":"),
    "best_first, anchor": ("#7a5cc0", "--"),
    "remember_last_crawl": ("#e58fb1", "-"),
    "backlink": (FAINT, "-."),
    "opic": (FAINT, "-"),
    "breadth_first": (FAINT, "--"),
    "random_walk": (FAINT, ":"),
    "oracle": ("#111111", "--"),
}
LABELS = {"precision": "precision", "found": "relevant pages found"}
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
        for name, found in curves.items():
            downloads = np.linspace(0, budget, found.shape[1] + 1)[1:]
            shown = found / downloads if what == "precision" else found
            colour, style = STYLES.get(name, (INK, "-"))
            place.plot(
                downloads,
                shown.mean(axis=0),
                linestyle=style,
                color=colour,
                lw=2.0 if name == "LAFC" else 1.2,
                marker="o" if name == "LAFC" else None,
                ms=3,
                label=name,
            )
        plain(place, title, "downloads", LABELS[what])
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


def by_crawl(rows: Sequence[Sequence[float]]) -> Figure:
    """Draw the precision of each of the repeated crawls, with 95 % intervals."""
    figure = make_figure(5.2, 3.2)
    axes: Any = figure.subplots()
    found = [mean(values) for values in zip(*rows, strict=True)]
    ends = np.array([[one.mean - one.low, one.high - one.mean] for one in found])
    axes.errorbar(
        np.arange(1, len(found) + 1),
        [one.mean for one in found],
        np.nan_to_num(ends).T,
        color=STYLES["LAFC"][0],
        marker="o",
        ms=3,
        lw=1.3,
        capsize=2,
    )
    plain(axes, "", "crawl", "precision")
    axes.set_ylim(0)
    axes.xaxis.get_major_locator().set_params(integer=True)
    return figure
