"""What a person sees of a crawl."""

from __future__ import annotations

import sys

import gymnasium as gym
import numpy as np
import pytest

import gym_webforage
from gym_webforage.envs.render import HEIGHT, WIDTH, Renderer
from gym_webforage.envs.territory import MOST_DRAWN, Territory

TRACES = {
    "News": "synthetic-small-v0",
    "Topic": "synthetic-small-v0",
    "Spider": "synthetic-small-sites-v0",
}
KINDS = list(TRACES)


def crawl(kind, steps, render_mode="rgb_array", every=0, **arguments):
    """Let a random agent crawl, looking every so many steps; return the world."""
    env = gym.make(
        f"WebForage/{kind}-v0",
        trace=TRACES[kind],
        slots=None,
        render_mode=render_mode,
        disable_env_checker=True,
        **arguments,
    ).unwrapped
    _, info = env.reset(seed=3)
    rng = np.random.default_rng(0)
    for step in range(steps):
        *_, info = env.step(int(rng.choice(info["action_set"])))
        if every and step % every == 0:
            env.render()
    return env


@pytest.mark.parametrize("kind", KINDS)
def test_picture(kind):
    env = crawl(kind, 0)
    before = env.render()
    action = int(env.forager.action_set()[0])
    env.step(action)
    after = env.render()
    for picture in (before, after):
        assert picture.shape == (HEIGHT, WIDTH, 3)
        assert picture.dtype == np.uint8
    assert np.any(before != after)
    assert np.array_equal(after, env.render())


@pytest.mark.parametrize("kind", KINDS)
def test_same_crawl_same_picture_however_often_it_was_looked_at(kind):
    first, second = crawl(kind, 40), crawl(kind, 40, every=7)
    assert np.array_equal(first.render(), second.render())


@pytest.mark.parametrize("kind", KINDS)
def test_places_stay(kind):
    env = crawl(kind, 0)
    env.render()
    territory = env._renderer.territory
    rng = np.random.default_rng(1)
    for _ in range(12):
        before = dict(territory.place)
        for _ in range(15):
            env.step(int(rng.choice(env.forager.action_set())))
        env._renderer._update(env._renderer._events())
        kept = before.keys() & territory.place.keys()
        assert kept
        assert all(before[url] == territory.place[url] for url in kept)
        assert len(territory.place) <= MOST_DRAWN
    roots = [int(root) for root in env.episode.roots]
    assert territory.place.keys() >= set(roots)
    assert len(env.known) > MOST_DRAWN or len(territory.place) == len(env.known)


def test_pages_do_not_cover_each_other():
    env = crawl("News", 60)
    env.render()
    points = np.array(list(env._renderer.territory.place.values()))
    distance = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    distance[np.diag_indices(len(points))] = np.inf
    assert distance.min() > 0.5


def test_pages_that_paid_outlast_others():
    territory = Territory()
    territory.start([0])
    territory.visit(1, 0, range(1, 20))
    territory.pay(1, 5, 100.0, 0)
    for step in range(2, 100):
        territory.visit(step, 0, range(20 * step, 20 * step + 20))
        territory.forget([0])
    assert len(territory.place) == MOST_DRAWN
    assert 0 in territory.place and 5 in territory.place
    assert 6 not in territory.place
    territory.visit(100, 6, [])  # it is visited after all, and comes back
    assert 6 in territory.place


def test_a_new_crawl_starts_a_new_map():
    env = crawl("News", 5)
    renderer = Renderer(env.world)
    renderer.rgb_array()
    env.reset(seed=3)
    assert np.array_equal(renderer.rgb_array(), Renderer(env.world).rgb_array())


@pytest.mark.parametrize("kind", KINDS)
def test_text(kind):
    env = crawl(kind, 5, "ansi")
    text = env.render()
    assert isinstance(text, str)
    assert f"{kind} on {TRACES[kind]}" in text
    assert f"{env.world.fetches:,} fetches" in text
    assert f"frontier: {env.forager.action_set_size():,} URLs" in text
    assert "last 5 of 5 visits" in text
    env.step(int(env.forager.action_set()[0]))
    assert env.render() != text


def test_text_before_the_first_step_and_after_illegal_ones():
    env = crawl("News", 0, "ansi")
    assert "start anywhere among 1 URLs" in env.render()
    env.step(-1)
    assert "reward -1" in env.render()


def test_illegal_steps_and_dead_pages_are_drawn():
    env = crawl("Spider", 30)
    env.step(-1)
    assert env.render().shape == (HEIGHT, WIDTH, 3)


def test_without_matplotlib(monkeypatch):
    env = crawl("News", 1)
    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        gym.error.DependencyNotInstalled, match=r"gym-webforage\[render"
    ):
        env.render()
    assert "News" in Renderer(env.world).ansi()


def test_a_world_without_log_is_refused():
    trace = gym_webforage.load_trace("synthetic-small-v0")
    env = gym.make("WebForage/News-v0", trace=trace, log=False).unwrapped
    with pytest.raises(ValueError, match="log=True"):
        Renderer(env.world)
