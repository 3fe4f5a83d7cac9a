"""Learners of link text: their arithmetic, and that they learn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import baselines
from baselines import _link_text
from baselines._places import Places
from baselines.agent import Transition, run_episode
from gym_webforage.envs import SpiderEnv, TopicEnv
from tests.toys import Page, web

NAMES = ("online_logistic", "online_naive_bayes", "td_corrected", "sleeping_bandit")


@settings(deadline=None)
@given(
    bags=st.lists(st.lists(st.integers(0, 5), max_size=6), min_size=1, max_size=8),
    weights=st.lists(st.integers(-3, 3), min_size=6, max_size=6),
    power=st.sampled_from([0.0, 0.5, 1.0]),
    closed=st.sets(st.integers(0, 3)),
)
def test_the_best_link_is_found(
    bags: list[list[int]], weights: list[int], power: float, closed: set[int]
) -> None:
    of = np.arange(len(bags)) % 4  # several links lead to a URL
    is_open = np.array([i not in closed for i in range(4)])
    start = np.cumsum([0, *map(len, bags)])
    token = np.array([t for bag in bags for t in bag], np.int32)
    got, row = _link_text.best(
        len(bags), start, token, of, is_open, np.array(weights, float), 0.5, -0.25,
        power, np.zeros(0),
    )  # fmt: skip

    def value(bag: list[int]) -> float:
        if not bag:
            return 0.5
        return 0.5 + (sum(weights[t] - 0.25 for t in bag)) / len(bag) ** power

    values = {
        (-round(value(bag), 9), int(number)): i
        for i, (bag, number) in reversed(list(enumerate(zip(bags, of, strict=True))))
        if is_open[number]
    }
    if not values:
        assert got == -1
        return
    (best_value, number) = min(values)
    assert got == number
    assert value(bags[row]) == pytest.approx(-best_value)


def library() -> SpiderEnv:
    """Twenty persons with a paper and three other pages each, in three directories."""
    people = [f"people/{i}" for i in range(20)]
    pages = {"home": Page(links=[(name, "person") for name in people])}
    for i, name in enumerate(people):
        links = [(f"misc/{i}-{j}", f"holiday photo {j}") for j in range(3)]
        links.insert(i % 4, (f"papers/{i}", "paper postscript"))
        pages[name] = Page(links=links)
        pages |= {f"misc/{i}-{j}": Page() for j in range(3)}
        pages[f"papers/{i}"] = Page(is_target=True)
    return SpiderEnv(web(pages), slots=None, split="all", on_illegal="raise", budget=60)


@pytest.mark.parametrize("name", NAMES)
def test_it_learns_which_links_lead_to_targets(name: str) -> None:
    def found(name: str) -> Any:
        env = library()
        return run_episode(env, baselines.load(name).make(env, 0), seed=0)

    assert found("breadth_first").found <= 10
    # 41 fetches would do: the home page, twenty persons, twenty papers.
    assert found(name).found >= 16


def test_a_logistic_step_by_hand() -> None:
    agent = baselines.load("online_logistic:rate=0.5,decay=0").make(library(), 0)
    row = agent._add(7, 0, np.array([2, 2, 3, 5], np.int32))
    agent._take_example(row, True)
    # Probability 1/2, so the error is 1/2; the bag has length 4, so a word counts 1/2.
    assert agent.bias == pytest.approx(0.5 * 0.5 / math.sqrt(0.01 + 0.25))
    gradient = 0.5 * 0.5 * 2
    expected = 0.5 * gradient / math.sqrt(0.01 + gradient**2)
    assert agent.weights[2] == pytest.approx(expected)
    assert agent.weights[4] == 0


def test_naive_bayes_weights_are_log_odds() -> None:
    agent = baselines.load("online_naive_bayes").make(library(), 0)
    size = len(agent.weights)
    for words, is_found in (([1, 1, 2], True), ([2, 3], False)):
        row = agent._add(sum(words), 0, np.array(words, np.int32))
        agent._take_example(row, is_found)
    row = agent._add(99, 1, np.array([1, 2], np.int32))
    odds = math.log((2 + 1) / (3 + size)) - math.log((0 + 1) / (2 + size))
    odds += math.log((1 + 1) / (3 + size)) - math.log((1 + 1) / (2 + size))
    got = _link_text.score(
        agent._start, agent._token, row, agent.weights, agent.bias, agent.per_word, 1.0
    )
    assert got == pytest.approx(odds / 2)


def test_corrections_go_to_page_and_directory() -> None:
    env = library()
    agent = baselines.load("td_corrected:page_rate=0.5,directory_rate=0.25").make(
        env, 0
    )
    steps: list[Any] = []
    run_episode(env, agent, seed=0, on_step=steps.append)
    by_place = {
        name: agent.places.correction[number]
        for name, number in agent.places.numbers.items()
    }
    assert by_place["papers"] > by_place["misc"]


def test_an_arm_without_links_sleeps() -> None:
    env = library()
    agent = baselines.load("sleeping_bandit").make(env, 0)
    run_episode(env, agent, seed=0)
    agent._waiting = {5: [0], 6: [1], 7: []}
    agent._of[:2] = [0, 1]
    agent._is_open[:2] = [True, True]
    agent._pulls = dict.fromkeys((5, 6, 7), 4)
    agent._paid = {5: 1.0, 6: 3.0, 7: 4.0}
    assert agent._best_arm() == 6
    agent._is_open[1] = False
    assert agent._best_arm() == 5


def test_unknown_parts_are_named() -> None:
    with pytest.raises(ValueError, match="expected anchor, near, url, title"):
        baselines.load("online_logistic:parts=footer").make(library(), 0)


@pytest.mark.parametrize("name", ["z_sum", "linucb", "linear_thompson"])
def test_features_lead_to_targets(name: str) -> None:
    env = library()
    result = run_episode(env, baselines.load(name).make(env, 0), seed=0)
    assert result.found >= 13


def test_ridge_regression_is_that_of_all_visits() -> None:
    """The weights kept up to date equal those computed from all visits at once."""
    env = library()
    agent = baselines.load("linucb:ridge=0.7,prior=0.1").make(env, 0)
    rows: list[np.ndarray] = []
    paid: list[float] = []

    def note(step: Any) -> None:
        rows.append(agent._visited.copy())
        paid.append(step.reward)

    run_episode(env, agent, seed=0, on_step=note)
    # The last visit is taken in by the next choice, which never comes.
    x, y = np.array(rows[:-1]), np.array(paid[:-1])
    first = agent._first
    normal = x.T @ x + 0.7 * np.eye(x.shape[1])
    expected = first + np.linalg.solve(normal, x.T @ (y - x @ first))
    np.testing.assert_allclose(agent.weights, expected, atol=1e-6)
    np.testing.assert_allclose(agent._covariance, np.linalg.inv(normal), atol=1e-6)


def test_z_sum_adds_up_z_scores() -> None:
    env = library()
    observation, info = env.reset(seed=0)
    _, _, _, _, info = env.step(int(info["action_set"][0]))
    raw = env.features()
    names = list(env.feature_names)
    agent = baselines.load("z_sum").make(env, 0)
    spread = raw.std(axis=0)
    z = (raw - raw.mean(axis=0)) / np.where(spread > 0, spread, 1)
    from baselines.z_sum import FEATURES

    total = z[:, [names.index(name) for name in FEATURES]].sum(axis=1)
    assert agent.act(observation, info) == info["action_set"][np.argmax(total)]


def test_a_ridge_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="ridge is 0, expected a positive number"):
        baselines.load("linucb:ridge=0").make(library(), 0)


def test_an_error_is_shared_by_page_and_directory() -> None:
    env = library()
    _, info = env.reset(seed=0)
    _, _, _, _, info = env.step(int(info["action_set"][0]))
    known = info["known"]
    ann, bob = known.targets(0)[:2].tolist()
    places = Places(page_rate=0.5, directory_rate=0.25)
    places.add(0, ann, 0, known)
    places.add(1, bob, 0, known)
    places.add(2, bob, ann, known)
    places.correct(0, 0.8)
    # The second link shares page and directory, the third one the directory alone.
    assert places.extra(3) == pytest.approx([0.6, 0.6, 0.2])
    assert places.of(2) == pytest.approx(0.2)


def test_without_rates_nothing_is_corrected() -> None:
    def visits(name: str) -> list[int]:
        env = SpiderEnv("synthetic-small-sites-v0", slots=None, budget=100)
        seen: list[int] = []
        agent = baselines.load(name).make(env, 0)
        run_episode(env, agent, seed=0, on_step=lambda step: seen.append(step.action))
        return seen

    same = visits("td_naive_bayes:page_rate=0,directory_rate=0")
    assert same == visits("naive_bayes_q")


@pytest.mark.parametrize("name", ["linucb", "linear_thompson"])
def test_linear_models_divide(name):
    env = TopicEnv("synthetic-small-v0", slots=None, budget=40)
    agent: Any = baselines.load(name).make(env, 1)
    run_episode(env, agent, seed=1)
    learned = agent.weights.copy()
    child = agent.divide(np.random.default_rng(2))
    np.testing.assert_array_equal(child.weights, learned)
    other = TopicEnv("synthetic-small-v0", slots=None, budget=40)
    observation, info = other.reset(seed=2)
    for _ in range(10):
        action = child.act(observation, info)
        observation, reward, _, _, info = other.step(action)
        child.learn(
            Transition(observation, action, reward, observation, False, False, info)
        )
    assert np.abs(child.weights - learned).max() > 0
    np.testing.assert_array_equal(agent.weights, learned)  # its parent is untouched
