"""Regression by classification of text: multinomial naive Bayes over bins of value.

J. Rennie, A. McCallum, "Using reinforcement learning to spider the web efficiently"
(1999), section 2.4: the texts of a link are bags of words over separate vocabularies,
each bin of Q-values is a class, and a link is worth the mean value of the bins,
weighted by how likely it belongs to them (equations 3 to 5, Laplace's smoothing).

A model knows words, not their numbers in a trace, so it can be used on any other.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from baselines._spider_q import GAMMA, SiteLinks, bin_of
from gym_webforage.trace import Trace
from gym_webforage.trace.strings import Strings
from gym_webforage.trace.tokens import tokenise
from gym_webforage.world.compile import compiled

# What a link's bags are made of. Words of one bag share a vocabulary.
BAGS: dict[str, dict[str, tuple[str, ...]]] = {
    "full-page": {"page": ("body",), "link": ("anchor", "url")},
    "related": {
        "head": ("title",),
        "link": ("anchor",),
        "url": ("url",),
        "near": ("near",),
    },
}
BINS = (2, 3, 4, 5)
FORMAT = 1
ENDING = re.compile(r"(\.[A-Za-z]\w{0,4}){1,2}$")  # .pdf, or .ps.gz
# Logarithms are multiples of this, so that their sums are exact in any order, and equal
# bags are worth the same to the last bit.
GRAIN = 2.0**-30


def check(bins: int, text: str) -> None:
    """Refuse settings that are not known."""
    if bins not in BINS:
        raise ValueError(f"bins is {bins!r}, expected one of {_listed(BINS)}")
    if text not in BAGS:
        raise ValueError(f"text is {text!r}, expected one of {_listed(BAGS)}")


def _listed(known: Any) -> str:
    return ", ".join(map(str, known))


@dataclass(frozen=True, eq=False)
class Model:
    """Counts of words in the links of each bin, and the bins' mean values."""

    text: str
    gamma: float
    trained_on: tuple[tuple[str, str], ...]  # names of trace and site
    pages: int  # of those sites
    ignored: tuple[str, ...]  # words that do not count where they stand in a URL
    words: Mapping[str, Strings]  # by bag
    counts: Mapping[str, np.ndarray]  # by bag: (words, bins)
    links: np.ndarray  # in each bin
    value: np.ndarray  # the mean Q-value of each bin

    @property
    def bins(self) -> int:
        """How many bins there are."""
        return len(self.links)

    @property
    def log_prior(self) -> np.ndarray:
        """Equation 5, as logarithms."""
        return grained(np.log((1 + self.links) / (self.bins + self.links.sum())))

    def log_words(self, bag: str) -> np.ndarray:
        """Equation 4, as logarithms: (words, bins)."""
        counts = self.counts[bag]
        return grained(np.log((1 + counts) / (len(counts) + counts.sum(axis=0))))

    def on(self, trace: Trace) -> Reader:
        """Return the model in terms of a trace's vocabulary."""
        return Reader(self, trace)

    def telling_words(self, number: int, most: int = 10) -> list[tuple[str, str]]:
        """Return the words that tell a bin from the others best, and their bags.

        By weighted log-odds: P(w|bin) log(P(w|bin) / P(w|other bins)).
        """
        found = []
        for bag, counts in self.counts.items():
            total = counts.sum(axis=1)
            own = (1 + counts[:, number]) / (len(counts) + counts[:, number].sum())
            rest = total - counts[:, number]
            others = (1 + rest) / (len(counts) + rest.sum())
            weight = own * np.log(own / others)
            words = self.words[bag]
            for row in np.argsort(-weight, kind="stable")[:most].tolist():
                found.append((-float(weight[row]), words[row], bag))
        return [(word, bag) for _, word, bag in sorted(found)[:most]]

    # --- on disk

    def save(self, file: str | Path) -> None:
        """Write the model as arrays (.npz), without pickle."""
        head = {
            "format": FORMAT,
            "text": self.text,
            "gamma": self.gamma,
            "trained_on": self.trained_on,
            "pages": self.pages,
            "ignored": self.ignored,
        }
        arrays = {"links": self.links, "value": self.value}
        arrays["head"] = np.frombuffer(json.dumps(head).encode(), np.uint8)
        for bag, words in self.words.items():
            arrays[f"{bag}_data"], arrays[f"{bag}_start"] = words.data, words.start
            arrays[f"{bag}_counts"] = self.counts[bag]
        with open(file, "wb") as stream:
            np.savez_compressed(stream, allow_pickle=False, **arrays)

    @classmethod
    def load(cls, file: str | Path) -> Model:
        """Read what `save` wrote; anything else is a ValueError that names the file."""
        try:
            with np.load(file, allow_pickle=False) as kept:
                model = cls._read({name: kept[name] for name in kept.files})
            model._validate()
        except FileNotFoundError:
            raise
        except Exception as error:  # zip, JSON and NumPy each have their own
            raise ValueError(
                f"{file} holds no model of naive Bayes: {error}"
            ) from error
        return model

    @classmethod
    def _read(cls, kept: Mapping[str, np.ndarray]) -> Model:
        head = json.loads(kept["head"].tobytes().decode())
        if head["format"] != FORMAT:
            raise ValueError(f"format {head['format']!r}, expected {FORMAT}")
        bags = BAGS[head["text"]]
        return cls(
            text=head["text"],
            gamma=float(head["gamma"]),
            trained_on=tuple((str(t), str(s)) for t, s in head["trained_on"]),
            pages=int(head["pages"]),
            ignored=tuple(map(str, head["ignored"])),
            words={b: Strings(kept[f"{b}_data"], kept[f"{b}_start"]) for b in bags},
            counts={bag: kept[f"{bag}_counts"] for bag in bags},
            links=kept["links"],
            value=kept["value"],
        )

    def _validate(self) -> None:
        check(self.bins, self.text)
        if self.value.shape != self.links.shape or not np.isfinite(self.value).all():
            raise ValueError("the values of the bins are wrong")
        if self.links.dtype.kind not in "iu" or (self.links < 0).any():
            raise ValueError("the numbers of links are wrong")
        for bag, words in self.words.items():
            counts, start = self.counts[bag], words.start
            if counts.dtype.kind not in "iu" or (counts < 0).any():
                raise ValueError(f"the counts of {bag} are wrong")
            if counts.shape != (len(words), self.bins):
                raise ValueError(f"the words and counts of {bag} do not match")
            if (
                start[0] != 0
                or start[-1] != len(words.data)
                or (np.diff(start) < 0).any()
            ):
                raise ValueError(f"the words of {bag} are damaged")


def grained(logarithm: np.ndarray) -> np.ndarray:
    """Round to the grain."""
    return np.round(logarithm / GRAIN) * GRAIN


# --- learning


def train(
    sites: Sequence[SiteLinks],
    *,
    bins: int,
    text: str,
    gamma: float = GAMMA,
    endings: bool = True,
) -> Model:
    """Learn from the links of sites.

    Without ``endings``, the file endings that targets of these sites have (such as ps
    and gz) do not count as words of a URL: where they define the targets, they would
    tell what is to be found out.
    """
    check(bins, text)
    if not sites:
        raise ValueError("there is no site to learn from")
    bin_by_site = [bin_of(s.value, s.is_immediate, bins, gamma) for s in sites]
    ignored = () if endings else target_endings(sites)
    words: dict[str, Strings] = {}
    counts: dict[str, np.ndarray] = {}
    for bag, sources in BAGS[text].items():
        total: dict[str, np.ndarray] = {}
        for site, number in zip(sites, bin_by_site, strict=True):
            for source in sources:
                found = count_words(site, source, number, bins)
                skipped = ignored if source == "url" else ()
                _add(total, site.trace.vocabulary, found, skipped)
        ordered = sorted(total)
        words[bag] = Strings.of(ordered)
        rows = [total[word] for word in ordered]
        counts[bag] = np.array(rows, np.int64).reshape(len(ordered), bins)
    every = np.concatenate(bin_by_site)
    if not (every == 0).any():
        named = _listed(dict.fromkeys(site.trace.name for site in sites))
        raise ValueError(
            f"no link of the sites to learn from in {named} is to a target"
        )
    links = np.bincount(every, minlength=bins)
    value = np.bincount(every, np.concatenate([s.value for s in sites]), bins)
    # A bin without links is worth the least that would have belonged to it.
    least = [1.0, *(gamma**i for i in range(1, bins - 1)), 0.0]
    mean = np.where(links > 0, value / np.maximum(links, 1), least)
    return Model(
        text=text,
        gamma=gamma,
        trained_on=tuple((site.trace.name, site.site) for site in sites),
        pages=sum(site.pages for site in sites),
        ignored=ignored,
        words=words,
        counts=counts,
        links=links,
        value=mean,
    )


def target_endings(sites: Sequence[SiteLinks]) -> tuple[str, ...]:
    """Return the words of the file endings of all pages that pay."""
    found: set[str] = set()
    for site in sites:
        for url in np.unique(site.target[site.is_immediate]).tolist():
            path = site.trace.urls[url].partition("?")[0]
            if ending := ENDING.search(path.rpartition("/")[2]):
                found.update(tokenise(ending.group()))
    return tuple(sorted(found))


def _add(
    total: dict[str, np.ndarray],
    vocabulary: Strings,
    counts: np.ndarray,
    skipped: Sequence[str],
) -> None:
    for token in np.flatnonzero(counts.any(axis=1)).tolist():
        word = vocabulary[token]
        if word not in skipped:
            total[word] = (
                total[word] + counts[token] if word in total else counts[token]
            )


def source_rows(trace: Trace, source: str, links: SiteLinks) -> np.ndarray:
    """Return the row of each link's text among the texts of its kind, -1 for none."""
    if source == "url":
        return links.target
    if source in ("anchor", "near"):
        return trace.link_text[links.link]
    return trace.version_text[links.version]


def source_texts(trace: Trace, source: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the texts of a kind: where each begins, and their tokens."""
    if source == "url":
        return trace.url_token_start, trace.url_token
    return getattr(trace, f"{source}_start"), getattr(trace, f"{source}_token")


def count_words(
    site: SiteLinks, source: str, number: np.ndarray, bins: int
) -> np.ndarray:
    """Return how often each token of the vocabulary stands in links of each bin."""
    trace = site.trace
    start, token = source_texts(trace, source)
    row = source_rows(trace, source, site)
    there = row >= 0
    key = row[there].astype(np.int64) * bins + number[there]
    times = np.bincount(key, minlength=(len(start) - 1) * bins).reshape(-1, bins)
    used = times.any(axis=1)
    length = np.diff(start)
    owner = np.repeat(np.flatnonzero(used), length[used])
    which = np.repeat(used, length)
    token = token[which]
    weight = trace.body_count[which] if source == "body" else np.ones(len(token))
    counts = np.empty((len(trace.vocabulary), bins), np.int64)
    for i in range(bins):
        counts[:, i] = np.bincount(
            token, weight * times[owner, i], minlength=len(counts)
        ).astype(np.int64)
    return counts


# --- reading


class Reader:
    """A model that reads the tokens of one trace. Words it never met do not count."""

    def __init__(self, model: Model, trace: Trace) -> None:
        self.model = model
        self.prior = model.log_prior
        self.table: dict[str, np.ndarray] = {}  # by source: (vocabulary, bins)
        number = {word: i for i, word in enumerate(trace.vocabulary)}
        for bag, sources in BAGS[model.text].items():
            rows = [number.get(word, -1) for word in model.words[bag]]
            known = np.array(rows, np.int64) >= 0
            table = np.zeros((len(number), model.bins))
            table[np.array(rows, np.int64)[known]] = model.log_words(bag)[known]
            for source in sources:
                self.table[source] = table
        ignored = [number[word] for word in model.ignored if word in number]
        if ignored:
            self.table["url"] = self.table["url"].copy()
            self.table["url"][ignored] = 0

    def empty(self, links: int) -> np.ndarray:
        """Return what is known of links before their texts are read."""
        return np.repeat(self.prior[None, :], links, axis=0)

    def read(self, site: SiteLinks) -> np.ndarray:
        """Return the logarithm of prior times likelihood for many links at once."""
        trace = site.trace
        logs = self.empty(len(site.link))
        for source, table in self.table.items():
            start, token = source_texts(trace, source)
            count = trace.body_count if source == "body" else np.ones(0, np.int32)
            rows = source_rows(trace, source, site).astype(np.int64)
            add_texts(rows, start, token, count, table, logs)
        return logs

    def worth(self, logs: np.ndarray) -> np.ndarray:
        """Return the mean value of the bins by their probabilities."""
        found = np.empty(len(logs))
        weigh(logs, self.model.value, found)
        return found


@compiled
def add_texts(rows, start, token, count, table, logs):
    """Add what the words of some texts say of the bins; ``count`` may be empty."""
    for i in range(len(rows)):
        row = rows[i]
        if row < 0:
            continue
        for k in range(start[row], start[row + 1]):
            times = count[k] if len(count) else 1
            for b in range(table.shape[1]):
                logs[i, b] += times * table[token[k], b]


@compiled
def weigh(logs, value, found):
    """Write the mean of the bins' values, weighted by probability, for each link."""
    for i in range(len(logs)):
        most = logs[i, 0]
        for b in range(1, len(value)):
            most = max(most, logs[i, b])
        total = 0.0
        mean = 0.0
        for b in range(len(value)):
            share = math.exp(logs[i, b] - most)
            total += share
            mean += share * value[b]
        found[i] = mean / total
