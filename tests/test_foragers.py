"""The news foragers, against the papers' algorithms worked out by hand."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import baselines
from baselines import _greedy
from baselines._forager import TIES, Forager, update_weblog
from baselines.agent import Agent, Transition, run_episode
from baselines.linear_td import LinearTD
from baselines.weblog import Weblog
from baselines.weblog_td import WeblogTD
from gym_webforage.envs import NewsEnv
from gym_webforage.trace import Trace
from tests.toys import DAY, NOW

FORAGERS: dict[str, type[Forager]] = {
    "weblog": Weblog,
    "linear_td": LinearTD,
    "weblog_td": WeblogTD,
}
HOURS = 12 * 3_600_000


def news_web(
    links: Mapping[str, list[str]],
    states: Mapping[str, list[float]],
    changes: Mapping[str, int] | None = None,
) -> Trace:
    """Draw a web of old pages; those in ``changes`` are new every so many seconds."""
    names = list(links)
    seen, starts, rows = [], [0], []
    for name in names:
        every = (changes or {}).get(name)
        times = range(0, HOURS, every * 1000) if every else [-20 * DAY]
        seen += [NOW + time for time in times]
        rows += [name] * len(times)
        starts.append(len(rows))
    targets = [[names.index(link) for link in links[name]] for name in rows]
    return Trace.build(
        {"name": "drawn", "roots": [names[0]]},
        urls=names,
        version_start=starts,
        version_seen=seen,
        version_state=[states[name] for name in rows],
        link_start=np.cumsum([0, *map(len, targets)]),
        link_target=[target for row in targets for target in row],
    )


def news(trace: Trace | str, **rules: Any) -> NewsEnv:
    return NewsEnv(trace, slots=None, split="all", on_illegal="raise", **rules)


def crawl(
    env: NewsEnv, agent: Agent, seed: int = 0, **options: Any
) -> list[Transition]:
    steps: list[Transition] = []
    run_episode(env, agent, seed=seed, options=options, on_step=steps.append)
    return steps


# --- Algorithm 1: the weblog's update


def test_weblog_update_by_hand() -> None:
    # Sums of rewards from the own step on: c 100 - 1 + 0, a -1 + 0, d 0.
    after = update_weblog({1: 50.0, 2: 10.0}, [3, 1, 4], [100, -1, 0], 0.3, 100)
    assert list(after.items()) == [
        (3, 99.0),
        (1, 0.7 * 50 + 0.3 * -1),
        (2, 10.0),
        (4, 0.0),
    ]
    assert list(update_weblog({1: 5.0}, [2, 3], [1, 9], 0.3, 2)) == [2, 3]


def test_weblog_ties_keep_their_order() -> None:
    # All are worth 0: those that stood there first, then the path's.
    assert list(update_weblog({7: 0, 3: 0}, [9, 1, 3], [0, 0, 0], 0.3, 4)) == [
        7,
        3,
        9,
        1,
    ]


def test_the_weblog_is_updated_between_paths() -> None:
    links = {"home": ["a", "b"], "a": [], "b": ["c"], "c": []}
    trace = news_web(links, {name: [0.0] for name in links}, {"a": 40_000, "c": 40_000})
    # Equal values: oldest first. home brings a (novel); a nothing; b brings c.
    # A path of 3, then the next: fetches 3, 1, 2.
    agent = Weblog(states=1)
    steps = crawl(news(trace, path_length=3, budget=7), agent, start=NOW)
    assert [trace.urls[step.action] for step in steps][:3] == ["home", "a", "b"]
    assert [step.reward for step in steps][:3] == [100, 0, 100]
    # The sums: home 200, a 100, b 100; home was there with 0 and moves by 0.3.
    a, b, home = (trace.urls.find(name) for name in ("a", "b", "home"))
    assert list(agent.weblog.items()) == [(a, 100), (b, 100), (home, 0.3 * 200)]
    assert steps[3].action in agent.weblog


def test_the_start_list_is_the_first_part_of_the_weblog() -> None:
    agent = Weblog(states=2, start_size=3)
    agent.reset(0)
    agent.weblog = {url: -float(url) for url in range(50)}

    class Known:
        urls = np.arange(50)

    drawn = [agent._begin_path(Known()) for _ in range(600)]  # type: ignore[arg-type]
    counts = np.bincount(drawn)
    assert len(counts) == 3
    assert counts.min() > 150  # each as likely as the others


# --- Algorithm 3: the greedy choice


def plain_product(row: np.ndarray, weights: np.ndarray) -> float:
    """The kernel's order of summation, in plain Python."""
    sums = [0.0] * 4
    whole = len(weights) - len(weights) % 4
    for i in range(len(weights)):
        sums[i % 4 if i < whole else 0] += float(row[i]) * float(weights[i])
    return (sums[0] + sums[1]) + (sums[2] + sums[3])


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    k=st.integers(0, 11),
    tie=st.integers(0, 2),
    scale=st.sampled_from([1e-170, 1e-9, 1.0, 1e6, 1e60]),
    alpha=st.sampled_from([0.0, 1e-9, 0.01, 0.1]),
)
def test_the_choice_is_that_of_asking_all(
    seed: int, k: int, tie: int, scale: float, alpha: float
) -> None:
    random = np.random.default_rng(seed)
    pages = 60
    # Few different states, saturated as a text classifier's: ties abound.
    kinds = np.tanh(random.normal(scale=3, size=(12, k))).astype(np.float32)
    rows = np.zeros((pages, k), np.float32)
    facts = np.zeros((pages, 3))
    weights = scale * random.normal(size=k)
    way, old = np.ones(1), np.zeros(k)
    equals = np.zeros(pages, np.int64)
    for _ in range(25):
        learnt = random.choice(pages, 8, replace=False)
        states = kinds[random.integers(len(kinds), size=8)]
        _greedy.remember(learnt, states, rows, facts, weights, way)
        choices = random.permutation(pages)[: random.integers(1, pages)]
        chosen, count = _greedy.choose(choices, rows, facts, weights, way, tie, equals)
        values = {int(n): plain_product(rows[n], weights) for n in choices}
        best = sorted(n for n in values if values[n] == max(values.values()))
        assert count == len(best)
        if tie == _greedy.OLDEST:
            assert chosen == best[0]
        elif tie == _greedy.NEWEST:
            assert chosen == best[-1]
        else:
            assert sorted(equals[:count].tolist()) == best
        _greedy.correct(
            rows, chosen, choices[0], 100 * scale, 0.9, alpha, weights, way, old
        )


def test_most_values_are_not_computed_again() -> None:
    random = np.random.default_rng(0)
    rows, facts = np.zeros((1000, 50), np.float32), np.zeros((1000, 3))
    weights, way, old = random.normal(size=50), np.ones(1), np.zeros(50)
    states = random.normal(size=(1000, 50)).astype(np.float32)
    numbers = np.arange(1000)
    _greedy.remember(numbers, states, rows, facts, weights, way)
    assert _greedy.correct(rows, 3, 4, 1.0, 0.9, 1e-3, weights, way, old)
    ties = np.zeros(0, np.int64)
    chosen, _ = _greedy.choose(numbers, rows, facts, weights, way, 0, ties)
    assert chosen == int(np.argmax(states @ weights))
    assert 1 <= np.count_nonzero(facts[:, _greedy.WAY] == way[0]) < 200


@pytest.mark.parametrize("ties", TIES)
def test_ties_follow_their_rule(ties: Any) -> None:
    leaves = [f"leaf {i}" for i in range(6)]
    links = {"home": leaves, **{leaf: [] for leaf in leaves}}
    trace = news_web(links, {name: [0.3, -1.0] for name in links})
    orders = set()
    for seed in range(5):
        agent = Weblog(states=2, ties=ties)
        steps = crawl(news(trace, path_length=7, budget=13), agent, seed)
        orders.add(tuple(trace.urls[step.action] for step in steps))
    if ties == "oldest":
        assert orders == {("home", *leaves)}
    elif ties == "newest":
        assert orders == {("home", *reversed(leaves))}
    else:
        assert len(orders) > 1
        assert all(sorted(order) == sorted(["home", *leaves]) for order in orders)


def test_an_unknown_tie_rule_is_named() -> None:
    with pytest.raises(ValueError, match="ties is 'first', expected oldest, newest"):
        Weblog(states=2, ties="first")  # type: ignore[arg-type]


# --- Algorithm 4: temporal differences


def test_td_update_by_hand() -> None:
    rows = np.array([[1, 0], [0, 2]], np.float32)
    weights, way, old = np.array([1.0, 1.0]), np.ones(1), np.zeros(2)
    assert _greedy.correct(rows, 0, 1, 10.0, 0.9, 0.1, weights, way, old)
    # The error is 10 + 0.9 * 2 - 1 = 10.8; a tenth of it goes to state (1, 0).
    assert weights.tolist() == pytest.approx([1 + 1.08, 1.0])
    assert way[0] == pytest.approx(1 + 1.08)


def test_td_learns_from_all_steps_but_a_paths_first() -> None:
    links = {"home": ["a"], "a": ["b"], "b": []}
    states = {"home": [1.0, 0.0], "a": [0.0, 1.0], "b": [1.0, 1.0]}
    trace = news_web(links, states, {"b": 40_000})
    agent = LinearTD(states=2)
    agent.reset(0)
    agent.weights[:] = [1.0, 2.0]
    weights = []
    run_episode(
        news(trace, path_length=3, budget=7),
        agent,
        seed=0,
        options={"start": NOW},
        on_step=lambda step: weights.append(agent.weights.tolist()),
    )
    # home: the first step. a: pays 100 for b; the error 100 + 0.9 * 2 - 1 = 100.8 goes
    # to home's (1, 0). b: pays nothing; 0 + 0.9 * (11.08 + 2) - 2 = 9.772 to (0, 1).
    assert weights[0] == [1.0, 2.0]
    assert weights[1] == pytest.approx([11.08, 2.0])
    assert weights[2] == pytest.approx([11.08, 2.9772])
    assert weights[3] == weights[2]  # a new path


def test_weights_that_explode_stay_numbers() -> None:
    # Back and forth between opposite states of length 10: each error is the next one's
    # cause, about 18 times as large.
    rows = np.array([[10.0] * 50, [-10.0] * 50], np.float32)
    weights, way, old = np.ones(50), np.ones(1), np.zeros(50)
    done = [
        _greedy.correct(rows, i % 2, 1 - i % 2, 1.0, 0.9, 0.1, weights, way, old)
        for i in range(200)
    ]
    assert done[0] and not done[-1]
    assert np.all(np.isfinite(weights)) and np.abs(weights).max() > 1e90
    facts = np.zeros((2, 3))
    _greedy.remember(np.arange(2), rows.copy(), rows, facts, weights, way)
    values = [plain_product(row, weights) for row in rows]
    chosen, _ = _greedy.choose(np.arange(2), rows, facts, weights, way, 0, old[:0])
    assert chosen == int(np.argmax(values))


def test_an_agent_whose_weights_explode_goes_on() -> None:
    links = {"home": ["a"], "a": ["b"], "b": ["c"], "c": ["d"], "d": ["home"]}
    sign = [1.0, -1.0, 1.0, -1.0, 1.0]
    states = {name: [30 * s] * 4 for name, s in zip(links, sign, strict=True)}
    agent = LinearTD(states=4)
    crawl(news(news_web(links, states), budget=2000), agent, start=NOW)
    assert agent.refused > 0
    assert np.all(np.isfinite(agent.weights))


# --- the start list without a weblog


def test_the_fixed_start_list() -> None:
    links = {f"p{i}": [f"p{i + 1}", f"p{i + 2}"] for i in range(30)}
    links |= {"p30": [], "p31": []}
    trace = news_web(links, {name: [0.0] for name in links})
    env = news(trace, path_length=20, budget=400)
    agent = LinearTD(states=1)
    visited = [step.action for step in crawl(env, agent)]
    assert agent.starts == visited[:10]
    starts = {visited[i] for i in range(20, len(visited), 20)}
    assert len(starts) > 1 and starts <= set(agent.starts)

    agent = LinearTD(states=1, first="discovered", start_size=3)
    crawl(env, agent)
    assert agent.starts == env.known.urls[:3].tolist()


# --- Algorithm 6: division


def grown(name: str, **fields: Any) -> tuple[NewsEnv, Any]:
    env = news("synthetic-small-v0", budget="12h")
    agent = FORAGERS[name](states=env.trace.states, **fields)
    crawl(env, agent)
    return env, agent


@pytest.mark.parametrize("name", ["weblog", "weblog_td"])
def test_division_halves_the_weblog(name: str) -> None:
    _, parent = grown(name, weblog_size=31)
    before = dict(parent.weblog)
    weights = parent.weights.copy()
    assert len(before) == 31
    child = parent.divide(np.random.default_rng(1))
    assert (len(parent.weblog), len(child.weblog)) == (16, 15)
    assert {**parent.weblog, **child.weblog} == before
    for weblog in (parent.weblog, child.weblog):
        assert list(weblog.values()) == sorted(weblog.values(), reverse=True)
    assert np.array_equal(parent.weights, weights)
    assert child.weights is not parent.weights
    # One that learns hands its weights on; one that does not has new ones drawn.
    assert np.array_equal(child.weights, weights) == (name == "weblog_td")
    assert child._path == []
    assert child.weblog_size == 31


def test_other_chance_divides_otherwise() -> None:
    halves = []
    for seed in (1, 1, 2):
        _, parent = grown("weblog")
        child = parent.divide(np.random.default_rng(seed))
        halves.append((list(child.weblog), child.weights.tolist()))
    assert halves[0] == halves[1] != halves[2]


def test_a_lone_url_is_shared() -> None:
    parent = Weblog(states=2)
    parent.reset(0)
    parent.weblog = {5: 1.0}
    child = parent.divide(np.random.default_rng(0))
    assert parent.weblog == child.weblog == {5: 1.0}


def test_an_rl_child_copies() -> None:
    _, parent = grown("linear_td", alpha=0.05)
    child = parent.divide(np.random.default_rng(0))
    assert child.starts == parent.starts and child.starts is not parent.starts
    assert np.array_equal(child.weights, parent.weights)
    child.weights += 1
    assert not np.array_equal(child.weights, parent.weights)
    assert child.alpha == 0.05


# --- a crawl as a whole


@pytest.mark.parametrize("name", FORAGERS)
def test_every_choice_is_the_best_of_the_frontier(name: str) -> None:
    env = news("synthetic-small-v0", budget="6h")
    agent: Any = baselines.load(name).make(env, 3)
    agent.reset(3)
    observation, info = env.reset(seed=3)
    done = False
    starts = others = 0
    while not done:
        known, numbers = info["known"], None
        if not known.at_start:
            numbers = np.sort(known.choices)
            states = known.states_of(numbers)
        action = agent.act(observation, info)
        if numbers is None:
            starts += 1
        else:
            values = [plain_product(state, agent.weights) for state in states]
            assert known.number(action) == numbers[int(np.argmax(values))]
            others += 1
        before = observation
        observation, reward, ended, truncated, info = env.step(action)
        done = ended or truncated
        agent.learn(
            Transition(before, action, reward, observation, ended, truncated, info)
        )
    assert starts > 2 and others > 100


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("name", [*FORAGERS, "random_walk"])
def test_a_saved_agent_goes_on_as_if_nothing_had_been(name: str, ties: Any) -> None:
    env = news("synthetic-small-v0", budget="8h")

    def make() -> Any:
        if name == "random_walk":
            return baselines.load(name).make(env, 0)
        return FORAGERS[name](states=env.trace.states, ties=ties)

    def go_on(agent: Any, observation: Any, info: Any, steps: int) -> list[Any]:
        made = []
        for _ in range(steps):
            action = agent.act(observation, info)
            before = observation
            observation, reward, ended, cut, info = env.step(action)
            agent.learn(
                Transition(before, action, reward, observation, ended, cut, info)
            )
            made.append((action, reward))
        made.append(agent.save().items())
        return made

    agent = make()
    agent.reset(0)
    go_on(agent, *env.reset(seed=0), 130)
    kept, there = agent.save(), env.snapshot()
    for value in kept.values():
        assert isinstance(value, np.ndarray | int | float | str)
    first = go_on(agent, *env.restore(there), 150)
    other = make()
    other.load(kept)
    second = go_on(other, *env.restore(there), 150)
    assert first[:-1] == second[:-1]
    for (key, value), (also, same) in zip(first[-1], second[-1], strict=True):
        assert key == also and np.array_equal(value, same)


def test_a_reset_keeps_learned_weights_only() -> None:
    env = news("synthetic-small-v0", budget="3h")
    learner, fixed = LinearTD(env.trace.states), Weblog(env.trace.states)
    for agent in (learner, fixed):
        crawl(env, agent, seed=1)
    weights = learner.weights.copy()
    learner.reset(2)
    assert np.array_equal(learner.weights, weights)
    assert learner.starts == [] and learner._known == 0
    old = fixed.weights.copy()
    fixed.reset(2)
    assert fixed.weblog == {}
    assert not np.array_equal(fixed.weights, old)
    fixed.reset(1)
    assert np.array_equal(fixed.weights, old)


# --- they learn something


def test_the_weblog_comes_to_hold_the_hub_that_pays() -> None:
    links = {"index": [f"hub {i}" for i in range(10)]}
    changes = {}
    for i in range(10):
        leaves = [f"leaf {i} {j}" for j in range(4)]
        links |= {f"hub {i}": leaves, **{leaf: [] for leaf in leaves}}
        if i == 7:
            changes = dict.fromkeys(leaves, 15)
    trace = news_web(links, {name: [0.0] for name in links}, changes)
    index, hub = trace.urls.find("index"), trace.urls.find("hub 7")
    for seed in range(3):
        agent = Weblog(states=1)
        crawl(news(trace, path_length=12, budget="3h"), agent, seed, start=NOW)
        # A path from the index goes through all hubs, oldest first; from a hub only to
        # its leaves. So at first hubs 0 to 7 are worth the same, but one keeps paying.
        assert set(list(agent.weblog)[:2]) == {index, hub}
        assert agent.weblog[hub] > 200


@pytest.mark.parametrize("kind", [LinearTD, WeblogTD])
def test_td_finds_the_direction_that_pays(kind: type[LinearTD | WeblogTD]) -> None:
    links = {"index": ["dull", "good"]}
    states = {"index": [0.0] * 4, "dull": [0, 1.0, 0, 0], "good": [1.0, 0, 0, 0]}
    changes = {}
    for section, state in (("dull", [0, 0, 0, 1.0]), ("good", [0, 0, 1.0, 0])):
        links[section] = [f"{section} hub {i}" for i in range(3)]
        for hub in links[section]:
            leaves = [f"{hub} leaf {j}" for j in range(3)]
            links |= {hub: leaves, **{leaf: [] for leaf in leaves}}
            states |= {hub: state, **{leaf: [0.0] * 4 for leaf in leaves}}
            if section == "good":
                changes |= dict.fromkeys(leaves, 15)
    trace = news_web(links, states, changes)
    index, good = trace.urls.find("index"), trace.urls.find("good")
    # No direction at first. After the good section come hubs whose leaves are new.
    agent = kind(states=4, weight_scale=0, ties="random", start_size=1)
    steps = crawl(news(trace, path_length=3, budget="2h"), agent, start=NOW)
    visited = [step.action for step in steps]
    second = [b for a, b in itertools.pairwise(visited) if a == index]
    assert set(second[-20:]) == {good}
    assert agent.weights[0] == agent.weights.max() > 100
