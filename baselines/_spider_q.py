"""What links are worth to a spider that knows the site: exact Q-values.

The Q-value of a link is the discounted sum of the rewards that the greedy crawl finds
which starts with this link and knows nothing else: of all pages linked from the pages
visited so far it takes the one that is nearest to a reward not taken yet, the first
discovered among equals. (J. Rennie, A. McCallum, "Using reinforcement learning to
spider the web efficiently", 1999, section 2.3.) So the value depends on the page that
the link leads to, and the page that it stands on counts as not visited.

Exact means: bit for bit the sum in 64-bit floating point of all rewards of the crawl in
their order, however long it is. A reward that no longer changes the sum ends it, since
none of the smaller ones that follow can. With a discount of one half that is after some
54 steps, so at most so many rewards are ever taken, and a page's nearest reward *left*
is always among a list of its nearest ones, made once for the whole site.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gym_webforage.metrics import shown_versions
from gym_webforage.trace import Trace
from gym_webforage.world.compile import compiled

GAMMA = 0.5
BITS = 54  # a number smaller by this many bits cannot change a sum


@dataclass(frozen=True)
class SiteLinks:
    """The links inside a site that a crawl would find, and what they are worth."""

    trace: Trace
    site: str
    pages: int  # URLs of the site, which had to be fetched to know all this
    link: np.ndarray  # ids of the trace
    version: np.ndarray  # that the link stands on
    target: np.ndarray  # URL that it leads to
    value: np.ndarray  # the Q-value
    is_immediate: np.ndarray  # whether it leads to a reward


def site_links(trace: Trace, site: str, gamma: float = GAMMA) -> SiteLinks:
    """Return all links inside a site as the recording ends, with their values.

    Links of a page to itself are left out; one that stands twice counts twice.
    """
    if not 0 < gamma < 1:
        raise ValueError(f"gamma is {gamma!r}, expected a number between 0 and 1")
    number = trace.sites.find(site)
    if number < 0:
        raise ValueError(f"{trace.name} has no site {site!r}")
    urls = np.flatnonzero(trace.url_site == number)
    version = shown_versions(trace, urls, trace.end)
    status = np.where(version >= 0, trace.version_status[version], 0)
    pays = trace.url_target[urls] & (status >= 200) & (status < 300)
    alive = (status >= 200) & (status < 400)
    low = np.where(alive, trace.link_start[version], 0)
    count = np.where(alive, trace.link_start[version + 1], 0) - low
    source = np.repeat(np.arange(len(urls)), count)
    link = np.arange(len(source)) + np.repeat(low - (np.cumsum(count) - count), count)
    target = trace.link_target[link]
    inside = (trace.url_site[target] == number) & (target != urls[source])
    source, link, target = source[inside], link[inside], target[inside]
    local = np.searchsorted(urls, target)
    value = page_values(source, local, pays, gamma)
    return SiteLinks(
        trace=trace,
        site=site,
        pages=len(urls),
        link=link,
        version=version[source],
        target=target,
        value=value[local],
        is_immediate=pays[local],
    )


def page_values(
    source: np.ndarray, target: np.ndarray, pays: np.ndarray, gamma: float = GAMMA
) -> np.ndarray:
    """Return the Q-value of a link to each page.

    Links are pairs of page numbers, those of a page in page order.
    """
    pages = len(pays)
    goals = np.flatnonzero(pays)
    value = np.zeros(pages)
    if not len(goals):
        return value
    start, target = _rows(source, target, pages)
    in_start, in_source = _rows(
        target, np.repeat(np.arange(pages), np.diff(start)), pages
    )
    most = min(len(goals), int(BITS / -math.log2(gamma)) + 2)
    reward = np.empty((pages, most), np.int32)
    distance = np.empty((pages, most), np.int32)
    count = np.zeros(pages, np.int64)
    nearest_rewards(in_start, in_source, goals, reward, distance, count)
    crawl_from_each(start, target, pays, reward, distance, count, gamma, value)
    return value


def _rows(
    owner: np.ndarray, entry: np.ndarray, rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the entries sorted by owner, and where those of each begin."""
    start = np.zeros(rows + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=rows), out=start[1:])
    return start, entry[np.argsort(owner, kind="stable")].astype(np.int64)


@compiled
def nearest_rewards(in_start, in_source, goals, reward, distance, count):
    """List the nearest rewards of each page, by the number of links to them.

    One search from all goals at once, backwards; each page hands on only the rewards
    that it lists, and that is enough: one that it does not list is no nearer to those
    behind it than all that it lists.
    """
    most = reward.shape[1]
    pages = np.empty(reward.size, np.int64)
    places = np.empty(reward.size, np.int64)
    tail = 0
    for goal in goals:
        reward[goal, 0] = goal
        distance[goal, 0] = 0
        count[goal] = 1
        pages[tail] = goal
        places[tail] = 0
        tail += 1
    head = 0
    while head < tail:
        page = pages[head]
        goal = reward[page, places[head]]
        steps = distance[page, places[head]] + 1
        head += 1
        for i in range(in_start[page], in_start[page + 1]):
            before = in_source[i]
            listed = count[before]
            if listed == most:
                continue
            is_new = True
            for j in range(listed - 1, -1, -1):
                if reward[before, j] == goal:
                    is_new = False
                    break
            if is_new:
                reward[before, listed] = goal
                distance[before, listed] = steps
                count[before] = listed + 1
                pages[tail] = before
                places[tail] = listed
                tail += 1


@compiled
def sift_down(heap, size):
    """Move the first key of a heap to its place."""
    key = heap[0]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= key:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = key


@compiled
def crawl_from_each(start, target, pays, reward, distance, count, gamma, value):
    """Write the discounted rewards of the greedy crawl from each page.

    The frontier is a heap by distance, then discovery. Distances only grow as rewards
    are taken, so one is looked up anew only when it comes first.
    """
    pages = len(pays)
    seen = np.full(pages, -1)  # by the crawl from which page
    taken = np.full(pages, -1)
    place = np.empty(pages, np.int64)  # in the page's list of rewards
    found = np.empty(pages, np.int64)  # pages in order of discovery
    heap = np.empty(pages, np.int64)  # distance * 2^40 + discovery number
    mask = (1 << 40) - 1
    for origin in range(pages):
        if count[origin] == 0:
            continue
        total = 0.0
        discount = 1.0
        size = 0
        discovered = 0
        page = origin
        seen[origin] = origin
        while page >= 0:
            if pays[page]:
                if total + discount == total:
                    break
                total += discount
                taken[page] = origin
            discount *= gamma
            for i in range(start[page], start[page + 1]):
                linked = target[i]
                if seen[linked] == origin:
                    continue
                seen[linked] = origin
                if count[linked] == 0:
                    continue
                place[linked] = 0
                found[discovered] = linked
                key = (np.int64(distance[linked, 0]) << 40) | discovered
                discovered += 1
                at = size
                size += 1
                while at > 0 and heap[(at - 1) >> 1] > key:
                    heap[at] = heap[(at - 1) >> 1]
                    at = (at - 1) >> 1
                heap[at] = key
            page = -1
            while size > 0 and page < 0:
                number = heap[0] & mask
                first = found[number]
                old = place[first]
                new = old
                while new < count[first] and taken[reward[first, new]] == origin:
                    new += 1
                place[first] = new
                if new < count[first] and distance[first, new] > distance[first, old]:
                    heap[0] = (np.int64(distance[first, new]) << 40) | number
                else:
                    if new < count[first]:
                        page = first
                    size -= 1
                    heap[0] = heap[size]
                sift_down(heap, size)
        value[origin] = total


def bin_of(
    value: np.ndarray, is_immediate: np.ndarray, bins: int, gamma: float = GAMMA
) -> np.ndarray:
    """Return the bin of each link: 0 for immediate reward, then by value, downwards.

    Immediate is a link to a reward, whatever its value: those to a page with rewards
    behind it exceed 1, and a hub of many rewards comes to 1 as well.
    """
    found = np.full(len(value), bins - 1)
    for i in range(bins - 2, 0, -1):
        found[value >= gamma**i] = i
    found[is_immediate] = 0
    return found
