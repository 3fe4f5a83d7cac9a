"""A visit in Topic and Spider, compiled: fetch one page, judge it, follow links."""

from __future__ import annotations

import numpy as np

from gym_webforage.world import layout as L
from gym_webforage.world.compile import compiled, f32, f64, i32, i64, u8
from gym_webforage.world.ledger import (
    clear_frontier,
    discover,
    find,
    join_frontier,
    leave_frontier,
)
from gym_webforage.world.lessons import learn_value, learn_words, note_words
from gym_webforage.world.pages import (
    fetch,
    is_alive,
    is_page,
    log,
    take_bit,
    version_at,
)
from gym_webforage.world.shortlist import choose_slots, pass_turn


@compiled
def frequency_cosine(T, W, text):
    """Return the cosine of a text's term frequencies with the topic's.

    Over the topic's words alone. That a frequency is taken over the largest cancels
    out, but makes texts in the same proportions equal to the last bit.
    """
    start = i64(T[L.BODY_START])
    tokens = i32(T[L.BODY])
    counts = i32(T[L.BODY_COUNT])
    topic = f64(W[L.TOPIC_FREQUENCY])
    most = np.int32(0)
    for i in range(start[text], start[text + 1]):
        if topic[tokens[i]] > 0.0:
            most = max(most, counts[i])
    if most == 0:
        return 0.0
    product = 0.0
    square = 0.0
    for i in range(start[text], start[text + 1]):
        weight = topic[tokens[i]]
        if weight > 0.0:
            often = counts[i] / most
            product += weight * often
            square += often * often
    square *= f64(W[L.WORLD_FLOATS])[L.TOPIC_SQUARE]
    return min(1.0, product / np.sqrt(square))


@compiled
def relevance(T, W, url, version):
    """Return what a page is worth to the judge of Topic or Spider."""
    ints = i64(W[L.WORLD_INTS])
    if not is_page(T, version):
        return 0.0
    if ints[L.RULES] == L.SPIDER:
        return 1.0 if u8(T[L.URL_TARGET])[url] else 0.0
    label = ints[L.TOPIC_LABEL]
    if label >= 0:
        start = i64(T[L.LABEL_START])
        labels = i32(T[L.LABEL])
        for i in range(start[url], start[url + 1]):
            if labels[i] == label:
                return 1.0
        return 0.0
    text = i32(T[L.VERSION_TEXT])[version]
    if text < 0:
        return 0.0
    if f64(W[L.WORLD_FLOATS])[L.TOPIC_SQUARE] >= 0.0:
        return frequency_cosine(T, W, text)
    norm = f64(T[L.TEXT_NORM])[text]
    if norm <= 0.0:
        return 0.0
    start = i64(T[L.BODY_START])
    tokens = i32(T[L.BODY])
    counts = i32(T[L.BODY_COUNT])
    idf = f64(T[L.IDF])
    topic = f64(W[L.TOPIC])
    total = 0.0
    for i in range(start[text], start[text + 1]):
        token = tokens[i]
        total += counts[i] * idf[token] * topic[token]
    return total / norm


@compiled
def cosine(T, start, tokens, row, vector, length):
    """Return the cosine of a list of tokens with a vector of this length, at most 1.

    Each occurrence counts as a dimension of its own, so that no counting is needed;
    for a repeated word the result could otherwise exceed 1.
    """
    idf = f64(T[L.IDF])
    product = 0.0
    square = 0.0
    for i in range(start[row], start[row + 1]):
        token = tokens[i]
        product += idf[token] * vector[token]
        square += idf[token] * idf[token]
    return min(1.0, product / (np.sqrt(square) * length)) if square > 0.0 else 0.0


@compiled
def visit_page(T, W, F, number, begin):
    """Fetch one page alone and judge it; return when it ends and the reward."""
    world = i64(W[L.WORLD_INTS])
    ints = i64(F[L.FORAGER_INTS])
    ledger = i32(F[L.LEDGER])
    row = number * L.LEDGER_COLUMNS
    url = ledger[row + L.URL]
    if not world[L.REACH_LINKS]:
        pass_turn(F, number)
        leave_frontier(F, number)
        ledger[row + L.PLACE] = L.WAS_VISITED
    ledger[row + L.TOUCHED] = ints[L.STEP]
    ledger[row + L.VISITS] += 1

    version = version_at(T, url, begin)
    clock = fetch(T, W, url, version, begin)
    alive = is_alive(T, version)
    value = relevance(T, W, url, version)
    reward = 0.0
    novel = 0
    flags = L.VISITED if alive else L.VISITED | L.DEAD
    if value > 0.0 and not take_bit(u8(W[L.PAID_BITS]), np.int64(url)):
        if world[L.REVISIT] == L.REVISIT_PAYS:
            reward = value
        elif world[L.REVISIT] == L.REVISIT_COSTS:
            reward = f64(W[L.WORLD_FLOATS])[L.PENALTY]
    elif value > 0.0:
        reward = value
        needed = 1.0
        if world[L.RULES] == L.TOPIC_RULES:
            needed = f64(W[L.WORLD_FLOATS])[L.THRESHOLD]
        if value >= needed:
            novel = 1
            flags |= L.NOVEL
            learn_words(T, F, number, version)
    log(W, F, clock, url, version, flags, reward)
    world[L.FETCHES] += 1

    learn_value(T, F, number, value)
    if alive:
        ledger[row + L.VERSION] = version
        follow_links(T, W, F, number, version, value)
    choose_slots(T, F)
    ints[L.LAST_URL] = url
    ints[L.LAST_FETCHES] = 1
    ints[L.LAST_SENT] = 0
    ints[L.LAST_NOVEL] = novel
    ints[L.NOVEL_TOTAL] += novel
    return clock, reward


@compiled
def follow_links(T, W, F, number, version, value):
    """Put the unknown links of a page on the frontier; note the known ones again.

    Where the action set is the links of a page, they take the place of the old ones;
    a page without links leaves the forager where it stood.
    """
    world = i64(W[L.WORLD_INTS])
    step = i64(F[L.FORAGER_INTS])[L.STEP]
    ledger = i32(F[L.LEDGER])
    floats = f32(F[L.LEDGER_FLOATS])
    link_start = i64(T[L.LINK_START])
    link_target = i32(T[L.LINK_TARGET])
    link_text = i32(T[L.LINK_TEXT])
    anchor_start, anchor = i64(T[L.ANCHOR_START]), i32(T[L.ANCHOR])
    near_start, near = i64(T[L.NEAR_START]), i32(T[L.NEAR])
    token_start, tokens = i64(T[L.URL_TOKEN_START]), i32(T[L.URL_TOKEN])
    topic = f64(W[L.TOPIC])
    url_site = i32(T[L.URL_SITE])
    site = world[L.SITE]
    has_topic = world[L.RULES] == L.TOPIC_RULES
    reach_links = world[L.REACH_LINKS] != 0
    stays = True
    for link in range(link_start[version], link_start[version + 1]):
        target = link_target[link]
        if site >= 0 and url_site[target] != site:
            continue
        other = find(F, target)
        is_new = other < 0
        if is_new:
            other = discover(F, target)
        at = other * L.LEDGER_COLUMNS
        if ledger[at + L.TOUCHED] == step:
            continue  # the page itself, or a second link to the same URL
        ledger[at + L.TOUCHED] = step
        ledger[at + L.IN_LINKS] += 1
        facts = other * L.LEDGER_FLOAT_COLUMNS
        text = link_text[link]
        if is_new:
            ledger[at + L.SOURCE] = number
            ledger[at + L.TEXT] = text
            depth = ledger[number * L.LEDGER_COLUMNS + L.DEPTH]
            ledger[at + L.DEPTH] = depth + 1
            if has_topic:
                floats[facts + L.URL_COSINE] = cosine(
                    T, token_start, tokens, target, topic, 1.0
                )
            note_words(T, F, other)
        if reach_links and stays:
            stays = False
            i64(F[L.FORAGER_INTS])[L.HERE] = number
            clear_frontier(F)
        if is_new or reach_links:
            join_frontier(F, other)
        if has_topic and text >= 0:
            floats[facts + L.ANCHOR_COSINE] = max(
                floats[facts + L.ANCHOR_COSINE],
                np.float32(cosine(T, anchor_start, anchor, text, topic, 1.0)),
            )
            floats[facts + L.NEAR_COSINE] = max(
                floats[facts + L.NEAR_COSINE],
                np.float32(cosine(T, near_start, near, text, topic, 1.0)),
            )
        floats[facts + L.SOURCE_SUM] += value
        floats[facts + L.SOURCE_VALUE] = max(
            floats[facts + L.SOURCE_VALUE], np.float32(value)
        )
