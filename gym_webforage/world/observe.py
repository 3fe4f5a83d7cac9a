"""Writing observations, compiled: the candidates in the slots, the mask, the context.

Counts and ages enter as n / (n + c), so every column but the state is between -1 and
1 and needs no scaling. *News* rows tell what the forager learnt when it last fetched
the page:

========  ==============================================================================
(state)   the k state columns (``features="state"`` only); zeros if never fetched
age       a / (a + 24 h), a: the page's age when it was last fetched
links     n / (n + 20), n: links on it
in_links  n / (n + 5), n: visits to pages that link to it
visits    n / (n + 5), n: visits to it
yield     y / (y + 5), y: novel documents per visit to it
fetched   1 once it was fetched
========  ==============================================================================

*Topic* and *Spider* rows (``features="transfer"``) tell what is known before a fetch:

===========  ===========================================================================
anchor       cosine of the link's anchor with the topic (each occurrence of a word is a
             dimension of its own; at most 1), the best over links seen
near         the same for the text near the link
url          the same for the words of the URL
source       relevance of the page it was seen on, the best over those
source_rate  relevance per fetch of URLs first found on the same page, s / (n + 1)
site_rate    the same for URLs of the same site
ending_rate  the same for URLs with the same file ending
depth        d / (d + 5), d: links from a root
waiting      w / (w + 100), w: steps since it was found
in_links     n / (n + 5), n: pages seen to link to it
anchor_paid  cosine of its first anchor with the links that led to relevant pages
url_paid     the same for the words of its URL
===========  ===========================================================================

The context:

===========  ===========================================================================
budget_left  share of the budget that is left
day_sine     time of day, as an angle
day_cosine
at_start     1 if a path begins and any known URL may be visited (News)
path         visits in this path, as a share of its length (News)
frontier     n / (n + 100), n: size of the action set
last_reward  x / (1 + |x|), x: last reward (News: in units of ``reward``)
mean_reward  the same for the reward per fetch so far
===========  ===========================================================================
"""

from __future__ import annotations

import numpy as np

from gym_webforage.world import layout as L
from gym_webforage.world.compile import compiled, f32, f64, i32, i64
from gym_webforage.world.focused import cosine
from gym_webforage.world.kernels import number_of_slot, step_number, step_slot
from gym_webforage.world.ledger import action_set_size

NEWS_COLUMNS = len(L.NEWS_COLUMNS)
TRANSFER_COLUMNS = len(L.TRANSFER_COLUMNS)
CONTEXT_COLUMNS = len(L.CONTEXT_COLUMNS)


@compiled
def write_news_row(T, F, number, out):
    """Write the row of one URL."""
    states = i64(F[L.FORAGER_INTS])[L.STATE_COLUMNS]
    row = number * L.LEDGER_COLUMNS
    ledger = i32(F[L.LEDGER])
    version = np.int64(ledger[row + L.VERSION])
    if version < 0:
        for column in range(states + 2):
            out[column] = 0.0
    else:
        state = f32(T[L.STATE])
        at = version * states
        for column in range(states):
            out[column] = state[at + column]
        start = i64(T[L.LINK_START])
        links = start[version + 1] - start[version]
        age = ledger[row + L.AGE]
        out[states] = age / (age + 864_000.0)
        out[states + 1] = links / (links + 20.0)
    in_links = ledger[row + L.IN_LINKS]
    visits = ledger[row + L.VISITS]
    novel = ledger[row + L.PAID]
    out[states + 2] = in_links / (in_links + 5.0)
    out[states + 3] = visits / (visits + 5.0)
    out[states + 4] = novel / (novel + 5.0 * visits) if visits > 0 else 0.0
    out[states + 5] = 1.0 if version >= 0 else 0.0


@compiled
def rate(table, at):
    """Return the mean value of fetches, shrunk towards 0."""
    return table[2 * at] / (table[2 * at + 1] + 1.0)


@compiled
def profile_cosine(T, F, start, tokens, row):
    """Return the cosine of a list of tokens with the forager's profile."""
    square = f64(F[L.FORAGER_FLOATS])[L.PROFILE_SQUARE]
    if square <= 0.0:
        return 0.0
    return cosine(T, start, tokens, row, f64(F[L.PROFILE]), np.sqrt(square))


@compiled
def write_transfer_row(T, F, number, out):
    """Write the row of one URL."""
    ints = i64(F[L.FORAGER_INTS])
    row = number * L.LEDGER_COLUMNS
    ledger = i32(F[L.LEDGER])
    floats = f32(F[L.LEDGER_FLOATS])
    facts = number * L.LEDGER_FLOAT_COLUMNS
    url = ledger[row + L.URL]
    source = np.int64(ledger[row + L.SOURCE])
    text = ledger[row + L.TEXT]
    depth = ledger[row + L.DEPTH]
    waiting = ints[L.STEP] - ledger[row + L.FOUND_AT]
    in_links = ledger[row + L.IN_LINKS]
    out[0] = floats[facts + L.ANCHOR_COSINE]
    out[1] = floats[facts + L.NEAR_COSINE]
    out[2] = floats[facts + L.URL_COSINE]
    out[3] = floats[facts + L.SOURCE_VALUE]
    out[4] = 0.0
    if source >= 0:
        children = ledger[source * L.LEDGER_COLUMNS + L.CHILDREN]
        total = floats[source * L.LEDGER_FLOAT_COLUMNS + L.CHILD_SUM]
        out[4] = total / (children + 1.0)
    out[5] = rate(f64(F[L.SITE_STATS]), i32(T[L.URL_SITE])[url])
    out[6] = rate(f64(F[L.ENDING_STATS]), i32(T[L.URL_ENDING])[url])
    out[7] = depth / (depth + 5.0)
    out[8] = waiting / (waiting + 100.0)
    out[9] = in_links / (in_links + 5.0)
    if ledger[row + L.PROFILE_SEEN] != ints[L.PROFILE_NUMBER]:
        # Only now and then does a page pay, and change what all candidates resemble.
        ledger[row + L.PROFILE_SEEN] = ints[L.PROFILE_NUMBER]
        if text >= 0:
            start, tokens = i64(T[L.ANCHOR_START]), i32(T[L.ANCHOR])
            floats[facts + L.ANCHOR_PAID] = profile_cosine(T, F, start, tokens, text)
        start, tokens = i64(T[L.URL_TOKEN_START]), i32(T[L.URL_TOKEN])
        floats[facts + L.URL_PAID] = profile_cosine(T, F, start, tokens, url)
    out[10] = floats[facts + L.ANCHOR_PAID]
    out[11] = floats[facts + L.URL_PAID]


@compiled
def squashed(value):
    """Map any number into -1 to 1."""
    return value / (1.0 + abs(value))


@compiled
def write_context(W, F, out):
    """Write what does not depend on the candidate."""
    world = i64(W[L.WORLD_INTS])
    ints = i64(F[L.FORAGER_INTS])
    floats = f64(F[L.FORAGER_FLOATS])
    left = 1.0
    time, fetches = world[L.BUDGET_TIME], world[L.BUDGET_FETCHES]
    if time > 0:
        left = min(left, 1.0 - (world[L.CLOCK] - world[L.START]) / time)
    if fetches > 0:
        left = min(left, 1.0 - world[L.FETCHES] / fetches)
    angle = (world[L.CLOCK] % 86_400_000) * (2.0 * np.pi / 86_400_000.0)
    size = action_set_size(F)
    scale = 1.0
    is_news = world[L.RULES] == L.NEWS
    if is_news:
        scale = abs(f64(W[L.WORLD_FLOATS])[L.REWARD])
        if scale == 0.0:
            scale = 1.0
    mean = 0.0
    if world[L.FETCHES] > 0:
        mean = floats[L.REWARD_TOTAL] / world[L.FETCHES]
    out[0] = max(0.0, left)
    out[1] = np.sin(angle)
    out[2] = np.cos(angle)
    out[3] = ints[L.AT_START]
    out[4] = ints[L.PATH_VISITS] / world[L.PATH_LENGTH] if is_news else 0.0
    out[5] = size / (size + 100.0)
    out[6] = squashed(floats[L.LAST_REWARD] / scale)
    out[7] = squashed(mean / scale)


@compiled
def observe(T, W, F, since, candidates, mask, context):
    """Write an observation; in News, only the rows that changed since the last time.

    ``since[0]`` is the forager's stamp when these ``candidates`` were last written, or
    -1 if they never were; it is brought up to date.
    """
    ints = i64(F[L.FORAGER_INTS])
    last = since[0]
    since[0] = ints[L.STAMP]
    slot = i32(F[L.SLOT])
    changed = i64(F[L.SLOT_CHANGED])
    is_news = i64(W[L.WORLD_INTS])[L.RULES] == L.NEWS
    for at in range(ints[L.SLOTS]):
        number = np.int64(slot[at])
        mask[at] = 1 if number >= 0 else 0
        if is_news and changed[at] <= last:
            continue
        if number < 0:
            for column in range(candidates.shape[1]):
                candidates[at, column] = 0.0
        elif is_news:
            write_news_row(T, F, number, candidates[at])
        else:
            write_transfer_row(T, F, number, candidates[at])
    write_context(W, F, context)


@compiled
def step_and_observe(T, W, F, slot, since, candidates, mask, context):
    """Take a step by slot and observe, unless an array must grow first."""
    answer, reward = step_slot(T, W, F, slot)
    if answer < L.GROW_LEDGER:
        observe(T, W, F, since, candidates, mask, context)
    return answer, reward


@compiled
def step_and_observe_all(
    T, W, F, active, slots, since, answers, rewards, candidates, masks, contexts
):
    """The same for a batch of worlds with one forager each, where ``active``."""
    waiting = 0
    for i in range(len(slots)):
        if not active[i]:
            continue
        answer, reward = step_number(T, W[i], F[i], number_of_slot(F[i], slots[i]))
        answers[i] = answer
        rewards[i] = reward
        if answer >= L.GROW_LEDGER:
            waiting += 1
        else:
            active[i] = 0
            observe(
                T, W[i], F[i], since[i : i + 1], candidates[i], masks[i], contexts[i]
            )
    return waiting
