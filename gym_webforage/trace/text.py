"""From page text to page state: the news foragers' features, and plain ones.

The papers on news foragers describe a page by a text classifier: 50 clusters of earlier
texts and a background class, whose outputs p become states ``tanh(40 (p - 0.5))``; the
background's output is dropped. Most words stand in many clusters, so that nearly all
outputs are far below 0.5 and most pages get one and the same state, all -1: see
`saturation`. Texts that were learnt from are surer of their cluster than later ones.
Beside it stand the same classifier with a threshold for each class, and two
projections.

Whatever is learnt is learnt from texts seen before a given moment, never from later
ones. The vocabulary is the recording's.

References: Zs. Palotai, Cs. Farkas, A. Lőrincz, "Selection in scale-free small world"
(2005); Zs. Palotai, S. Mandusitz, A. Lőrincz, "Computer study of the evolution of 'news
foragers' on the Internet", footnote 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np

from gym_webforage.trace.errors import TraceError
from gym_webforage.trace.pddp import Sparse, pddp, sparse
from gym_webforage.trace.prtfidf import THRESHOLD, PrTFIDF, with_data, yes_or_no
from gym_webforage.trace.strings import Strings
from gym_webforage.trace.trace import LATEST_TIME, Trace, from_iso, frozen, to_iso

Array = np.ndarray

BACKGROUND = 0.2  # share of the texts learnt from that is held out as background
EXTREME = 0.999  # size from which an output counts as a plain yes or no

_SPARE = 10  # directions beyond those wanted, for precision
_ROUNDS = 8  # of the projection's refinement


# --- counts and weights


def page_counts(trace: Trace) -> Sparse:
    """Return how often each token (column) stands in each page text (row)."""
    shape = (len(trace.body_start) - 1, len(trace.vocabulary))
    counts = trace.body_count.astype(np.float64)
    # Copies, because a sparse array may sort its indices in place.
    return sparse((counts, trace.body_token.copy(), trace.body_start.copy()), shape)


def inverse_frequency(counts: Sparse) -> Array:
    """Return each token's inverse document frequency: ``ln((1 + n) / (1 + df)) + 1``.

    A token that no text has gets the weight of one that is yet to be seen.
    """
    frequency = np.bincount(counts.indices[counts.data > 0], minlength=counts.shape[1])
    return np.log((1 + counts.shape[0]) / (1 + frequency)) + 1


def tfidf(counts: Sparse, weights: Array) -> Sparse:
    """Return the texts' counts times ``weights``, each row of unit length or empty."""
    values = counts.data * weights[counts.indices]
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    length = np.sqrt(np.bincount(rows, values * values, counts.shape[0]))
    return with_data(counts, values / np.where(length > 0, length, 1)[rows])


# --- the methods: from the texts, and which to learn from, to a state for each text


def _prtfidf(
    counts: Sparse,
    seen: Array,
    states: int,
    seed: int,
    _: Strings,
    *,
    is_calibrated: bool,
) -> Array:
    rng = np.random.default_rng(seed)
    order = rng.permutation(seen)
    # The background must not take the texts that the clusters need.
    held_out = max(1, min(round(BACKGROUND * len(seen)), len(seen) - states))
    background, clustered = np.sort(order[:held_out]), np.sort(order[held_out:])
    weights = inverse_frequency(counts[seen])
    labels = pddp(tfidf(counts[clustered], weights), states, seed)
    classifier = PrTFIDF.fit(
        counts[np.append(clustered, background)],
        np.append(labels, np.full(held_out, states)),
        states + 1,
    )
    threshold: float | Array = THRESHOLD
    if is_calibrated:
        outputs = classifier.probabilities_without(counts[background])[:, :states]
        threshold = np.quantile(outputs, 1 - 1 / states, axis=0)
    found = classifier.probabilities(counts)
    made = yes_or_no(found[:, :states], threshold)
    made[~found.any(axis=1)] = 0  # no known word: neither yes nor no
    return made


def _svd(counts: Sparse, seen: Array, states: int, seed: int, _: Strings) -> Array:
    weights = inverse_frequency(counts[seen])
    directions = singular_directions(tfidf(counts[seen], weights), states, seed)
    return _unit(tfidf(counts, weights) @ directions)


def singular_directions(matrix: Sparse, count: int, seed: int = 0) -> Array:
    """Return the leading right singular vectors as columns, zeros if there are fewer.

    By a random subspace that is refined in turns (N. Halko, P. G. Martinsson, J. A.
    Tropp, "Finding structure with randomness", 2011).
    """
    directions = np.zeros((matrix.shape[1], count))
    # Without the words yet to be seen: even empty, they could change the rounding.
    known = np.unique(matrix.indices)
    matrix = matrix[:, known]
    words = sparse(matrix.T)
    size = min(count + _SPARE, *matrix.shape)
    # Random over texts, not words: later words must not shift the numbers drawn.
    basis = np.random.default_rng(seed).standard_normal((matrix.shape[0], size))
    for _ in range(_ROUNDS):
        basis = np.linalg.qr(matrix @ (words @ basis))[0]
    right, values, _left = np.linalg.svd(words @ basis, full_matrices=False)
    kept = min(count, int(np.count_nonzero(values > 1e-9 * values[0])))
    right = right[:, :kept]
    # A direction may point either way: its largest entry is made positive.
    largest = np.argmax(np.abs(right), axis=0)
    directions[known, :kept] = right * np.sign(right[largest, np.arange(kept)])
    return directions


def _hashed(
    counts: Sparse, seen: Array, states: int, seed: int, vocabulary: Strings
) -> Array:
    """Add up the tf-idf weights of the words that a hash sends to each place.

    A word's place and sign depend on its letters only, so they agree between traces.
    """
    salt = (seed % 2**64).to_bytes(8, "little")
    digests = b"".join(
        blake2b(word.encode(), digest_size=8, salt=salt).digest() for word in vocabulary
    )
    number = np.frombuffer(digests, "<u8")
    sign = np.where(number >> np.uint64(63), 1.0, -1.0)
    place = (number % np.uint64(2**63) % np.uint64(states)).astype(np.int64)
    words = np.arange(len(number))
    projection = sparse((sign, (words, place)), (len(number), states))
    weighted = tfidf(counts, inverse_frequency(counts[seen]))
    return _unit((weighted @ projection).toarray())


def _unit(rows: Array) -> Array:
    """Scale each row to unit length; one that is zero but for rounding becomes zero."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    is_some = length > 1e-9
    return np.where(is_some, rows / np.where(is_some, length, 1), 0)


METHODS: dict[str, Callable[..., Array]] = {
    "prtfidf": partial(_prtfidf, is_calibrated=False),
    "prtfidf-calibrated": partial(_prtfidf, is_calibrated=True),
    "svd": _svd,
    "hashed": _hashed,
}


# --- traces


def fit_states(
    trace: Trace,
    *,
    method: str = "prtfidf",
    states: int = 50,
    until: str | int | None = None,
    seed: int = 0,
) -> Trace:
    """Return ``trace`` with a state for every page version, learnt from its texts.

    Args:
        trace: A recording with page texts. States that it has are replaced.
        method: ``prtfidf``: the papers' classifier, a fifth of the texts learnt from
            (drawn at random) being the background, the others clustered.
            ``prtfidf-calibrated``: the same, but an output counts as a yes from the
            value that one in ``states`` background texts exceeds, instead of 0.5.
            ``svd``: tf-idf projected on its leading singular vectors, unit length.
            ``hashed``: tf-idf with words hashed to places and signs, unit length.
        states: The length of a state: clusters or directions.
        until: Only versions seen before this moment are learnt from: ISO 8601 text or
            milliseconds. Without it, the first third of the recording's period, or all
            of a recording of a single moment.
        seed: Of the background's draw, the directions' start and the hash.

    Returns:
        The same trace but for ``version_state`` and ``meta["states"]``, which has the
        options and what `saturation` says. A version without text, or without any word
        known to the classifier or projection, has a state of zeros.
    """
    if method not in METHODS:
        raise ValueError(f"method is {method!r}, expected {', '.join(METHODS)}")
    for name, value, least in (("states", states, 2), ("seed", seed, 0)):
        if not isinstance(value, int | np.integer) or isinstance(value, bool):
            raise ValueError(f"{name} is {value!r}, expected a whole number")
        if value < least:
            raise ValueError(f"{name} must be at least {least}, not {value}")
    states, seed = int(states), int(seed)
    moment = _moment(trace, until)
    counts = page_counts(trace)
    seen = _texts_before(trace, moment)
    # The background needs a text of its own.
    needed = states + 1 if method.startswith("prtfidf") else states
    if len(seen) < needed:
        raise ValueError(
            f"{states} states by {method} need at least {needed} page texts, but "
            f"{trace.name} shows {len(seen)} before {to_iso(moment)}; ask for fewer "
            f"states or a later `until`"
        )
    by_text = METHODS[method](counts, seen, states, seed, trace.vocabulary)
    by_text = by_text.astype(np.float32)
    made = np.zeros((len(trace.version_seen), states), np.float32)
    has_text = trace.version_text >= 0
    made[has_text] = by_text[trace.version_text[has_text]]
    stated = replace(trace, version_state=frozen(made), path=None)
    told = {
        "method": method,
        "until": to_iso(moment),
        "seed": seed,
        "texts": len(seen),
        "saturation": saturation(stated),
    }
    return replace(stated, meta={**trace.meta, "states": told})


def _moment(trace: Trace, until: str | int | None) -> int:
    """Return in milliseconds the moment from which on nothing is learnt."""
    if until is None:
        if trace.begin == trace.end:
            return trace.end + 1  # all was seen at once: there is no future
        return trace.begin + (trace.end - trace.begin) // 3
    if isinstance(until, str):
        try:
            until = from_iso(until)
        except TraceError as error:
            raise ValueError(f"until: {error.reason}") from error
    if isinstance(until, int | np.integer) and not isinstance(until, bool):
        return min(max(0, int(until)), LATEST_TIME)
    raise ValueError(f"until is {until!r}, expected ISO 8601 text or milliseconds")


def _texts_before(trace: Trace, moment: int) -> Array:
    """Return the ids of the texts that are not empty and were seen before ``moment``.

    Each counts once, however often it was seen.
    """
    has_words = np.append(np.diff(trace.body_start) > 0, False)  # the last for no text
    is_told = has_words[trace.version_text]
    if not is_told.any():
        raise ValueError(f"{trace.name} has no page text: record it with its tokens")
    earlier = is_told & (trace.version_seen < moment)
    if not earlier.any():
        first = to_iso(int(trace.version_seen[is_told].min()))
        raise ValueError(
            f"{trace.name} shows no page text before {to_iso(moment)}; its first one "
            f"was seen at {first}: choose a later `until`"
        )
    return np.unique(trace.version_text[earlier])


def saturation(trace: Trace) -> dict[str, Any]:
    """Say how far a trace's states tell its page versions apart.

    Returns:
        ``most common``: the share of versions that have the most common state;
        ``distinct``: the number of different states over that of versions; ``zero``:
        the share of versions whose state is all zeros, for want of text; ``extreme``:
        the share of entries that are a plain yes or no.
    """
    states = trace.version_state
    if not states.size:
        raise ValueError(f"{trace.name} has no states")
    # Compared by their bytes, which differ between 0 and -0 unless one is added.
    rows = np.ascontiguousarray(states + np.float32(0))
    rows = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).reshape(-1)
    counts = np.unique(rows, return_counts=True)[1]
    return {
        "most common": float(counts.max() / len(rows)),
        "distinct": len(counts) / len(rows),
        "zero": float(np.mean(~states.any(axis=1))),
        "extreme": float(np.mean(np.abs(states) >= EXTREME)),
    }
