"""What kind of network a trace is: power laws, clustering, path lengths, and a control.

Everything here is about the graph of distinct links between different URLs, over the
whole recording or as it is visible at one time.

References: A. Clauset, C. R. Shalizi, M. E. J. Newman, "Power-law distributions in
empirical data", for the exponents; D. J. Watts, S. H. Strogatz, "Collective dynamics of
'small-world' networks", for the clustering coefficient.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array
from scipy.special import zeta

from gym_webforage.trace.trace import Trace, frozen

if TYPE_CHECKING:
    import networkx as nx

Array = np.ndarray

SWEEPS = 20  # of rewiring: how often each link is offered an exchange
LEAST_TAIL = 50  # degrees from which a lower end of a power law may be judged
MOST_CANDIDATES = 60  # for that lower end

_BITS = 64  # searches that share the bits of one number


def structure(
    trace: Trace, *, time: int | None = None, sample: int | None = None, seed: int = 0
) -> dict[str, float | int | bool]:
    """Measure the graph of distinct links.

    Args:
        trace: The recording.
        time: Count only the page versions visible then; without it, all of them.
        sample: Number of pages from which paths are searched, and a sixteenth of the
            number whose clustering is computed. Without it, as many as take about a
            second on a large graph; a small one is measured completely.
        seed: Of the sample.

    Returns:
        Numbers of nodes and links; exponents of out- and in-degree by maximum
        likelihood, with the degree from which they hold (all pages with links for the
        out-degree, the best fit for the in-degree), and by least squares on the
        log-log histogram; mean local clustering of the undirected graph; mean directed
        path length over connected pairs and the longest one found; whether the last
        three come from a sample, and its size.
    """
    source, target = distinct_links(trace, time)
    between = source != target
    nodes = nodes_of(trace, time)
    place = np.zeros(len(trace.urls), np.int32)
    place[nodes] = np.arange(len(nodes))
    source, target = place[source[between]], place[target[between]]
    count = len(nodes)
    figures: dict[str, float | int | bool] = {"nodes": count, "links": len(source)}
    for side, ends, least in (("out", source, 1), ("in", target, None)):
        degrees = np.bincount(ends, minlength=count)
        exponent, lower = power_law(degrees, least)
        figures[f"{side} exponent"] = exponent
        figures[f"{side} exponent from degree"] = lower
        figures[f"{side} exponent by least squares"] = least_squares(degrees)
    if sample is None:
        sample = max(_BITS, 200_000_000 // max(1, len(source)) // _BITS * _BITS)
    if sample < 1:
        raise ValueError(f"sample must be at least 1, not {sample}")
    rng = np.random.default_rng(seed)
    order = rng.permutation(count)
    figures["clustering"] = _clustering(source, target, count, order[: 16 * sample])
    mean, longest = _paths(source, target, count, order[:sample])
    figures["mean path"] = mean
    figures["diameter"] = longest
    figures["sampled"] = sample < count
    figures["sample"] = min(sample, count)
    return figures


def distinct_links(trace: Trace, time: int | None = None) -> tuple[Array, Array]:
    """Return source and target of each different link, sorted."""
    version = np.repeat(np.arange(len(trace.version_seen)), np.diff(trace.link_start))
    target = trace.link_target
    if time is not None:
        there = visible(trace, time)[version]
        version, target = version[there], target[there]
    key = _distinct((trace.version_url[version].astype(np.int64) << 32) | target)
    return key >> 32, key & 0xFFFFFFFF


def _distinct(keys: Array) -> Array:
    """Sort and drop repetitions, on millions of keys much faster than np.unique."""
    keys = np.sort(keys)
    return keys[np.diff(keys, prepend=-1) != 0]


def visible(trace: Trace, time: int) -> Array:
    """Return for each version whether it is the one that its URL shows at ``time``."""
    seen = trace.version_seen <= time
    replaced = np.zeros(len(seen), bool)
    same = trace.version_url[1:] == trace.version_url[:-1]
    replaced[:-1] = same & seen[1:]
    return seen & ~replaced


def nodes_of(trace: Trace, time: int | None = None) -> Array:
    """Return the URLs that show a page or are linked from one."""
    there = np.zeros(len(trace.urls), bool)
    if time is None:
        there[trace.version_url] = True
        there[trace.link_target] = True
    else:
        shown = visible(trace, time)
        there[trace.version_url[shown]] = True
        there[distinct_links(trace, time)[1]] = True
    return np.flatnonzero(there)


def to_networkx(trace: Trace, time: int | None = None) -> nx.DiGraph:
    """Return the graph of URLs: nodes are URL ids, edges the distinct links."""
    import networkx as nx

    graph = nx.DiGraph(name=trace.name)
    for node in nodes_of(trace, time).tolist():
        low, high = trace.url_label_start[node], trace.url_label_start[node + 1]
        graph.add_node(
            node,
            url=trace.urls[node],
            site=trace.sites[int(trace.url_site[node])],
            target=bool(trace.url_target[node]),
            labels=[trace.labels[label] for label in trace.url_label[low:high]],
        )
    source, target = distinct_links(trace, time)
    graph.add_edges_from(zip(source.tolist(), target.tolist(), strict=True))
    return graph


# --- power laws


def power_law(degrees: Array, least: int | None = None) -> tuple[float, int]:
    """Fit P(k) ~ k^-exponent to the degrees from ``least`` on.

    The exponent is the exact discrete maximum of the likelihood. Without ``least`` the
    lower end is the one with the smallest Kolmogorov-Smirnov distance. Returns the
    exponent, 0 where there is nothing to fit, and the lower end.
    """
    values, counts = np.unique(degrees[degrees > 0], return_counts=True)
    if least is not None:
        kept = values >= least
        return _likeliest(values[kept], counts[kept], least), least
    tails = counts[::-1].cumsum()[::-1]
    candidates = values[tails >= min(LEAST_TAIL, tails[0] if len(tails) else 0)]
    if not len(candidates):
        return 0.0, 1
    spread = np.geomspace(1, len(candidates), MOST_CANDIDATES).astype(int) - 1
    best = (np.inf, 0.0, 1)
    for lower in candidates[np.unique(spread)].tolist():
        kept = values >= lower
        exponent = _likeliest(values[kept], counts[kept], lower)
        if exponent:
            distance = _distance(values[kept], counts[kept], lower, exponent)
            best = min(best, (distance, exponent, lower))
    return best[1], best[2]


def _likeliest(values: Array, counts: Array, least: int) -> float:
    if len(values) < 2:
        return 0.0
    mean_log = float(np.average(np.log(values), weights=counts))
    found = minimize_scalar(
        lambda exponent: np.log(zeta(exponent, least)) + exponent * mean_log,
        bounds=(1.0001, 20),
        method="bounded",
    )
    return float(found.x)


def _distance(values: Array, counts: Array, least: int, exponent: float) -> float:
    found = np.cumsum(counts) / counts.sum()
    expected = 1 - zeta(exponent, values + 1) / zeta(exponent, least)
    return float(np.abs(found - expected).max())


def least_squares(degrees: Array) -> float:
    """Fit a straight line to the log-log histogram and return minus its slope."""
    values, counts = np.unique(degrees[degrees > 0], return_counts=True)
    if len(values) < 2:
        return 0.0
    return -float(np.polyfit(np.log(values), np.log(counts), 1)[0])


# --- clustering and paths


def _clustering(source: Array, target: Array, count: int, nodes: Array) -> float:
    """Return the mean local clustering coefficient of ``nodes``."""
    if not len(source):
        return 0.0
    low, high = np.minimum(source, target), np.maximum(source, target)
    key = _distinct(low.astype(np.int64) * count + high)
    low, high = key // count, key % count
    ends = np.concatenate([low, high]), np.concatenate([high, low])
    graph = csr_array((np.ones(2 * len(key), np.int32), ends), shape=(count, count))
    degree = np.diff(graph.indptr)
    total = 0.0
    for begin in range(0, len(nodes), 512):  # the product of all would be too large
        some = nodes[begin : begin + 512]
        rows = graph[some]
        closed = (rows @ graph).multiply(rows).sum(axis=1)
        pairs = degree[some] * (degree[some] - 1.0)
        total += float(np.sum(closed / np.maximum(pairs, 1)))
    return total / len(nodes)


def _paths(
    source: Array, target: Array, count: int, starts: Array
) -> tuple[float, int]:
    """Return mean and maximum of the shortest directed paths from ``starts``.

    Breadth-first from 64 pages at once: each page has a number whose bits say which of
    the searches have reached it.
    """
    if not len(source):
        return 0.0, 0
    order = np.argsort(target, kind="stable")
    source, target = source[order], target[order]
    first = np.flatnonzero(np.diff(target, prepend=-1))
    pages = target[first]
    length = pairs = longest = 0
    for begin in range(0, len(starts), _BITS):
        some = starts[begin : begin + _BITS]
        reached = np.zeros(count, np.uint64)
        reached[some] = np.uint64(1) << np.arange(len(some), dtype=np.uint64)
        new = reached.copy()
        for depth in range(1, count + 1):
            arriving = np.bitwise_or.reduceat(new[source], first)
            new = np.zeros(count, np.uint64)
            new[pages] = arriving & ~reached[pages]
            found = int(np.bitwise_count(new).sum())
            if not found:
                break
            reached |= new
            pairs += found
            length += depth * found
            longest = max(longest, depth)
    return length / max(pairs, 1), longest


# --- the control


def rewired(trace: Trace, seed: int) -> Trace:
    """Return the trace with the ends of its distinct links exchanged at random.

    In every sweep all links are paired at random, and two links u -> v and x -> y
    become u -> y and x -> v if both pages exist by the time that the link is first
    shown, no page links to itself and neither link is there already. So every URL keeps
    its numbers of distinct links in and out exactly, while clustering is lost. A link
    changes in all versions of its page alike, and its text goes with its target. Links
    of a page to itself, and those that cannot be exchanged in time, stay.
    """
    rng = np.random.default_rng(seed)
    version = np.repeat(np.arange(len(trace.version_seen)), np.diff(trace.link_start))
    rows = (trace.version_url[version].astype(np.int64) << 32) | trace.link_target
    key, first_row, link = np.unique(rows, return_index=True, return_inverse=True)
    source, target = key >> 32, key & 0xFFFFFFFF
    shown = np.full(len(key), np.iinfo(np.int64).max)
    np.minimum.at(shown, link, trace.version_seen[version])

    # Never recorded URLs are as dead at any time.
    born = np.full(len(trace.urls), -1, np.int64)
    recorded = np.diff(trace.version_start) > 0
    born[recorded] = trace.version_seen[trace.version_start[:-1][recorded]]

    movable = np.flatnonzero(source != target)
    end = np.arange(len(key))  # the link whose target each link has now
    for _ in range(SWEEPS):
        _exchange(movable, end, source, target, shown, born, rng)
    new_end = end[link]
    moved = new_end != link
    text = np.where(moved, trace.link_text[first_row[new_end]], trace.link_text)
    meta = {key: value for key, value in trace.meta.items() if key != "structure"}
    meta["name"] = f"{trace.name}-rewired"
    meta["recorder"] = f"rewired with seed {seed} from {trace.name}"
    return replace(
        trace,
        meta=meta,
        link_target=frozen(target[new_end].astype(np.int32)),
        link_text=frozen(text.astype(np.int32)),
        path=None,
    )


def _exchange(
    movable: Array,
    end: Array,
    source: Array,
    target: Array,
    shown: Array,
    born: Array,
    rng: np.random.Generator,
) -> None:
    """Exchange the targets of random pairs of links, in place, where it is allowed."""
    order = rng.permutation(movable)
    half = len(order) // 2
    one, two = order[:half], order[half : 2 * half]
    to_one, to_two = target[end[two]], target[end[one]]
    allowed = (born[to_one] <= shown[one]) & (born[to_two] <= shown[two])
    allowed &= (source[one] != to_one) & (source[two] != to_two)
    one, two = one[allowed], two[allowed]
    made = np.concatenate(
        [
            (source[one] << 32) | to_one[allowed],
            (source[two] << 32) | to_two[allowed],
        ]
    )
    # A new link must be neither one of the present links nor made twice in this sweep.
    # Links are compared by a hash, anew in each sweep: two that only happen to share it
    # give up an exchange too, which is much faster than to look closer.
    bits = 4 + len(source).bit_length()
    factor = rng.integers(2**63, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    present = _hash((source << 32) | target[end], factor, bits)
    made = _hash(made, factor, bits)
    taken = np.zeros(1 << bits, bool)
    taken[present] = True
    claim = np.empty(1 << bits, np.int32)
    number = np.arange(len(made), dtype=np.int32)
    claim[made] = number  # of those that share a hash, the last one stays
    good = ~taken[made] & (claim[made] == number)
    good = good[: len(one)] & good[len(one) :]
    one, two = one[good], two[good]
    end[one], end[two] = end[two], end[one]


def _hash(keys: Array, factor: np.uint64, bits: int) -> Array:
    mixed = keys.astype(np.uint64) * factor
    return (mixed >> np.uint64(64 - bits)).astype(np.int64)
