"""The learning automata's rivals: their equations by hand, their orders on toy webs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import baselines
from baselines._frontier import Frontier
from baselines.agent import Transition, run_episode
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
