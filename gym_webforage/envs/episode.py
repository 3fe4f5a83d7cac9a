"""What a reset draws: start time, topic and site, out of a split of the trace."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from gym_webforage.trace.strings import Strings
from gym_webforage.trace.trace import LATEST_TIME, Trace, from_iso
from gym_webforage.world.rules import Rules, parse_budget
from gym_webforage.world.topic import (
    Topic,
    topic_from_pages,
    topic_from_words,
    topic_of_label,
)

Split = Literal["train", "test", "all"]
OPTIONS = ("roots", "site", "start", "topic")
TopicGiven = str | Sequence[str] | Mapping[str, Sequence[str | int]] | Topic
"""A label, a list of words, ``{"pages": [...]}`` with example pages, or a topic."""
FEWEST_PAGES = 5  # a label on fewer pages is not drawn as a topic


@dataclass(frozen=True)
class Episode:
    """Where and when a crawl starts, and what it is about."""

    start: int  # milliseconds
    roots: np.ndarray  # URL ids
    topic: Topic | None
    site: int  # -1: all

    @classmethod
    def restored(cls, values: Mapping[str, Any] | None) -> Episode | None:
        """Make an episode from what ``dataclasses.asdict`` made of it."""
        if values is None:
            return None
        topic = values["topic"]
        return cls(**{**values, "topic": Topic(**topic) if topic else None})

    def describe(self, trace: Trace) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "start": self.start,
            "roots": [trace.urls[int(root)] for root in self.roots],
            "topic": self.topic.name if self.topic else None,
            "site": trace.sites[self.site] if self.site >= 0 else None,
        }


class EpisodeMaker:
    """Draws episodes from the seed, out of a split of the trace.

    Time: ``train`` is the first two thirds of the recording, ``test`` the last third.
    Topics and sites: of their names in order, every third is held out for ``test``
    (of two the second; a single one serves both), unless ``meta.json`` names those
    held out under ``test``. ``all`` draws from everything.

    News draws a start time. Topic draws a label as topic, Spider a site with targets;
    both start when the recording ends, since a crawl that took hours to record is
    meant as one moment.
    """

    def __init__(
        self,
        trace: Trace,
        rules: Rules,
        split: Split = "train",
        topic: TopicGiven | None = None,
        site: str | None = None,
    ) -> None:
        if split not in get_args(Split):
            raise ValueError(f"split is {split!r}, expected one of train, test, all")
        self.trace = trace
        self.rules = rules
        self.split: Split = split
        if topic is not None and rules.kind != "topic":
            raise ValueError(f"topic has no meaning in {rules.kind.capitalize()}")
        self.topic = None if topic is None else self._as_topic(topic)
        self.site = -1 if site is None else self._as_site(site)
        self.topics: list[str] = []
        self.sites: list[int] = []
        if rules.kind == "topic":
            self._check_text()
            if self.topic is None:
                self.topics = held_out(trace, "topics", self._drawable_topics(), split)
        if rules.kind == "spider" and self.site < 0:
            names = [trace.sites[site] for site in self._drawable_sites()]
            chosen = held_out(trace, "sites", names, split)
            self.sites = [trace.sites.find(name) for name in chosen]

    def draw(
        self, random: np.random.Generator, options: Mapping[str, Any] | None = None
    ) -> Episode:
        """Draw an episode; what ``options`` gives is not drawn."""
        if options is not None and not isinstance(options, Mapping):
            raise TypeError(f"options is {options!r}, expected a dict")
        given = dict(options or {})
        unknown = given.keys() - set(OPTIONS)
        if unknown:
            raise ValueError(
                f"options has no {', '.join(sorted(map(str, unknown)))}; "
                f"expected {', '.join(OPTIONS)}"
            )
        # Every draw happens whatever the options are, so that giving one option
        # leaves what is drawn for the others as it was.
        start = self._draw_start(random)
        topic, site = self.topic, self.site
        if self.topics:
            topic = topic_of_label(
                self.trace, self.topics[int(random.integers(len(self.topics)))]
            )
        if self.sites:
            site = self.sites[int(random.integers(len(self.sites)))]
        if given.get("start") is not None:
            start = self._as_time(given["start"])
        if given.get("topic") is not None:
            topic = self._as_topic(given["topic"])
        if given.get("site") is not None:
            site = self._as_site(given["site"])
        if given.get("roots") is not None:
            roots = self._as_roots(given["roots"])
        else:
            roots = self._roots_of(site)
        return Episode(start, roots, topic, site)

    # --- drawing

    def _draw_start(self, random: np.random.Generator) -> int:
        begin, end = self.trace.begin, self.trace.end
        if self.rules.kind != "news":
            return end
        border = begin + (end - begin) * 2 // 3
        low, high = {
            "train": (begin, border),
            "test": (border, end),
            "all": (begin, end),
        }[self.split]
        time, fetches = parse_budget(self.rules.default_budget)
        if time > high - low and self.split != "all":
            instead = "" if end > begin else "; use Topic or Spider"
            raise ValueError(
                f"budget is {self.rules.default_budget!r}, but the {self.split} split "
                f"of {self.trace.name} lasts {(high - low) / 3_600_000:.1f} hours"
                f"{instead}"
            )
        if time < 0:
            time = round(fetches * self.rules.fetch_seconds * 1000)
        return int(random.integers(low, max(low, high - time) + 1))

    def _drawable_topics(self) -> list[str]:
        counts = np.bincount(self.trace.url_label, minlength=len(self.trace.labels))
        names = [
            name
            for name, count in zip(self.trace.labels, counts, strict=True)
            if count >= FEWEST_PAGES
        ]
        if not names:
            raise ValueError(
                f"the trace {self.trace.name} has no label on {FEWEST_PAGES} or more "
                "pages to serve as topic; give topic= as a list of words"
            )
        return names

    def _drawable_sites(self) -> list[int]:
        trace = self.trace
        if not trace.url_target.any():
            raise ValueError(
                f"the trace {trace.name} has no target pages, which Spider pays for; "
                "record with --targets or --target-label"
            )
        rooted = np.unique(trace.url_site[trace.roots])
        rich = np.unique(trace.url_site[trace.url_target])
        sites = np.intersect1d(rooted, rich)
        if not len(sites):
            raise ValueError(f"no site of {trace.name} has both a root and a target")
        return [int(site) for site in sites]

    def _roots_of(self, site: int) -> np.ndarray:
        roots = self.trace.roots
        if site < 0:
            return roots
        own = roots[self.trace.url_site[roots] == site]
        if not len(own):
            raise ValueError(
                f"site {self.trace.sites[site]!r} has no root in {self.trace.name}; "
                "give options={'roots': [...]}"
            )
        return own

    # --- what users give

    def _check_text(self) -> None:
        if not len(self.trace.vocabulary):
            raise ValueError(
                f"the trace {self.trace.name} has no text, so no page has a topic"
            )

    def _as_topic(self, topic: TopicGiven) -> Topic:
        self._check_text()
        if isinstance(topic, Topic):
            sizes = {len(topic.weights), len(topic.frequencies)}
            if sizes != {len(self.trace.vocabulary)}:
                raise ValueError("topic has another vocabulary than the trace")
            found = topic
        elif isinstance(topic, str):
            found = topic_of_label(self.trace, topic)
        elif isinstance(topic, Sequence):
            found = topic_from_words(self.trace, topic)
        elif isinstance(topic, Mapping) and list(topic) == ["pages"]:
            found = topic_from_pages(self.trace, topic["pages"])
        else:
            raise ValueError(
                f"topic is {topic!r}, expected a label, a list of words, or "
                '{"pages": [...]} with the URLs of example pages'
            )
        if self.rules.relevance == "label" and found.label < 0:
            raise ValueError(
                "topic: relevance='label' needs a label, not words or pages"
            )
        return found

    def _as_site(self, site: str | int) -> int:
        number = _identified(site, self.trace.sites)
        if number < 0:
            shown = ", ".join(self.trace.sites[:20])
            more = ", ..." if len(self.trace.sites) > 20 else ""
            raise ValueError(
                f"site {site!r} is not in {self.trace.name}; its sites: {shown}{more}"
            )
        return number

    def _as_time(self, start: int | str) -> int:
        time = -1
        with suppress(TypeError, ValueError):
            is_text = isinstance(start, str)
            time = from_iso(start) if is_text else operator.index(start)
        if isinstance(start, bool) or not 0 <= time <= LATEST_TIME:
            raise ValueError(
                f"start is {start!r}, expected a UTC time, as ISO 8601 text or as "
                "milliseconds since 1970"
            )
        if time < self.trace.begin:
            raise ValueError(
                f"start is {start!r}, before the recording {self.trace.name} begins "
                f"({self.trace.meta['begin']})"
            )
        return time

    def _as_roots(self, roots: Sequence[int | str] | int | str) -> np.ndarray:
        is_one = isinstance(roots, str | int | np.integer)
        if not is_one and not isinstance(roots, Sequence | np.ndarray):
            raise ValueError(f"roots is {roots!r}, expected URLs or URL ids")
        found = []
        for root in [roots] if is_one else roots:  # type: ignore[union-attr]
            number = _identified(root, self.trace.urls)
            if number < 0:
                raise ValueError(f"root {root!r} is not a URL of {self.trace.name}")
            found.append(number)
        if not found:
            raise ValueError("roots is empty, expected at least one URL")
        return np.array(found, np.int32)


def _identified(given: Any, names: Strings) -> int:
    """Return the id of something given by name or id, -1 if there is no such thing."""
    if isinstance(given, str):
        return names.find(given)
    if isinstance(given, bool) or not isinstance(given, int | np.integer):
        return -1
    return int(given) if 0 <= given < len(names) else -1


def held_out(
    trace: Trace, what: Literal["topics", "sites"], names: Sequence[str], split: Split
) -> list[str]:
    """Return those of ``names`` that belong to ``split``."""
    if split == "all" or len(names) == 1:
        return list(names)
    named = trace.meta.get("test", {}).get(what)
    if named is None:
        ordered = sorted(names)
        named = ordered[2::3] or ordered[1:]
    kept = [name for name in names if (name in named) == (split == "test")]
    if not kept:
        raise ValueError(f"{trace.name} has no {what} in the {split} split")
    return kept
