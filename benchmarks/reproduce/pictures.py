"""The papers' figures, drawn from what runs keep of their course.

Every function returns a figure of its own, so that nothing depends on what was drawn
before; `save` writes the same bytes for the same figure.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from benchmarks.work import write_whole
from gym_webforage.metrics import HOUR

DAY = 24 * HOUR
DPI = 130
INK, FAINT, GRID = "#22303c", "#8796a5", "#e6e9ec"
COLOURS = {
    "WL": "#2f6db3",
    "RL": "#d9731a",
    "WLRL": "#2a8c68",
    "random": "#8796a5",
}

Array = np.ndarray
Series = Mapping[str, Array]
Runs = Mapping[str, Sequence[Series]]  # the courses of each kind's runs


def save(figure: Figure, file: Path) -> None:
    """Write a figure as PNG."""
    with io.BytesIO() as buffer:
        figure.savefig(buffer, format="png", dpi=DPI, metadata={"Software": None})
        write_whole(file, buffer.getvalue())


def make_figure(width: float, height: float) -> Figure:
    """Return an empty figure."""
    figure = Figure((width, height), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def plain(axes: Any, title: str = "", x: str = "", y: str = "") -> None:
    """Give axes the look of all figures, and their names."""
    axes.set_title(title, size=9.5, color=INK, loc="left", weight="bold")
    axes.set_xlabel(x, size=8.5, color=INK)
    axes.set_ylabel(y, size=8.5, color=INK)
    axes.tick_params(labelsize=8, colors=INK, length=3)
    axes.grid(color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(FAINT)


def key(axes: Any, **options: Any) -> None:
    """Say what the lines are."""
    axes.legend(fontsize=8, frameon=False, labelcolor=INK, **options)


# --- the web


def degrees(
    counts: Mapping[str, tuple[Array, Array]], exponents: Mapping[str, tuple[Any, ...]]
) -> Figure:
    """Draw degree distributions, log-log: a panel for each trace.

    ``counts`` has the out- and in-degrees of a trace's pages, ``exponents`` the fitted
    power laws as (exponent, from degree) of the same.
    """
    figure = make_figure(5.2 * len(counts), 4.2)
    panels = figure.subplots(1, len(counts), sharey=True, squeeze=False)[0]
    for axes, (name, both) in zip(panels, counts.items(), strict=True):
        for side, values, (exponent, least), colour, mark in zip(
            ("outgoing", "incoming"),
            both,
            exponents[name],
            (INK, COLOURS["RL"]),
            ("o", "x"),
            strict=True,
        ):
            values = values[values > 0]
            if not len(values):
                continue
            k, count = np.unique(values, return_counts=True)
            share = count / len(values)
            axes.plot(k, share, mark, ms=3, color=colour, alpha=0.3, mew=0.8)
            middle, density = _binned(values)
            label = f"{side}: exponent -{exponent:.2f}"
            axes.plot(middle, density, mark, ms=6, color=colour, label=label)
            tail = np.geomspace(max(1, least), values.max(), 30)
            mass = float(np.mean(values >= least))
            norm = mass / np.sum(np.arange(least, values.max() + 1.0) ** -exponent)
            axes.plot(tail, norm * tail**-exponent, color=colour, lw=1.4)
        plain(axes, name, "number of links k", "share of pages P(k)")
        axes.set(xscale="log", yscale="log", ylim=(3e-8, 2))
        key(axes, loc="upper right")
    return figure


def _binned(values: Array) -> tuple[Array, Array]:
    """Return the density of degrees in bins that grow by half."""
    edges = np.unique(np.round(1.5 ** np.arange(0, 40)).astype(np.int64))
    edges = edges[: int(np.searchsorted(edges, values.max(), "right")) + 1]
    count, _ = np.histogram(values, edges)
    there = count > 0
    middle = np.sqrt(edges[:-1] * (edges[1:] - 1.0).clip(1))
    width = np.diff(edges)
    return middle[there], (count / width / len(values))[there]


# --- the course of runs


def efficiency(runs: Runs) -> Figure:
    """Draw the download efficiency over time, a panel a kind, a line a run."""
    figure = make_figure(8, 1.9 * len(runs) + 0.4)
    panels = figure.subplots(len(runs), 1, sharex=True, sharey=True, squeeze=False)
    highest = [
        float(np.nanmax(one["window_download_efficiency"][2:], initial=0))
        for own in runs.values()
        for one in own
    ]
    for axes, (kind, own) in zip(panels[:, 0], runs.items(), strict=True):
        for i, one in enumerate(own):
            axes.plot(
                one["window_end"] / DAY,
                one["window_download_efficiency"],
                color=COLOURS.get(kind, INK),
                alpha=0.9 - 0.6 * i / max(1, len(own)),
                lw=1.0,
            )
        plain(axes, kind, "", "download efficiency")
    panels[-1, 0].set_xlabel("days", size=8.5, color=INK)
    panels[-1, 0].set_xlim(0)
    # The backlog of the first hours would flatten all the rest.
    panels[0, 0].set_ylim(0, 1.05 * max(highest, default=1) or 1)
    return figure


def freshness_and_age(runs: Runs) -> Figure:
    """Draw freshness and age of the found relevant documents over time."""
    figure = make_figure(8, 5)
    panels = figure.subplots(2, 1, sharex=True)
    for axes, name, label in zip(
        panels,
        ("window_freshness", "window_age_hours"),
        ("freshness", "age in hours"),
        strict=True,
    ):
        for kind, own in runs.items():
            for i, one in enumerate(own):
                axes.plot(
                    one["window_end"] / DAY,
                    one[name],
                    color=COLOURS.get(kind, INK),
                    ls=":" if kind == "WL" else "-",
                    lw=1.4 if kind == "WL" else 0.9,
                    alpha=0.85,
                    label=kind if i == 0 else None,
                )
        plain(axes, "", "", label)
    panels[1].set_xlabel("days", size=8.5, color=INK)
    panels[1].set_xlim(0)
    key(panels[0], ncols=len(runs), loc="lower right")
    return figure


def detector(runs: Runs) -> Figure:
    """Draw what was rewarded over what was sent and downloaded, and the lag."""
    figure = make_figure(8, 6.4)
    panels = figure.subplots(3, 1, sharex=True)
    for axes, name, label in zip(
        panels,
        ("window_sent_efficiency", "window_download_efficiency", "window_lag_hours"),
        ("rewarded / sent", "rewarded / downloaded", "lag in hours"),
        strict=True,
    ):
        highest = 0.0
        for kind, own in runs.items():
            values = np.array([one[name] for one in own])
            highest = max(highest, float(np.nanmax(values[:, 2:], initial=0)))
            days = own[0]["window_end"] / DAY
            colour = COLOURS.get(kind, INK)
            axes.plot(days, _mean(values), color=colour, lw=1.5, label=kind)
            axes.fill_between(
                days,
                _ends(values, np.nanmin),
                _ends(values, np.nanmax),
                color=colour,
                alpha=0.2,
                lw=0,
            )
        plain(axes, "", "", label)
        axes.set_ylim(0, 1.05 * highest or 1)
    panels[2].set_xlabel("days", size=8.5, color=INK)
    panels[2].set_xlim(0)
    key(panels[0], ncols=len(runs), loc="upper right")
    return figure


def _mean(values: Array) -> Array:
    there = np.isfinite(values)
    total = np.where(there, values, 0).sum(axis=0)
    return np.divide(
        total,
        there.sum(axis=0),
        out=np.full(total.shape, np.nan),
        where=there.any(axis=0),
    )


def _ends(values: Array, which: Any) -> Array:
    fill = np.inf if which is np.nanmin else -np.inf
    found = which(np.where(np.isfinite(values), values, fill), axis=0)
    return np.where(np.isfinite(found), found, np.nan)


def bands(runs: Mapping[str, Series]) -> Figure:
    """Draw a run of each kind: who lived when, and with what score."""
    tallest = max((len(one["score"]) for one in runs.values()), default=1)
    figure = make_figure(8, len(runs) * (1.5 + 0.045 * min(tallest, 70)) + 0.3)
    panels = figure.subplots(len(runs), 1, sharex=True, squeeze=False)[:, 0]
    shades = LinearSegmentedColormap.from_list(
        "scores", ["#1d2b3a", "#2f6db3", "#a9cbe6", "#f3cf7e"]
    )
    drawn: Any = None
    for axes, (kind, one) in zip(panels, runs.items(), strict=True):
        score = one["score"]
        step = float(np.diff(one["score_time"]).mean()) if score.shape[1] > 1 else DAY
        edges = np.append(one["score_time"], one["score_time"][-1] + step) / DAY
        drawn = axes.pcolormesh(
            edges,
            np.arange(len(score) + 1) - 0.5,
            np.ma.masked_invalid(score),
            cmap=shades,
            vmin=60,
            vmax=200,
        )
        for time, parent, child in one["births"].tolist():
            line = {"color": COLOURS["RL"], "lw": 0.7, "alpha": 0.8}
            axes.plot([time / DAY] * 2, [parent, child], **line)
        plain(axes, kind, "", "forager, by birth")
        axes.grid(False)
        axes.set_ylim(len(score) - 0.5, -0.5)
        axes.yaxis.get_major_locator().set_params(integer=True)
    panels[-1].set_xlabel("days", size=8.5, color=INK)
    bar = figure.colorbar(drawn, ax=list(panels), extend="both", aspect=30, pad=0.01)
    bar.set_label("score", size=8.5, color=INK)
    bar.ax.tick_params(labelsize=8, colors=INK)
    return figure


# --- division of work


def division(runs: Mapping[str, Series], days: float) -> Figure:
    """Draw whose the URLs and trajectories were that one forager alone had.

    Three rows as in the paper: URLs in the first days, URLs in the whole run,
    trajectories; a column for each kind.
    """
    figure = make_figure(4.6 * len(runs), 7.2)
    panels = figure.subplots(3, len(runs), sharey=True, squeeze=False)
    rows = (
        ("exclusive", days, f"URLs of one forager alone, first {days:.2g} days"),
        ("exclusive", np.inf, "URLs of one forager alone"),
        ("trajectories", np.inf, "two-step trajectories of one alone"),
    )
    for column, (kind, one) in zip(panels.T, runs.items(), strict=True):
        for axes, (name, limit, title) in zip(column, rows, strict=True):
            time, parts = _pooled(one, name, limit)
            colours = _many(parts.shape[1])
            axes.stackplot(time, parts.T, colors=colours, lw=0, step="mid")
            plain(axes, f"{kind}: {title}", "", "share")
            axes.set(ylim=(0, 1), xlim=(0, time.max(initial=1e-9)))
            if name == "exclusive":
                for share in (0.6, 0.7):  # the paper's upper boundary
                    axes.axhline(share, color=INK, lw=1, ls="--")
        column[-1].set_xlabel("days", size=8.5, color=INK)
    for axes in panels[:, 1:].ravel():
        axes.set_ylabel("")
    return figure


def _pooled(one: Series, name: str, limit: float) -> tuple[Array, Array]:
    """Return times in days and shares, of neighbouring windows together if many."""
    time = one[f"{name}_time"] / DAY
    shown = np.flatnonzero(time <= limit)
    total = one[f"{name}_total"][shown].astype(np.float64)
    parts = np.nan_to_num(one[f"{name}_contribution"][shown]) * total[:, None]
    first = np.arange(0, len(shown), max(1, len(shown) // 60))
    if not len(first):
        return np.zeros(0), np.zeros((0, parts.shape[1]))
    total = np.add.reduceat(total, first)
    parts = np.add.reduceat(parts, first) / np.maximum(total, 1)[:, None]
    middle = np.add.reduceat(time[shown], first) / np.diff(np.append(first, len(shown)))
    return middle, parts


def _many(count: int) -> list[Any]:
    """Return colours that tell neighbours apart."""
    from matplotlib import colormaps

    wheel = colormaps["tab20"].colors  # type: ignore[attr-defined]
    return [wheel[i % len(wheel)] for i in range(max(1, count))]


def starting_points(runs: Mapping[str, Series]) -> Figure:
    """Draw when and where in the order of discovery new starting points appeared."""
    figure = make_figure(4.6 * len(runs), 3.8)
    panels = figure.subplots(1, len(runs), sharey=True, squeeze=False)[0]
    last = max(float(one["window_end"][-1]) / DAY for one in runs.values())
    highest = max(float(one["starts_index"].max(initial=1)) for one in runs.values())
    edges = np.linspace(0, last, 29), np.linspace(0, highest, 25)
    grids = {}
    for kind, one in runs.items():
        new = one["starts_new"]
        points = one["starts_time"][new] / DAY, one["starts_index"][new]
        grids[kind] = np.histogram2d(*points, bins=edges)[0]
    most = max(float(grid.max(initial=1)) for grid in grids.values())
    shades = LinearSegmentedColormap.from_list(
        "counts", ["#f2f6fa", "#9cc4e4", "#2f6db3", "#1d2b3a"]
    )
    drawn: Any = None
    for axes, (kind, grid) in zip(panels, grids.items(), strict=True):
        drawn = axes.pcolormesh(
            *edges, np.ma.masked_equal(grid.T, 0), cmap=shades, vmin=1, vmax=most
        )
        one = runs[kind]
        found = np.cumsum(one["window_found_urls"])
        axes.plot(
            one["window_end"] / DAY, found, color=COLOURS["RL"], lw=1.3, label="found"
        )
        total = int(one["starts_new"].sum())
        title = f"{kind}: {total:,} new starting points"
        plain(axes, title, "days", "URL, by discovery")
        axes.set_ylim(0, max(highest, float(found[-1])))
        key(axes, loc="upper left")
    for axes in panels[1:]:
        axes.set_ylabel("")
    bar = figure.colorbar(drawn, ax=list(panels), aspect=30, pad=0.01)
    bar.set_label("new starting points", size=8.5, color=INK)
    bar.ax.tick_params(labelsize=8, colors=INK)
    return figure
