"""How a fleet divides its work: logs written by hand, and slow recomputations."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest

from gym_webforage import fleet_metrics as fleet
from gym_webforage import load_trace
from gym_webforage.fleet_metrics import distinct_trajectories, exclusive_urls, paths
from gym_webforage.metrics import DEAD, HOUR, ILLEGAL, NOVEL, SENT, VISITED
from gym_webforage.trace import Trace
from gym_webforage.world import Rules, World, layout
from tests.test_metrics import log

MINUTE = 60_000
FOUND = SENT | NOVEL


def visits(*rows):
    """Make a log of visits (minute, url, forager), and a page seen beside each."""
    made, step = [], defaultdict(int)
    for minute, url, forager in rows:
        step[forager] += 1
        at = minute * MINUTE
        made.append((at, url, url, step[forager], forager, VISITED, 0))
        # Something is always left to visit, so that paths do not end early.
        made.append((at, 1000 + len(made), 0, step[forager], forager, 0, 0))
    return log(*made)


# --- population


def test_population_and_scores():
    times = np.array([0, 10, 20, 30])
    births, deaths = [(10, 0, 2), (15, 1, 3)], [(30, 0)]
    assert fleet.population(births, deaths, times).tolist() == [0, 1, 2, 1]
    history = {
        "time": np.array([5, 12, 20, 25]),
        "forager": np.array([0, 1, 0, 2]),
        "score": np.array([101.0, 99.0, 150.0, 100.5]),
    }
    nan = math.nan
    np.testing.assert_equal(
        fleet.scores(history, deaths, times),
        [[nan, 101, 150, nan], [nan, nan, 99, 99], [nan, nan, nan, 100.5]],
    )


# --- paths


def test_a_path_ends_at_its_length_or_when_nothing_is_left():
    # Forager 0: a meets b and c, then b, then c: nothing is left, so d begins a path;
    # it meets e, and with three visits a path (d, e, f) is full, so g begins one.
    # Forager 1 visits between the steps of the other: its first visit begins a path.
    events = log(
        (1, 0, 0, 1, 0, VISITED, 0),
        (2, 1, 0, 1, 0, 0, 0),
        (3, 2, 0, 1, 0, 0, 0),
        (4, 1, 0, 2, 0, VISITED, 0),
        (5, 0, 0, 2, 0, 0, 0),  # links back to the start
        (6, 5, 0, 1, 1, VISITED, 0),
        (7, 9, -1, 1, 1, DEAD, 0),  # does not join the frontier
        (8, 2, 0, 3, 0, VISITED, 0),
        (9, -1, -1, 4, 0, ILLEGAL, -1),  # no visit
        (10, 3, 0, 5, 0, VISITED, 0),
        (11, 4, 0, 5, 0, 0, 0),
        (12, 4, 0, 6, 0, VISITED, 0),
        (13, 6, 0, 6, 0, 0, 0),
        (14, 7, 0, 6, 0, 0, 0),
        (15, 6, -1, 7, 0, VISITED | DEAD, 0),
        (16, 7, 0, 8, 0, VISITED, 0),
        (17, 5, 0, 2, 1, VISITED, 0),  # the first ended: its only link was dead
    )
    found = paths(events, path_length=3)
    #                       a  b  5  c  d  e  f  g  5
    assert found.tolist() == [0, 0, 1, 0, 2, 2, 2, 3, 4]
    starts = fleet.starting_points(events, found)
    assert starts["url"].tolist() == [0, 5, 3, 7, 5]
    assert starts["forager"].tolist() == [0, 1, 0, 0, 1]
    assert starts["new"].tolist() == [True, True, True, True, False]
    # Downloaded in the order 0 1 2 5 3 4 6 7.
    assert starts["index"].tolist() == [0, 3, 4, 7, 3]
    assert [x.tolist() for x in fleet.discoveries(events)] == [
        [0, 1, 2, 5, 3, 4, 6, 7],
        [1, 2, 3, 6, 10, 11, 13, 14],
    ]


@pytest.mark.parametrize(
    ("path_length", "refetch"), [(101, True), (101, False), (4, True), (1, False)]
)
def test_paths_are_those_of_the_world(path_length, refetch):
    trace = load_trace("synthetic-small-v0")
    rng = np.random.default_rng(3)
    # Few links, so that frontiers run empty.
    kept = rng.random(len(trace.link_target)) < 0.1
    version = np.repeat(np.arange(len(trace.version_seen)), np.diff(trace.link_start))
    count = np.bincount(version[kept], minlength=len(trace.version_seen))
    thin = Trace.build(
        {"name": "thin", "roots": list(trace.meta["roots"])},
        urls=trace.urls,
        version_start=trace.version_start,
        version_seen=trace.version_seen,
        version_status=trace.version_status,
        link_start=np.append(0, np.cumsum(count)),
        link_target=trace.link_target[kept],
    )
    rules = Rules(path_length=path_length, refetch_visited=refetch, budget="5d")
    world = World(thin, rules, foragers=3, features="state")
    world.reset(start=thin.begin, roots=thin.roots)
    expected, number = [], 0
    current = {}
    for _ in range(1500):
        who = int(rng.integers(3))
        forager = world.foragers[who]
        actions = forager.action_set()
        if forager.ints[layout.AT_START]:
            actions = forager.known
            current[who], number = number, number + 1
        world.step(int(rng.choice(actions)), who)
        expected.append(current[who])
    found = paths(world.events(), path_length)
    assert found.tolist() == expected
    if path_length == 101:
        assert number > 1500 / 101 + 3  # some ended early


# --- division of work


def test_exclusive_urls():
    # First 75 minutes: 0 and 1 visit a; 0 alone b (twice), 1 alone c and d. Then only
    # 0 works; then nobody; the last window is cut short by the end.
    events = visits(
        (1, 10, 0),
        (2, 11, 0),
        (3, 11, 0),
        (4, 10, 1),
        (5, 12, 1),
        (75, 13, 1),  # a window includes its end
        (76, 10, 0),
        (230, 10, 1),
        (231, 10, 0),
        (300, 14, 1),  # after the end
    )
    found = exclusive_urls(events, start=0, end=240 * MINUTE)
    assert found.begin.tolist() == [0, 75 * MINUTE, 150 * MINUTE, 225 * MINUTE]
    assert found.end.tolist()[-1] == 240 * MINUTE
    assert found.total.tolist() == [4, 1, 0, 1]
    assert found.active.tolist() == [2, 1, 0, 2]
    np.testing.assert_equal(
        found.contribution, [[1 / 4, 2 / 4], [1, 0], [math.nan, math.nan], [0, 0]]
    )
    np.testing.assert_equal(found.share, [3 / 4, 1, math.nan, 0])
    assert found.mean == (3 / 4 + 0) / 2  # windows with two foragers
    whole = exclusive_urls(events, start=0, end=240 * MINUTE, minutes=240)
    assert whole.share.tolist() == [3 / 4]


def test_distinct_trajectories():
    # From a: 0 takes a b c twice and a b d, 1 takes a b c: two different ones, of
    # which a b d is 0's alone. From b only 0 and 1 start: b c ?, b d ?.
    events = visits(
        *((1, 0, 0), (2, 1, 0), (3, 2, 0)),
        *((11, 0, 1), (12, 1, 1), (13, 2, 1)),
        *((21, 0, 0), (22, 1, 0), (23, 3, 0)),
        *((31, 0, 0), (32, 1, 0), (33, 2, 0)),
        *((41, 5, 1), (42, 6, 1), (43, 7, 1)),  # nobody else starts from 5
        # Astride of two windows.
        *((74, 0, 0), (75, 1, 0), (76, 4, 0)),
    )
    path = paths(events, path_length=3)
    found = distinct_trajectories(events, path, start=0, end=150 * MINUTE)
    assert found.total.tolist() == [2, 0]
    assert found.single.tolist() == [[1, 0], [0, 0]]
    assert found.mean == 1 / 2


def slow_division(events, path, start, end, minutes):
    """Count as the definitions say, one visit after the other."""
    length = round(minutes * MINUTE)
    count = max(1, -(-(end - start) // length))
    rows = [i for i, f in enumerate(events["flags"]) if f & VISITED]
    window = {}
    for row in rows:
        at = int(events["time"][row])
        if start < at <= end:
            window[row] = (at - start - 1) // length
    urls = [defaultdict(set) for _ in range(count)]
    for row, number in window.items():
        urls[number][int(events["url"][row])].add(int(events["forager"][row]))
    by_path = defaultdict(list)
    for row, number in zip(rows, path.tolist(), strict=True):
        by_path[number].append(row)
    taken = [defaultdict(set) for _ in range(count)]
    origins = [defaultdict(set) for _ in range(count)]
    for own in by_path.values():
        for three in zip(own, own[1:], own[2:], strict=False):
            numbers = {window.get(row, -1) for row in three}
            if len(numbers) == 1 and numbers != {-1}:
                [number] = numbers
                way = tuple(int(events["url"][row]) for row in three)
                who = int(events["forager"][three[0]])
                taken[number][way].add(who)
                origins[number][way[0]].add(who)
    ways = [
        {way: who for way, who in t.items() if len(o[way[0]]) > 1}
        for t, o in zip(taken, origins, strict=True)
    ]
    foragers = int(events["forager"].max()) + 1
    answers = []
    for things in (urls, ways):
        single = np.zeros((count, foragers), int)
        for number, owners in enumerate(things):
            for who in owners.values():
                if len(who) == 1:
                    single[number, next(iter(who))] += 1
        answers.append(([len(owners) for owners in things], single.tolist()))
    return answers


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("minutes", [7.0, 75.0, 1e5])
def test_division_by_recomputation(seed, minutes):
    rng = np.random.default_rng(seed)
    clock, rows = 0.0, []
    for _ in range(600):
        clock += float(rng.exponential(0.7))
        rows.append((clock, int(rng.integers(6)), int(rng.integers(4))))
    events = visits(*rows)
    events["time"] = events["time"].astype(np.int64)
    path = paths(events, path_length=5)
    start, end = 3 * MINUTE, round(0.95 * clock) * MINUTE
    slow = slow_division(events, path, start, end, minutes)
    fast = (
        exclusive_urls(events, start=start, end=end, minutes=minutes),
        distinct_trajectories(events, path, start=start, end=end, minutes=minutes),
    )
    for (total, single), found in zip(slow, fast, strict=True):
        assert found.total.tolist() == total
        assert found.single.tolist() == single


def test_one_number_each():
    events = visits(
        *((1, 0, 0), (2, 1, 0), (3, 2, 0)), *((4, 0, 1), (5, 1, 1), (6, 3, 1))
    )
    assert fleet.summary(events, start=0, end=HOUR) == {
        "paths": 2,
        "new_starts": 1,
        "exclusive_urls": 2 / 4,
        "exclusive_urls_run": 2 / 4,
        "distinct_trajectories": 1,
        "distinct_trajectories_run": 1,
    }


def test_an_empty_log_and_a_lonely_forager():
    for events, count in ((log(), 0), (visits((1, 0, 0), (2, 1, 0)), 1)):
        found = fleet.summary(events, start=0, end=HOUR)
        assert found["paths"] == found["new_starts"] == count
        assert found["exclusive_urls"] is found["distinct_trajectories"] is None
    assert exclusive_urls(log(), start=0, end=0).total.tolist() == [0]
    with pytest.raises(ValueError, match="minutes is -1"):
        exclusive_urls(log(), start=0, end=0, minutes=-1)


# --- territory and lag


@pytest.fixture
def trace():
    # a -> b, c, a; b -> c; c's second version (seen at 1 h) -> a; published an hour
    # before they are seen, d's at the same time.
    return Trace.build(
        {"name": "tiny", "roots": ["a"]},
        urls=["a", "b", "c", "d"],
        version_start=[0, 1, 2, 4, 5],
        version_seen=np.array([2, 2, 2, 3, 2]) * HOUR,
        version_published=np.array([1, 1, 1, 2, 2]) * HOUR,
        link_start=[0, 3, 4, 4, 5, 5],
        link_target=[1, 2, 0, 2, 0],
    )


def test_territory(trace):
    rows = [
        (1, 0, 0, 1, 0, VISITED, 0),
        (2, 1, 1, 1, 0, FOUND, 100),
        (3, 2, 2, 1, 0, FOUND, 100),
        (4, 1, 1, 1, 1, VISITED | FOUND, 100),  # another forager's
        (5, 2, 2, 2, 0, VISITED, 0),
        (6, 1, 1, 3, 0, VISITED, 0),  # the frontier is empty now
        (7, 0, 0, 4, 0, VISITED, 0),
        (8, 1, 1, 4, 0, SENT, -1),
        (9, 3, 4, 5, 0, VISITED | FOUND, 100),
    ]
    events = log(*rows)
    path = paths(events)
    ground = fleet.territory(events, trace, path, 0, begin=0, end=8)
    assert ground.url.tolist() == [0, 2, 1]  # a, c, b
    assert ground.visits.tolist() == [2, 1, 1]
    assert ground.paid.tolist() == [2, 0, 0]
    # a -> c and b, b -> c; c's version without links was visited.
    assert ground.links.tolist() == [[0, 1], [0, 2], [2, 1]]
    assert ground.moves.tolist() == [[0, 1], [1, 2]]
    assert ground.starts.tolist() == [0]
    empty = fleet.territory(events, trace, path, 7, begin=0, end=8)
    assert [len(x) for x in empty] == [0] * 6
    later = fleet.territory(events, trace, path, 0, begin=5, end=9)
    assert later.url.tolist() == [1, 0, 3]
    assert later.paid.tolist() == [0, 0, 1]


def test_lags_leave_out_what_was_published_before(trace):
    events = log(
        (3 * HOUR, 0, 0, 1, 0, VISITED | FOUND, 100),
        (4 * HOUR, 3, 4, 1, 0, FOUND, 100),
        (5 * HOUR, 2, 3, 2, 0, FOUND, 100),
    )
    times, hours = fleet.lags(events, trace, since=2 * HOUR)
    assert times.tolist() == [4 * HOUR, 5 * HOUR]
    assert hours.tolist() == [2, 3]
