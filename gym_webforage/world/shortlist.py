"""The shortlist of promising URLs, compiled: who of the frontier gets a slot.

A step compares the URLs in the slots, the new ones and the next few of the others in
turn, so that it costs the same however long the frontier is.
"""

from __future__ import annotations

import numpy as np

from gym_webforage.world import layout as L
from gym_webforage.world.compile import compiled, f32, f64, i32, i64
from gym_webforage.world.ledger import enter_slot, leave_slot
from gym_webforage.world.lessons import (
    path_rate,
    rate,
    refresh_likeness,
    source_rate,
)

NUMBERS = np.int64(2**31 - 1)


@compiled
def standing_of(T, F, number):
    """Return a URL's place in the contest: by promise, then by discovery number.

    A promise counts in steps of 1/1024. They begin where no simple fraction lies, so
    that rounding does not part what is equal.
    """
    ledger = i32(F[L.LEDGER])
    floats = f32(F[L.LEDGER_FLOATS])
    row = number * L.LEDGER_COLUMNS
    if ledger[row + L.PROFILE_SEEN] != i64(F[L.FORAGER_INTS])[L.PROFILE_NUMBER]:
        refresh_likeness(T, F, number)
    facts = number * L.LEDGER_FLOAT_COLUMNS
    url = ledger[row + L.URL]
    mean = f64(F[L.FORAGER_FLOATS])[L.MEAN_VALUE]
    promise = (
        floats[facts + L.ANCHOR_COSINE]
        + floats[facts + L.NEAR_COSINE]
        + floats[facts + L.URL_COSINE]
        + floats[facts + L.ANCHOR_PAID]
        + floats[facts + L.URL_PAID]
        + floats[facts + L.SOURCE_VALUE]
        + source_rate(F, number)
        + rate(f64(F[L.DIRECTORY_STATS]), i32(T[L.URL_DIRECTORY])[url], mean)
        + path_rate(T, F, ledger[row + L.TEXT])
        + rate(f64(F[L.ENDING_STATS]), i32(T[L.URL_ENDING])[url], mean)
    )
    steps = np.int64(np.floor(promise * 1024.0 + 0.3137))
    return steps * (NUMBERS + 1) + (NUMBERS - number)


@compiled
def sink(heap, size, at):
    """Restore the order of a heap, the lowest first, below a changed place."""
    moved = heap[at]
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and heap[below + 1] < heap[below]:
            below += 1
        if heap[below] >= moved:
            break
        heap[at] = heap[below]
        at = below
    heap[at] = moved


@compiled
def contend(T, F, size, number):
    """Let a URL replace the least promising one; return how many have a place."""
    heap = i64(F[L.CONTEST])
    standing = standing_of(T, F, number)
    if size < i64(F[L.FORAGER_INTS])[L.SLOTS]:
        at = size
        while at > 0 and heap[(at - 1) >> 1] > standing:
            heap[at] = heap[(at - 1) >> 1]
            at = (at - 1) >> 1
        heap[at] = standing
        return size + 1
    if standing > heap[0]:
        loser = NUMBERS - (heap[0] & NUMBERS)
        if i32(F[L.LEDGER])[loser * L.LEDGER_COLUMNS + L.SLOT_OF] >= 0:
            leave_slot(F, loser)
        heap[0] = standing
        sink(heap, size, 0)
    return size


@compiled
def pick_waiting(F):
    """Write behind the heap who is next in turn, neither new nor in a slot; count."""
    ints = i64(F[L.FORAGER_INTS])
    ledger = i32(F[L.LEDGER])
    picked = i64(F[L.CONTEST])
    count = 0
    for _ in range(ints[L.FRONTIER]):
        number = ints[L.SCAN] if ints[L.SCAN] >= 0 else ints[L.HEAD]
        row = number * L.LEDGER_COLUMNS
        ints[L.SCAN] = ledger[row + L.NEXT]
        if number < ints[L.KNOWN_BEFORE] and ledger[row + L.SLOT_OF] < 0:
            picked[ints[L.SLOTS] + count] = number
            count += 1
            if count == L.SCANNED:
                break
    return count


@compiled
def pass_turn(F, number):
    """Let the turn go on from a URL that is about to leave the frontier."""
    ints = i64(F[L.FORAGER_INTS])
    if ints[L.SCAN] == number:
        ints[L.SCAN] = i32(F[L.LEDGER])[number * L.LEDGER_COLUMNS + L.NEXT]


@compiled
def choose_slots(T, F):
    """Give the slots to the most promising URLs after a step, or at the start."""
    ints = i64(F[L.FORAGER_INTS])
    if ints[L.SLOTS] == ints[L.WINDOW]:
        return
    if ints[L.FRONTIER] <= ints[L.SLOTS]:
        give_all(F)
        return
    heap = i64(F[L.CONTEST])
    slot = i32(F[L.SLOT])
    size = 0
    for at in range(ints[L.SLOTS]):
        if slot[at] >= 0:
            heap[size] = standing_of(T, F, np.int64(slot[at]))
            size += 1
    for at in range(size // 2 - 1, -1, -1):
        sink(heap, size, at)
    # All are picked first: who loses a slot meanwhile does not wait for its turn.
    for i in range(pick_waiting(F)):
        size = contend(T, F, size, heap[ints[L.SLOTS] + i])
    for number in range(ints[L.KNOWN_BEFORE], ints[L.KNOWN]):
        size = contend(T, F, size, number)
    enter_winners(F, size)


@compiled
def give_all(F):
    """Give a slot to every URL of a frontier that has no more than there are slots."""
    ints = i64(F[L.FORAGER_INTS])
    ledger = i32(F[L.LEDGER])
    number = ints[L.KNOWN_BEFORE]
    if ints[L.SLOTTED] + ints[L.KNOWN] - number < ints[L.FRONTIER]:
        number = ints[L.HEAD]  # some that are not new wait as well
    while 0 <= number < ints[L.KNOWN]:
        row = number * L.LEDGER_COLUMNS
        if ledger[row + L.SLOT_OF] < 0:
            enter_slot(F, number)
        number = np.int64(ledger[row + L.NEXT])


@compiled
def enter_winners(F, size):
    """Give free slots to those who won a place, in order of discovery."""
    heap = i64(F[L.CONTEST])
    ledger = i32(F[L.LEDGER])
    count = 0
    for at in range(size):
        number = NUMBERS - (heap[at] & NUMBERS)
        if ledger[number * L.LEDGER_COLUMNS + L.SLOT_OF] < 0:
            place = count
            while place > 0 and heap[place - 1] > number:
                heap[place] = heap[place - 1]
                place -= 1
            heap[place] = number
            count += 1
    for at in range(count):
        enter_slot(F, heap[at])
