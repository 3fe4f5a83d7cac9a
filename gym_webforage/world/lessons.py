"""What fetches taught a forager of Topic or Spider, compiled: rates and likenesses.

A visited page has a value, its relevance. The values are added up by source page,
directory, tag path, file ending and site. From each page that paid as relevant the
forager keeps the words, those of the link that led to it and those of the page: the
two halves of its *profile*, with which the texts of other links are compared.
"""

from __future__ import annotations

import numpy as np

from gym_webforage.world import layout as L
from gym_webforage.world.compile import compiled, f32, f64, i32, i64, u8
from gym_webforage.world.pages import take_bit

# --- success rates


@compiled
def count_value(table, at, value):
    """Add a fetch to running statistics: sum of values, number of fetches."""
    table[2 * at] += value
    table[2 * at + 1] += 1.0


@compiled
def rate(table, at, mean):
    """Return the mean value of fetches and one more, of which nothing is known."""
    return (table[2 * at] + mean) / (table[2 * at + 1] + 1.0)


@compiled
def learn_value(T, F, number, value):
    """Note what a visited page was worth, with all that its URL shares with others."""
    ledger = i32(F[L.LEDGER])
    floats = f32(F[L.LEDGER_FLOATS])
    totals = f64(F[L.FORAGER_FLOATS])
    row = number * L.LEDGER_COLUMNS
    url = ledger[row + L.URL]
    text = ledger[row + L.TEXT]
    source = np.int64(ledger[row + L.SOURCE])
    totals[L.VALUE_TOTAL] += value
    totals[L.VALUES] += 1.0
    totals[L.MEAN_VALUE] = totals[L.VALUE_TOTAL] / totals[L.VALUES]
    floats[number * L.LEDGER_FLOAT_COLUMNS + L.VALUE] = value
    if source >= 0:
        ledger[source * L.LEDGER_COLUMNS + L.CHILDREN] += 1
        floats[source * L.LEDGER_FLOAT_COLUMNS + L.CHILD_SUM] += value
    count_value(f64(F[L.SITE_STATS]), i32(T[L.URL_SITE])[url], value)
    count_value(f64(F[L.ENDING_STATS]), i32(T[L.URL_ENDING])[url], value)
    count_value(f64(F[L.DIRECTORY_STATS]), i32(T[L.URL_DIRECTORY])[url], value)
    if text >= 0:
        path = i32(T[L.TAG_PATH])[text]
        if path >= 0:
            count_value(f64(F[L.PATH_STATS]), path, value)


@compiled
def source_rate(F, number):
    """Return the rate of URLs first found on the same page."""
    ledger = i32(F[L.LEDGER])
    mean = f64(F[L.FORAGER_FLOATS])[L.MEAN_VALUE]
    source = np.int64(ledger[number * L.LEDGER_COLUMNS + L.SOURCE])
    if source < 0:
        return mean
    children = ledger[source * L.LEDGER_COLUMNS + L.CHILDREN]
    total = f32(F[L.LEDGER_FLOATS])[source * L.LEDGER_FLOAT_COLUMNS + L.CHILD_SUM]
    return (total + mean) / (children + 1.0)


@compiled
def path_rate(T, F, text):
    """Return the rate of URLs whose first link had the same tag path."""
    mean = f64(F[L.FORAGER_FLOATS])[L.MEAN_VALUE]
    if text < 0:
        return mean
    path = i32(T[L.TAG_PATH])[text]
    return rate(f64(F[L.PATH_STATS]), path, mean) if path >= 0 else mean


# --- words


@compiled
def note_words(T, F, number):
    """Note which share of a found link's words, anchor and URL, is new."""
    row = number * L.LEDGER_COLUMNS
    ledger = i32(F[L.LEDGER])
    seen = u8(F[L.SEEN_WORDS])
    url, text = ledger[row + L.URL], ledger[row + L.TEXT]
    words = 0
    new = 0
    if text >= 0:
        start, tokens = i64(T[L.ANCHOR_START]), i32(T[L.ANCHOR])
        for i in range(start[text], start[text + 1]):
            words += 1
            new += take_bit(seen, np.int64(tokens[i]))
    start, tokens = i64(T[L.URL_TOKEN_START]), i32(T[L.URL_TOKEN])
    for i in range(start[url], start[url + 1]):
        words += 1
        new += take_bit(seen, np.int64(tokens[i]))
    if words > 0:
        floats = f32(F[L.LEDGER_FLOATS])
        floats[number * L.LEDGER_FLOAT_COLUMNS + L.NEW_WORDS] = new / words


@compiled
def add_word(T, F, half, token, weight):
    """Add a word to one half of the profile.

    The profile is kept times the words' idf, as all comparisons want it.
    """
    profile = f64(F[L.PROFILE])
    floats = f64(F[L.FORAGER_FLOATS])
    idf = f64(T[L.IDF])[token]
    old = profile[2 * token + half] / idf
    new = old + weight
    profile[2 * token + half] = new * idf
    floats[L.LINK_SQUARE + half] += new * new - old * old


@compiled
def learn_words(T, F, number, version):
    """Add a paying page, and the link that led to it, to the profile."""
    ledger = i32(F[L.LEDGER])
    row = number * L.LEDGER_COLUMNS
    url, text = ledger[row + L.URL], ledger[row + L.TEXT]
    idf = f64(T[L.IDF])
    i64(F[L.FORAGER_INTS])[L.PROFILE_NUMBER] += 1
    if text >= 0:
        start, tokens = i64(T[L.ANCHOR_START]), i32(T[L.ANCHOR])
        for i in range(start[text], start[text + 1]):
            add_word(T, F, 0, tokens[i], idf[tokens[i]])
    start, tokens = i64(T[L.URL_TOKEN_START]), i32(T[L.URL_TOKEN])
    for i in range(start[url], start[url + 1]):
        add_word(T, F, 0, tokens[i], idf[tokens[i]])
    body = i32(T[L.VERSION_TEXT])[version]
    if body < 0:
        return
    norm = f64(T[L.TEXT_NORM])[body]
    start, tokens = i64(T[L.BODY_START]), i32(T[L.BODY])
    counts = i32(T[L.BODY_COUNT])
    for i in range(start[body], start[body + 1]):
        add_word(T, F, 1, tokens[i], counts[i] * idf[tokens[i]] / norm)


@compiled
def write_likeness(T, F, start, tokens, row, facts, column):
    """Write the cosines of a list of tokens with both halves of the profile."""
    totals = f64(F[L.FORAGER_FLOATS])
    floats = f32(F[L.LEDGER_FLOATS])
    profile = f64(F[L.PROFILE])
    idf = f64(T[L.IDF])
    square = 0.0
    link = 0.0
    body = 0.0
    for i in range(start[row], start[row + 1]):
        token = tokens[i]
        square += idf[token] * idf[token]
        link += profile[2 * token]
        body += profile[2 * token + 1]
    if square <= 0.0:
        return
    length = totals[L.LINK_SQUARE] * square
    if length > 0.0:
        floats[facts + column] = min(1.0, link / np.sqrt(length))
    length = totals[L.BODY_SQUARE] * square
    if length > 0.0:
        floats[facts + column + 3] = min(1.0, body / np.sqrt(length))


@compiled
def refresh_likeness(T, F, number):
    """Bring up to date how far a URL's texts are like what paid.

    Only now and then does a page pay, and change what all candidates resemble: then a
    URL's PROFILE_SEEN is not PROFILE_NUMBER. Callers look at that themselves, since a
    call costs more.
    """
    ledger = i32(F[L.LEDGER])
    row = number * L.LEDGER_COLUMNS
    ledger[row + L.PROFILE_SEEN] = i64(F[L.FORAGER_INTS])[L.PROFILE_NUMBER]
    facts = number * L.LEDGER_FLOAT_COLUMNS
    url, text = ledger[row + L.URL], ledger[row + L.TEXT]
    if text >= 0:
        start, tokens = i64(T[L.ANCHOR_START]), i32(T[L.ANCHOR])
        write_likeness(T, F, start, tokens, text, facts, L.ANCHOR_PAID)
        start, tokens = i64(T[L.NEAR_START]), i32(T[L.NEAR])
        write_likeness(T, F, start, tokens, text, facts, L.NEAR_PAID)
    start, tokens = i64(T[L.URL_TOKEN_START]), i32(T[L.URL_TOKEN])
    write_likeness(T, F, start, tokens, url, facts, L.URL_PAID)
