"""A visit in News, compiled: fetch a page and all that it links to, then send."""

from __future__ import annotations

import numpy as np

from gym_webforage.world import layout as L
from gym_webforage.world.compile import compiled, f64, i32, i64, u8
from gym_webforage.world.ledger import (
    allow_any_known,
    clear_frontier,
    discover,
    find,
    join_frontier,
    leave_frontier,
    touch_slot,
)
from gym_webforage.world.lessons import count_value
from gym_webforage.world.pages import (
    fetch,
    is_alive,
    is_page,
    log,
    pay,
    take_bit,
    version_at,
)


@compiled
def visit_news(T, W, F, number, begin):
    """Fetch a page and all that it links to, from ``begin`` on; return when it ends.

    What was fetched waits in the outbox for `send`, which a fleet of simultaneous
    foragers calls in the order of their ends.
    """
    world = i64(W[L.WORLD_INTS])
    ints = i64(F[L.FORAGER_INTS])
    ledger = i32(F[L.LEDGER])
    outbox = i32(F[L.OUTBOX])
    link_start = i64(T[L.LINK_START])
    link_target = i32(T[L.LINK_TARGET])
    url_site = i32(T[L.URL_SITE])
    site = world[L.SITE]
    if ints[L.AT_START]:
        ints[L.AT_START] = 0
        clear_frontier(F)
    else:
        leave_frontier(F, number)
    path = ints[L.PATH]
    step = ints[L.STEP]
    row = number * L.LEDGER_COLUMNS
    url = ledger[row + L.URL]
    ledger[row + L.IN_PATH] = path
    ledger[row + L.PLACE] = L.WAS_VISITED
    ledger[row + L.TOUCHED] = step
    ledger[row + L.VISITS] += 1
    ints[L.PATH_VISITS] += 1

    version = version_at(T, url, begin)
    clock = fetch(T, W, url, version, begin)
    fetches = 1
    waiting = 0
    if not is_alive(T, version):
        log(W, F, clock, url, version, L.VISITED | L.DEAD, 0.0)
    else:
        outbox[0] = number
        outbox[1] = version
        outbox[2] = log(W, F, clock, url, version, L.VISITED, 0.0)
        waiting = 1
        for link in range(link_start[version], link_start[version + 1]):
            target = link_target[link]
            if site >= 0 and url_site[target] != site:
                continue
            other = find(F, target)
            if other < 0:
                other = discover(F, target)
            at = other * L.LEDGER_COLUMNS
            if ledger[at + L.TOUCHED] == step:
                continue  # the page itself, or a second link to the same URL
            ledger[at + L.TOUCHED] = step
            ledger[at + L.IN_LINKS] += 1
            in_path = ledger[at + L.IN_PATH] == path
            was_visited = in_path and ledger[at + L.PLACE] == L.WAS_VISITED
            if was_visited and not world[L.REFETCH_VISITED]:
                continue
            shown = version_at(T, target, begin)
            clock = fetch(T, W, target, shown, clock)
            fetches += 1
            if not is_alive(T, shown):
                log(W, F, clock, target, shown, L.DEAD, 0.0)
                touch_slot(F, other)
                continue
            outbox[3 * waiting] = other
            outbox[3 * waiting + 1] = shown
            outbox[3 * waiting + 2] = log(W, F, clock, target, shown, 0, 0.0)
            waiting += 1
            if not in_path:
                join_frontier(F, other)
            else:
                touch_slot(F, other)
    ints[L.OUTBOX_COUNT] = waiting
    ints[L.LAST_URL] = url
    ints[L.LAST_FETCHES] = fetches
    world[L.FETCHES] += fetches
    return clock


@compiled
def note_fetches(F, now):
    """Keep the history of pages: how often they were fetched, and had then changed."""
    history = i64(F[L.HISTORY])
    ledger = i32(F[L.LEDGER])
    outbox = i32(F[L.OUTBOX])
    for i in range(i64(F[L.FORAGER_INTS])[L.OUTBOX_COUNT]):
        number = np.int64(outbox[3 * i])
        row = number * L.HISTORY_FIELDS
        held = ledger[number * L.LEDGER_COLUMNS + L.VERSION]
        if held < 0:
            history[row + L.HISTORY_FETCHES] = 0
            history[row + L.HISTORY_CHANGES] = 0
        history[row + L.HISTORY_FETCHES] += 1
        history[row + L.FETCHED_AT] = now
        if held >= 0 and held != outbox[3 * i + 1]:
            history[row + L.HISTORY_CHANGES] += 1
            history[row + L.CHANGED_AT] = now


@compiled
def send(T, W, F, number, end):
    """Learn the fetched pages, send the young ones to the judge, return the reward."""
    world = i64(W[L.WORLD_INTS])
    floats = f64(W[L.WORLD_FLOATS])
    ints = i64(F[L.FORAGER_INTS])
    ledger = i32(F[L.LEDGER])
    outbox = i32(F[L.OUTBOX])
    marks = u8(F[L.MARKS])
    paid = u8(W[L.PAID_BITS])
    published = i64(T[L.PUBLISHED])
    novel_pay = floats[L.REWARD]
    other_pay = floats[L.PENALTY]
    if world[L.EVOLUTION]:
        novel_pay += other_pay
    if ints[L.HAS_HISTORY]:
        note_fetches(F, end)
    total = 0.0
    sent = 0
    novel = 0
    for i in range(ints[L.OUTBOX_COUNT]):
        other = np.int64(outbox[3 * i])
        version = np.int64(outbox[3 * i + 1])
        age = end - published[version]
        ledger[other * L.LEDGER_COLUMNS + L.VERSION] = version
        ledger[other * L.LEDGER_COLUMNS + L.AGE] = min(age // 100, L.LONGEST_AGE)
        if age > world[L.MAX_AGE] or not is_page(T, version):
            continue
        document = version
        if world[L.DOCUMENT_IS_URL]:
            document = np.int64(ledger[other * L.LEDGER_COLUMNS + L.URL])
        if not take_bit(marks, document):
            continue
        sent += 1
        row = outbox[3 * i + 2]
        if take_bit(paid, document):
            novel += 1
            total += novel_pay
            pay(W, row, L.SENT | L.NOVEL, novel_pay)
        else:
            total += other_pay
            pay(W, row, L.SENT, other_pay)
    ledger[number * L.LEDGER_COLUMNS + L.PAID] += novel
    if ints[L.HAS_HISTORY]:
        url = ledger[number * L.LEDGER_COLUMNS + L.URL]
        count_value(f64(F[L.DIRECTORY_STATS]), i32(T[L.URL_DIRECTORY])[url], novel)
    ints[L.LAST_SENT] = sent
    ints[L.LAST_NOVEL] = novel
    ints[L.SENT_TOTAL] += sent
    ints[L.NOVEL_TOTAL] += novel
    path_is_over = ints[L.PATH_VISITS] >= world[L.PATH_LENGTH]
    if path_is_over or ints[L.FRONTIER] == 0:
        allow_any_known(F)
    return total
