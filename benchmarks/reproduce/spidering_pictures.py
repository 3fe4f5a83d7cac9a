"""Figures of crawls: targets found against links followed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproduce.pictures import COLOURS, FAINT, INK, key, make_figure, plain
from benchmarks.reproduce.spidering_runs import (
    BREADTH,
    OPTIMAL,
    RANDOM,
    curve,
    spider,
)

EARLY = 0.30  # of the targets, where the paper's close-ups end
LINES: dict[str, dict[str, Any]] = {
    OPTIMAL: {"color": INK},
    spider(3, "full-page"): {"color": COLOURS["RL"]},
    spider(2, "full-page"): {"color": COLOURS["WL"]},
    spider(3, "related"): {"color": COLOURS["RL"], "ls": "--"},
    spider(2, "related"): {"color": COLOURS["WL"], "ls": "--"},
    BREADTH: {"color": COLOURS["WLRL"]},
    RANDOM: {"color": FAINT},
}


def crawls(rows: Sequence[Mapping[str, Any]], text: str, title: str) -> Figure:
    """Draw mean curves over sites: ``text`` is ``full-page`` or ``both``.

    Full-page: the whole crawl above, its beginning below. Both: the learning spiders
    alone, the later stages above, the first targets below.
    """
    figure = make_figure(7.5, 7.5)
    top, bottom = figure.subplots(2, 1)
    grid = np.concatenate([np.linspace(0, 0.1, 1001), np.linspace(0.1, 1, 901)[1:]])
    controls = (OPTIMAL, BREADTH, RANDOM)
    if text == "both":
        names = [name for name in LINES if name not in controls]
    else:
        names = [name for name in LINES if "related" not in name]
    means = {n: np.mean([curve(r, n, grid) for r in rows], axis=0) for n in names}
    for axes in (top, bottom):
        for name, mean in means.items():
            axes.plot(100 * grid, 100 * mean, lw=1.5, label=name, **LINES[name])
        plain(axes, "", "URLs fetched (%)", "targets found (%)")
    learning = [name for name in names if name not in controls]
    early = 100 * max(_reached(means[name], grid, EARLY) for name in learning)
    bottom.set(xlim=(0, min(100, 1.25 * early)), ylim=(0, 100 * EARLY))
    if text == "both":
        top.set(xlim=(0.8 * early, 100), ylim=(100 * EARLY, 101))
    else:
        top.set(xlim=(0, 100), ylim=(0, 101))
    top.set_title(title, size=9.5, color=INK, loc="left", weight="bold")
    key(top, loc="lower right")
    return figure


def _reached(mean: np.ndarray, grid: np.ndarray, share: float) -> float:
    return float(grid[min(int(np.searchsorted(mean, share)), len(grid) - 1)])
