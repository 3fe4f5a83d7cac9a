"""Crawls from page to page: `reach="links"` and `revisit`."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import gym_webforage  # noqa: F401
from gym_webforage.envs import SpiderEnv, TopicEnv
from tests.toys import Page, web

PAGES = {
    "home": Page(["hall", "end", "gone", ("hall", "again"), "home"], text="door"),
    "hall": Page(["home", "room"], text="ball"),
    "room": Page(["hall"], text="ball goal"),
    "end": Page([], text="ball", is_target=True),
    "gone": Page(["hall"], status=404),
}


def crawl(**options: Any) -> TopicEnv:
    env = TopicEnv(
        web(PAGES), topic=["ball"], slots=None, split="all", reach="links", **options
    )
    env.reset(seed=0)
    return env


def names(env: TopicEnv) -> list[str]:
    return [env.trace.urls[url] for url in env.forager.action_set().tolist()]


def visit(env: TopicEnv, name: str) -> float:
    reward = env.step(env.trace.urls.find(name))[1]
    return float(reward)


def here(env: TopicEnv) -> str:
    return env.trace.urls[env.known.here]


def test_the_action_set_is_the_links_of_the_page() -> None:
    env = crawl()
    assert env.known.here == -1 and names(env) == ["home"]
    visit(env, "home")
    assert here(env) == "home" and names(env) == ["hall", "end", "gone"]
    visit(env, "hall")
    assert here(env) == "hall" and names(env) == ["home", "room"]
    visit(env, "home")
    assert names(env) == ["hall", "end", "gone"], "visited pages come back"
    assert visit(env, "room") == -1, "what is known but not linked here is illegal"


@pytest.mark.parametrize("end", ["end", "gone"])
def test_a_dead_end_leaves_the_forager_where_it_stood(end: str) -> None:
    env = crawl()
    visit(env, "home")
    result = env.step(env.trace.urls.find(end))
    assert not result[2] and here(env) == "home"
    assert names(env) == ["hall", "end", "gone"]
    alone = TopicEnv(
        web({"home": Page([], text="ball")}),
        topic=["ball"],
        slots=4,
        split="all",
        reach="links",
    )
    alone.reset(seed=0)
    for _ in range(3):
        observation, _, terminated, _, info = alone.step(0)
        assert not terminated and info["action_set"].tolist() == [0]
        assert observation["action_mask"].tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize(
    ("revisit", "again"), [("free", 0.0), ("pays", 1.0), ("costs", -0.5)]
)
def test_what_a_second_visit_pays(revisit: str, again: float) -> None:
    env = crawl(revisit=revisit, penalty=-0.5)
    assert visit(env, "home") == 0
    assert visit(env, "hall") == pytest.approx(1.0)
    assert visit(env, "home") == 0, "a page that never paid costs nothing"
    assert visit(env, "hall") == pytest.approx(again)
    flags = env.events()["flags"]
    assert (flags & 4 > 0).tolist() == [False, True, False, False], "novel once"


@pytest.mark.parametrize("slots", [8, None])
@pytest.mark.parametrize("kind", ["Topic", "Spider"])
def test_checkers_have_nothing_to_say(kind: str, slots: int | None) -> None:
    trace = "synthetic-small-v0" if kind == "Topic" else "synthetic-small-sites-v0"
    env = gym.make(
        f"WebForage/{kind}-v0", trace=trace, slots=slots, reach="links", budget=50
    )
    check_env(env.unwrapped, skip_render_check=True)


def test_slots_are_the_links() -> None:
    env = TopicEnv("synthetic-small-v0", reach="links", slots=1_000)
    observation, info = env.reset(seed=3)
    random = np.random.default_rng(0)
    for _ in range(200):
        held = env.forager.slot_urls()
        assert sorted(held[held >= 0]) == sorted(info["action_set"])
        page = env.known.here
        if page >= 0:
            linked = set(env.known.targets(page).tolist()) - {page}
            assert set(info["action_set"].tolist()) == linked
        chosen = int(random.choice(np.flatnonzero(observation["action_mask"])))
        observation, _, _, _, info = env.step(chosen)


def test_likeness_is_what_the_candidates_show() -> None:
    env = TopicEnv("synthetic-small-v0", reach="links", slots=1_000)
    env.reset(seed=3)
    for _ in range(20):
        observation = env.step(0)[0]
    full = np.flatnonzero(env.forager.slot >= 0)
    likeness = env.known.likeness_of(env.forager.slot[full])
    np.testing.assert_array_equal(likeness, observation["candidates"][full][:, :3])
    assert likeness.any()


def test_mistakes_are_named() -> None:
    trace = web(PAGES)
    with pytest.raises(ValueError, match="reach is 'far', expected one of frontier"):
        TopicEnv(trace, topic=["ball"], reach="far")
    with pytest.raises(ValueError, match="revisit is 'no', expected one of free"):
        SpiderEnv(trace, revisit="no")
    with pytest.raises(ValueError, match="no meaning in News"):
        gym.make("WebForage/News-v0", trace="synthetic-small-v0", reach="links")
