"""What is kept of a fleet's run: its course as arrays, and its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from gym_webforage import fleet_metrics, metrics
from gym_webforage.fleet_metrics import Birth, Death
from gym_webforage.metrics import HOUR, NOVEL, Events
from gym_webforage.trace import Trace

DAY = 24 * HOUR
WINDOW = 3.0  # hours, as in the papers' figures
SCORE_GRID = 2 * HOUR
GROUND = 48 * HOUR  # the period whose territory is drawn, at the end of a run

Array = np.ndarray
Series = dict[str, Array]


class Run(Protocol):
    """A fleet's run, as `run_fleet` returns it."""

    @property
    def events(self) -> Events:
        """The log."""
        ...

    @property
    def history(self) -> Events:
        """The scores at the end of every slice."""
        ...

    @property
    def births(self) -> Sequence[Birth]:
        """Time, parent and child."""
        ...

    @property
    def deaths(self) -> Sequence[Death]:
        """Time and forager."""
        ...

    @property
    def start(self) -> int:
        """When the run began."""
        ...

    @property
    def end(self) -> int:
        """When it ended."""
        ...


def course(
    run: Run,
    trace: Trace,
    founders: int,
    norms: Sequence[tuple[int, float]] = (),
    hours: float = WINDOW,
) -> Series:
    """Return all that the figures show of a run; times are in ms since its start.

    ``norms`` are lengths of weight vectors, with the times when they were taken;
    ``hours`` is the length of the windows.
    """
    events, start, end = run.events, run.start, run.end
    span = {"start": start, "end": end}
    windows = metrics.windows(events, trace, **span, hours=hours)
    # The last step ends after the budget; what it leaves over is no window of its own.
    whole = windows["end"] - windows["begin"] > 0.1 * hours * HOUR
    whole[0] = True
    found = {f"window_{name}": values[whole] for name, values in windows.items()}
    ends = found["window_end"]
    found["window_population"] = founders + fleet_metrics.population(
        run.births, run.deaths, ends
    )
    found["window_lag_hours"] = _mean_by_window(
        *fleet_metrics.lags(events, trace, since=start), found["window_begin"]
    )
    times, lengths = np.array(norms, np.float64).reshape(-1, 2).T
    found["window_weight_norm"] = _mean_by_window(times, lengths, found["window_begin"])
    for name in ("window_begin", "window_end"):
        found[name] = found[name] - start

    grid = np.arange(start, end + 1, SCORE_GRID)
    found["score_time"] = grid - start
    found["score"] = fleet_metrics.scores(run.history, run.deaths, grid)
    found["births"] = np.array(run.births, np.int64).reshape(-1, 3)
    found["births"][:, 0] -= start
    found["deaths"] = np.array(run.deaths, np.int64).reshape(-1, 2)
    found["deaths"][:, 0] -= start

    path = fleet_metrics.paths(events)
    for name, division in (
        ("exclusive", fleet_metrics.exclusive_urls(events, **span)),
        ("trajectories", fleet_metrics.distinct_trajectories(events, path, **span)),
    ):
        found[f"{name}_time"] = (division.begin + division.end) / 2 - start
        found[f"{name}_total"] = division.total
        found[f"{name}_active"] = division.active
        found[f"{name}_contribution"] = division.contribution
    points = fleet_metrics.starting_points(events, path)
    found["starts_time"] = points["time"] - start
    found["starts_index"], found["starts_new"] = points["index"], points["new"]

    oldest = _oldest_alive(run)
    ground = fleet_metrics.territory(
        events, trace, path, oldest, begin=max(start, end - GROUND), end=end
    )
    found["ground_forager"] = np.array(oldest)
    found |= {f"ground_{name}": values for name, values in ground._asdict().items()}
    return found


def _mean_by_window(times: Array, values: Array, begins: Array) -> Array:
    place = np.searchsorted(begins, times, "left") - 1
    count = np.bincount(place, minlength=len(begins))
    with np.errstate(invalid="ignore"):
        return np.bincount(place, values, minlength=len(begins)) / count


def _oldest_alive(run: Run) -> int:
    dead = {forager for _, forager in run.deaths}
    everyone = np.unique(run.events["forager"]).tolist()
    return next((forager for forager in everyone if forager not in dead), 0)


# --- figures


def figures(
    run: Run, trace: Trace, founders: int, series: Mapping[str, Array]
) -> dict[str, Any]:
    """Return the figures of a whole run."""
    span = {"start": run.start, "end": run.end}
    moments = np.array([run.start, *(time for time, *_ in run.births), run.end])
    population = founders + fleet_metrics.population(run.births, run.deaths, moments)
    score = run.history["score"]
    return {
        "summary": {
            **metrics.summary(run.events, trace, **span, kind="news"),
            "freshness_mean": _mean(series["window_freshness"]),
            "age_hours_mean": _mean(series["window_age_hours"]),
            "freshness_all_mean": _mean(series["window_freshness_all"]),
            "age_hours_all_mean": _mean(series["window_age_hours_all"]),
            "freshness_day_mean": _mean(series["window_freshness_day"]),
            "age_hours_day_mean": _mean(series["window_age_hours_day"]),
            **fleet_metrics.summary(run.events, **span),
        },
        "population": {
            "most": int(population.max()),
            "last": int(population[-1]),
            "births": len(run.births),
            "deaths": len(run.deaths),
            "days_to_most": float(moments[population.argmax()] - run.start) / DAY,
            "lowest_score": float(score.min()) if len(score) else None,
        },
        "peaks": peaks(series),
        "halves": halves(run, trace),
    }


def _mean(values: Array) -> float | None:
    there = values[np.isfinite(values)]
    return float(there.mean()) if len(there) else None


def peaks(series: Mapping[str, Array]) -> dict[str, float | None]:
    """Measure the peaks of the download efficiency in windows of three hours.

    The first day is left out, when a backlog is there for the taking.

    Returns:
        ``more``: peaks a day, windows above both neighbours and above 1.5 times the
        median. ``higher``: the mean of the highest twentieth of the windows over the
        median. ``sharper``: the mean change from window to window over the mean.
    """
    later = series["window_begin"] >= DAY
    values = series["window_download_efficiency"][later]
    values = values[np.isfinite(values)]
    middle = float(np.median(values)) if len(values) else 0.0
    if len(values) < 3 or middle <= 0:
        return {"more": None, "higher": None, "sharper": None}
    inner = values[1:-1]
    is_peak = (inner > values[:-2]) & (inner > values[2:]) & (inner > 1.5 * middle)
    top = np.sort(values)[-max(1, len(values) // 20) :]
    return {
        "more": float(is_peak.sum()) / (len(values) * WINDOW / 24),
        "higher": float(top.mean()) / middle,
        "sharper": float(np.abs(np.diff(values)).mean() / values.mean()),
    }


def halves(run: Run, trace: Trace) -> dict[str, dict[str, float | None]]:
    """Compare the first half of a run with the second, the two weeks of the paper.

    The first seventh of either half is left out: at the start a backlog is there for
    the taking, and so the same days of the week are compared.
    """
    half = (run.end - run.start) // 2
    events = run.events
    judged = metrics.step_end(events)
    found_time, lag = fleet_metrics.lags(events, trace, since=run.start)
    _, known = fleet_metrics.discoveries(events)
    answer = {}
    for name, begin in (("first", run.start), ("second", run.start + half)):
        low, high = begin + half // 7, begin + half

        def inside(times: Array, low: int = low, high: int = high) -> Array:
            return (times > low) & (times <= high)

        flags = events["flags"][inside(judged)]
        part = {"flags": flags, "url": flags}
        relevant = metrics.count(part, NOVEL)
        answer[name] = {
            "download_efficiency": _ratio(relevant, metrics.downloaded(part)),
            "sent_efficiency": _ratio(relevant, metrics.count(part, metrics.SENT)),
            "lag_hours": _mean(lag[inside(found_time)]),
            "new_urls_a_day": float(inside(known).sum()) / ((high - low) / DAY),
        }
    return answer


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
