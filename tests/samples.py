"""A small trace with something in every column, and a short crawl over any trace."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from gym_webforage.trace.trace import ENDINGS, Trace
from gym_webforage.world import Rules, World
from gym_webforage.world.rules import KINDS
from gym_webforage.world.topic import topic_from_words

BEGIN = 1_600_000_000_000
URLS = 12
TAGGED = {  # what a recording of markup has besides
    "tag_paths": ["body ul.menü li a", "body p a", "unused"],
    "tag_path": [1, -1, 0, 0, 1],
}


def sample_arrays(seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)

    def lists(rows: int, high: int) -> tuple[np.ndarray, np.ndarray]:
        start = np.append(0, np.cumsum(rng.integers(0, 4, rows)))
        return start, rng.integers(0, high, start[-1])

    versions = rng.integers(1, 4, URLS)
    versions[5] = 0  # linked, but never recorded
    count = int(versions.sum())
    version_start = np.append(0, np.cumsum(versions))
    first = np.repeat(version_start[:-1], versions)
    seen = BEGIN + (np.arange(count) - first) * 60_000
    arrays: dict[str, Any] = {
        "url_site": rng.integers(0, 2, URLS),
        "url_target": rng.random(URLS) < 0.3,
        "version_start": version_start,
        "version_seen": seen,
        "version_published": seen - rng.integers(0, 1_000_000, count),
        "version_status": rng.choice([200, 200, 200, 301, 404], count),
        "version_bytes": rng.integers(0, 50_000, count),
        "version_hash": rng.integers(2**64, size=count, dtype=np.uint64),
        "version_text": rng.integers(-1, 4, count),
        "version_state": rng.normal(size=(count, 3)),
    }
    arrays["url_label_start"], arrays["url_label"] = lists(URLS, 2)
    arrays["url_token_start"], arrays["url_token"] = lists(URLS, 7)
    arrays["link_start"] = np.append(0, np.cumsum(rng.integers(2, 6, count)))
    links = int(arrays["link_start"][-1])
    arrays["link_target"] = rng.integers(0, URLS, links)
    arrays["link_text"] = rng.integers(-1, 5, links)
    arrays["anchor_start"], arrays["anchor_token"] = lists(5, 7)
    arrays["near_start"], arrays["near_token"] = lists(5, 7)
    arrays["title_start"], arrays["title_token"] = lists(4, 7)
    bodies = [rng.permutation(7)[: rng.integers(1, 6)] for _ in range(4)]
    arrays["body_start"] = np.append(0, np.cumsum([len(body) for body in bodies]))
    arrays["body_token"] = np.concatenate(bodies)
    arrays["body_count"] = rng.integers(1, 9, len(arrays["body_token"]))
    return arrays


def sample_trace(**changes: Any) -> Trace:
    """Not all sites and labels are used, and some text is beyond ASCII."""
    urls = [f"http://hír{i % 2}.example/p{i}.html" for i in range(URLS - 1)]
    given: dict[str, Any] = {
        "meta": {"name": "sample-v0", "title": "Példa ✓", "roots": urls[:2]},
        "urls": [*urls, "http://例え.example/𝄞?q=1"],
        "sites": ["unused.example", "hír1.example", "hír0.example"],
        "labels": ["zebra", "sport", "ära"],
        "vocabulary": ["a", "βeta", "c", "d", "e", "f", "g"],
        **sample_arrays(),
        **changes,
    }
    return Trace.build(given.pop("meta"), **given)


def assert_in_bounds(trace: Trace) -> None:
    """State once more, apart from the validation, what the kernels index by."""
    urls, versions = len(trace.urls), len(trace.version_seen)
    links, words = len(trace.link_target), len(trace.vocabulary)
    link_texts, page_texts = len(trace.anchor_start) - 1, len(trace.body_start) - 1
    for name, length in (
        *(("url_site", urls), ("url_target", urls), ("version_published", versions)),
        *(("version_status", versions), ("version_bytes", versions)),
        *(("version_text", versions), ("version_state", versions)),
        *(("link_text", links), ("body_count", len(trace.body_token))),
        *(("tag_path", link_texts), ("url_directory", urls)),
        *(("url_ending", urls), ("idf", words), ("text_norm", page_texts)),
    ):
        assert len(getattr(trace, name)) == length, name
    for name, rows, entries in (
        ("version_start", urls, trace.version_seen),
        ("url_label_start", urls, trace.url_label),
        ("url_token_start", urls, trace.url_token),
        ("link_start", versions, trace.link_target),
        ("anchor_start", link_texts, trace.anchor_token),
        ("near_start", link_texts, trace.near_token),
        ("title_start", page_texts, trace.title_token),
        ("body_start", page_texts, trace.body_token),
    ):
        start = getattr(trace, name).tolist()
        assert start == sorted(start) and len(start) == rows + 1, name
        assert start[0] == 0 and start[-1] == len(entries), name
    for name, low, high in (
        *(("roots", 0, urls), ("link_target", 0, urls), ("url_ending", 0, ENDINGS)),
        *(("url_site", 0, len(trace.sites)), ("url_label", 0, len(trace.labels))),
        *(("version_text", -1, page_texts), ("link_text", -1, link_texts)),
        *(("url_token", 0, words), ("anchor_token", 0, words)),
        *(("near_token", 0, words), ("title_token", 0, words)),
        ("tag_path", -1, len(trace.tag_paths)),
        ("url_directory", 0, trace.directories),
        ("body_token", 0, words),
    ):
        assert all(low <= number < high for number in getattr(trace, name)), name
    start = trace.version_start.tolist()
    for first, last in pairwise(start):
        seen = trace.version_seen[first:last].tolist()
        assert seen == sorted(set(seen))
    assert (trace.version_published <= trace.version_seen).all()
    assert np.isfinite(trace.version_state).all()
    assert 0 <= trace.begin <= trace.end


def crawl(trace: Trace, seed: int = 0, steps: int = 30) -> None:
    """Take random legal steps by all three rules, and look at everything."""
    assert_in_bounds(trace)
    rng = np.random.default_rng(seed)
    words = trace.vocabulary[:2]
    topic = topic_from_words(trace, words) if words and words[0].islower() else None
    for kind in KINDS:
        features = "state" if kind == "news" else "transfer"
        rules = Rules(kind=kind, cost="bytes", budget=10**6)
        world = World(trace, rules, slots=3, features=features)
        start = int(rng.integers(trace.begin, trace.end + 1))
        world.reset(
            start=start, roots=trace.roots, topic=topic if kind == "topic" else None
        )
        for _ in range(steps):
            actions = world.foragers[0].action_set()
            if not len(actions):
                break
            world.step(int(rng.choice(actions)))
            for array in world.observe():
                assert np.isfinite(array).all()
        events = world.events()
        assert (events["url"] < len(trace.urls)).all()
        assert (events["version"] < len(trace.version_seen)).all()
