"""Small random traces, rules and crawls, with everything that is nasty in them.

Hypothesis draws how large and how nasty a trace is, and a seed for its content: drawn
entry by entry, nearly all traces would come out too poor for a crawl.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from random import Random
from typing import Any

import numpy as np
from hypothesis import strategies as st

from gym_webforage.trace.trace import Trace
from gym_webforage.world.rules import Kind, Rules
from gym_webforage.world.topic import Topic

START = 1_600_000_000_000  # all times lie some seconds around it
ENDINGS = ("", ".html", ".pdf")
FOLDERS = ("", "", "a/", "a/b/", "c/")
PAGES = (200, 200, 200, 200, 204, 299)
REDIRECTS = (300, 301, 302, 399)
DEAD_ENDS = (0, 199, 400, 404, 410, 500)
SIZES = (0, 1, 500, 1_000, 1_000, 3_333)
HOW = ("legal",) * 6 + ("slot",) * 4 + ("url", "any slot")


@dataclass(frozen=True)
class Episode:
    start: int
    roots: tuple[int, ...]
    topic: Topic | None
    site: int
    actions: tuple[tuple[str, int, int], ...]  # (how, which, forager)


@dataclass(frozen=True)
class Case:
    trace: Trace
    rules: Rules
    foragers: int
    slots: int
    shortlist: str
    features: str
    scaled: bool
    episodes: tuple[Episode, ...]


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    urls = draw(st.sampled_from((1, 2, 3, 4, 6, 8, 10, 12, 15, 20, 30)))
    most_links = draw(st.sampled_from((4, 0, 2, 8, 8, 15)))
    nastiness = draw(st.sampled_from((0.0, 0.1, 0.1, 0.2, 0.5)))
    random = Random(draw(st.integers(0, 2**32)))
    most_versions = random.randint(1, 6)
    sites = random.randint(1, 3)
    labels = random.randint(0, 2)
    words = random.randint(0, 6)
    link_texts = random.randint(0, 5)
    page_texts = random.randint(0, 5)
    states = random.randint(0, 3)
    # On a grid of seconds, so that ages and limits are often met exactly.
    grid = random.choice((1_000, 1_000, 1_000, 2_600, 3_600_000))

    def tokens(rows: int) -> list[list[int]]:
        return [
            [
                random.randrange(words)
                for _ in range(random.randrange(5) if words else 0)
            ]
            for _ in range(rows)
        ]

    def version(time: int) -> dict[str, Any]:
        status = random.choice(PAGES)
        if random.random() < nastiness:
            status = random.choice(DEAD_ENDS)
        elif random.random() < nastiness:
            status = random.choice(REDIRECTS)
        return {
            "seen": START + grid * time,
            "published": START + grid * (time - random.randrange(13)),
            "status": status,
            "bytes": random.choice(SIZES),
            "text": random.randrange(-1, page_texts),
            "state": [random.randrange(-4, 5) / 2 for _ in range(states)],
            "links": [
                (random.randrange(urls), random.randrange(-1, link_texts))
                for _ in range(random.randint(0, most_links))
            ],
        }

    def versions() -> list[dict[str, Any]]:
        if random.random() < nastiness / 3:
            return []
        times = {random.randint(-12, 0)}
        if random.random() < nastiness:
            times = {random.randint(-12, 30)}
        for _ in range(random.randrange(most_versions)):
            times.add(random.choice((random.randint(-12, 30), random.randint(0, 200))))
        return [version(time) for time in sorted(times)]

    by_url = [versions() for _ in range(urls)]
    every = flat(by_url)
    links = [row["links"] for row in every]
    url_sites = [random.randrange(sites) for _ in range(urls)]
    url_labels = [
        random.sample(range(labels), random.randint(0, labels)) for _ in range(urls)
    ]
    url_tokens, anchors, nears = tokens(urls), tokens(link_texts), tokens(link_texts)
    bodies = [sorted(set(body)) for body in tokens(page_texts)]
    names = [
        f"http://s{site}.org/{random.choice(FOLDERS)}p{url}{random.choice(ENDINGS)}"
        for url, site in enumerate(url_sites)
    ]
    return Trace.build(
        {"name": "random", "roots": [names[0]]},
        urls=names,
        sites=[f"s{site}.org" for site in range(sites)],
        labels=[f"label{label}" for label in range(labels)],
        vocabulary=[f"word{word}" for word in range(words)],
        url_site=url_sites,
        url_target=[random.random() < 0.4 for _ in range(urls)],
        url_label_start=offsets(url_labels),
        url_label=flat(url_labels),
        url_token_start=offsets(url_tokens),
        url_token=flat(url_tokens),
        version_start=offsets(by_url),
        version_seen=[row["seen"] for row in every],
        version_published=[row["published"] for row in every],
        version_status=[row["status"] for row in every],
        version_bytes=[row["bytes"] for row in every],
        version_text=[row["text"] for row in every],
        version_state=np.reshape([row["state"] for row in every], (len(every), states)),
        link_start=offsets(links),
        link_target=[target for target, _ in flat(links)],
        link_text=[text for _, text in flat(links)],
        anchor_start=offsets(anchors),
        anchor_token=flat(anchors),
        near_start=offsets(nears),
        near_token=flat(nears),
        tag_paths=["p a", "li a"],
        tag_path=[random.randrange(-1, 2) for _ in nears],
        body_start=offsets(bodies),
        body_token=flat(bodies),
        body_count=[random.randint(1, 3) for _ in flat(bodies)],
    )


def offsets(rows: list[list[Any]]) -> list[int]:
    return [0, *np.cumsum([len(row) for row in rows], dtype=int).tolist()]


def flat(rows: list[list[Any]]) -> list[Any]:
    return [entry for row in rows for entry in row]


def rules(kind: Kind) -> st.SearchStrategy[Rules]:
    options: dict[str, tuple[Any, ...]] = {
        "fetch_seconds": (1.0, 1.0, 1.0, 2.6, 0.5, 0.001),
        "cost": ("fetch", "fetch", "bytes"),
        "host_delay": (0.0, 0.0, 1.0, 7.25),
        "budget": (None, None, None, 1_000, 1, 20, 60, "1s", "30s", "1d"),
    }
    if kind == "news":
        options |= {
            "max_age": ("24h", "24h", "24h", "1s", "8s", "12s", "40s"),
            "path_length": (101, 1, 2, 3, 4),
            "refetch_visited": (True, False),
            "document": ("version", "url"),
            "judge": ("selection", "evolution"),
            "reward": (100.0, 1.0, 0.0, -2.5),
            "penalty": (-1.0, 0.0, 0.5),
        }
    if kind != "news":
        options |= {
            "reach": ("frontier", "links"),
            "revisit": ("free", "pays", "costs"),
            "penalty": (-1.0, -0.25),
        }
    if kind == "topic":
        options |= {
            "relevance": ("similarity", "similarity", "label"),
            "similarity": ("tfidf", "frequency"),
            "threshold": (0.3, 0.0, 0.7, 1.0),
        }
    drawn = {name: st.sampled_from(values) for name, values in options.items()}
    return st.builds(Rules, kind=st.just(kind), **drawn)


@st.composite
def topics(draw: st.DrawFn, trace: Trace) -> Topic:
    words = len(trace.vocabulary)
    counts = st.lists(st.integers(0, 3), min_size=words, max_size=words)
    weights, often = draw(counts), draw(counts)
    length = sqrt(sum(weight**2 for weight in weights)) or 1.0
    frequencies = np.array(often, np.float64) / max([1, *often])
    label = draw(st.integers(0, len(trace.labels) - 1)) if len(trace.labels) else -1
    return Topic("topic", np.array(weights, np.float64) / length, label, frequencies)


@st.composite
def episodes(draw: st.DrawFn, trace: Trace, kind: Kind, foragers: int) -> Episode:
    url = st.integers(0, len(trace.urls) - 1)
    topic = st.none()
    if kind != "news":
        topic = topics(trace) if kind == "topic" else st.none()
    random = Random(draw(st.integers(0, 2**32)))
    return Episode(
        start=START + draw(st.sampled_from((0, 0, 1, 999, 5_000, 40_000_000))),
        roots=tuple(draw(st.lists(url, min_size=1, max_size=3, unique=True))),
        topic=draw(topic),
        site=draw(st.sampled_from((-1, -1, -1, -1, *range(len(trace.sites))))),
        actions=tuple(
            (random.choice(HOW), random.randrange(60), random.randrange(foragers))
            for _ in range(draw(st.sampled_from((1, 5, 10, 20, 30, 40, 50))))
        ),
    )


@st.composite
def cases(draw: st.DrawFn, kind: Kind) -> Case:
    trace = draw(traces())
    drawn = draw(rules(kind))
    if not len(trace.labels):
        drawn = replace(drawn, relevance="similarity")
    foragers = draw(st.sampled_from((1, 1, 2, 3)))
    episode = episodes(trace, kind, foragers)
    features = ("state", "transfer", "all") if kind == "news" else ("transfer",)
    shortlists = ("newest", "oldest")
    if kind != "news" and drawn.reach == "frontier":
        shortlists += ("promising", "promising")
    return Case(
        trace=trace,
        rules=drawn,
        foragers=foragers,
        slots=draw(st.sampled_from((8, 3, 1, 0))),
        shortlist=draw(st.sampled_from(shortlists)),
        features=draw(st.sampled_from(features)),
        scaled=draw(st.sampled_from((False, False, True))),
        episodes=tuple(draw(st.lists(episode, min_size=1, max_size=2))),
    )
