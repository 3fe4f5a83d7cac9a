"""The rules of a visit, compiled; `gym_webforage.world` states them in words.

``T``, ``W`` and ``F`` are the addresses of a trace's, a world's and a forager's arrays
(see `layout`). A visit either does all of its work or, when an array is too small,
nothing: it then answers which one has to grow, and is called again.
"""

from __future__ import annotations

import numpy as np

from gym_webforage.world import layout as L
from gym_webforage.world.compile import compiled, f32, f64, i16, i32, i64, u8
from gym_webforage.world.ledger import (
    action_set_size,
    allow_any_known,
    clear_frontier,
    discover,
    find,
    is_legal,
    join_frontier,
    leave_frontier,
    touch_slot,
)

# --- pages


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
def cost_of(T, W, version):
    """Return how long a fetch of ``version`` (-1: none) takes."""
    ints = i64(W[L.WORLD_INTS])
    cost = ints[L.FETCH_TIME]
    if ints[L.COST_IS_BYTES] and version >= 0:
        mean = f64(W[L.WORLD_FLOATS])[L.MEAN_BYTES]
        exact = cost * i64(T[L.BYTES])[version] / mean
        cost = max(np.int64(1), np.int64(np.floor(exact + 0.5)))
    return cost


@compiled
def fetch_time(T, W, url, time):
    """Return how long a fetch of what ``url`` shows at ``time`` takes."""
    return cost_of(T, W, version_at(T, url, time))


@compiled
def fetch(T, W, url, version, clock):
    """Return when a fetch of ``url`` that is due at ``clock`` ends."""
    ints = i64(W[L.WORLD_INTS])
    cost = cost_of(T, W, version)
    delay = ints[L.HOST_DELAY]
    if delay == 0:
        return clock + cost
    ready = i64(W[L.SITE_READY])
    site = i32(T[L.URL_SITE])[url]
    clock = max(clock, ready[site]) + cost
    ready[site] = clock + delay
    return clock


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


# --- News


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
    ints[L.LAST_SENT] = sent
    ints[L.LAST_NOVEL] = novel
    ints[L.SENT_TOTAL] += sent
    ints[L.NOVEL_TOTAL] += novel
    path_is_over = ints[L.PATH_VISITS] >= world[L.PATH_LENGTH]
    if path_is_over or ints[L.FRONTIER] == 0:
        allow_any_known(F)
    return total


# --- Topic and Spider


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
def count_value(table, at, value):
    """Add a fetch to running statistics: sum of values, number of fetches."""
    table[2 * at] += value
    table[2 * at + 1] += 1.0


@compiled
def add_to_profile(F, T, start, tokens, row):
    """Add the tokens of a link that led to a paying page to the forager's profile."""
    profile = f64(F[L.PROFILE])
    floats = f64(F[L.FORAGER_FLOATS])
    idf = f64(T[L.IDF])
    for i in range(start[row], start[row + 1]):
        token = tokens[i]
        old = profile[token]
        new = old + idf[token]
        profile[token] = new
        floats[L.PROFILE_SQUARE] += new * new - old * old


@compiled
def visit_page(T, W, F, number, begin):
    """Fetch one page alone and judge it; return when it ends and the reward."""
    world = i64(W[L.WORLD_INTS])
    ints = i64(F[L.FORAGER_INTS])
    ledger = i32(F[L.LEDGER])
    floats = f32(F[L.LEDGER_FLOATS])
    row = number * L.LEDGER_COLUMNS
    url = ledger[row + L.URL]
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
    if value > 0.0 and take_bit(u8(W[L.PAID_BITS]), np.int64(url)):
        reward = value
        needed = 1.0
        if world[L.RULES] == L.TOPIC_RULES:
            needed = f64(W[L.WORLD_FLOATS])[L.THRESHOLD]
        if value >= needed:
            novel = 1
            flags |= L.NOVEL
            ints[L.PROFILE_NUMBER] += 1
            text = ledger[row + L.TEXT]
            if text >= 0:
                start, tokens = i64(T[L.ANCHOR_START]), i32(T[L.ANCHOR])
                add_to_profile(F, T, start, tokens, text)
            start, tokens = i64(T[L.URL_TOKEN_START]), i32(T[L.URL_TOKEN])
            add_to_profile(F, T, start, tokens, url)
    log(W, F, clock, url, version, flags, reward)
    world[L.FETCHES] += 1

    source = np.int64(ledger[row + L.SOURCE])
    if source >= 0:
        ledger[source * L.LEDGER_COLUMNS + L.CHILDREN] += 1
        floats[source * L.LEDGER_FLOAT_COLUMNS + L.CHILD_SUM] += value
    count_value(f64(F[L.SITE_STATS]), i32(T[L.URL_SITE])[url], value)
    count_value(f64(F[L.ENDING_STATS]), i32(T[L.URL_ENDING])[url], value)
    floats[number * L.LEDGER_FLOAT_COLUMNS + L.VALUE] = value
    if alive:
        ledger[row + L.VERSION] = version
        follow_links(T, W, F, number, version, value)
    ints[L.LAST_URL] = url
    ints[L.LAST_FETCHES] = 1
    ints[L.LAST_SENT] = 0
    ints[L.LAST_NOVEL] = novel
    ints[L.NOVEL_TOTAL] += novel
    return clock, reward


@compiled
def follow_links(T, W, F, number, version, value):
    """Put the unknown links of a page on the frontier; note the known ones again."""
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
        floats[facts + L.SOURCE_VALUE] = max(
            floats[facts + L.SOURCE_VALUE], np.float32(value)
        )


# --- one step of one forager


@compiled
def begin(T, W, F, roots):
    """Start a crawl: the roots are known, and the action set."""
    ints = i64(F[L.FORAGER_INTS])
    is_news = i64(W[L.WORLD_INTS])[L.RULES] == L.NEWS
    ints[L.STAMP] += 1
    clear_frontier(F)
    token_start, tokens = i64(T[L.URL_TOKEN_START]), i32(T[L.URL_TOKEN])
    for root in roots:
        if find(F, root) < 0:
            number = discover(F, root)
            if not is_news:
                join_frontier(F, number)
            if i64(W[L.WORLD_INTS])[L.RULES] == L.TOPIC_RULES:
                f32(F[L.LEDGER_FLOATS])[
                    number * L.LEDGER_FLOAT_COLUMNS + L.URL_COSINE
                ] = cosine(T, token_start, tokens, root, f64(W[L.TOPIC]), 1.0)
    if is_news:
        allow_any_known(F)


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
