"""What a topical crawl is about: words, or the label that pages carry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from gym_webforage.trace.trace import Trace, frozen

TOPIC_WORDS = 12  # the words that describe a label, where the trace names none


@dataclass(frozen=True, eq=False)
class Topic:
    """A unit vector over the vocabulary and, for a labelled topic, the label."""

    name: str
    weights: np.ndarray  # float64
    label: int = -1

    @property
    def words(self) -> np.ndarray:
        """The topic's vocabulary ids, the weightiest first."""
        found = np.flatnonzero(self.weights)
        return found[np.argsort(-self.weights[found], kind="stable")]


def topic_from_words(
    trace: Trace, words: Sequence[str], name: str | None = None, label: int = -1
) -> Topic:
    """Make a topic of ``words``, each weighted by its inverse document frequency."""
    words = words.split() if isinstance(words, str) else list(words)
    if not words or not all(isinstance(word, str) for word in words):
        raise ValueError(f"topic is {words!r}, expected a list of words")
    numbers = {trace.vocabulary.find(word.lower()) for word in words}
    known = sorted(numbers - {-1})
    if not known:
        raise ValueError(
            f"topic: the vocabulary of {trace.name} has none of {', '.join(words)}"
        )
    weights = np.zeros(len(trace.vocabulary))
    weights[known] = trace.idf[known]
    weights /= np.linalg.norm(weights)
    return Topic(name or " ".join(words), frozen(weights), label)


@lru_cache(maxsize=256)
def topic_of_label(trace: Trace, label: str) -> Topic:
    """Make the topic of the pages that carry ``label``.

    Its words are those that ``meta.json`` gives for it, else the `TOPIC_WORDS`
    weightiest of the mean tf-idf vector of the label's pages.
    """
    number = trace.labels.find(label)
    if number < 0:
        raise ValueError(
            f"topic {label!r} is not a label of {trace.name}; its labels: "
            f"{', '.join(trace.labels[:20])}{', ...' if len(trace.labels) > 20 else ''}"
        )
    given = trace.meta.get("topics", {}).get(label)
    if given:
        return topic_from_words(trace, given, label, number)
    total = np.zeros(len(trace.vocabulary))
    for url in trace.labelled(number):
        newest = trace.version_start[url + 1] - 1
        if newest < trace.version_start[url]:
            continue  # never recorded
        text = trace.version_text[newest]
        if text < 0 or trace.text_norm[text] <= 0:
            continue
        at = slice(trace.body_start[text], trace.body_start[text + 1])
        tokens = trace.body_token[at]
        weight = trace.body_count[at] * trace.idf[tokens]
        total[tokens] += weight / trace.text_norm[text]
    best = np.argsort(-total, kind="stable")[:TOPIC_WORDS]
    weights = np.zeros(len(total))
    weights[best] = total[best]
    length = np.linalg.norm(weights)
    return Topic(label, frozen(weights / length if length else weights), number)
