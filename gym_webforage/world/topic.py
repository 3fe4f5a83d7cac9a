"""What a topical crawl is about: words, example pages, or the label that pages carry.

A topic is two vectors over the vocabulary, one for each similarity that the judge
knows: ``weights``, a unit vector of tf-idf, and ``frequencies``, how often each of its
words occurs in it, over the largest such number (equation 5 of J. Akbari Torkestani,
"An adaptive focused Web crawling algorithm based on learning automata", 2012).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import fsum, log
from typing import Literal, get_args

import numpy as np

from gym_webforage.trace.trace import Trace, frozen

Similarity = Literal["tfidf", "frequency"]
SIMILARITIES: tuple[Similarity, ...] = get_args(Similarity)

TOPIC_WORDS = 12  # the words that describe pages, where nobody names any


@dataclass(frozen=True, eq=False)
class Topic:
    """Two vectors over the vocabulary and, for a labelled topic, the label."""

    name: str
    weights: np.ndarray  # float64, unit length
    label: int = -1
    frequencies: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """float64, the largest 1; if left out, each word of ``weights`` occurs once."""

    def __post_init__(self) -> None:
        """Let each word occur once where nothing else is said."""
        if not len(self.frequencies):
            once = (self.weights > 0).astype(np.float64)
            object.__setattr__(self, "frequencies", frozen(once))

    @property
    def words(self) -> np.ndarray:
        """The topic's vocabulary ids, the weightiest first."""
        found = np.flatnonzero(self.weights)
        return found[np.argsort(-self.weights[found], kind="stable")]

    @property
    def frequency_square(self) -> float:
        """The sum of squares of the frequencies."""
        return fsum(value * value for value in self.frequencies.tolist() if value)


def topic_from_words(
    trace: Trace, words: Sequence[str], name: str | None = None, label: int = -1
) -> Topic:
    """Make a topic of ``words``, each weighted by its inverse document frequency.

    A word that stands twice counts twice in the topic's frequencies.
    """
    words = words.split() if isinstance(words, str) else list(words)
    if not words or not all(isinstance(word, str) for word in words):
        raise ValueError(f"topic is {words!r}, expected a list of words, one at least")
    counts = Counter(word.lower() for word in words)
    numbers = {word: trace.vocabulary.find(word) for word in counts}
    unknown = [word for word, number in numbers.items() if number < 0]
    if unknown:
        raise ValueError(
            f"topic: the vocabulary of {trace.name} has no {', '.join(unknown)}; "
            f"expected words of its {len(trace.vocabulary):,}"
        )
    known = sorted(numbers.values())
    weights = np.zeros(len(trace.vocabulary))
    weights[known] = trace.idf[known]
    weights /= np.linalg.norm(weights)
    frequencies = np.zeros(len(trace.vocabulary))
    most = max(counts.values())
    for word, number in numbers.items():
        frequencies[number] = counts[word] / most
    return Topic(name or " ".join(words), frozen(weights), label, frozen(frequencies))


def topic_from_pages(
    trace: Trace,
    pages: Sequence[str | int],
    name: str | None = None,
    words: int = TOPIC_WORDS,
) -> Topic:
    """Make a topic of example pages, given as URLs or URL ids.

    It is their centroid over the ``words`` that best tell them from all pages.
    """
    if isinstance(pages, str) or not isinstance(pages, Sequence) or not pages:
        raise ValueError(
            f"topic pages are {pages!r}, expected a list of URLs, one at least"
        )
    if isinstance(words, bool) or not isinstance(words, int) or words < 1:
        raise ValueError(f"words is {words!r}, expected a positive integer")
    urls = [_page(trace, page) for page in pages]
    name = name or _named(trace, urls)
    topic = _telling_words(trace, np.array(urls), words, name, -1)
    if not topic.weights.any():
        raise ValueError(
            f"topic pages: none of the {len(urls)} has text in {trace.name}, "
            "expected recorded pages with words on them"
        )
    return topic


def _page(trace: Trace, page: str | int) -> int:
    number = -1
    if isinstance(page, str):
        number = trace.urls.find(page)
    elif isinstance(page, int | np.integer) and not isinstance(page, bool):
        number = int(page) if 0 <= page < len(trace.urls) else -1
    if number < 0:
        raise ValueError(
            f"topic page {page!r} is not in {trace.name}, expected one of its URLs"
        )
    return number


def _named(trace: Trace, urls: list[int]) -> str:
    more = f" and {len(urls) - 1} more" if len(urls) > 1 else ""
    return f"pages like {trace.urls[urls[0]]}{more}"


@lru_cache(maxsize=256)
def topic_of_label(trace: Trace, label: str) -> Topic:
    """Make the topic of the pages that carry ``label``.

    Its words are those that ``meta.json`` gives for it, as far as the trace's pages
    have them, else the `TOPIC_WORDS` that best tell its pages from all.
    """
    number = trace.labels.find(label)
    if number < 0 and not len(trace.labels):
        raise ValueError(
            f"topic is {label!r}, but the trace {trace.name} has no labels; give "
            "words: topic=[...]"
        )
    if number < 0:
        raise ValueError(
            f"topic {label!r} is not a label of {trace.name}; its labels: "
            f"{', '.join(trace.labels[:20])}{', ...' if len(trace.labels) > 20 else ''}"
        )
    given = [
        word
        for word in trace.meta.get("topics", {}).get(label, ())
        if trace.vocabulary.find(word.lower()) >= 0
    ]
    if given:
        return topic_from_words(trace, given, label, number)
    return _telling_words(trace, trace.labelled(number), TOPIC_WORDS, label, number)


def _telling_words(
    trace: Trace, urls: np.ndarray, words: int, name: str, label: int
) -> Topic:
    """Make a topic of the words that tell pages (their newest versions) from others.

    A word weighs c ln(c / m), where c and m are its means in the tf-idf vectors (unit
    length) of these pages and of all: its share of how far the two differ. Words on
    more than half of all texts are left out. The mean c alone would be a topic of "the"
    and "of" on any real recording.
    """
    total = np.zeros(len(trace.vocabulary))
    often = np.zeros(len(trace.vocabulary))
    pages = 0
    for url in urls:
        newest = trace.version_start[url + 1] - 1
        if newest < trace.version_start[url]:
            continue  # never recorded
        text = trace.version_text[newest]
        if text < 0 or trace.text_norm[text] <= 0:
            continue
        at = slice(trace.body_start[text], trace.body_start[text + 1])
        tokens, counts = trace.body_token[at], trace.body_count[at]
        total[tokens] += counts * trace.idf[tokens] / trace.text_norm[text]
        often[tokens] += counts / counts.max()
        pages += 1
    if not pages:
        return Topic(name, frozen(total), label)
    own, usual = total / pages, _mean_vector(trace)
    telling = np.zeros(len(total))
    some = (own > usual) & (usual > 0) & (trace.idf > 1 + log(2))
    telling[some] = own[some] * np.log(own[some] / usual[some])
    if not some.any():  # as where these pages are all there are
        telling = own
    weights = np.zeros(len(total))
    best = np.argsort(-telling, kind="stable")[:words]
    weights[best] = telling[best]
    weights /= np.linalg.norm(weights)
    frequencies = np.where(weights > 0, often, 0.0)
    frequencies /= frequencies.max()
    return Topic(name, frozen(weights), label, frozen(frequencies))


@lru_cache(maxsize=8)
def _mean_vector(trace: Trace) -> np.ndarray:
    """Return the mean of the tf-idf vectors, of unit length, of all page texts."""
    texts = len(trace.body_start) - 1
    owner = np.repeat(np.arange(texts), np.diff(trace.body_start))
    length = np.where(trace.text_norm > 0, trace.text_norm, 1.0)
    weight = trace.body_count * trace.idf[trace.body_token] / length[owner]
    total = np.bincount(trace.body_token, weight, len(trace.vocabulary))
    return frozen(total / max(1, np.count_nonzero(trace.text_norm > 0)))


def text_similarities(
    trace: Trace, topic: Topic, similarity: Similarity = "tfidf"
) -> np.ndarray:
    """Return the similarity of every page text of a trace, as the judge computes it."""
    texts = len(trace.body_start) - 1
    owner = np.repeat(np.arange(texts), np.diff(trace.body_start))
    token, count = trace.body_token, trace.body_count
    found = np.zeros(texts)
    if similarity == "tfidf":
        weight = count * trace.idf[token] * topic.weights[token]
        product, length = np.bincount(owner, weight, texts), trace.text_norm
    else:
        own = topic.frequencies[token] > 0
        owner, token, count = owner[own], token[own], count[own]
        most = np.ones(texts, count.dtype)
        np.maximum.at(most, owner, count)
        often = count / most[owner]
        product = np.bincount(owner, topic.frequencies[token] * often, texts)
        square = np.bincount(owner, often * often, texts)
        length = np.sqrt(topic.frequency_square * square)
    np.divide(product, length, out=found, where=length > 0)
    return np.minimum(found, 1.0) if similarity == "frequency" else found
