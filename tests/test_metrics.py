"""Metrics on logs written by hand, and against slow recomputations."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gym_webforage import metrics
from gym_webforage.metrics import DEAD, HOUR, ILLEGAL, NOVEL, SENT, VISITED
from gym_webforage.trace import Trace
from gym_webforage.world import Rules, World, layout
from gym_webforage.world.topic import topic_from_words
from tests.strategies import START, traces

FOUND = SENT | NOVEL


def log(*rows):
    """Make a log of rows (time, url, version, step, forager, flags, value)."""
    names = ("time", "url", "version", "step", "forager", "flags", "value")
    types = ("i8", "i4", "i4", "i4", "i4", "i4", "f4")
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return {n: np.array(c, t) for n, c, t in zip(names, columns, types, strict=True)}


@pytest.fixture
def trace():
    # URL a: versions 0, 1, 2 seen at 0 h, 2 h, 4 h; b: version 3 at 1 h; c: never;
    # d: versions 4, 5, 6 at 0 h, 3 h, 5 h, the last one as the first.
    return Trace.build(
        {"name": "tiny", "roots": ["a"]},
        urls=["a", "b", "c", "d"],
        version_start=[0, 3, 4, 4, 7],
        version_seen=np.array([0, 2, 4, 1, 0, 3, 5]) * HOUR,
        version_hash=[1, 2, 3, 4, 5, 6, 5],
        link_start=[0] * 8,
    )


@pytest.fixture
def events():
    # Step 1 of forager 0 (ends at 1 h): a is novel, c is dead. Step 1 of forager 1
    # (ends at 1.5 h): a is sent again, b is novel. Step 2 of 0 (ends at 3 h): a's next
    # version is novel. Step 3 of 0: illegal.
    return log(
        (HOUR // 2, 0, 0, 1, 0, VISITED | FOUND, 100),
        (HOUR, 2, -1, 1, 0, DEAD, 0),
        (5 * HOUR // 4, 0, 0, 1, 1, VISITED | SENT, -1),
        (3 * HOUR // 2, 1, 3, 1, 1, FOUND, 100),
        (3 * HOUR, 0, 1, 2, 0, VISITED | FOUND, 100),
        (4 * HOUR, -1, -1, 3, 0, ILLEGAL, -1),
    )


def test_flags_are_those_of_the_world():
    for name in ("VISITED", "SENT", "NOVEL", "DEAD", "ILLEGAL"):
        assert getattr(metrics, name) == getattr(layout, name)


def test_summary(events, trace):
    found = metrics.summary(
        events, trace, start=0, end=5 * HOUR, kind="news", total_relevant=4
    )
    assert found == pytest.approx(
        {
            "hours": 5,
            "foragers": 2,
            "steps": 4,
            "fetches": 6,
            "downloaded": 4,  # neither the dead nor the illegal one
            "dead": 1,
            "illegal": 1,
            "sent": 4,
            "relevant": 3,
            "found_urls": 2,  # a and b
            "relevant_urls": 2,
            "reward": 298,
            "download_efficiency": 3 / 4,
            "sent_efficiency": 3 / 4,
            "relative_found_url": 2 / 4,
            "freshness": 1 / 2,  # b; of a version 1 is held, 2 is shown since 4 h
            "age_hours": 1 / 2,  # 1 h and 0 h
            "freshness_all": 1 / 3,  # b, but neither version of a
            "age_hours_all": 2 / 3,
            # a: 0 h to 1 h; b: 1 h to 1.5 h; a again: 2 h to 3 h.
            "novelty_lag_hours": 2.5 / 3,
            "novelty_lag_median_hours": 1,
            "harvest_rate": 3 / 6,
            "recall": 3 / 4,
            "area": (1 + 1 + 1 + 2 + 3 + 3) / (4 * 6),
            "fetches_to_10": 1,  # 1 of 4
            "fetches_to_25": 1,
            "fetches_to_50": 4,
            "fetches_to_75": 5,
            "fetches_to_100": None,
        }
    )
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_windows(events, trace):
    found = metrics.windows(events, trace, start=0, end=5 * HOUR, hours=2)
    expected = {
        "begin": [0, 2 * HOUR, 4 * HOUR],
        "end": [2 * HOUR, 4 * HOUR, 5 * HOUR],
        "downloaded": [3, 1, 0],
        "dead": [1, 0, 0],
        "illegal": [0, 1, 0],  # a window includes its end
        "sent": [3, 1, 0],
        "relevant": [2, 1, 0],
        "found_urls": [2, 0, 0],
        "reward": [199, 99, 0],
        "download_efficiency": [2 / 3, 1, math.nan],
        "sent_efficiency": [2 / 3, 1, math.nan],
        "relative_found_url": [2 / 3, 0, math.nan],
        # At 2 h a's version 0 has just been replaced; at 4 h version 1 as well.
        "freshness": [1 / 2, 1 / 2, 1 / 2],
        "age_hours": [0, 0, 1 / 2],
        "freshness_all": [1 / 2, 1 / 3, 1 / 3],
        "age_hours_all": [0, 0, 2 / 3],
        # All are of the last day.
        "freshness_day": [1 / 2, 1 / 3, 1 / 3],
        "age_hours_day": [0, 0, 2 / 3],
    }
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, err_msg=name)


def test_windows_refuse_no_length(events, trace):
    with pytest.raises(ValueError, match="hours is 0"):
        metrics.windows(events, trace, start=0, end=HOUR, hours=0)


def test_an_empty_log(trace):
    found = metrics.summary(
        log(), trace, start=0, end=0, kind="news", total_relevant=0, budget=10
    )
    assert found["fetches"] == found["reward"] == found["harvest_rate"] == 0
    assert found["freshness"] is found["recall"] is found["area"] is None
    json.dumps(found, allow_nan=False)
    assert metrics.windows(log(), trace, start=0, end=0)["sent"].tolist() == [0]


def test_a_page_that_shows_old_content_again_is_current(trace):
    # d's version 4 is held; 5 replaces it at 3 h, and 6 at 5 h has 4's content.
    events = log((HOUR, 3, 4, 1, 0, VISITED | FOUND, 100))
    assert metrics.freshness(events, trace, 2 * HOUR) == (1, 0)
    assert metrics.freshness(events, trace, 4 * HOUR) == (0, 1)
    assert metrics.freshness(events, trace, 6 * HOUR) == (1, 0)


def test_only_the_young_count(events, trace):
    # At 5 h a's version 1 (of 2 h) and b (of 1 h) are held; version 2 is shown.
    for hours, expected in ((5, (1 / 2, 1 / 2)), (4, (0, 1)), (1, (None, None))):
        found = metrics.freshness(events, trace, 5 * HOUR, younger=hours * HOUR)
        assert found == expected


def test_nothing_is_found_before_the_end_of_its_step(events, trace):
    assert metrics.freshness(events, trace, HOUR - 1) == (None, None)
    assert metrics.freshness(events, trace, HOUR) == (1, 0)


def test_curves_follow_time_not_the_log():
    # Foragers that work at the same time may be logged one after the other.
    events = log(
        (20, 0, 0, 1, 0, NOVEL, 1),
        (10, 1, 3, 1, 1, VISITED, 0.5),
    )
    assert metrics.targets_curve(events).tolist() == [0, 0, 1]
    assert metrics.reward_curve(events).tolist() == [0, 0.5, 1.5]


def test_budget_counts_what_was_not_used():
    events = log((1, 0, 0, 1, 0, NOVEL, 1), (2, 1, 3, 2, 0, VISITED, 0))
    assert metrics.harvest_rate(events) == 1 / 2
    assert metrics.harvest_rate(events, 4) == 1 / 4
    assert metrics.harvest_rate(events, 1) == 1
    assert metrics.area(events, 2) == (1 + 1) / (2 * 2)
    assert metrics.area(events, 2, 4) == (1 + 1 + 1 + 1) / (2 * 4)
    assert metrics.area(events, 2, 1) == 1 / 2


# --- against a slow recomputation


def slow_freshness(events, trace, time, every):
    held = {}
    for i, version in enumerate(events["version"].tolist()):
        step = [
            int(t)
            for t, s, f in zip(
                events["time"], events["step"], events["forager"], strict=True
            )
            if (s, f) == (events["step"][i], events["forager"][i])
        ]
        if events["flags"][i] & NOVEL and max(step) <= time:
            url = int(trace.version_url[version])
            held.setdefault(url, set()).add(version)
    ages, current = [], 0
    for url, versions in held.items():
        shown = trace.version_at(url, time)
        for version in versions if every else [max(versions)]:
            content = trace.version_hash
            same = content[version] == content[shown] and content[version] != 0
            if version == shown or same:
                current += 1
                ages.append(0)
            else:
                ages.append(time - int(trace.version_seen[shown]))
    if not ages:
        return None, None
    return current / len(ages), sum(ages) / len(ages) / HOUR


@settings(max_examples=150, deadline=None)
@given(traces(), st.integers(0, 2**32), st.booleans())
def test_freshness_by_recomputation(trace, seed, every):
    rng = np.random.default_rng(seed)
    rows, clock = [], START
    for step in range(1, 12):
        for _ in range(rng.integers(1, 4)):
            clock += int(rng.integers(1, 3_000))
            url = int(rng.integers(len(trace.urls)))
            version = trace.version_at(url, clock)
            flags = FOUND if version >= 0 and rng.random() < 0.6 else 0
            rows.append((clock, url, version, step, step % 2, flags, 0))
    events = log(*rows)
    for time in (START, (START + clock) // 2, clock, clock + 60_000):
        found = metrics.freshness(events, trace, time, every=every)
        expected = slow_freshness(events, trace, time, every)
        assert found == (pytest.approx(expected[0]), pytest.approx(expected[1]))
        shown = metrics.shown_versions(trace, np.arange(len(trace.urls)), time)
        slow = [trace.version_at(url, time) for url in range(len(trace.urls))]
        assert shown.tolist() == slow


@pytest.mark.parametrize("hours", [0.0005, 0.002, 3])
def test_windows_add_up(hours):
    rng = np.random.default_rng(1)
    trace = Trace.build(
        {"name": "many", "roots": ["0"]},
        urls=[str(i) for i in range(20)],
        version_start=np.arange(21),
        version_seen=[0] * 20,
        link_start=[0] * 21,
    )
    rows, clock = [], 1_000
    for step in range(60):
        clock += int(rng.integers(1, 500))
        url = int(rng.integers(20))
        flags = int(rng.choice([VISITED, FOUND, SENT, DEAD, ILLEGAL]))
        rows.append((clock, url, url, step, 0, flags, float(rng.random())))
    events = log(*rows)
    run = {"start": 1_000, "end": clock}
    parts = metrics.windows(events, trace, **run, hours=hours)
    whole = metrics.summary(events, trace, **run, kind="news")
    for name in ("downloaded", "sent", "relevant", "found_urls", "reward", "dead"):
        assert parts[name].sum() == pytest.approx(whole[name]), name
    assert parts["freshness"][-1] == whole["freshness"]


# --- how much there is to find


@pytest.mark.parametrize("site", [-1, 0])
def test_count_relevant_is_what_a_whole_crawl_finds(site):
    # Page i links to all others, has the words of its own, and page 3 is gone.
    words = [[0], [0, 1], [1], [0], [2]]
    trace = Trace.build(
        {"name": "words", "roots": ["0"]},
        urls=[str(i) for i in range(5)],
        sites=["one", "two"],
        url_site=[0, 0, 0, 0, 1],
        url_target=[False, True, True, True, True],
        labels=["red"],
        url_label_start=[0, 0, 1, 2, 3, 4],
        url_label=[0, 0, 0, 0],
        vocabulary=["x", "y", "z"],
        version_start=np.arange(6),
        version_seen=[0] * 5,
        version_status=[200, 200, 200, 410, 200],
        version_text=np.arange(5),
        link_start=np.arange(6) * 5,
        link_target=np.tile(np.arange(5), 5),
        body_start=np.cumsum([0, *map(len, words)]),
        body_token=np.concatenate(words),
    )
    topic = topic_from_words(trace, ["x"], "red", 0)
    for kind, relevance in (
        ("topic", "similarity"),
        ("topic", "label"),
        ("spider", "label"),
    ):
        world = World(trace, Rules(kind=kind, relevance=relevance, threshold=0.5))
        world.reset(start=10, roots=np.array([0]), topic=topic, site=site)
        while len(actions := world.foragers[0].action_set()):
            world.step(int(actions[0]))
        total = metrics.count_relevant(
            trace,
            kind=kind,
            time=10,
            site=site,
            topic=topic,
            threshold=0.5,
            by_label=relevance == "label",
        )
        assert total == metrics.count(world.events(), NOVEL) > 0
        assert metrics.recall(world.events(), total) == 1
    assert metrics.count_relevant(trace, kind="news", time=10) is None
