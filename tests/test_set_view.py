"""What a learned forager keeps in view between two looks at the whole frontier."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import baselines
from baselines._set_scorer import best_few
from baselines.agent import run_episode
from baselines.fleet import run_fleet
from gym_webforage import fleet_v0
from gym_webforage.envs import NewsEnv, TopicEnv


def test_a_learned_forager_sees_the_whole_frontier():
    env = TopicEnv("synthetic-small-v0", slots=None, budget=100, on_illegal="raise")
    agent = baselines.load("masked_ppo").make(env, 0)
    agent.few = None
    seen: list[int] = []
    score = agent.scorer.score

    def counted(rows, context, numbers):
        seen.append(len(rows))
        assert len(rows) == env.forager.action_set_size()
        return score(rows, context, numbers)

    agent.scorer.score = counted
    run_episode(env, agent, seed=0)
    assert max(seen) > 128


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.data())
@settings(max_examples=50, deadline=None)
def test_the_best_few_are_the_first_of_the_best(values, data):
    few = data.draw(st.integers(1, len(values)))
    found, floor = best_few(np.array(values, float), few)
    expected = sorted(range(len(values)), key=lambda i: (-values[i], i))[:few]
    assert found.tolist() == sorted(expected)
    assert floor == values[expected[-1]]


def few_crawl(env: Any, few: int | None, at: int = -1) -> tuple[list[int], list[int]]:
    """Return visits and rows scored; at a step go on with a restored agent."""
    visits, scored = [], []

    def make():
        agent = baselines.load("boosted_trees").make(env, 0)
        agent.few = few
        score = agent.scorer.score

        def counted(rows, *rest):
            scored.append(len(rows))
            return score(rows, *rest)

        agent.scorer.score = counted
        return agent

    agent = make()
    seen, info = env.reset(seed=2)
    over = False
    while not over:
        if len(visits) == at:
            state, agent = agent.save(), make()
            agent.load({k: np.array(v) for k, v in state.items()})
        visits.append(agent.act(seen, info))
        seen, _, ended, cut, info = env.step(visits[-1])
        over = ended or cut
    return visits, scored


@pytest.mark.parametrize("kind", [NewsEnv, TopicEnv])
def test_a_large_frontier_is_scored_as_a_whole_now_and_then(kind):
    budget = "2h" if kind is NewsEnv else 150
    env = kind("synthetic-small-v0", slots=None, budget=budget, on_illegal="raise")
    visits, scored = few_crawl(env, 16)
    exact, all_scored = few_crawl(env, None)
    assert sum(scored) / len(visits) < 0.5 * sum(all_scored) / len(exact)
    assert max(scored) > 128  # the whole, at times
    middle = len(visits) // 2
    assert few_crawl(env, 16, middle)[0] == visits
    assert few_crawl(env, 100_000)[0] == exact


def test_a_stopped_fleet_goes_on_with_what_it_had_in_view(tmp_path):
    def make(env, seed):
        agent = baselines.load("masked_ppo").make(env, seed)
        agent.few = 16
        return agent

    def crawl(**kwargs):
        env = fleet_v0.env(
            "synthetic-small-v0", founders=2, slots=None, budget="2h", split="all"
        )
        return run_fleet(env, make, seed=0, **kwargs)

    left = [0]

    def stop(*_):
        left[0] += 1
        if left[0] == 60:
            raise KeyboardInterrupt

    kept = {"checkpoint": tmp_path, "checkpoint_every": "10m"}
    with pytest.raises(KeyboardInterrupt):
        crawl(on_step=stop, **kept)
    assert list(tmp_path.iterdir())
    assert crawl(**kept).event_hash == crawl().event_hash
