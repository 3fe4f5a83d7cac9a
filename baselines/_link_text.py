"""Online learners of link text: what the two have in common.

A link is the bag of words that are known before it is followed: its anchor, the text
near it, the words of its URL, title and headers of its page, each a vocabulary of its
own. Every step, all links of the frontier are scored by a linear function of their
bags, and the URL with the best link is visited. What it turns out to be is an example
of each link that led to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numba
import numpy as np

from baselines.agent import Agent, Info, Observation, Transition, frontier_world
from gym_webforage.envs import Known

Part = Literal["anchor", "near", "url", "title"]
PARTS: tuple[Part, ...] = ("anchor", "near", "url", "title")

compiled: Any = numba.njit(nogil=True)


@compiled
def score(start, token, row, weights, bias, per_word, power):
    """Return the value of a link: linear in its words, over a power of their number."""
    length = start[row + 1] - start[row]
    if length == 0:
        return bias
    total = per_word * length
    for i in range(start[row], start[row + 1]):
        total += weights[token[i]]
    return bias + total / length**power


@compiled
def squashed(value):
    """Return the probability of a logit."""
    return 1.0 / (1.0 + np.exp(-value))


@compiled
def best(rows, start, token, of, is_open, weights, bias, per_word, power, extra):
    """Return the open URL with the best link as discovery number, and the link's row.

    ``extra`` is added to each link's probability; where it is empty, logits do as well.
    Equal values go to the lower number.
    """
    chosen = -1
    its_row = -1
    most = -np.inf
    for row in range(rows):
        number = of[row]
        if not is_open[number]:
            continue
        value = score(start, token, row, weights, bias, per_word, power)
        if len(extra):
            value = squashed(value) + extra[row]
        if value > most or (value == most and number < chosen):
            chosen, its_row, most = number, row, value
    return chosen, its_row


@compiled
def best_of_each(rows, start, token, of, is_open, weights, bias, per_word, power, out):
    """Write the value of each open URL's best link, by discovery number."""
    for row in range(rows):
        number = of[row]
        if is_open[number]:
            value = score(start, token, row, weights, bias, per_word, power)
            out[number] = max(out[number], value)


@dataclass
class LinkText(Agent):
    """Visits the URL whose link has the best words; subclasses learn what is best."""

    vocabulary: int
    parts: tuple[Part, ...] = PARTS  # or their names, with + between them
    topic_weight: float = 1.0  # how much the topic's words count before any example

    power = 0.5  # a bag is divided by this power of its length; 0.5: length 1

    weights: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Prepare for a crawl."""
        if isinstance(self.parts, str):
            self.parts = tuple(self.parts.split("+"))  # type: ignore[assignment]
        if not self.parts or not set(self.parts) <= set(PARTS):
            raise ValueError(f"parts is {self.parts!r}, expected {', '.join(PARTS)}")
        self.reset()

    def reset(self, seed: int | None = None) -> None:
        """Forget everything: every crawl has its own topic or site."""
        self.weights = np.zeros(len(self.parts) * self.vocabulary)
        self.bias = 0.0
        self.per_word = 0.0
        self._has_begun = False
        self._rows = 0
        self._row = -1  # of the link that was followed last
        self._start = np.zeros(1025, np.int64)
        self._token = np.zeros(8192, np.int32)
        self._of = np.zeros(1024, np.int64)  # discovery number of each link's URL
        self._is_open = np.zeros(1024, np.bool_)
        self._rows_of: dict[int, list[int]] = {}  # by URL, while it waits

    # --- what subclasses do

    def _begin(self, info: Info) -> None:
        """Take in what is known before the first fetch."""
        topic = info.get("topic")
        if topic is not None and self.topic_weight:
            words = topic.words
            for part in range(len(self.parts)):
                at = part * self.vocabulary + words
                self.weights[at] = self.topic_weight * topic.weights[words]

    def _take_example(self, row: int, is_found: bool) -> None:
        """Learn what a link led to."""
        raise NotImplementedError

    def _extra(self) -> np.ndarray:
        """Return what is added to each link's probability, nothing at all if empty."""
        return np.zeros(0)

    def _added(self, row: int, url: int, page: int, known: Known, link: int) -> None:
        """See a link that was added to the frontier."""

    # --- the agent

    def act(self, observation: Observation, info: Info) -> int:
        """Take the URL with the best link."""
        self.prepare(info)
        number, self._row = best(*self._links(), self._extra())
        return int(info["known"].urls_of(np.array([number]))[0])

    def prepare(self, info: Info) -> None:
        """Take in what is known before the first fetch, unless that was done."""
        if self._has_begun:
            return
        self._has_begun = True
        self._begin(info)
        for number, url in enumerate(info["known"].new.tolist()):
            self._add(url, number, np.zeros(0, np.int32))

    def values(self, numbers: np.ndarray) -> np.ndarray:
        """Return what the best links to URLs are worth, by discovery numbers."""
        found = np.full(len(self._is_open), -np.inf)
        best_of_each(*self._links(), found)
        return found[numbers]

    def _links(self) -> tuple[Any, ...]:
        return (
            self._rows,
            self._start,
            self._token,
            self._of,
            self._is_open,
            self.weights,
            self.bias,
            self.per_word,
            self.power,
        )

    def learn(self, transition: Transition) -> None:
        """Take the visited page as an example, and its links as candidates."""
        info = transition.info
        known: Known = info["known"]
        page = int(info["url"])
        self._is_open[known.number(page)] = False
        is_found = info["novel"] > 0
        for row in self._rows_of.pop(page, ()):
            self._take_example(row, is_found)
        if known.is_fetched(page):
            self._add_links(page, known)

    def _add_links(self, page: int, known: Known) -> None:
        size = len(known)
        if size > len(self._is_open):
            self._is_open = _grown(self._is_open, size)
        is_new = set(known.new.tolist())
        for link, url in zip(
            known.links(page).tolist(), known.targets(page).tolist(), strict=True
        ):
            if url in is_new or url in self._rows_of:
                row = self._add(url, known.number(url), self._bag(known, link))
                self._added(row, url, page, known, link)

    def _bag(self, known: Known, link: int) -> np.ndarray:
        words = [
            known.text(link, part) + np.int32(i * self.vocabulary)
            for i, part in enumerate(self.parts)
        ]
        return np.concatenate(words)

    def _add(self, url: int, number: int, tokens: np.ndarray) -> int:
        row = self._rows
        self._rows += 1
        if self._rows > len(self._of):
            self._start = _grown(self._start, self._rows + 1)
            self._of = _grown(self._of, self._rows)
        begin = int(self._start[row])
        end = begin + len(tokens)
        if end > len(self._token):
            self._token = _grown(self._token, end)
        self._token[begin:end] = tokens
        self._start[row + 1] = end
        self._of[row] = number
        self._is_open[number] = True
        self._rows_of.setdefault(url, []).append(row)
        return row

    def _probability(self, row: int) -> float:
        """Return the probability that a link leads to what counts, by its words."""
        logit = score(
            self._start,
            self._token,
            row,
            self.weights,
            self.bias,
            self.per_word,
            self.power,
        )
        return squashed(logit)

    def _words(self, row: int) -> np.ndarray:
        return self._token[self._start[row] : self._start[row + 1]]


def _grown(array: np.ndarray, size: int) -> np.ndarray:
    """Return the array with room for twice the size."""
    new = np.zeros(2 * size, array.dtype)
    new[: len(array)] = array
    return new


def describe(env: Any) -> dict[str, Any]:
    """Return what the agents must know of their environment, single or fleet."""
    return {"vocabulary": len(frontier_world(env).trace.vocabulary)}
