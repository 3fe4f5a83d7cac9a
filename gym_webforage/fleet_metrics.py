"""How a fleet divides its work: pure functions on its event log and its history.

The log is that of `gym_webforage.metrics`; foragers are numbered by birth. What a fleet
adds to a log is its *history*, a row for each slice of time with the columns ``time``
(the slice's end, ms), ``forager`` and ``score``, and who was born and who died when.

========================  ===========================================================
population                foragers alive, over time
scores                    each forager's score, over time
exclusive URLs            share, of the different URLs visited in a window of time, of
                          those that one forager alone visited, and whose they are
distinct trajectories     the same of two-step trajectories (three visits in a row in
                          one path) among those that start from a URL from which
                          another forager starts one as well, in the same window
new starting points       starts of paths at URLs that nobody started from before
territory                 the URLs that a forager visited in a period, the links among
                          them, and how it went from one to the other
========================  ===========================================================

In a window that is shorter than a round of the fleet some foragers have no turn, and a
random walk may visit URLs of its own as well: look at the number of active foragers and
at a random fleet beside these shares.

References: Zs. Palotai, S. Mandusitz, A. Lőrincz, "Computer study of the evolution of
'news foragers' on the Internet", Figures 3 to 6.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gym_webforage.metrics import DEAD, HOUR, ILLEGAL, NOVEL, VISITED, Events, finds

if TYPE_CHECKING:
    from gym_webforage.trace.trace import Trace

Array = np.ndarray
Birth = tuple[int, int, int]  # time, parent, child
Death = tuple[int, int]  # time, forager

MINUTES = 75.0  # the paper's windows
PATH_LENGTH = 101  # visits: the start, then 100 steps


class Division(NamedTuple):
    """How much of something belonged to one forager alone, by window of time."""

    begin: Array
    end: Array
    total: Array  # different things in the window
    single: Array  # (windows, foragers): those of this forager alone
    active: Array  # foragers that visited anything

    @property
    def share(self) -> Array:
        """The share that belonged to one forager alone, NaN where there is nothing."""
        return self.contribution.sum(axis=1)

    @property
    def contribution(self) -> Array:
        """Each forager's part of that share, (windows, foragers)."""
        with np.errstate(invalid="ignore"):
            return self.single / self.total[:, None]

    @property
    def mean(self) -> float | None:
        """The mean share over the windows in which at least two foragers worked."""
        shared = self.share[(self.active > 1) & (self.total > 0)]
        return float(shared.mean()) if len(shared) else None


def summary(
    events: Events, *, start: int, end: int, path_length: int = PATH_LENGTH
) -> dict[str, float | int | None]:
    """Return how a run divided its work, one number for each measure.

    Shares are means over windows of 75 minutes; those ending in ``run`` take the whole
    run as one window.
    """
    path = paths(events, path_length)
    whole = (end - start) / 60_000
    urls = exclusive_urls(events, start=start, end=end)
    steps = distinct_trajectories(events, path, start=start, end=end)
    all_urls = exclusive_urls(events, start=start, end=end, minutes=whole)
    all_steps = distinct_trajectories(events, path, start=start, end=end, minutes=whole)
    return {
        "paths": int(path.max(initial=-1)) + 1,
        "new_starts": int(np.count_nonzero(starting_points(events, path)["new"])),
        "exclusive_urls": urls.mean,
        "exclusive_urls_run": all_urls.mean,
        "distinct_trajectories": steps.mean,
        "distinct_trajectories_run": all_steps.mean,
    }


# --- population


def population(births: Iterable[Birth], deaths: Iterable[Death], times: Array) -> Array:
    """Return how many foragers have come to live by each of ``times``, net of deaths.

    Founders are not counted: add their number.
    """
    born = np.sort(np.array([birth[0] for birth in births], np.int64))
    died = np.sort(np.array([death[0] for death in deaths], np.int64))
    return np.searchsorted(born, times, "right") - np.searchsorted(died, times, "right")


def scores(history: Events, deaths: Iterable[Death], times: Array) -> Array:
    """Return each forager's score as of its last slice by each of ``times``.

    Shape (foragers, times), NaN before a forager's first slice and after its death.
    """
    foragers = int(history["forager"].max(initial=-1)) + 1
    found = np.full((foragers, len(times)), np.nan)
    for forager in range(foragers):
        own = np.flatnonzero(history["forager"] == forager)
        last = np.searchsorted(history["time"][own], times, "right") - 1
        seen = last >= 0
        found[forager, seen] = history["score"][own[last[seen]]]
    for time, forager in deaths:
        if forager < foragers:
            found[forager, times >= time] = np.nan
    return found


# --- paths


def paths(events: Events, path_length: int = PATH_LENGTH) -> Array:
    """Return for each visit (row flagged so, in order of the log) its path's number.

    The log does not say where paths begin, but the rules do: a path ends with its last
    visit, or when every page that it has met and found alive is visited.
    """
    flags = events["flags"]
    rows = np.flatnonzero(flags & (DEAD | ILLEGAL) == 0)
    rows = np.union1d(rows, np.flatnonzero(flags & VISITED))  # a dead visit is one too
    rows = rows[np.argsort(events["forager"][rows], kind="stable")]
    columns = (events["forager"][rows], events["url"][rows], flags[rows] & VISITED)
    number, start, visits, who = -1, -1, 0, -1
    met: set[int] = set()  # in this path, its start aside
    found: list[int] = []
    for forager, url, visited in zip(*(c.tolist() for c in columns), strict=True):
        if visited:
            if who != forager or visits == path_length or len(met) < visits:
                number, start, visits, who = number + 1, url, 0, forager
                met = set()
            visits += 1
            found.append(number)
        elif url != start:
            met.add(url)
    # Paths were counted forager by forager; number them by their place in the log.
    there = rows[flags[rows] & VISITED > 0]
    by_log = np.argsort(there, kind="stable")
    number_of = np.array(found, np.int64)[by_log]
    _, first, place = np.unique(number_of, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first, kind="stable"), kind="stable")[place]


def starting_points(events: Events, path: Array) -> dict[str, Array]:
    """Return where paths began, in order of time; ``path`` is what `paths` returns.

    Columns: ``time``, ``forager``, ``url``, ``new`` (nobody started from it before) and
    ``index``, the URL's place in the order in which the fleet first downloaded URLs
    (-1: it was never alive).
    """
    visits = np.flatnonzero(events["flags"] & VISITED)
    first = visits[np.unique(path, return_index=True)[1]]
    first = first[np.argsort(events["time"][first], kind="stable")]
    url = events["url"][first]
    index = np.full(int(events["url"].max(initial=-1)) + 1, -1, np.int64)
    found = discoveries(events)[0]
    index[found] = np.arange(len(found))
    new = np.zeros(len(url), bool)
    new[np.unique(url, return_index=True)[1]] = True
    return {
        "time": events["time"][first],
        "forager": events["forager"][first],
        "url": url,
        "new": new,
        "index": index[url],
    }


def discoveries(events: Events) -> tuple[Array, Array]:
    """Return the different URLs downloaded and when each was first, in that order."""
    alive = np.flatnonzero(events["flags"] & (DEAD | ILLEGAL) == 0)
    order = alive[np.argsort(events["time"][alive], kind="stable")]
    first = order[np.sort(np.unique(events["url"][order], return_index=True)[1])]
    return events["url"][first], events["time"][first]


# --- division of work


def exclusive_urls(
    events: Events, *, start: int, end: int, minutes: float = MINUTES
) -> Division:
    """Return, by window, which of the visited URLs one forager alone visited."""
    rows = np.flatnonzero(events["flags"] & VISITED)
    url = events["url"][rows].astype(np.int64)
    time, forager = events["time"][rows], events["forager"][rows]
    window = _window(time, start, end, minutes)
    kept = window >= 0
    return _division(
        events, start, end, minutes, window[kept], url[kept], forager[kept]
    )


def distinct_trajectories(
    events: Events, path: Array, *, start: int, end: int, minutes: float = MINUTES
) -> Division:
    """Return, by window, which two-step trajectories one forager alone took.

    Only those count that start from a URL from which another forager starts one in the
    same window. All three visits must fall into it. ``path`` is what `paths` returns.
    """
    rows = np.flatnonzero(events["flags"] & VISITED)
    order = np.lexsort((np.arange(len(rows)), path))
    rows, path = rows[order], path[order]
    window = _window(events["time"][rows], start, end, minutes)
    one, three = slice(0, max(0, len(rows) - 2)), slice(2, None)
    whole = (path[one] == path[three]) & (window[one] == window[three])
    first = np.flatnonzero(whole & (window[one] >= 0))
    url = events["url"][rows].astype(np.int64)
    forager, window = events["forager"][rows][first], window[first]
    # Three URLs do not fit one integer; the last two get a number instead.
    _, step = np.unique((url[first + 1] << 32) | url[first + 2], return_inverse=True)
    origin = url[first]
    _, trajectory = np.unique((origin << 32) | step, return_inverse=True)

    shared = _owners(window, origin, forager) > 1
    return _division(
        events,
        start,
        end,
        minutes,
        window[shared],
        trajectory[shared].astype(np.int64),
        forager[shared],
    )


def _division(
    events: Events,
    start: int,
    end: int,
    minutes: float,
    window: Array,
    thing: Array,
    forager: Array,
) -> Division:
    """Count the different things of each window, and those of one forager alone."""
    length = _length(minutes)
    number = max(1, -(-(end - start) // length))
    foragers = int(events["forager"].max(initial=-1)) + 1
    begin = start + length * np.arange(number)
    _, first = np.unique((window << 32) | thing, return_index=True)
    total = np.bincount(window[first], minlength=number)
    alone = first[_owners(window, thing, forager)[first] == 1]
    single = np.bincount(
        window[alone] * foragers + forager[alone], minlength=number * foragers
    )
    visits = np.flatnonzero(events["flags"] & VISITED)
    at = _window(events["time"][visits], start, end, minutes)
    present = np.unique(at[at >= 0] * foragers + events["forager"][visits][at >= 0])
    return Division(
        begin,
        np.minimum(begin + length, end),
        total,
        single.reshape(number, foragers),
        np.bincount(present // max(1, foragers), minlength=number),
    )


def _owners(window: Array, thing: Array, forager: Array) -> Array:
    """Return for each entry how many foragers have its thing in its window."""
    _, key = np.unique((window << 32) | thing, return_inverse=True)
    held = np.unique((key << 32) | forager)
    count = np.bincount(held >> 32, minlength=key.max(initial=-1) + 1)
    return count[key]


def _window(time: Array, start: int, end: int, minutes: float) -> Array:
    """Return the number of the window that each time falls into, -1 outside the run.

    A window includes its end, not its begin, as those of `metrics.windows`.
    """
    inside = (time > start) & (time <= end)
    return np.where(inside, (time - start - 1) // _length(minutes), -1)


def _length(minutes: float) -> int:
    if not minutes >= 0:
        raise ValueError(f"minutes is {minutes!r}, expected a positive number")
    return max(1, round(minutes * 60_000))


# --- territory


class Ground(NamedTuple):
    """Where a forager was in some period."""

    url: Array  # different URLs visited, in order of the first visit
    visits: Array  # of each
    paid: Array  # novel documents that visits of each brought
    links: Array  # (n, 2): links among them, as places in `url`
    moves: Array  # (m, 2): steps within a path from one to the next
    starts: Array  # places of the URLs at which paths began


def territory(
    events: Events,
    trace: Trace,
    path: Array,
    forager: int,
    *,
    begin: int,
    end: int,
) -> Ground:
    """Return where a forager was from ``begin`` on until ``end``.

    Links are those of the versions that it visited. ``path`` is what `paths` returns.
    """
    flags, time = events["flags"], events["time"]
    visits = np.flatnonzero(flags & VISITED)
    mine = events["forager"][visits] == forager
    mine &= (time[visits] > begin) & (time[visits] <= end)
    own, path = visits[mine], path[mine]
    known, first, place = np.unique(
        events["url"][own], return_index=True, return_inverse=True
    )
    rank = np.argsort(np.argsort(first))
    url, place = known[np.argsort(first)], rank[place]
    step = events["step"]
    rows = np.flatnonzero((events["forager"] == forager) & (flags & NOVEL > 0))
    # A forager's visits are in order of its steps.
    at = np.searchsorted(step[own], step[rows])
    at, rows = at[at < len(own)], rows[at < len(own)]
    paid = np.bincount(place[at[step[own][at] == step[rows]]], minlength=len(url))

    version = np.unique(events["version"][own])
    version = version[version >= 0]
    links: list[Array] = [np.zeros((0, 2), np.int64)]
    where = np.full(len(trace.urls), -1, np.int64)
    where[url] = np.arange(len(url))
    for one in version.tolist():
        target = where[trace.links_of(one)]
        target = target[target >= 0]
        source = np.full(len(target), where[trace.version_url[one]])
        links.append(np.column_stack([source, target]))
    linked = np.unique(np.concatenate(links), axis=0)
    follows = path[1:] == path[:-1]
    moves = np.column_stack([place[:-1], place[1:]])[follows]
    starts = np.unique(place[np.append(True, ~follows)[: len(place)]])
    return Ground(
        url,
        np.bincount(place, minlength=len(url)),
        paid,
        linked[linked[:, 0] != linked[:, 1]],
        moves,
        starts,
    )


# --- lag


def lags(events: Events, trace: Trace, *, since: int) -> tuple[Array, Array]:
    """Return when relevant documents were found, and hours since their publication.

    Of documents published before ``since`` a crawl that began then cannot be in time,
    so they are left out.
    """
    versions, time = finds(events)
    published = trace.version_published[versions]
    own = published >= since
    return time[own], (time - published)[own] / HOUR
