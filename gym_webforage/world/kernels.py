"""Steps of one forager, compiled; `gym_webforage.world` states the rules in words.

``T``, ``W`` and ``F`` are the addresses of a trace's, a world's and a forager's arrays
(see `layout`). A visit either does all of its work or, when an array is too small,
nothing: it then answers which one has to grow, and is called again.
"""

from __future__ import annotations

import numpy as np

from gym_webforage.world import layout as L
from gym_webforage.world.compile import compiled, f32, f64, i32, i64
from gym_webforage.world.focused import cosine, follow_links, visit_page
from gym_webforage.world.ledger import (
    action_set_size,
    allow_any_known,
    clear_frontier,
    discover,
    find,
    is_legal,
    join_frontier,
)
from gym_webforage.world.lessons import note_words
from gym_webforage.world.news import send, visit_news
from gym_webforage.world.pages import log, version_at
from gym_webforage.world.shortlist import choose_slots


@compiled
def begin(T, W, F, roots):
    """Start a crawl: the roots are known, and the action set."""
    ints = i64(F[L.FORAGER_INTS])
    is_news = i64(W[L.WORLD_INTS])[L.RULES] == L.NEWS
    ints[L.STAMP] += 1
    clear_frontier(F)
    for root in roots:
        if is_news:
            tell(T, W, F, root)
        else:
            admit(T, W, F, root)
    if is_news:
        allow_any_known(F)
    else:
        choose_slots(T, F)


@compiled
def tell(T, W, F, url):
    """Let a forager know a URL; return its discovery number."""
    number = find(F, url)
    if number < 0:
        number = discover(F, url)
        if i64(W[L.WORLD_INTS])[L.RULES] != L.NEWS:
            note_words(T, F, number)
        if i64(W[L.WORLD_INTS])[L.RULES] == L.TOPIC_RULES:
            start, tokens = i64(T[L.URL_TOKEN_START]), i32(T[L.URL_TOKEN])
            at = number * L.LEDGER_FLOAT_COLUMNS + L.URL_COSINE
            f32(F[L.LEDGER_FLOATS])[at] = cosine(
                T, start, tokens, url, f64(W[L.TOPIC]), 1.0
            )
    return number


@compiled
def admit(T, W, F, url):
    """Put a URL into the action set, as if it were linked; say whether it was not."""
    number = tell(T, W, F, url)
    if is_legal(F, number):
        return False
    join_frontier(F, number)
    return True


@compiled
def stand(T, W, F, url, version, value):
    """Put a forager on a page: its links are what it may visit."""
    ints = i64(F[L.FORAGER_INTS])
    ledger = i32(F[L.LEDGER])
    step, known = ints[L.STEP], ints[L.KNOWN]
    number = tell(T, W, F, url)
    # This is no step, but needs a number of its own to tell links that stand twice.
    ints[L.STAMP] += 1
    ints[L.STEP] = -(ints[L.STAMP] & 0x3FFFFFFF)
    ledger[number * L.LEDGER_COLUMNS + L.VERSION] = version
    ledger[number * L.LEDGER_COLUMNS + L.TOUCHED] = ints[L.STEP]
    f32(F[L.LEDGER_FLOATS])[number * L.LEDGER_FLOAT_COLUMNS + L.VALUE] = value
    follow_links(T, W, F, number, version, value)
    ints[L.STEP] = step
    for other in range(known, ints[L.KNOWN]):
        ledger[other * L.LEDGER_COLUMNS + L.FOUND_AT] = step


@compiled
def room_needed(T, W, F, url):
    """Answer which arrays are too small for a visit of ``url``, 0 if none is."""
    world = i64(W[L.WORLD_INTS])
    ints = i64(F[L.FORAGER_INTS])
    links = np.int64(0)
    version = version_at(T, url, world[L.CLOCK])
    if version >= 0:
        start = i64(T[L.LINK_START])
        links = start[version + 1] - start[version]
    answer = 0
    if ints[L.KNOWN] + links > ints[L.LEDGER_CAPACITY]:
        answer |= L.GROW_LEDGER
    if world[L.MAKES_LOG] and world[L.LOG_COUNT] + links + 1 > world[L.LOG_CAPACITY]:
        answer |= L.GROW_LOG
    return answer


@compiled
def standing(W, F):
    """Answer whether the crawl is over."""
    world = i64(W[L.WORLD_INTS])
    answer = 0
    if action_set_size(F) == 0:
        answer |= L.ENDED
    time, fetches = world[L.BUDGET_TIME], world[L.BUDGET_FETCHES]
    if time >= 0 and world[L.CLOCK] - world[L.START] >= time:
        answer |= L.TRUNCATED
    if fetches >= 0 and world[L.FETCHES] >= fetches:
        answer |= L.TRUNCATED
    return answer


@compiled
def open_step(T, W, F, number):
    """Begin a step towards this discovery number (-1: none), if there is room for it.

    Answers what must grow, or `WAS_ILLEGAL`, or 0.
    """
    world = i64(W[L.WORLD_INTS])
    ints = i64(F[L.FORAGER_INTS])
    legal = number >= 0 and is_legal(F, number)
    if legal:
        url = i32(F[L.LEDGER])[number * L.LEDGER_COLUMNS + L.URL]
        answer = room_needed(T, W, F, url)
        if answer:
            return answer
    elif world[L.MAKES_LOG] and world[L.LOG_COUNT] >= world[L.LOG_CAPACITY]:
        return L.GROW_LOG
    ints[L.STEP] += 1
    ints[L.STAMP] += 1
    ints[L.KNOWN_BEFORE] = ints[L.KNOWN]
    return 0 if legal else L.WAS_ILLEGAL


@compiled
def visit_nothing(W, F, begin):
    """Pay for an illegal action; return when it ends."""
    world = i64(W[L.WORLD_INTS])
    ints = i64(F[L.FORAGER_INTS])
    end = begin + world[L.FETCH_TIME]
    world[L.FETCHES] += 1
    log(W, F, end, -1, -1, L.ILLEGAL, -1.0)
    ints[L.LAST_URL] = -1
    ints[L.LAST_FETCHES] = 1
    ints[L.LAST_SENT] = 0
    ints[L.LAST_NOVEL] = 0
    ints[L.OUTBOX_COUNT] = 0
    return end


@compiled
def close_step(F, reward):
    """End a step."""
    floats = f64(F[L.FORAGER_FLOATS])
    floats[L.LAST_REWARD] = reward
    floats[L.REWARD_TOTAL] += reward


@compiled
def step_number(T, W, F, number):
    """Visit the URL with this discovery number (-1: illegal); answer and reward."""
    world = i64(W[L.WORLD_INTS])
    answer = open_step(T, W, F, number)
    if answer >= L.GROW_LEDGER:
        return answer, 0.0
    reward = -1.0
    if answer == L.WAS_ILLEGAL:
        world[L.CLOCK] = visit_nothing(W, F, world[L.CLOCK])
    elif world[L.RULES] == L.NEWS:
        world[L.CLOCK] = visit_news(T, W, F, number, world[L.CLOCK])
        reward = send(T, W, F, number, world[L.CLOCK])
    else:
        clock, reward = visit_page(T, W, F, number, world[L.CLOCK])
        world[L.CLOCK] = clock
    close_step(F, reward)
    return answer | standing(W, F), reward


@compiled
def number_of_slot(F, slot):
    """Return the discovery number in a slot, -1 if there is none."""
    if 0 <= slot < i64(F[L.FORAGER_INTS])[L.SLOTS]:
        return np.int64(i32(F[L.SLOT])[slot])
    return np.int64(-1)


@compiled
def step_url(T, W, F, url):
    """Visit a URL; answer and reward."""
    number = np.int64(-1)
    if 0 <= url < 2147483648:
        number = find(F, url)
    return step_number(T, W, F, number)


@compiled
def step_slot(T, W, F, slot):
    """Visit the URL in a slot; answer and reward."""
    return step_number(T, W, F, number_of_slot(F, slot))
