"""What a forager knows, compiled: its URLs, its frontier and its slots.

The ledger has a row for each known URL in order of discovery; a hash finds the row by
URL. The frontier is a doubly linked list through the ledger. The slots are a window on
one end of it, kept in step by single moves, or are given out in `shortlist`.
"""

from __future__ import annotations

import numpy as np

from gym_webforage.world import layout as L
from gym_webforage.world.compile import compiled, f32, i32, i64

HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio


@compiled
def find(F, url):
    """Return the discovery number of ``url``, or -1."""
    table = i32(F[L.HASH])
    shift = np.uint64(i64(F[L.FORAGER_INTS])[L.HASH_SHIFT])
    mask = (np.int64(1) << np.int64(np.uint64(64) - shift)) - 1
    at = np.int64((np.uint64(url) * HASH_FACTOR) >> shift)
    while True:
        found = table[2 * at]
        if found == url:
            return np.int64(table[2 * at + 1])
        if found < 0:
            return np.int64(-1)
        at = (at + 1) & mask


@compiled
def find_all(F, urls, numbers):
    """Write the discovery number of each URL, -1 for what is not known."""
    for i in range(len(urls)):
        url = urls[i]
        numbers[i] = find(F, url) if 0 <= url < 2147483648 else -1


@compiled
def discover(F, url):
    """Add an unknown ``url`` to the ledger; return its discovery number."""
    ints = i64(F[L.FORAGER_INTS])
    number = ints[L.KNOWN]
    ints[L.KNOWN] = number + 1
    ledger = i32(F[L.LEDGER])
    floats = f32(F[L.LEDGER_FLOATS])
    row = number * L.LEDGER_COLUMNS
    for column in range(L.LEDGER_COLUMNS):
        ledger[row + column] = 0
    if ints[L.HAS_LEDGER_FLOATS]:
        for column in range(L.LEDGER_FLOAT_COLUMNS):
            floats[number * L.LEDGER_FLOAT_COLUMNS + column] = 0.0
    ledger[row + L.URL] = url
    ledger[row + L.IN_PATH] = -1
    ledger[row + L.SLOT_OF] = -1
    ledger[row + L.VERSION] = -1
    ledger[row + L.SOURCE] = -1
    ledger[row + L.TEXT] = -1
    ledger[row + L.FOUND_AT] = ints[L.STEP]
    enter_hash(F, url, number)
    return number


@compiled
def enter_hash(F, url, number):
    """Write ``url`` into the hash, where it is not yet."""
    table = i32(F[L.HASH])
    shift = np.uint64(i64(F[L.FORAGER_INTS])[L.HASH_SHIFT])
    mask = (np.int64(1) << np.int64(np.uint64(64) - shift)) - 1
    at = np.int64((np.uint64(url) * HASH_FACTOR) >> shift)
    while table[2 * at] >= 0:
        at = (at + 1) & mask
    table[2 * at] = url
    table[2 * at + 1] = number


@compiled
def rehash(F):
    """Fill an emptied, larger hash from the ledger."""
    ledger = i32(F[L.LEDGER])
    for number in range(i64(F[L.FORAGER_INTS])[L.KNOWN]):
        enter_hash(F, ledger[number * L.LEDGER_COLUMNS + L.URL], number)


# --- slots


@compiled
def enter_slot(F, number):
    """Give a URL the lowest free slot."""
    ints = i64(F[L.FORAGER_INTS])
    slot = i32(F[L.SLOT])
    at = ints[L.FREE_SLOT]
    while slot[at] >= 0:
        at += 1
    slot[at] = number
    ints[L.FREE_SLOT] = at + 1
    ints[L.SLOTTED] += 1
    i32(F[L.LEDGER])[number * L.LEDGER_COLUMNS + L.SLOT_OF] = at
    i64(F[L.SLOT_CHANGED])[at] = ints[L.STAMP]


@compiled
def leave_slot(F, number):
    """Free the slot of a URL."""
    ints = i64(F[L.FORAGER_INTS])
    ledger = i32(F[L.LEDGER])
    at = ledger[number * L.LEDGER_COLUMNS + L.SLOT_OF]
    ledger[number * L.LEDGER_COLUMNS + L.SLOT_OF] = -1
    i32(F[L.SLOT])[at] = -1
    i64(F[L.SLOT_CHANGED])[at] = ints[L.STAMP]
    ints[L.SLOTTED] -= 1
    ints[L.FREE_SLOT] = min(ints[L.FREE_SLOT], at)


@compiled
def clear_slots(F):
    """Free all slots."""
    ints = i64(F[L.FORAGER_INTS])
    ledger = i32(F[L.LEDGER])
    slot = i32(F[L.SLOT])
    changed = i64(F[L.SLOT_CHANGED])
    for at in range(ints[L.SLOTS]):
        if slot[at] >= 0:
            ledger[slot[at] * L.LEDGER_COLUMNS + L.SLOT_OF] = -1
            slot[at] = -1
            changed[at] = ints[L.STAMP]
    ints[L.SLOTTED] = 0
    ints[L.FREE_SLOT] = 0
    ints[L.EDGE] = -1


@compiled
def touch_slot(F, number):
    """Note that the row of a URL, if it has a slot, must be written again."""
    at = i32(F[L.LEDGER])[number * L.LEDGER_COLUMNS + L.SLOT_OF]
    if at >= 0:
        i64(F[L.SLOT_CHANGED])[at] = i64(F[L.FORAGER_INTS])[L.STAMP]


# --- frontier


@compiled
def clear_frontier(F):
    """Empty the frontier and the set of visited URLs by beginning a new path."""
    ints = i64(F[L.FORAGER_INTS])
    ints[L.PATH] += 1
    ints[L.FRONTIER] = 0
    ints[L.HEAD] = -1
    ints[L.TAIL] = -1
    ints[L.SCAN] = -1
    clear_slots(F)


@compiled
def join_frontier(F, number):
    """Put a URL at the end of the frontier."""
    ints = i64(F[L.FORAGER_INTS])
    ledger = i32(F[L.LEDGER])
    row = number * L.LEDGER_COLUMNS
    tail = ints[L.TAIL]
    ledger[row + L.IN_PATH] = ints[L.PATH]
    ledger[row + L.PLACE] = L.ON_FRONTIER
    ledger[row + L.PREVIOUS] = tail
    ledger[row + L.NEXT] = -1
    if tail >= 0:
        ledger[tail * L.LEDGER_COLUMNS + L.NEXT] = number
    else:
        ints[L.HEAD] = number
    ints[L.TAIL] = number
    ints[L.FRONTIER] += 1
    slots = ints[L.WINDOW]
    if slots == 0:
        return
    if ints[L.SHORTLIST_OLDEST]:
        if ints[L.SLOTTED] < slots:
            enter_slot(F, number)
            ints[L.EDGE] = number
        return
    if ints[L.SLOTTED] == slots:
        oldest = ints[L.EDGE]
        leave_slot(F, oldest)
        ints[L.EDGE] = ledger[oldest * L.LEDGER_COLUMNS + L.NEXT]
    elif ints[L.SLOTTED] == 0:
        ints[L.EDGE] = number
    enter_slot(F, number)


@compiled
def leave_frontier(F, number):
    """Take a URL off the frontier; the next one in line may take its slot."""
    ints = i64(F[L.FORAGER_INTS])
    ledger = i32(F[L.LEDGER])
    row = number * L.LEDGER_COLUMNS
    before, after = ledger[row + L.PREVIOUS], ledger[row + L.NEXT]
    ledger[row + L.PLACE] = 0
    if before >= 0:
        ledger[before * L.LEDGER_COLUMNS + L.NEXT] = after
    else:
        ints[L.HEAD] = after
    if after >= 0:
        ledger[after * L.LEDGER_COLUMNS + L.PREVIOUS] = before
    else:
        ints[L.TAIL] = before
    ints[L.FRONTIER] -= 1
    if ledger[row + L.SLOT_OF] < 0:
        return
    leave_slot(F, number)
    if ints[L.WINDOW] == 0:
        return
    if ints[L.SHORTLIST_OLDEST]:
        if ints[L.EDGE] == number:
            ints[L.EDGE] = before
        edge = ints[L.EDGE]
        follower = ledger[edge * L.LEDGER_COLUMNS + L.NEXT] if edge >= 0 else after
    else:
        if ints[L.EDGE] == number:
            ints[L.EDGE] = after
        edge = ints[L.EDGE]
        follower = ledger[edge * L.LEDGER_COLUMNS + L.PREVIOUS] if edge >= 0 else before
    if follower >= 0:
        enter_slot(F, follower)
        ints[L.EDGE] = follower


@compiled
def allow_any_known(F):
    """Begin a path: every known URL may be visited, the first ones from the slots."""
    ints = i64(F[L.FORAGER_INTS])
    clear_frontier(F)
    ints[L.PATH_VISITS] = 0
    ints[L.AT_START] = 1
    for number in range(min(ints[L.SLOTS], ints[L.KNOWN])):
        enter_slot(F, number)


@compiled
def is_legal(F, number):
    """Say whether a known URL is in the action set."""
    ints = i64(F[L.FORAGER_INTS])
    if ints[L.AT_START]:
        return True
    row = number * L.LEDGER_COLUMNS
    ledger = i32(F[L.LEDGER])
    return (
        ledger[row + L.IN_PATH] == ints[L.PATH]
        and ledger[row + L.PLACE] == L.ON_FRONTIER
    )


@compiled
def action_set_size(F):
    """Return how many URLs may be visited."""
    ints = i64(F[L.FORAGER_INTS])
    return ints[L.KNOWN] if ints[L.AT_START] else ints[L.FRONTIER]


@compiled
def list_action_set(F, numbers):
    """Write the discovery numbers of the action set, in the frontier's order."""
    ints = i64(F[L.FORAGER_INTS])
    if ints[L.AT_START]:
        for number in range(ints[L.KNOWN]):
            numbers[number] = number
        return
    ledger = i32(F[L.LEDGER])
    number = ints[L.HEAD]
    for i in range(ints[L.FRONTIER]):
        numbers[i] = number
        number = ledger[number * L.LEDGER_COLUMNS + L.NEXT]
