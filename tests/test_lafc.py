"""Learning automata: the equations by hand, chances as chances, and whole crawls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import baselines
from baselines import _checkpoint
from baselines._automaton import Automaton
from baselines.agent import run_episode
from baselines.lafc import LAFC, frequency_similarity, make
from gym_webforage.envs import ForageEnv, TopicEnv
from gym_webforage.trace import Trace
from tests.toys import Page, web

ALL = np.arange(4)


def four() -> Automaton:
    return Automaton(np.array([10, 11, 12, 13]), np.array([0.1, 0.2, 0.3, 0.4]))


# --- the equations, worked out by hand


def test_a_reward_by_hand() -> None:
    one = four()
    one.reward(1, ALL, 0.5)  # eq. 1: 0.2 + 0.5 (1 - 0.2), the others halved
    assert one.chances == pytest.approx([0.05, 0.6, 0.15, 0.2])


def test_a_penalty_by_hand() -> None:
    one = four()
    one.penalise(1, ALL, 0.3)  # eq. 2: 0.7 x 0.2, the others 0.7 p + 0.3 / 3
    assert one.chances == pytest.approx([0.17, 0.14, 0.31, 0.38])
    one.penalise(0, ALL, 0.0)  # L_R-I
    assert one.chances == pytest.approx([0.17, 0.14, 0.31, 0.38])
    alone = Automaton(np.array([7]))
    alone.penalise(0, np.array([0]), 0.5)
    assert alone.chances == [1]


def test_disabled_links_keep_their_chances() -> None:
    one, enabled = four(), np.array([0, 2])
    scaled, total = one.scaled(enabled)  # eq. 3: K = 0.4
    assert total == pytest.approx(0.4)
    assert scaled == pytest.approx([0.25, 0.75])
    one.reward(0, enabled, 0.2)  # 0.25 + 0.2 x 0.75 = 0.4, times K
    assert one.chances == pytest.approx([0.16, 0.2, 0.24, 0.4])
    one.penalise(0, enabled, 0.5)  # 0.4 -> 0.2 and 0.6 -> 0.8, times K
    assert one.chances == pytest.approx([0.08, 0.2, 0.32, 0.4])


def test_links_that_come_and_go_by_hand() -> None:
    one = four()
    one.add(14)  # eq. 7: 1/5, the others times 4/5
    assert one.chances == pytest.approx([0.08, 0.16, 0.24, 0.32, 0.2])
    one = four()
    one.remove(13)  # eq. 8: times 1 + 0.4 / 0.6
    assert one.links.tolist() == [10, 11, 12]
    assert one.chances == pytest.approx([1 / 6, 1 / 3, 1 / 2])
    one = four()
    one.update([13, 15, 11, 15])  # 10 and 12 go, 15 comes
    assert one.links.tolist() == [11, 13, 15]
    assert one.chances == pytest.approx([2 / 9, 4 / 9, 1 / 3])
    with pytest.raises(KeyError, match="99"):
        one.remove(99)


def test_choices_follow_the_scaled_chances() -> None:
    one, random = four(), np.random.default_rng(0)
    drawn = [one.choose(np.array([1, 3]), random) for _ in range(3_000)]
    assert set(drawn) == {1, 3}
    assert np.mean(np.array(drawn) == 1) == pytest.approx(1 / 3, abs=0.03)


def test_similarity_by_hand() -> None:
    frequencies = np.array([1.0, 0.0, 0.5])
    tokens, counts = np.array([0, 1, 2]), np.array([2, 9, 4])
    # Over the topic's words: 2/4 and 4/4.
    expected = (0.5 + 0.5) / np.sqrt(1.25 * 1.25)
    assert frequency_similarity(tokens, counts, frequencies) == pytest.approx(expected)
    assert frequency_similarity(tokens[1:2], counts[1:2], frequencies) == 0.0


# --- chances stay chances, whatever happens


OPERATIONS = ("reward", "penalise", "add", "remove", "update")


@settings(derandomize=True, deadline=None, max_examples=200)
@given(
    size=st.integers(0, 6),
    rates=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    steps=st.lists(
        st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 2**32)), max_size=60
    ),
)
def test_chances_are_always_a_distribution(
    size: int, rates: tuple[float, float], steps: list[tuple[str, int]]
) -> None:
    one = Automaton(np.arange(size))
    fresh = size
    for what, seed in steps:
        random = np.random.default_rng(seed)
        count = len(one.links)
        if what in ("reward", "penalise") and count:
            some = random.integers(1, count + 1)
            enabled = np.sort(random.choice(count, some, replace=False))
            chosen = one.choose(enabled, random)
            assert chosen in enabled
            before = one.chances.copy()
            rate = rates[what == "penalise"]
            getattr(one, what)(chosen, enabled, rate)
            disabled = np.setdiff1d(np.arange(count), enabled)
            assert np.array_equal(before[disabled], one.chances[disabled])
            # To the good of the chosen link or of the others, up to rounding.
            gain = one.chances[chosen] - before[chosen]
            assert gain >= -1e-12 if what == "reward" else gain <= 1e-12
        elif what == "add":
            one.add(fresh)
            fresh += 1
        elif what == "remove" and count:
            one.remove(int(random.choice(one.links)))
        elif what == "update":
            links = random.choice(fresh + 6, random.integers(0, 6), replace=False)
            fresh += 6
            one.update(links.tolist())
            assert set(one.links.tolist()) == set(links.tolist())
        assert len(one.links) == len(one.chances) == len(set(one.links.tolist()))
        if len(one.links):
            assert one.chances.sum() == pytest.approx(1, abs=1e-9)
            assert 0 <= one.chances.min() <= one.chances.max() <= 1


# --- whole crawls


def garden(extra: bool = False) -> Trace:
    """Two alleys; one is of roses, and with ``extra`` it has one more link."""
    roses = [f"rose {i}" for i in range(3)]
    pages = {
        "home": Page(links=["weeds", "roses"], text="home"),
        "weeds": Page(links=[f"weed {i}" for i in range(3)], text="weed"),
        "roses": Page(links=[*roses, *(["weed 0"] if extra else [])], text="rose bush"),
    }
    pages |= {name: Page(links=["home"], text="rose bush bush") for name in roses}
    pages |= {f"weed {i}": Page(text="weed") for i in range(3)}
    pages["rose 3"] = Page()
    return web(pages)


def env_of(trace: Trace, **rules: Any) -> ForageEnv:
    options: dict[str, Any] = {"slots": None, "split": "all", "on_illegal": "raise"}
    return TopicEnv(trace, topic=["rose", "bush"], **options, **rules)


def order(env: ForageEnv, agent: LAFC, seed: int = 0) -> list[str]:
    visits: list[int] = []
    run_episode(env, agent, seed=seed, on_step=lambda step: visits.append(step.action))
    return [env.trace.urls[url] for url in visits]


def test_it_descends_while_pages_are_similar_and_resumes_from_the_stack() -> None:
    env = env_of(garden())
    visits = order(env, make(env, 0))
    assert visits[0] == "home"
    assert len(visits) == len(set(visits)) == 9  # all that can be reached
    # Once at the roses it stays: each rose is similar enough, but leads nowhere new.
    at = visits.index("roses")
    assert set(visits[at + 1 : at + 4]) == {"rose 0", "rose 1", "rose 2"}


def test_the_chain_of_tau_and_rewards() -> None:
    env = env_of(garden())
    agent = make(env, 0, a=0.5)
    first = order(env, agent)
    home = agent.networks["rose bush"][0]
    roses = home.links.tolist().index(env.trace.urls.find("roses"))
    if first.index("weeds") < first.index("roses"):
        # weeds: 0 >= tau 0 is a reward as printed; roses then has no rival left.
        assert home.chances[roses] == pytest.approx(0.25)
    else:
        assert home.chances[roses] == pytest.approx(0.75)
    assert home.tau == pytest.approx(1.0)
    for _ in range(30):  # tau persists, so weeds is never rewarded again
        before = home.chances[roses]
        order(env, agent)
        assert home.chances[roses] >= before
    assert home.chances[roses] > 0.9


def test_learning_is_kept_over_crawls_and_topics_are_apart() -> None:
    env = env_of(garden())
    agent = make(env, 0, crawls=20, a=0.3)
    assert agent.training_fetches == 20 * 9
    sooner = [order(env, agent, seed).index("roses") for seed in range(20)]
    fresh = [order(env, make(env, seed), seed).index("roses") for seed in range(20)]
    assert np.mean(sooner) < np.mean(fresh)
    run_episode(env, agent, seed=0, options={"topic": ["weed"]})
    assert set(agent.networks) == {"rose bush", "weed"}


def test_a_page_that_has_changed() -> None:
    env = env_of(garden())
    agent = make(env, 0)
    order(env, agent)
    page = env.trace.urls.find("roses")
    network = agent.networks["rose bush"]
    old = dict(zip(network[page].links.tolist(), network[page].chances, strict=True))
    later = env_of(garden(extra=True))
    assert list(later.trace.urls) == list(env.trace.urls)
    agent.a = 0.0  # nothing is learned now
    order(later, agent)
    new = dict(zip(network[page].links.tolist(), network[page].chances, strict=True))
    added = (new.keys() - old.keys()).pop()
    assert new[added] == pytest.approx(1 / 4)
    assert all(new[link] == pytest.approx(old[link] * 3 / 4) for link in old)
    order(env, agent)  # and it is gone again
    assert network[page].chances == pytest.approx(list(old.values()))


def test_saved_and_loaded_in_the_middle_of_a_crawl(tmp_path: Any) -> None:
    env = TopicEnv("synthetic-small-v0", slots=None, budget=120)
    agent = make(env, 3, crawls=1, control=0.4)
    agent.reset(3)
    _, info = env.reset(seed=3)
    reward, observation = 0.0, {}
    from gym_webforage.envs.run import Transition

    other = None
    for step in range(119):
        if step == 60:
            _checkpoint.write(tmp_path / "agent.npz", agent.save())
            other = make(env, 99, control=0.4)
            other.load(_checkpoint.read(tmp_path / "agent.npz"))
        action = agent.act(observation, info)
        assert other is None or other.act(observation, info) == action
        observation, reward, end, cut, info = env.step(action)
        for one in (agent, other):
            if one is not None:
                one.learn(Transition({}, action, reward, {}, end, cut, info))
    assert other is not None
    kept, again = agent.save(), other.save()
    assert kept.keys() == again.keys()
    assert all(np.array_equal(kept[name], again[name]) for name in kept)
    empty = make(env, 0)
    empty.load(make(env, 1).save())
    assert empty.networks == {}


def test_popping_literally_loses_the_stack() -> None:
    env = TopicEnv("synthetic-small-v0", slots=None, budget=300)
    ways = [order(env, make(env, 1, resume=how), 1) for how in ("top", "pop")]
    assert ways[0] != ways[1]
    assert len(ways[1]) == 300  # it goes on from the newest page then


def test_a_child_goes_its_own_way() -> None:
    env = env_of(garden())
    agent = make(env, 0)
    order(env, agent)
    child = agent.divide(np.random.default_rng(0))
    before = agent.networks["rose bush"][0].chances.copy()
    child.networks["rose bush"][0].reward(0, np.arange(2), 0.5)
    assert np.array_equal(agent.networks["rose bush"][0].chances, before)


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"scheme": "L_R"}, "scheme is 'L_R', expected one of L_R-I, L_R-P, L_R-eP"),
        ({"a": 1.5}, "a is 1.5, expected 0 to 1"),
        ({"b": -1.0}, "b is -1.0, expected 0 to 1"),
        ({"control": 2.0}, "control is 2.0, expected 0 to 1"),
        ({"similarity": "x"}, "similarity is 'x'"),
        ({"resume": "x"}, "resume is 'x'"),
        ({"crawls": -1}, "crawls is -1, expected 0 or more"),
    ],
)
def test_bad_settings(settings_: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(env_of(garden()), 0, **settings_)


def test_settings_by_name() -> None:
    env = env_of(garden())
    agent = baselines.load("lafc:scheme=L_R-P,a=0.2,control=0.5").make(env, 0)
    assert (agent.a, agent.b, agent.control) == (0.2, 0.2, 0.5)
    assert baselines.load("lafc:scheme=L_R-eP").make(env, 0).b == pytest.approx(0.009)
    assert make(env, 0).b == 0.0
