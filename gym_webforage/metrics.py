"""What a crawl achieved: pure functions on its event log.

A log (``env.unwrapped.events()``, ``World.events()``) has a row for each fetch, in
order, with the columns ``time`` (end of the fetch, ms), ``url``, ``version`` (-1 for
none), ``step``, ``forager``, ``flags`` and ``value`` (what it paid). The flags are sums
of `VISITED` (chosen, not fetched along), `SENT` (handed to the judge), `NOVEL` (judged
relevant, and found by nobody before), `DEAD` (yielded nothing) and `ILLEGAL` (no fetch,
but it cost one). Several foragers share one log, and what any of them found counts.

======================  =============================================================
fetches                 rows of the log: what the budget counts, illegal ones included
downloaded              fetches that yielded a page or redirect
sent                    documents handed to the judge (News)
relevant                documents judged relevant that nobody had found before
found URLs              distinct URLs downloaded
relevant URLs           distinct URLs of relevant documents
download efficiency     relevant / downloaded
sent efficiency         relevant / sent
relative found URL      found URLs / downloaded
freshness               share of the found relevant documents that are current: their
                        content is what the URL shows at that time
age                     0 for a current document, else the time since the URL last
                        changed; mean over the found relevant documents, in hours
novelty lag             from a document's publication to its first sending, in hours
harvest rate            relevant / fetches; compare it at equal budgets only
recall                  relevant / all relevant documents that exist
area                    mean, over the fetches of the budget, of the recall so far
fetches to x            fetches until x % of all relevant documents were found
======================  =============================================================

Freshness and age are over the newest found version of each URL; those ending in ``all``
are over every version ever found, which sinks towards 0 on pages that keep changing,
and those ending in ``day`` (windows only) over versions published in the last 24 hours.
A document is found when it is sent, at the end of its step.

Reference: Zs. Palotai, Cs. Farkas, A. Lőrincz, "Selection in scale-free small world",
Table 1. Found URLs exceed the relevant documents tenfold there, so all downloaded URLs
are meant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from gym_webforage.trace.trace import Trace
    from gym_webforage.world.topic import Similarity, Topic

Array = np.ndarray
Events = Mapping[str, Array]
Kind = Literal["news", "topic", "spider"]

VISITED, SENT, NOVEL, DEAD, ILLEGAL = 1, 2, 4, 8, 16
HOUR = 3_600_000  # milliseconds
SHARES = (10, 25, 50, 75, 100)  # per cent of the targets


def summary(
    events: Events,
    trace: Trace,
    *,
    start: int,
    end: int,
    kind: Kind,
    total_relevant: int | None = None,
    budget: int | None = None,
) -> dict[str, float | int | None]:
    """Return all metrics of a whole run; None where one has no meaning.

    Args:
        events: The log.
        trace: What was crawled.
        start: The clock at the run's start, in milliseconds.
        end: The clock at its end, when freshness and age are taken.
        kind: The rules' kind; only News has sent documents, ages and lags.
        total_relevant: How many relevant documents exist, for recall and what
            depends on it; see `count_relevant`.
        budget: Fetches that the run was allowed, where it may have ended early;
            the harvest rate and the area count those not used.
    """
    is_news = kind == "news"
    lag = novelty_lag(events, trace) / HOUR if is_news else np.zeros(0)
    newest = freshness(events, trace, end) if is_news else (None, None)
    every = freshness(events, trace, end, every=True) if is_news else (None, None)
    found: dict[str, float | int | None] = {
        "hours": (end - start) / HOUR,
        "foragers": len(np.unique(events["forager"])),
        "steps": len(np.unique(_step_key(events))),
        "fetches": len(events["url"]),
        "downloaded": downloaded(events),
        "dead": count(events, DEAD),
        "illegal": count(events, ILLEGAL),
        "sent": count(events, SENT),
        "relevant": count(events, NOVEL),
        "found_urls": found_urls(events),
        "relevant_urls": relevant_urls(events),
        "reward": reward(events),
        "download_efficiency": _ratio(count(events, NOVEL), downloaded(events)),
        "sent_efficiency": _ratio(count(events, NOVEL), count(events, SENT)),
        "relative_found_url": _ratio(found_urls(events), downloaded(events)),
        "freshness": newest[0],
        "age_hours": newest[1],
        "freshness_all": every[0],
        "age_hours_all": every[1],
        "novelty_lag_hours": float(lag.mean()) if len(lag) else None,
        "novelty_lag_median_hours": float(np.median(lag)) if len(lag) else None,
        "harvest_rate": harvest_rate(events, budget),
        "recall": recall(events, total_relevant),
        "area": area(events, total_relevant, budget),
    }
    for share in SHARES:
        found[f"fetches_to_{share}"] = fetches_to(events, total_relevant, share)
    return found


def windows(
    events: Events, trace: Trace, *, start: int, end: int, hours: float = 3
) -> dict[str, Array]:
    """Return the metrics in windows of time, one entry a window; NaN for 0 / 0.

    A window includes its end, not its begin, and the last one may be shorter. Found
    URLs are those first downloaded in the window, so that they add up. Freshness and
    age are those of all that was found by the window's end.
    """
    if not hours > 0:
        raise ValueError(f"hours is {hours!r}, expected a positive number")
    length = max(1, round(hours * HOUR))
    number = max(1, -(-(end - start) // length))
    begins = start + length * np.arange(number)
    ends = np.minimum(begins + length, end)

    def per_window(times: Array, values: Array | None = None) -> Array:
        inside = (times > start) & (times <= end)
        place = (times[inside] - start - 1) // length
        weights = None if values is None else values[inside]
        return np.bincount(place, weights, number)

    flags, times, judged = events["flags"], events["time"], step_end(events)
    alive = np.flatnonzero(flags & (DEAD | ILLEGAL) == 0)
    order = alive[np.argsort(times[alive], kind="stable")]
    first = order[np.unique(events["url"][order], return_index=True)[1]]
    found: dict[str, Array] = {
        "begin": begins,
        "end": ends,
        "downloaded": per_window(times[alive]),
        "dead": per_window(times[flags & DEAD > 0]),
        "illegal": per_window(times[flags & ILLEGAL > 0]),
        "sent": per_window(judged[flags & SENT > 0]),
        "relevant": per_window(judged[flags & NOVEL > 0]),
        "found_urls": per_window(times[first]),
        "reward": per_window(judged, events["value"].astype(np.float64)),
    }
    with np.errstate(invalid="ignore", divide="ignore"):
        found["download_efficiency"] = found["relevant"] / found["downloaded"]
        found["sent_efficiency"] = found["relevant"] / found["sent"]
        found["relative_found_url"] = found["found_urls"] / found["downloaded"]
    held = finds(events)
    for ending, every, younger in (
        ("", False, None),
        ("_all", True, None),
        ("_day", True, 24 * HOUR),
    ):
        both = [_freshness(trace, *held, int(time), every, younger) for time in ends]
        for name, values in zip(
            ("freshness", "age_hours"), zip(*both, strict=True), strict=True
        ):
            found[name + ending] = np.array(values, np.float64)  # None becomes NaN
    return found


# --- counts


def count(events: Events, flag: int) -> int:
    """Return how many events carry a flag."""
    return int(np.count_nonzero(events["flags"] & flag))


def downloaded(events: Events) -> int:
    """Return how many fetches yielded something."""
    return len(events["url"]) - count(events, DEAD | ILLEGAL)


def found_urls(events: Events) -> int:
    """Return how many different URLs were downloaded."""
    return len(np.unique(events["url"][events["flags"] & (DEAD | ILLEGAL) == 0]))


def relevant_urls(events: Events) -> int:
    """Return how many different URLs the relevant documents have."""
    return len(np.unique(events["url"][events["flags"] & NOVEL > 0]))


def reward(events: Events) -> float:
    """Return the sum of all that was paid."""
    return float(events["value"].sum(dtype=np.float64))


# --- time


def step_end(events: Events) -> Array:
    """Return for each event when its step ended, which is when it was judged."""
    _, step = np.unique(_step_key(events), return_inverse=True)
    ends = np.zeros(step.max(initial=-1) + 1, np.int64)
    np.maximum.at(ends, step, events["time"])
    return ends[step]


def freshness(
    events: Events,
    trace: Trace,
    time: int,
    *,
    every: bool = False,
    younger: int | None = None,
) -> tuple[float | None, float | None]:
    """Return freshness and mean age in hours, at ``time``, of what was found by then.

    Over the newest found version of each URL or, with ``every``, over all versions
    found; with ``younger`` only of documents published less than so many milliseconds
    ago. Both are None while nothing is found.
    """
    return _freshness(trace, *finds(events), time, every, younger)


def finds(events: Events) -> tuple[Array, Array]:
    """Return the versions of the relevant documents, and when each was found."""
    there = events["flags"] & NOVEL > 0
    return events["version"][there], step_end(events)[there]


def _freshness(
    trace: Trace,
    versions: Array,
    found_at: Array,
    time: int,
    every: bool,
    younger: int | None,
) -> tuple[float | None, float | None]:
    held = np.unique(versions[found_at <= time])  # in order of URL, then of time
    if younger is not None:
        held = held[trace.version_published[held] > time - younger]
    if not every:
        url = trace.version_url[held]
        held = held[np.append(url[1:] != url[:-1], True)[: len(held)]]
    if not len(held):
        return None, None
    shown = shown_versions(trace, trace.version_url[held], time)
    content = trace.version_hash
    # A page may go back to what it showed before. 0 stands for an unknown content.
    same = (content[held] == content[shown]) & (content[held] != 0)
    obsolete = (held != shown) & ~same
    age = np.where(obsolete, time - trace.version_seen[shown], 0)
    return 1 - float(obsolete.mean()), float(age.mean()) / HOUR


def shown_versions(trace: Trace, urls: Array, time: int) -> Array:
    """Return the version that each URL shows at ``time``, -1 where there is none."""
    low = trace.version_start[urls].astype(np.int64)
    high = trace.version_start[np.asarray(urls) + 1].astype(np.int64)
    begin = low.copy()
    last = max(0, len(trace.version_seen) - 1)
    while np.any(low < high):
        middle = (low + high) // 2
        seen = (low < high) & (trace.version_seen[np.minimum(middle, last)] <= time)
        high = np.where(seen, high, np.minimum(middle, high))
        low = np.where(seen, middle + 1, low)
    return np.where(low > begin, low - 1, -1)


def novelty_lag(events: Events, trace: Trace) -> Array:
    """Return for each relevant document the time from publication to sending, in ms."""
    versions, found_at = finds(events)
    return found_at - trace.version_published[versions]


# --- targets against fetches


def count_relevant(
    trace: Trace,
    *,
    kind: Kind,
    time: int,
    site: int = -1,
    topic: Topic | None = None,
    threshold: float = 0.0,
    by_label: bool = False,
    similarity: Similarity = "tfidf",
) -> int | None:
    """Return how many pages are relevant at ``time``, reachable or not.

    None for News, where what is relevant depends on when it is found. The arguments
    are those of a world: ``site`` -1 stands for all, ``by_label`` for
    ``relevance="label"``; ``similarity`` is which one the judge takes.
    """
    if kind == "news":
        return None
    urls = np.arange(len(trace.urls))
    urls = urls[(site < 0) | (trace.url_site == site)]
    version = shown_versions(trace, urls, time)
    urls, version = urls[version >= 0], version[version >= 0]
    status = trace.version_status[version]
    is_page = (status >= 200) & (status < 300)
    urls, version = urls[is_page], version[is_page]
    if kind == "spider":
        return int(np.count_nonzero(trace.url_target[urls]))
    if topic is None:
        raise ValueError("topic is None, expected what the pages are relevant to")
    if by_label and topic.label >= 0:
        return int(np.isin(urls, trace.labelled(topic.label)).sum())
    from gym_webforage.world.topic import text_similarities

    text = trace.version_text[version]
    found = text_similarities(trace, topic, similarity)[text[text >= 0]]
    return int(np.count_nonzero((found > 0) & (found >= threshold)))


def targets_curve(events: Events) -> Array:
    """Return the relevant documents found after 0, 1, 2, ... fetches."""
    found = events["flags"][_by_time(events)] & NOVEL > 0
    return np.concatenate([[0], np.cumsum(found)])


def reward_curve(events: Events) -> Array:
    """Return the reward so far after 0, 1, 2, ... fetches."""
    paid = events["value"][_by_time(events)].astype(np.float64)
    return np.concatenate([[0.0], np.cumsum(paid)])


def harvest_rate(events: Events, budget: int | None = None) -> float | None:
    """Return relevant documents a fetch, over the first ``budget`` fetches or all."""
    curve = targets_curve(events)
    budget = len(curve) - 1 if budget is None else budget
    return _ratio(int(curve[min(budget, len(curve) - 1)]), budget)


def recall(events: Events, total: int | None) -> float | None:
    """Return the share found of the ``total`` relevant documents that exist."""
    return None if total is None else _ratio(count(events, NOVEL), total)


def area(events: Events, total: int | None, budget: int | None = None) -> float | None:
    """Return the area under the curve of recall against the share of the budget.

    From 0 to 1. A run that ended early keeps its last recall; fetches beyond the
    budget do not count.
    """
    curve = targets_curve(events)[1:]
    budget = len(curve) if budget is None else budget
    if not total or not budget:
        return None
    last = int(curve[-1]) if len(curve) else 0
    unused = max(0, budget - len(curve))
    return float(curve[:budget].sum() + last * unused) / (total * budget)


def fetches_to(events: Events, total: int | None, share: float) -> int | None:
    """Return how many fetches it took to find ``share`` per cent of ``total``.

    None if so many were never found.
    """
    if not total:
        return None
    curve = targets_curve(events)
    needed = math.ceil(total * share / 100)
    return int(np.searchsorted(curve, needed)) if curve[-1] >= needed else None


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _step_key(events: Events) -> Array:
    return (events["forager"].astype(np.int64) << 32) | events["step"]


def _by_time(events: Events) -> Array:
    return np.argsort(events["time"], kind="stable")
