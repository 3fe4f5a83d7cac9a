"""Revisiting by rates of change: the estimator, what is learnt, and what it is for."""

from __future__ import annotations

import math

import numpy as np
import pytest

import baselines
from baselines import change_rate
from baselines.agent import run_episode
from baselines.fleet import run_fleet
from gym_webforage import fleet_v0
from gym_webforage.envs import NewsEnv
from gym_webforage.trace import Trace
from gym_webforage.world.population import ScorePopulation

HOUR = 3_600_000
NAMES = ("change_rate", "weblog_change")


def test_the_estimator_is_the_printed_one() -> None:
    # 10 intervals of an hour, 4 with a change: -log(6.5 / 10.5) an hour.
    assert change_rate.rate(10.0, 4.0, 10.0) == pytest.approx(-math.log(6.5 / 10.5))
    assert change_rate.rate(0.0, 0.0, 0.0) == 0
    # A change in every interval is no endless rate.
    assert change_rate.rate(3.0, 3.0, 3.0) == pytest.approx(-math.log(0.5 / 3.5))


def test_what_a_fetch_is_worth() -> None:
    rate, waited = 1 / HOUR, 2.0 * HOUR
    novelty, proportional, optimal = (
        change_rate.worth(policy, rate, waited) for policy in range(3)
    )
    assert novelty == pytest.approx(1 - math.exp(-2))
    assert proportional == pytest.approx(2)
    assert optimal == pytest.approx((1 - 3 * math.exp(-2)) / 24)
    assert change_rate.worth(2, 0.0, waited) == 0


def ticker(hours: int = 40) -> Trace:
    """A home page that links to nine pages that stay and one that changes hourly."""
    names = ["home", *(f"still {i}" for i in range(9)), "ticker"]
    begin = 1_600_000_000_000
    times = [begin] * 10 + [begin + i * HOUR for i in range(hours)]
    links = [list(range(1, 11))] + [[0]] * (len(times) - 1)
    return Trace.build(
        {"name": "ticker", "roots": ["home"]},
        urls=names,
        vocabulary=[],
        version_start=[*range(11), len(times)],
        version_seen=times,
        version_published=[times[0] - 30 * 24 * HOUR] * 10 + times[10:],
        version_status=[200] * len(times),
        version_text=[-1] * len(times),
        link_start=np.cumsum([0, *map(len, links)]).tolist(),
        link_target=[target for row in links for target in row],
        link_text=[-1] * sum(map(len, links)),
    )


def test_it_learns_which_page_changes() -> None:
    env = NewsEnv(ticker(), slots=None, split="all", budget="30h", fetch_seconds=60)
    agent = baselines.load("change_rate").make(env, 0)
    result = run_episode(env, agent, seed=0, options={"start": env.trace.begin})
    assert result.found >= 29
    rates = [
        change_rate.page_rate(agent._facts, agent._counts, agent._shared, url) * HOUR
        for url in (1, 10)
    ]
    assert rates[0] < 0.1
    assert rates[1] == pytest.approx(1, rel=0.5)


@pytest.mark.parametrize("name", NAMES)
def test_it_finds_more_than_a_random_walk(name: str) -> None:
    def found(agent: str) -> int:
        env = NewsEnv("synthetic-small-v0", slots=None, split="test", budget="12h")
        return run_episode(env, baselines.load(agent).make(env, 1), seed=1).found

    assert found(name) > 1.5 * found("random_walk")


@pytest.mark.parametrize("name", NAMES)
def test_it_goes_on_from_what_was_saved(name: str) -> None:
    def crawl(saves: bool) -> list[int]:
        env = NewsEnv("synthetic-small-v0", slots=None, split="test", budget="3h")
        agent = baselines.load(name).make(env, 2)
        agent.reset(2)
        observation, info = env.reset(seed=2)
        visits, ended = [], False
        while not ended:
            if saves and len(visits) == 60:
                state = agent.save()
                agent = baselines.load(name).make(env, 5)
                agent.load(state)
            action = agent.act(observation, info)
            before = observation
            observation, reward, terminated, truncated, info = env.step(action)
            agent.learn(
                baselines.agent.Transition(
                    before, action, reward, observation, terminated, truncated, info
                )
            )
            visits.append(action)
            ended = terminated or truncated
        return visits

    assert len(crawl(False)) > 120
    assert crawl(True) == crawl(False)


@pytest.mark.parametrize("name", NAMES)
def test_it_lives_in_a_growing_fleet(name: str) -> None:
    env = fleet_v0.env(
        "synthetic-small-v0",
        founders=2,
        population=ScorePopulation(start=100, divide_at=115),
        budget="8h",
        slots=None,
    )
    result = run_fleet(env, baselines.load(name), seed=1)
    assert len(result.births) >= 1
    assert result.summary["relevant"] > 50


def test_an_unknown_policy_lists_the_known() -> None:
    env = NewsEnv("synthetic-small-v0", slots=None)
    with pytest.raises(ValueError, match="expected novelty, proportional, optimal"):
        baselines.load("change_rate:policy=often").make(env, 0)
