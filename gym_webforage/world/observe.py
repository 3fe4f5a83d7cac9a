"""Writing observations, compiled: the candidates in the slots, the mask, the context.

Counts and ages enter as n / (n + c), so every column but the state is between 0 and 1
and needs no scaling. With ``scaled=True`` each column of the candidates is a z-score
instead: less its mean over the slots that hold a URL, divided by its standard deviation
(0 where all are equal, to a millionth). For the whole action set, `World.features`
returns the same columns, raw or as z-scores over the action set.

*News* rows tell what the forager learnt when it last fetched the page:

===============  =======================================================================
(state)          the k state columns (not with ``features="transfer"``); zeros if never
                 fetched
age              a / (a + 24 h), a: the page's age when it was last fetched
links            n / (n + 20), n: links on it
in_links         n / (n + 5), n: visits to pages that link to it
visits           n / (n + 5), n: visits to it
yield            y / (y + 5), y: novel documents per visit to it
fetched          1 once it was fetched
===============  =======================================================================

and with ``features="transfer"`` or ``"all"`` how it changed, as of now:

===============  =======================================================================
fetches          n / (n + 5), n: times it was fetched
change_rate      c / (n + 1), c: times that a fetch showed another version than the one
                 before, n: fetches after the first
since_fetch      t / (t + 24 h), t: since it was last fetched; 1 if it never was
since_change     t / (t + 24 h), t: since a fetch last showed a change; 1 if none did
age_now          a / (a + 24 h), a: age by now of the version last fetched
directory_yield  y / (y + 5), y: novel documents per visit to URLs in its directory, one
                 more visit counted
===============  =======================================================================

*Topic* and *Spider* rows (``features="transfer"``) tell what is known before a fetch.
The *value* of a page is its relevance, and a *rate* is (s + m) / (n + 1): s is the sum
of the values of n pages fetched, m the mean value of all pages fetched so far.

===============  =======================================================================
anchor           cosine of the link's anchor with the topic (each occurrence of a word
                 is a dimension of its own; at most 1), the best over links seen
near             the same for the text near the link
url              the same for the words of the URL
anchor_paid      cosine of its first anchor with the links (anchor and URL) that led to
                 relevant pages
near_paid        the same for the text near its first link
url_paid         the same for the words of its URL
anchor_body      cosine of its first anchor with the centroid of relevant pages' text
near_body        the same for the text near its first link
url_body         the same for the words of its URL
source           value of the page it was seen on, the best over those
source_mean      the mean over those
source_rate      rate of URLs first found on the same page
directory_rate   rate of URLs in the same directory
path_rate        rate of URLs whose first link had the same tag path
ending_rate      rate of URLs with the same file ending
site_rate        rate of URLs of the same site
depth            d / (d + 5), d: links from a root
waiting          w / (w + 100), w: steps since it was found
in_links         n / (n + 5), n: pages seen to link to it
new_words        share of the words in its first anchor and its URL that no link or root
                 found before had
untried          1 / (1 + n), n: pages fetched from the same directory
===============  =======================================================================

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
from gym_webforage.world.kernels import number_of_slot, step_number, step_slot
from gym_webforage.world.ledger import action_set_size
from gym_webforage.world.lessons import (
    path_rate,
    rate,
    refresh_likeness,
    source_rate,
)

NEWS_COLUMNS = len(L.NEWS_COLUMNS)
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
def write_history(T, W, F, number, out, first):
    """Write how a page of News changed, at the end of its row."""
    now = i64(W[L.WORLD_INTS])[L.CLOCK]
    history = i64(F[L.HISTORY])
    ledger = i32(F[L.LEDGER])
    at = number * L.HISTORY_FIELDS
    url = ledger[number * L.LEDGER_COLUMNS + L.URL]
    version = ledger[number * L.LEDGER_COLUMNS + L.VERSION]
    fetches = history[at + L.HISTORY_FETCHES] if version >= 0 else 0
    changes = history[at + L.HISTORY_CHANGES] if version >= 0 else 0
    directory = i32(T[L.URL_DIRECTORY])[url]
    out[first + 0] = fetches / (fetches + 5.0)
    out[first + 1] = 0.0
    out[first + 2] = 1.0
    out[first + 3] = 1.0
    out[first + 4] = 0.0
    if fetches > 0:
        since = now - history[at + L.FETCHED_AT]
        age = now - i64(T[L.PUBLISHED])[version]
        out[first + 1] = changes / np.float64(fetches)
        out[first + 2] = since / (since + 86_400_000.0)
        out[first + 4] = age / (age + 86_400_000.0)
    if changes > 0:
        since = now - history[at + L.CHANGED_AT]
        out[first + 3] = since / (since + 86_400_000.0)
    novel = rate(f64(F[L.DIRECTORY_STATS]), directory, 0.0)
    out[first + 5] = novel / (novel + 5.0)


@compiled
def write_transfer_row(T, F, number, out):
    """Write the row of one URL."""
    ints = i64(F[L.FORAGER_INTS])
    row = number * L.LEDGER_COLUMNS
    ledger = i32(F[L.LEDGER])
    if ledger[row + L.PROFILE_SEEN] != ints[L.PROFILE_NUMBER]:
        refresh_likeness(T, F, number)
    floats = f32(F[L.LEDGER_FLOATS])
    facts = number * L.LEDGER_FLOAT_COLUMNS
    url = ledger[row + L.URL]
    depth = ledger[row + L.DEPTH]
    waiting = ints[L.STEP] - ledger[row + L.FOUND_AT]
    in_links = ledger[row + L.IN_LINKS]
    mean = f64(F[L.FORAGER_FLOATS])[L.MEAN_VALUE]
    directories = f64(F[L.DIRECTORY_STATS])
    directory = i32(T[L.URL_DIRECTORY])[url]
    source_mean = floats[facts + L.SOURCE_SUM] / in_links if in_links > 0 else 0.0
    by_source = source_rate(F, number)
    by_directory = rate(directories, directory, mean)
    by_path = path_rate(T, F, ledger[row + L.TEXT])
    by_ending = rate(f64(F[L.ENDING_STATS]), i32(T[L.URL_ENDING])[url], mean)
    by_site = rate(f64(F[L.SITE_STATS]), i32(T[L.URL_SITE])[url], mean)
    untried = 1.0 / (1.0 + directories[2 * directory + 1])
    out[0] = floats[facts + L.ANCHOR_COSINE]
    out[1] = floats[facts + L.NEAR_COSINE]
    out[2] = floats[facts + L.URL_COSINE]
    for column in range(6):
        out[3 + column] = floats[facts + L.ANCHOR_PAID + column]
    out[9] = floats[facts + L.SOURCE_VALUE]
    out[10] = source_mean
    out[11] = by_source
    out[12] = by_directory
    out[13] = by_path
    out[14] = by_ending
    out[15] = by_site
    out[16] = depth / (depth + 5.0)
    out[17] = waiting / (waiting + 100.0)
    out[18] = in_links / (in_links + 5.0)
    out[19] = floats[facts + L.NEW_WORDS]
    out[20] = untried


@compiled
def row_of(rows, at):
    """Return a row by its address, which is cheaper than a view of it."""
    return f32(rows.ctypes.data + 4 * at * rows.shape[1])


@compiled
def write_row(T, W, F, number, out, columns):
    """Write the row of one URL, whatever the rules are."""
    if i64(W[L.WORLD_INTS])[L.RULES] != L.NEWS:
        write_transfer_row(T, F, number, out)
        return
    write_news_row(T, F, number, out)
    if i64(F[L.FORAGER_INTS])[L.HAS_HISTORY]:
        write_history(T, W, F, number, out, columns - L.HISTORY_COUNT)


@compiled
def write_rows(T, W, F, numbers, rows):
    """Write the rows of many URLs."""
    for i in range(len(numbers)):
        write_row(T, W, F, numbers[i], row_of(rows, i), rows.shape[1])


# --- z-scores


@compiled
def measure(rows, mask, middle, width):
    """Write each column's mean and standard deviation over the rows in ``mask``.

    The deviation is 0 if all are equal to a millionth: rounding must not seem large.
    """
    count = 0
    for i in range(len(rows)):
        count += mask[i] != 0
    for column in range(rows.shape[1]):
        total = 0.0
        low, high = np.inf, -np.inf
        for i in range(len(rows)):
            if mask[i]:
                value = np.float64(rows[i, column])
                total += value
                low = min(low, value)
                high = max(high, value)
        middle[column] = 0.0
        width[column] = 0.0
        if high - low > 1e-6:
            middle[column] = total / count
            square = 0.0
            for i in range(len(rows)):
                if mask[i]:
                    square += (rows[i, column] - middle[column]) ** 2
            width[column] = np.sqrt(square / count)


@compiled
def rescale(rows, mask, middle, width):
    """Turn the rows in ``mask`` into z-scores."""
    for i in range(len(rows)):
        if mask[i]:
            for column in range(rows.shape[1]):
                value = (rows[i, column] - middle[column]) if width[column] > 0 else 0.0
                rows[i, column] = value / width[column] if width[column] > 0 else 0.0


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
def observe_changes(T, F, last, candidates, mask):
    """Write the rows of plain News that changed since a stamp."""
    slot = i32(F[L.SLOT])
    changed = i64(F[L.SLOT_CHANGED])
    for at in range(i64(F[L.FORAGER_INTS])[L.SLOTS]):
        number = np.int64(slot[at])
        mask[at] = 1 if number >= 0 else 0
        if changed[at] <= last:
            continue
        if number < 0:
            for column in range(candidates.shape[1]):
                candidates[at, column] = 0.0
        else:
            write_news_row(T, F, number, row_of(candidates, at))


@compiled
def observe_all(T, W, F, candidates, mask):
    """Write all rows."""
    ints = i64(F[L.FORAGER_INTS])
    columns = candidates.shape[1]
    slot = i32(F[L.SLOT])
    for at in range(ints[L.SLOTS]):
        number = np.int64(slot[at])
        mask[at] = 1 if number >= 0 else 0
        if number < 0:
            for column in range(candidates.shape[1]):
                candidates[at, column] = 0.0
        else:
            write_row(T, W, F, number, row_of(candidates, at), columns)
    if ints[L.IS_SCALED]:
        middle = np.empty(candidates.shape[1])
        width = np.empty(candidates.shape[1])
        measure(candidates, mask, middle, width)
        rescale(candidates, mask, middle, width)


@compiled
def observe(T, W, F, since, candidates, mask, context):
    """Write an observation; in plain News only the rows that changed meanwhile.

    ``since[0]`` is the forager's stamp when these ``candidates`` were last written, or
    -1 if they never were; it is brought up to date.
    """
    ints = i64(F[L.FORAGER_INTS])
    last = since[0]
    since[0] = ints[L.STAMP]
    if ints[L.KEEPS_ROWS]:
        observe_changes(T, F, last, candidates, mask)
    else:
        observe_all(T, W, F, candidates, mask)
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
