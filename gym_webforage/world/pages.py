"""Pages as kernels see them: which version shows, what a fetch costs, the log."""

from __future__ import annotations

import numpy as np

from gym_webforage.world import layout as L
from gym_webforage.world.compile import compiled, f32, f64, i16, i32, i64


@compiled
def version_at(T, url, time):
    """Return the version of ``url`` that is visible at ``time``, or -1."""
    start = i64(T[L.VERSION_START])
    seen = i64(T[L.SEEN])
    low, high = start[url], start[url + 1]
    if low == high or seen[low] > time:
        return np.int64(-1)
    high -= 1
    if seen[high] <= time:
        return high
    while high - low > 1:
        middle = (low + high) >> 1
        if seen[middle] <= time:
            low = middle
        else:
            high = middle
    return low


@compiled
def is_alive(T, version):
    """Say whether a version is a page or a redirect."""
    return version >= 0 and 200 <= i16(T[L.STATUS])[version] < 400


@compiled
def is_page(T, version):
    """Say whether a version is a document, not a redirect or an error."""
    return version >= 0 and 200 <= i16(T[L.STATUS])[version] < 300


@compiled
def cost_by_size(T, W, version):
    """Return how long a fetch of ``version`` takes in proportion to its size."""
    cost = i64(W[L.WORLD_INTS])[L.FETCH_TIME]
    exact = cost * i64(T[L.BYTES])[version] / f64(W[L.WORLD_FLOATS])[L.MEAN_BYTES]
    return max(np.int64(1), np.int64(np.floor(exact + 0.5)))


@compiled
def fetch(T, W, url, version, clock):
    """Return when a fetch of ``url`` that is due at ``clock`` ends.

    The usual case stands here in full: a call in this place made steps a third slower.
    """
    ints = i64(W[L.WORLD_INTS])
    cost = ints[L.FETCH_TIME]
    if ints[L.COST_IS_BYTES] and version >= 0:
        cost = cost_by_size(T, W, version)
    delay = ints[L.HOST_DELAY]
    if delay == 0:
        return clock + cost
    ready = i64(W[L.SITE_READY])
    site = i32(T[L.URL_SITE])[url]
    clock = max(clock, ready[site]) + cost
    ready[site] = clock + delay
    return clock


@compiled
def fetch_time(T, W, url, time):
    """Return how long a fetch of what ``url`` shows at ``time`` takes."""
    ints = i64(W[L.WORLD_INTS])
    version = version_at(T, url, time)
    if ints[L.COST_IS_BYTES] and version >= 0:
        return cost_by_size(T, W, version)
    return ints[L.FETCH_TIME]


@compiled
def log(W, F, time, url, version, flags, value):
    """Append an event; return its row, or -1 where no log is kept."""
    ints = i64(W[L.WORLD_INTS])
    if not ints[L.MAKES_LOG]:
        return np.int64(-1)
    row = ints[L.LOG_COUNT]
    ints[L.LOG_COUNT] = row + 1
    rows = i32(W[L.LOG_ROWS])
    at = row * L.LOG_COLUMNS
    rows[at + L.LOG_URL] = url
    rows[at + L.LOG_VERSION] = version
    rows[at + L.LOG_STEP] = i64(F[L.FORAGER_INTS])[L.STEP]
    rows[at + L.LOG_FORAGER] = i64(F[L.FORAGER_INTS])[L.FORAGER_NUMBER]
    rows[at + L.LOG_FLAGS] = flags
    i64(W[L.LOG_TIME])[row] = time
    f32(W[L.LOG_VALUE])[row] = value
    return row


@compiled
def pay(W, row, flags, value):
    """Add to an event what the judge said of it."""
    if row >= 0:
        i32(W[L.LOG_ROWS])[row * L.LOG_COLUMNS + L.LOG_FLAGS] |= flags
        f32(W[L.LOG_VALUE])[row] += value


@compiled
def take_bit(bits, at):
    """Set a bit; return whether it was clear."""
    byte, bit = at >> 3, np.uint8(1 << (at & 7))
    if bits[byte] & bit:
        return False
    bits[byte] |= bit
    return True
