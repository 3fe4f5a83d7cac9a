"""Fleets: PettingZoo's tests, and what those miss: births, deaths, order, pay."""

import functools
import warnings

import gymnasium as gym
import numpy as np
import pytest
from pettingzoo.test import (
    api_test,
    parallel_api_test,
    parallel_seed_test,
    seed_test,
)

import gym_webforage  # noqa: F401
from gym_webforage import fleet_v0
from gym_webforage.world import layout as L
from gym_webforage.world.population import ScorePopulation, as_population
from tests.toys import DAY, NOW, Page, web

TRACES = {
    "news": "synthetic-small-v0",
    "topic": "synthetic-small-v0",
    "spider": "synthetic-small-sites-v0",
}
KINDS = sorted(TRACES)
SMALL = {"founders": 3, "population": "score", "slots": 16, "max_births": 20}


def make(kind="news", **kwargs):
    return fleet_v0.env(TRACES[kind], kind=kind, **{**SMALL, **kwargs})


def make_parallel(kind="news", **kwargs):
    return fleet_v0.parallel_env(TRACES[kind], kind=kind, **{**SMALL, **kwargs})


# --- PettingZoo's own


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("slots", [16, None])
def test_pettingzoo_in_turns(kind, slots):
    with warnings.catch_warnings():
        # It remarks that a dict is not an array nor its space a Box, whatever it holds.
        warnings.filterwarnings("ignore", "Observation is not a NumPy array")
        warnings.filterwarnings("ignore", "Observation space for each agent probably")
        api_test(make(kind, slots=slots), num_cycles=300, verbose_progress=False)
    seed_test(functools.partial(make, kind, slots=slots), num_cycles=60)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("slots", [16, None])
def test_pettingzoo_in_rounds(kind, slots):
    parallel_api_test(make_parallel(kind, slots=slots), num_cycles=300)
    parallel_seed_test(functools.partial(make_parallel, kind, slots=slots), 60)


def test_parallel_crawls_are_equal_over_many_rounds():
    # PettingZoo's own seed test compares the first round only.
    def rollout(seed):
        env = make_parallel(population=QUICK)
        env.reset(seed=seed)
        random = np.random.default_rng(0)
        seen = []
        for _ in range(40):
            actions = {
                name: int(random.choice(np.flatnonzero(mask)))
                for name in env.agents
                if (mask := env.crew.seats[env.crew.numbers[name]].action_masks()).any()
            }
            seen.append(env.step(actions)[1])
        events = env.events()
        return seen, events

    first, second, other = rollout(1), rollout(1), rollout(2)
    assert first[0] == second[0] and first[0] != other[0]
    for key in first[1]:
        np.testing.assert_array_equal(first[1][key], second[1][key])


# --- population


QUICK = ScorePopulation(
    start=5, per_sent=-0.5, per_novel=1.5, divide_at=10, fewest=1, most=6
)


def legal(env, name):
    choices = env.crew.seats[env.crew.numbers[name]].forager.action_set()
    return int(choices[env.fleet.world.clock % len(choices)])


def test_score_rules_of_the_papers():
    population = ScorePopulation()
    assert population.score(100, sent=40, novel=3) == pytest.approx(101)
    assert population.fate(200, living=15) == "divide"
    assert population.fate(200, living=16) == "live"
    assert population.fate(0, living=3) == "die"
    assert population.fate(0, living=2) == "live"
    assert as_population("fixed").fate(1000, 2) == "live"


def test_births_and_deaths_in_turns():
    env = make(population=QUICK, slots=None, budget="2d").unwrapped
    env.reset(seed=1)
    fleet = env.fleet
    names_seen = list(env.agents)
    dead = set()
    births = 0
    for name in env.agent_iter(20_000):
        _, _, terminated, truncated, info = env.last()
        if terminated or truncated:
            if terminated and not truncated:
                dead.add(name)
                assert fleet.scores[env.crew.numbers[name]] <= 0
            env.step(None)
            continue
        assert name not in dead
        before = set(env.agents)
        clock = fleet.world.clock
        env.step(legal(env, name))
        born = [a for a in env.agents if a not in before]
        assert env.infos[name]["children"] == born
        for child in born:
            births += 1
            assert child not in names_seen, "a name is never used twice"
            names_seen.append(child)
            info = env.infos[child]
            assert info["parent"] == name and info["score"] == QUICK.start
            assert env.infos[name]["score"] == QUICK.start
            known = info["known"]
            parent = env.infos[name]["known"]
            np.testing.assert_array_equal(known.urls, parent.urls)
            assert known.at_start
            mine = fleet.world.foragers[env.crew.numbers[child]]
            assert not mine.marks.any() and mine.ints[L.SENT_TOTAL] == 0
            assert fleet.order[-1] == env.crew.numbers[child]
        if len(fleet.births) >= 8 and dead:
            break
        assert fleet.world.clock > clock
        assert 1 <= len(fleet.order) <= 6
    assert births >= 5
    assert len(fleet.deaths) >= len(dead) > 0
    assert names_seen == [f"forager_{i}" for i in range(len(names_seen))]


def test_births_stop_when_names_run_out():
    env = make(population=QUICK, slots=None, max_births=4, budget="2d").unwrapped
    env.reset(seed=1)
    while len(env.fleet.births) < 1:
        env.step(legal(env, env.agent_selection))
    assert env.infos[env.agents[-1]]["births_stopped"]
    for _ in range(500):
        name = env.agent_selection
        alive = not (env.terminations[name] or env.truncations[name])
        env.step(legal(env, name) if alive else None)
    assert len(env.fleet.births) == 1


def test_a_newborn_appears_in_all_dicts_of_its_birth_round():
    env = make_parallel(population=QUICK, slots=None, budget="2d")
    env.reset(seed=1)
    for _ in range(400):
        before = set(env.agents)
        results = env.step({name: legal(env, name) for name in env.agents})
        born = set(results[0]) - before
        if born:
            assert all(born <= set(part) for part in results)
            assert born <= set(env.agents)
            for child in born:
                parent = results[4][child]["parent"]
                assert child in results[4][parent]["children"]
            return
    pytest.fail("nobody was born")


# --- turns


def test_a_slice_lasts_its_time_and_the_step_begun():
    env = make(population="fixed", slots=None, slice_seconds=60).unwrapped
    env.reset(seed=3)
    begun, order = env.fleet.world.clock, []
    for _ in range(200):
        name = env.agent_selection
        before = env.fleet.world.clock
        env.step(legal(env, name))
        clock = env.fleet.world.clock
        if env.agent_selection == name:
            assert clock - begun < 60_000
        else:
            assert clock - begun >= 60_000 > before - begun
            order.append(name)
            begun = clock
    turns = [f"forager_{i % 3}" for i in range(len(order))]
    assert order == turns and len(order) > 6


# --- who is paid


def test_no_document_pays_twice():
    for env in (make(slots=None, population=QUICK), make_parallel(slots=None)):
        env.reset(seed=2)
        for _ in range(300):
            if hasattr(env, "agent_selection"):
                name = env.agent_selection
                alive = not (env.terminations[name] or env.truncations[name])
                env.step(legal(env.unwrapped, name) if alive else None)
            else:
                env.step({name: legal(env, name) for name in env.agents})
        events = env.unwrapped.events()
        novel = events["version"][events["flags"] & L.NOVEL > 0]
        assert len(novel) > 20
        assert len(novel) == len(np.unique(novel))
        sent = events["flags"] & L.SENT > 0
        pairs = np.stack([events["forager"], events["version"]])[:, sent]
        assert pairs.shape[1] == np.unique(pairs, axis=1).shape[1]


def test_the_first_to_finish_is_paid():
    # long has two links and short none, so a visit to short ends first; both pages
    # are also what the other fetches: long links to short.
    pages = {
        "home": Page(links=["long", "short"], is_old=True),
        "long": Page(links=["short", "x"], is_old=True),
        "short": Page(),
        "x": Page(is_old=True),
    }
    options = {"start": NOW - 10 * DAY}
    for seed in range(5):
        env = fleet_v0.parallel_env(web(pages), founders=2, slots=None, split="all")
        env.reset(seed=seed, options=options)
        home, long, short = (env.crew.trace.urls.find(u) for u in pages if u != "x")
        _, rewards, *_ = env.step({"forager_0": home, "forager_1": home})
        # Both fetch short and end together: one, drawn by lot, is paid.
        assert sorted(rewards.values()) == [-1, 100]
        env.reset(seed=seed, options=options)
        # Slot machines apart: forager_1 goes to short's only parent page later.
        env.fleet.world.step(home, 0)
        env.fleet.world.step(home, 1)
        env.fleet.world.paid[:] = 0
        for forager in env.fleet.world.foragers:
            forager.marks[:] = 0
        _, rewards, *_ = env.step({"forager_0": long, "forager_1": short})
        assert rewards == {"forager_0": -1, "forager_1": 100}
    firsts = set()
    for seed in range(12):
        env.reset(seed=seed, options=options)
        _, rewards, *_ = env.step({"forager_0": home, "forager_1": home})
        firsts.add(max(rewards, key=rewards.__getitem__))
    assert firsts == {"forager_0", "forager_1"}


def test_a_round_lasts_as_long_as_its_longest_step():
    env = make_parallel(slots=None, population="fixed")
    env.reset(seed=4)
    for _ in range(30):
        clock = env.fleet.world.clock
        count = len(env.events()["time"])
        env.step({name: legal(env, name) for name in env.agents})
        times = env.events()["time"][count:]
        assert env.fleet.world.clock == times.max()
        assert times.min() == clock + 2600


def test_a_forager_with_nothing_left_is_out():
    pages = {"home": Page(links=["a"]), "a": Page(is_target=True)}
    trace = web(pages)
    env = fleet_v0.env(trace, kind="spider", slots=None, split="all").unwrapped
    env.reset(seed=0)
    paid = []
    while env.agents:
        name = env.agent_selection
        if env.terminations[name]:
            env.step(None)
            continue
        env.step(int(env.infos[name]["action_set"][0]))
        paid.append((name, env.rewards[name]))
    # Both visit both pages; the target pays the first of them only.
    assert sorted(paid) == [
        ("forager_0", 0),
        ("forager_0", 1),
        ("forager_1", 0),
        ("forager_1", 0),
    ]


# --- copies


@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_fleet_goes_on_alike(kind):
    def advance(env, steps):
        for _ in range(steps):
            name = env.agent_selection
            alive = not (env.terminations[name] or env.truncations[name])
            env.step(legal(env, name) if alive else None)

    env = make(kind, slots=None, population=QUICK, budget=10**6).unwrapped
    env.reset(seed=5)
    advance(env, 250)
    taken = env.snapshot()
    advance(env, 250)
    other = make(kind, slots=None, population=QUICK, budget=10**6).unwrapped
    other.reset(seed=9)
    advance(other, 40)
    other.restore(taken)
    advance(other, 250)
    for key, column in env.events().items():
        np.testing.assert_array_equal(column, other.events()[key])
    assert env.fleet.births == other.fleet.births
    assert env.fleet.scores == other.fleet.scores
    assert kind != "news" or env.fleet.births


# --- one learner


def test_fleet_v0_is_clean_and_sums_what_its_foragers_earn():
    from gymnasium.utils.env_checker import check_env
    from stable_baselines3.common.env_checker import check_env as check_sb3

    for kind in KINDS:
        env = gym.make(
            "WebForage/Fleet-v0", trace=TRACES[kind], kind=kind, foragers=3, slots=8
        ).unwrapped
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_env(env, skip_render_check=True)
            check_sb3(env)
        _, info = env.reset(seed=0)
        random = np.random.default_rng(0)
        for _ in range(60):
            masks = env.action_masks().reshape(3, 8)
            action = [int(random.choice(np.flatnonzero(mask))) for mask in masks]
            before = len(env.events()["value"])
            _, reward, terminated, truncated, info = env.step(action)
            earned = env.events()["value"][before:].sum()
            assert reward == pytest.approx(earned, rel=1e-5)
            if terminated or truncated:
                env.reset()
        assert len(info["infos"]) == 3


def test_maskable_ppo_trains_on_the_fleet():
    import torch
    from sb3_contrib import MaskablePPO
    from sb3_contrib.common.maskable.utils import get_action_masks

    torch.set_num_threads(1)
    env = gym.make(
        "WebForage/Fleet-v0", trace="synthetic-small-v0", foragers=2, slots=8
    )
    model = MaskablePPO(
        "MultiInputPolicy", env, n_steps=64, batch_size=32, n_epochs=1, seed=0
    )
    model.learn(128)
    observation, _ = env.reset(seed=0)
    for _ in range(30):
        masks = get_action_masks(env)
        action, _ = model.predict(observation, action_masks=masks)
        assert masks.reshape(2, 8)[np.arange(2), action].all()
        observation, *_ = env.step(action)


# --- bad input


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"founders": 0}, "founders is 0"),
        ({"founders": 30}, "founders is 30, expected at most max_births"),
        ({"slice_seconds": 0}, "slice_seconds is 0"),
        ({"population": "rabbits"}, "population is 'rabbits'"),
        ({"kind": "sleep"}, "kind is 'sleep'"),
    ],
)
def test_bad_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        fleet_v0.env("synthetic-small-v0", **{**SMALL, **kwargs})


def test_bad_populations_and_actions():
    with pytest.raises(ValueError, match="start is 300, expected between"):
        ScorePopulation(start=300)
    with pytest.raises(ValueError, match="fewest is 5 and most 4"):
        ScorePopulation(fewest=5, most=4)
    with pytest.raises(ValueError, match="per_sent is nan"):
        ScorePopulation(per_sent=float("nan"))
    env = make_parallel()
    env.reset(seed=0)
    with pytest.raises(ValueError, match="none for forager_1, forager_2"):
        env.step({"forager_0": 0})
    with pytest.raises(TypeError, match="expected an integer: 0 to 15"):
        env.step(dict.fromkeys(env.agents, "left"))
