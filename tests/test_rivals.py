"""The learning automata's rivals: their equations by hand, their orders on toy webs."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import baselines
from baselines import _checkpoint
from baselines._examples import Examples
from baselines._frontier import Frontier
from baselines._topic_text import Weighting, semantic_axes, x_means
from baselines.agent import Transition, run_episode
from baselines.hw import WordRelevancy, layer_relevancy
from baselines.ljm import HiddenMarkov
from baselines.opic import Opic
from gym_webforage.envs import ForageEnv, NewsEnv, SpiderEnv, TopicEnv
from gym_webforage.trace import Trace
from tests.toys import Page, web


def spider(trace: Trace, **rules: Any) -> SpiderEnv:
    return SpiderEnv(trace, slots=None, split="all", on_illegal="raise", **rules)


def topical(trace: Trace, topic: list[str], **rules: Any) -> TopicEnv:
    return TopicEnv(trace, slots=None, topic=topic, on_illegal="raise", **rules)


def follow(env: ForageEnv, agent: Any, seed: int = 0) -> list[str]:
    """Return the names of the URLs that an agent visits, in order."""
    steps: list[Transition] = []
    run_episode(env, agent, seed=seed, on_step=steps.append)
    return [env.trace.urls[step.action] for step in steps]


def visits(name: str, env: ForageEnv) -> list[str]:
    return follow(env, baselines.load(name).make(env, 0))


# --- the frontier


def test_a_frontier_is_saved_and_loaded() -> None:
    frontier = Frontier()
    for url, value in ((7, 1.0), (3, 2.0), (9, 1.0), (4, -1.0), (7, 1.5)):
        frontier.add(url, value)
    assert (frontier.best(), frontier.take()) == (2.0, 3)
    other = Frontier()
    other.load(frontier.save())
    assert other.is_done(3)
    assert not other.is_done(7)
    other.add(4, 1.0)  # found after 9: behind it at the same value
    assert [other.take() for _ in range(3)] == [7, 9, 4]


# --- best-first


LINKS = {
    "home": Page([("a", "cat"), ("b", "dog")], "cat dog"),
    "a": Page([("c", "dog"), ("d", "dog dog cat")], "dog"),
    "b": Page([("e", "dog")], "cat"),
    **{name: Page() for name in "cde"},
}


@pytest.mark.parametrize(
    ("settings", "order"),
    [
        # From home a and b are equal; then b is all cat, so e, while a has none of it.
        ("links=parent", "home a b e c d"),
        # a is all cat; b none; of a's links d has some; b, c and e none, by discovery.
        ("links=anchor", "home a d b c e"),
        # After a: c 0, d 0.5 / sqrt(5) = 0.22, b 0.5 / sqrt(2) = 0.35, the page's.
        # Then e 0.5, which beats both.
        ("page_weight=0.5", "home a b e d c"),
    ],
)
def test_best_first_by_page_link_or_both(settings: str, order: str) -> None:
    env = topical(web(LINKS), ["cat"])
    assert visits(f"best_first:{settings}", env) == order.split()


def test_best_first_refuses_other_settings() -> None:
    env = topical(web(LINKS), ["cat"])
    with pytest.raises(ValueError, match="links is 'all', expected parent, anchor or"):
        baselines.load("best_first:links=all").make(env, 0)
    with pytest.raises(ValueError, match="page_weight is 2, expected 0 to 1"):
        baselines.load("best_first:page_weight=2").make(env, 0)
    news = NewsEnv("synthetic-small-v0", slots=None)
    with pytest.raises(ValueError, match="settings of Topic alone"):
        baselines.load("best_first:links=parent").make(news, 0)


# --- link-based orders


def test_backlink_counts_pages_that_link() -> None:
    trace = web(
        {
            "home": Page(["a", "b", "c", "c", "c"]),
            "a": Page(["d", "b", "e"]),
            "b": Page(["e", "d", "d"]),
            "c": Page(["home"], is_target=True),
            "d": Page(),
            "e": Page(),
        }
    )
    # After home all have one page, c too; a adds one to b. After b: d 2 and e 2 (from
    # a and b) beat c 1; d was discovered before e.
    assert visits("backlink", spider(trace)) == ["home", "a", "b", "d", "e", "c"]


CASH = {
    "home": Page(["a", "b"]),
    "a": Page(["b", "c", "home"]),
    "b": Page(["c"], is_target=True),
    "c": Page(["gone"]),
}


def test_opic_by_hand() -> None:
    env = spider(web(CASH))
    agent = Opic()
    seen = []

    def note(step: Transition) -> None:
        known = step.info["known"]
        seen.append({known.address(url): cash for url, cash in agent.cash.items()})
        seen[-1]["virtual"] = agent.virtual_cash

    run_episode(env, agent, seed=0, on_step=note)
    third = 1 / 3
    # home gives a third each to a, b and the virtual page, which is not richer than
    # a: a tie is the page's. a gives a twelfth each to b, c, home and virtual.
    first = {"home": 0, "a": third, "b": third, "virtual": third}
    assert seen[0] == pytest.approx(first)
    part = third / 4
    second = {"home": part, "a": 0, "b": third + part, "c": part}
    assert seen[1] == pytest.approx(second | {"virtual": third + part})
    # b, as rich as the virtual page, gives half to c and half to the virtual page.
    half = (third + part) / 2
    third_step = {"home": part, "a": 0, "b": 0, "c": part + half}
    assert seen[2] == pytest.approx(third_step | {"virtual": third + part + half})
    # Now the virtual page is the richest and gives to the four pages; then c.
    gift = (third + part + half) / 4
    after = {"home": part + gift, "a": gift, "b": gift, "c": 0}
    given = (part + half + gift) / 2
    assert seen[3] == pytest.approx(after | {"gone": given, "virtual": given})
    # "gone" was never recorded: what it holds goes to the virtual page.
    assert seen[4]["gone"] == 0
    assert [sum(cash.values()) for cash in seen] == pytest.approx([1] * 5)


def test_opic_without_the_virtual_page() -> None:
    env = spider(web(CASH))
    agent = baselines.load("opic:virtual=false").make(env, 0)
    # a and b hold a half; a gives b a third of it, so b, then c, then gone.
    assert follow(env, agent) == ["home", "a", "b", "c", "gone"]
    assert agent.total == pytest.approx(1)
    # home kept what a gave it; all else went through c and the dead end.
    assert agent.virtual_cash == pytest.approx(5 / 6)


@st.composite
def small_webs(draw: st.DrawFn) -> Trace:
    count = draw(st.integers(1, 8))
    names = [f"p{i}" for i in range(count + 2)]  # the last two are never recorded
    pages = {
        name: Page(draw(st.lists(st.sampled_from(names), max_size=6)), is_target=True)
        for name in names[:count]
    }
    roots = draw(st.lists(st.sampled_from(names[:count]), min_size=1, unique=True))
    return web(pages, roots)


@settings(max_examples=60, deadline=None)
@given(small_webs(), st.booleans())
def test_opic_keeps_all_cash(trace: Trace, virtual: bool) -> None:
    agent = Opic(virtual)

    def check(step: Transition) -> None:
        cash = [*agent.cash.values(), agent.virtual_cash]
        assert min(cash) >= -1e-12
        assert agent.total == pytest.approx(1, abs=1e-9)
        waiting = [agent.cash[url] for url in step.info["action_set"].tolist()]
        if waiting:  # the heap's order is that of the cash
            best = max(agent.frontier.value, key=agent.frontier.value.__getitem__)
            assert agent.cash[best] == pytest.approx(max(waiting), abs=1e-12)

    run_episode(spider(trace), agent, seed=0, on_step=check)


# --- examples


def bag(words: dict[int, int]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([*words], np.int64), np.array([*words.values()], np.int64)


# 0 -> 1 -> 2 (target) -> 4, 3 -> 1, and 5 that leads to 0 alone.
PATHS = [(0, 1), (1, 2), (2, 4), (3, 1), (5, 0)]
PATH_PAGES = Examples(
    texts=[bag({0: 1})] * 6,
    is_target=np.array([False, False, True, False, False, False]),
    links=PATHS,
)


def test_distances_to_the_nearest_target() -> None:
    assert PATH_PAGES.distances(9).tolist() == [2, 1, 0, 2, 9, 3]
    assert PATH_PAGES.distances(2).tolist() == [2, 1, 0, 2, 2, 2]


# A list leads to cats; noise leads to noise. The word "all" is everywhere.
LISTS = {
    "home": Page(["noise 0", "list 0", "noise 1", "list 1"], "all welcome"),
    **{f"noise {i}": Page([f"dull {i}", f"dull {i + 2}"], "all noise") for i in (0, 1)},
    **{f"list {i}": Page([f"cat {i}", f"cat {i + 2}"], "all list") for i in (0, 1)},
    **{f"dull {i}": Page([f"dull {(i + 1) % 4}"], "all noise dull") for i in range(4)},
    **{f"cat {i}": Page([], "all cat cat") for i in range(4)},
}


def lists(**rules: Any) -> TopicEnv:
    return topical(web(LISTS), ["cat"], **rules)


@pytest.mark.parametrize("name", ["ljm", "bpm:centroid=own", "hw", "hw:by=layers"])
def test_the_learned_order_on_lists(name: str) -> None:
    # All links of home are alike. Those of a list are to cats, those of noise are not:
    # cats come next, and what is dull comes last.
    order = "noise 0, list 0, cat 0, cat 2, noise 1, list 1, cat 1, cat 3"
    first = visits(name, lists())
    assert first[:9] == ["home", *order.split(", ")]
    assert {page.split()[0] for page in first[9:]} == {"dull"}


def test_bpm_is_the_mean_of_two_values() -> None:
    env = lists()
    ljm, bpm = (baselines.load(name).make(env, 0) for name in ("ljm", "bpm"))
    for agent in (ljm, bpm):
        run_episode(env, agent, seed=0)  # all pages are known now, none expected
        agent.came_from.clear()
    page = env.trace.urls.find("list 0")
    links = env.known.links(page)
    text = env.known.tokens(page)
    # Anchors and URLs have no words here: half the page's similarity is the link's.
    close = bpm.weighting.similarity(text, bpm.centroids[0]) / 2
    assert 0 < close < 0.5
    expected = (ljm.rate(env.known, page, links) + close) / 2
    assert bpm.rate(env.known, page, links) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["ljm", "bpm", "hw"])
def test_training_is_counted_once_a_topic(name: str) -> None:
    trace = web(LISTS)
    env = topical(trace, ["cat"], budget=5)
    agent = baselines.load(f"{name}:training=7").make(env, 0)
    assert agent.training_fetches == 0
    first = follow(env, agent)
    assert agent.training_fetches == 7
    assert env.world.fetches == 5  # the crawl itself is not touched
    assert follow(env, agent) == first
    assert agent.training_fetches == 7
    other = topical(trace, ["dull"], budget=5)
    follow(other, agent)
    assert agent.training_fetches == 14


def test_settings_that_make_no_sense() -> None:
    env = lists()
    for name, message in {
        "ljm:training=0": "training is 0, expected 1 or more",
        "ljm:states=1": "states is 1, expected 2 or more",
        "bpm:smoothing=-1": "smoothing is -1, expected 0 or more",
        "bpm:centroid=mine": "centroid is 'mine', expected target or own",
        "hw:alpha=2": "alpha is 2, expected 1e-06 to 1",
        "hw:by=place": "by is 'place', expected words or layers",
        "remember_last_crawl:crawls=-1": "crawls is -1, expected 0 or more",
        "remember_last_crawl:otherwise=x": "otherwise is 'x', expected best_first or",
    }.items():
        with pytest.raises(ValueError, match=message):
            baselines.load(name).make(env, 0)
    with pytest.raises(LookupError, match="no agent 'nobody'"):
        baselines.load("hw:teacher=nobody").make(env, 0)


# --- the control


@pytest.mark.parametrize(
    ("settings", "order"),
    [
        # The cats are remembered: they come as soon as their list is fetched.
        ("", "noise 0, list 0, cat 0, cat 2, noise 1, list 1, cat 1, cat 3"),
        # The lists are remembered as well.
        (",paths=true", "list 0, cat 0, cat 2, list 1, cat 1, cat 3, noise 0, noise 1"),
        # Nothing is remembered in the first crawl.
        (",crawls=0", "noise 0, list 0, noise 1, list 1, dull 0, dull 2, cat 0, cat 2"),
    ],
)
def test_remembered_pages_come_first(settings: str, order: str) -> None:
    env = lists()
    name = f"remember_last_crawl:otherwise=breadth_first{settings}"
    agent = baselines.load(name).make(env, 0)
    assert follow(env, agent)[1:9] == order.split(", ")
    assert agent.training_fetches == (0 if "crawls" in settings else 13)
    named = {env.trace.urls[url] for url in agent.good}
    assert named == {f"cat {i}" for i in range(4)}


@pytest.mark.parametrize("kind", ["topic", "spider"])
def test_the_memory_is_saved_and_loaded(kind: str, tmp_path: Any) -> None:
    def env() -> ForageEnv:
        if kind == "topic":
            return TopicEnv("synthetic-small-v0", slots=None, budget=120)
        return SpiderEnv("synthetic-small-sites-v0", slots=None, budget=120)

    world = env()
    agent = baselines.load("remember_last_crawl").make(world, 0)
    agent.reset(0)
    observation, info = world.reset(seed=0)
    for step in range(120):
        if step == 60:  # another object goes on, in the middle of a crawl
            _checkpoint.write(tmp_path / "agent.npz", agent.save())
            other = baselines.load("remember_last_crawl").make(world, 0)
            other.load(_checkpoint.read(tmp_path / "agent.npz"))
            assert other.training_fetches == agent.training_fetches > 0
            agent = other
        action = agent.act(observation, info)
        after, reward, *ended, info = world.step(action)
        agent.learn(Transition(observation, action, float(reward), after, *ended, info))
        observation = after
        if any(ended):
            break
    whole = env()
    result = run_episode(
        whole, baselines.load("remember_last_crawl").make(whole, 0), seed=0
    )
    assert world.events()["url"].tolist() == result.events["url"].tolist()


# --- determinism


SCRIPT = """
import baselines
from baselines.agent import run_episode
from gym_webforage.envs import TopicEnv
for name in ("ljm", "bpm", "hw", "opic", "remember_last_crawl"):
    env = TopicEnv("synthetic-small-v0", slots=None, split="test", budget=150)
    agent = baselines.load(name).make(env, 3)
    print(name, *run_episode(env, agent, seed=3).events["url"])
"""


def test_another_process_crawls_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(SCRIPT, "script", "exec"), {})
    here = capsys.readouterr().out
    there = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert there.stdout == here


# --- text


def test_tf_idf_by_hand() -> None:
    texts = [bag({0: 2, 1: 1}), bag({0: 1}), bag({0: 1, 2: 3})]
    weighting = Weighting.of(texts, 4)
    rare = np.log(4 / 2) + 1
    assert weighting.idf == pytest.approx([1, rare, rare, np.log(4) + 1])
    tokens, weights = weighting.weigh(texts[0])
    assert tokens.tolist() == [0, 1]
    assert weights == pytest.approx(np.array([2, rare]) / np.hypot(2, rare))
    assert weighting.similarity(texts[1], weighting.centroid([texts[1]])) == 1
    assert weighting.similarity(bag({3: 1}), weighting.centroid(texts)) == 0
    assert weighting.similarity(bag({}), weighting.centroid(texts)) == 0


def test_semantic_axes_are_singular_vectors() -> None:
    random = np.random.default_rng(0)
    texts = [
        bag({int(w): int(random.integers(1, 5)) for w in random.integers(0, 30, 8)})
        for _ in range(12)
    ]
    matrix = Weighting.of(texts, 30).matrix(texts)
    axes = semantic_axes(matrix, 5)
    expected = np.linalg.svd(matrix.toarray())[2][:5].T
    assert np.abs(np.sum(axes * expected, axis=0)) == pytest.approx(np.ones(5))
    # Two texts of the same words span one axis.
    assert semantic_axes(Weighting.of(texts, 30).matrix(texts[:1] * 2), 5).shape[1] == 1


def test_x_means_finds_how_many() -> None:
    random = np.random.default_rng(1)
    centres = np.array([[0, 0], [9, 0], [0, 9], [9, 9]])
    truth = random.permutation(np.repeat(np.arange(4), 25))
    rows = centres[truth] + random.normal(size=(100, 2))
    found = x_means(rows, most=9)
    assert found.max() == 3
    assert len(set(zip(truth.tolist(), found.tolist(), strict=True))) == 4
    assert x_means(rows, most=2).max() <= 1
    assert x_means(random.normal(size=(60, 2)), most=9).max() == 0
    assert x_means(np.zeros((5, 2)), most=9).tolist() == [0] * 5


# --- LJM


def test_the_hidden_markov_model_is_counted() -> None:
    states = np.array([2, 1, 0, 2, 2, 2])
    clusters = np.array([1, 1, 0, 2, 2, 2])
    model = HiddenMarkov.counted(states, clusters, PATHS, shape=(3, 3), smoothing=0.5)
    # Links by state: 2 -> 1 twice (0-1, 3-1), 1 -> 0, 0 -> 2 (2-4), 2 -> 2 (5-0).
    move = np.array([[0, 0, 1], [1, 0, 0], [0, 2, 1]]) + 0.5
    assert model.move == pytest.approx(move / [[2.5], [2.5], [4.5]])
    show = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 3]]) + 0.5
    assert model.show == pytest.approx(show / [[2.5], [2.5], [5.5]])


def test_a_forward_step_by_hand() -> None:
    model = HiddenMarkov(
        move=np.array([[0.5, 0.5], [0.8, 0.2]]), show=np.array([[0.9, 0.1], [0.4, 0.6]])
    )
    root = model.forward(None, 1)  # in proportion 0.1 to 0.6
    assert root == pytest.approx([1 / 7, 6 / 7])
    expected = [(0.5 + 0.8 * 6) / 7, (0.5 + 0.2 * 6) / 7]
    assert model.expect(root) == pytest.approx(expected)
    joint = np.array([expected[0] * 0.9, expected[1] * 0.4])
    assert model.forward(root, 0) == pytest.approx(joint / joint.sum())


def test_a_state_never_seen_says_nothing() -> None:
    model = HiddenMarkov.counted(
        np.array([0]), np.array([0]), [], shape=(2, 2), smoothing=0
    )
    assert model.move == pytest.approx(np.full((2, 2), 0.5))
    assert model.show[1] == pytest.approx([0.5, 0.5])


# --- HW


def test_layers_weigh_alpha_to_their_number() -> None:
    worth = layer_relevancy(np.array([0, 1, 2, 3, 4]), alpha=0.5, outermost=3)
    assert worth.tolist() == [1, 0.5, 0.25, 0.125, 0]


def test_the_relevancy_of_words_by_hand() -> None:
    texts = [bag({0: 3, 1: 1}), bag({1: 2}), bag({1: 1, 2: 3})]
    feature = np.array([True, True, True, False])
    words = WordRelevancy.counted(texts, np.array([1, 0.5, 0]), feature)
    # Of 10 occurrences 4 are worth 1 and 2 are worth a half: 0.5 in the mean, which
    # each word gets one more of. Word 1: 1 + 2 * 0.5 + 0 in 4 occurrences.
    assert words.mean == 0.5
    expected = [3.5 / 4, 2.5 / 5, 0.5 / 4]
    assert words.expected[:3] == pytest.approx(expected)
    assert words.of(bag({0: 1, 2: 3, 3: 8})) == pytest.approx(
        (expected[0] + 3 * expected[2]) / 4
    )
    assert words.of(bag({3: 8})) == words.of(bag({})) == 0.5
