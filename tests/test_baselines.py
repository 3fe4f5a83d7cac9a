"""Every file in baselines/ runs and obeys; the classics give exact, known orders."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import networkx as nx
import numpy as np
import pytest

import baselines
from baselines.agent import Agent, Transition, run_episode
from baselines.best_first import BestFirstNews
from gym_webforage.envs import ForageEnv, NewsEnv, SpiderEnv, TopicEnv
from gym_webforage.trace import Trace
from tests.toys import Page, web

KINDS: dict[str, tuple[type[ForageEnv], str]] = {
    "news": (NewsEnv, "synthetic-small-v0"),
    "topic": (TopicEnv, "synthetic-small-v0"),
    "spider": (SpiderEnv, "synthetic-small-sites-v0"),
}

ORDERS_THE_FRONTIER = {
    "backlink",
    "best_first",
    "bpm",
    "breadth_first",
    "hw",
    "lafc",
    "ljm",
    "naive_bayes_q",
    "online_logistic",
    "online_naive_bayes",
    "opic",
    "oracle",
    "remember_last_crawl",
    "sleeping_bandit",
    "td_corrected",
    "td_naive_bayes",
}


def visits(name: str, env: ForageEnv, **options: Any) -> list[str]:
    """Return the names of the URLs that a baseline visits, in order."""
    agent = baselines.load(name).make(env, 0)
    steps: list[Transition] = []
    run_episode(env, agent, seed=0, options=options, on_step=steps.append)
    return [env.trace.urls[step.action] for step in steps]


def news(trace: Trace, **rules: Any) -> NewsEnv:
    # The pages are 0 or 10 days old at the start: young, or old.
    return NewsEnv(trace, slots=None, split="all", on_illegal="raise", **rules)


def spider(trace: Trace, **rules: Any) -> SpiderEnv:
    return SpiderEnv(trace, slots=None, split="all", on_illegal="raise", **rules)


# --- all of them


def make_env(kind: str, slots: int | None = None, **rules: Any) -> ForageEnv:
    env, trace = KINDS[kind]
    rules = {"budget": 300, **rules}
    return env(trace, slots=slots, split="test", on_illegal="raise", **rules)


def crawl(name: str, kind: str, seed: int) -> list[tuple[int, float]]:
    env = make_env(kind)
    agent = baselines.load(name).make(env, seed)
    if agent.slots is not None:
        env = make_env(kind, agent.slots)
    steps: list[Transition] = []
    run_episode(env, agent, seed=seed, on_step=steps.append)
    return [(step.action, step.reward) for step in steps]


def test_the_folder_lists_its_baselines() -> None:
    assert {"random_walk", "breadth_first", "best_first", "oracle"} <= {
        *baselines.names()
    }
    assert "agent" not in baselines.names()


def test_the_readme_names_every_baseline() -> None:
    text = (baselines.FOLDER / "README.md").read_text(encoding="utf-8")
    for name in baselines.names():
        assert f"| `{name}.py` |" in text
        docstring = baselines.load(name).__doc__
        for part in ("Paper: ", "**Differs from the paper in**", "Cost per step: "):
            assert part in docstring, name


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for name in baselines.names() for kind in baselines.kinds(name)],
)
def test_a_baseline_obeys_and_repeats_itself(name: str, kind: str) -> None:
    first = crawl(name, kind, 1)  # an illegal action would raise
    assert first
    assert crawl(name, kind, 1) == first


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for name in baselines.names()
        for kind in baselines.kinds(name)
        if kind != "news"
    ],
)
def test_from_page_to_page_a_baseline_obeys_or_refuses(name: str, kind: str) -> None:
    module = baselines.load(name)
    rules: dict[str, Any] = {"reach": "links", "budget": 30}
    try:
        agent = module.make(make_env(kind, **rules), 1)
    except ValueError as error:
        assert "reach is 'links', expected 'frontier'" in str(error)
        assert name in ORDERS_THE_FRONTIER
        return
    assert name not in ORDERS_THE_FRONTIER
    env = make_env(kind, agent.slots, **rules)
    # An illegal action would raise.
    assert run_episode(env, agent, seed=1).fetches == 30


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name", ["random_walk", "breadth_first", "best_first", "oracle"]
)
def test_a_reset_forgets_the_crawl_before(name: str, kind: str) -> None:
    env = make_env(kind)
    agent = baselines.load(name).make(env, 1)
    for seed in (0, 1):
        steps: list[Transition] = []
        run_episode(env, agent, seed=seed, on_step=steps.append)
    assert [(step.action, step.reward) for step in steps] == crawl(name, kind, 1)


def test_random_walks_differ_by_seed() -> None:
    env = make_env("topic")
    agent = baselines.load("random_walk").make(env, 0)
    walks = []
    for seed in range(2):
        steps: list[Transition] = []
        options = {"topic": env.trace.labels[0]}
        run_episode(env, agent, seed=seed, options=options, on_step=steps.append)
        walks.append([step.action for step in steps])
    assert walks[0] != walks[1]


@pytest.mark.parametrize("kind", KINDS)
def test_the_oracle_beats_the_random_walk(kind: str) -> None:
    found = {"oracle": 0, "random_walk": 0}
    for name in found:
        env = make_env(kind, budget=100)
        agent = baselines.load(name).make(env, 0)
        for seed in range(5):
            found[name] += run_episode(env, agent, seed=seed).found
    assert found["oracle"] > 1.3 * found["random_walk"] > 0


def test_a_name_that_is_none() -> None:
    with pytest.raises(LookupError, match=r"no agent 'depth_first'.*best_first"):
        baselines.load("depth_first")
    with pytest.raises(LookupError, match="no agent"):
        baselines.load("no/such_file.py")
    with pytest.raises(LookupError, match="offers no make"):
        baselines.load("json")


# --- breadth-first


TREE = {
    "home": Page(["a", "b"]),
    "a": Page(["c", "d"]),
    "b": Page(["d", "gone", "e"], is_target=True),
    "c": Page(["home"]),
    "d": Page(["e"], is_target=True),
    "e": Page(),
}


def test_breadth_first_is_a_queue() -> None:
    # Discovered in this order, each URL once; "gone" was never recorded.
    order = ["home", "a", "b", "c", "d", "gone", "e"]
    assert visits("breadth_first", spider(web(TREE))) == order


def test_breadth_first_news_starts_paths_at_the_root() -> None:
    # A path of 4: home brings a, b; a brings c, d; then b before c by its number.
    # Fetches: home 3, a 3, b 4 (d, gone, e), c 2 (home) are 12, and again.
    path = ["home", "a", "b", "c"]
    env = news(web(TREE), path_length=4, budget=24)
    assert visits("breadth_first", env) == [*path, *path]


def test_breadth_first_news_takes_roots_in_turn() -> None:
    trace = web(TREE, roots=("b", "home", "c"))
    # Path 1: b, then of d, e the first found. Path 2: home, then of a, b the lower
    # number: b, a root, which is last in turn now. Path 3: c, then home. Path 4: b.
    # Discovery: b 0, home 1, c 2, d 3, gone 4, e 5, a 6.
    env = news(trace, path_length=2, budget=21)
    # Fetches: b 4, d 2; home 3, b 4; c 2, home 3; b 4: 22.
    expected = ["b", "d", "home", "b", "c", "home", "b"]
    assert visits("breadth_first", env) == expected


# --- best-first


def test_best_first_follows_the_topic() -> None:
    trace = web(
        {
            "home": Page([("a", "dog"), ("b", "cat"), ("c", "cat dog")], "dog dog"),
            "a": Page(text="dog"),
            "b": Page([("d", "dog"), ("a", "cat")], "cat"),
            "c": Page(text="dog"),
            "d": Page(text="dog"),
        }
    )
    env = TopicEnv(trace, slots=None, topic=["cat"], on_illegal="raise")
    # With a quarter for the page and the rest for the words of the link:
    # from home (no cat): a 0, b 0.75, c 0.75 / sqrt(2) = 0.53. So b, which is all cat:
    # d 0.25, and a rises to 1. So a, c, d.
    assert visits("best_first", env) == ["home", "b", "a", "c", "d"]


def test_best_first_breaks_ties_by_discovery() -> None:
    links = [(name, "cat") for name in "qwerty"]
    pages = {"home": Page(links, "cat"), **{name: Page() for name in "ytrewq"}}
    env = TopicEnv(web(pages), slots=None, topic=["cat"], on_illegal="raise")
    assert visits("best_first", env) == ["home", *"qwerty"]


def test_best_first_spider_learns_the_words_of_targets() -> None:
    links = ["x read", "s paper", "y read", "t paper", "z read", "u paper now"]
    pages = {"home": Page([(link[0], link[2:]) for link in links])}
    pages |= {name: Page(is_target=name in "stu") for name in "xsytzu"}
    # No target is known before s: x and s come as discovered. Then "paper" pays: t is
    # all paper, u half. With "paper now" learned, y and z stay at nothing.
    expected = ["home", "x", "s", "t", "u", "y", "z"]
    assert visits("best_first", spider(web(pages))) == expected


def test_best_first_news_counts_young_links() -> None:
    trace = web(
        {
            "home": Page(["small", "large", "old", "half"]),
            "small": Page(["p1", "p2"]),
            "large": Page(["p1", "p3", "p4", "home", "p4"]),
            "old": Page(["o1", "o2", "o3", "o4", "o5"], is_old=True),
            "half": Page(["p1", "p5", "p6"]),
            **{f"p{i}": Page() for i in range(1, 7)},
            **{f"o{i}": Page(is_old=True) for i in range(1, 6)},
        }
    )
    # Not fetched after home: small 2, large 3 (p4 counts once, home is fetched),
    # half 3; old counts nothing. After large (p1 is fetched): small 1, half 2.
    # After half and small all are at 0: old, the first discovered, then p1, ...
    env = news(trace, budget=25)
    # Fetches: home 5, large 5, half 4, small 3, old 6: 23; p1 1, p3 1: 25.
    expected = ["home", "large", "half", "small", "old", "p1", "p3"]
    assert visits("best_first", env) == expected


def test_best_first_news_keeps_its_counts() -> None:
    env = make_env("news", budget="12h")
    agent = baselines.load("best_first").make(env, 0)
    assert isinstance(agent, BestFirstNews)
    result = run_episode(env, agent, seed=0)
    fetched = {int(url) for url in result.events["url"]}
    assert agent._fetched == fetched
    counted = 0
    for url in env.known.urls.tolist():
        if env.known.is_fetched(url) and agent._young_until[url] >= env.world.clock:
            links = {env.known.target(x) for x in env.known.links(url).tolist()}
            assert agent._value[url] == len(links - fetched)
            counted += 1
    assert counted > 10


# --- oracles


def test_the_oracle_goes_to_the_nearest_target() -> None:
    trace = web(
        {
            "home": Page(["z", "a", "b"]),
            "a": Page(["c"]),
            "b": Page(["t"]),
            "c": Page(["s", "z"]),
            "t": Page(is_target=True),
            "s": Page(is_target=True),
            "z": Page(["home"]),
        }
    )
    # Links to a target: b 1, a 2, z by way of home 3. After t is taken: a 2, then c 1
    # and s 0. Nothing is left for z.
    expected = ["home", "b", "t", "a", "c", "s", "z"]
    assert visits("oracle", spider(trace)) == expected


def test_the_oracle_prefers_relevance_then_discovery() -> None:
    trace = web(
        {
            "home": Page(["a", "b", "c", "d"]),
            "a": Page(text="cat dog dog"),  # below the threshold: worth the least
            "b": Page(text="cat dog"),
            "c": Page(text="cat"),
            "d": Page(text="cat"),
        }
    )
    env = TopicEnv(trace, slots=None, topic=["cat"], threshold=0.6)
    assert visits("oracle", env) == ["home", "c", "d", "b", "a"]


def test_the_oracle_takes_most_novel_pages_a_fetch() -> None:
    trace = web(
        {
            "home": Page(["p", "q", "r"]),
            "p": Page(["n1", "n2", "n3", "o1", "o2"]),
            "q": Page(["n4", "n1"]),
            "r": Page(["o1", "n5"], is_old=True),
            **{f"n{i}": Page() for i in range(1, 6)},
            **{f"o{i}": Page(is_old=True) for i in range(1, 3)},
        }
    )
    # home sends p and q. Then p brings 3 in 6 fetches, q 2 in 3, r 1 in 3. After q
    # (n1 is sent): p 2 in 6, r 1 in 3: a tie, which p's lower number decides.
    # Fetches: 4, 3, 6, 3 are 16.
    assert visits("oracle", news(trace, budget=16)) == ["home", "q", "p", "r"]


@pytest.mark.parametrize(
    "rules", [{}, {"refetch_visited": False, "path_length": 7}, {"document": "url"}]
)
def test_the_news_oracle_against_trying_every_action(rules: dict[str, Any]) -> None:
    env = make_env("news", budget="1h", **rules)
    agent = baselines.load("oracle").make(env, 0)
    observation, info = env.reset(seed=3)
    for _ in range(12):
        before = env.snapshot()
        yields = []
        for action in info["action_set"].tolist():
            env.restore(before)
            *_, after = env.step(action)
            yields.append((after["novel"] / after["fetched"], action))
        observation, info = env.restore(before)
        best = max(rate for rate, _ in yields)
        first = next(action for rate, action in yields if rate == best)
        chosen = agent.act(observation, info)
        assert chosen == first
        observation, *_, info = env.step(chosen)


def test_the_spider_oracle_against_networkx() -> None:
    env = make_env("spider", budget=60)
    agent = baselines.load("oracle").make(env, 0)
    observation, info = env.reset(seed=0)
    trace, site = env.trace, env.episode.site
    graph = trace.to_networkx(env.world.start)
    inside = np.flatnonzero(trace.url_site == site).tolist()
    by_id = nx.DiGraph()
    by_id.add_nodes_from(inside)
    by_id.add_edges_from(e for e in graph.edges() if {*e} <= {*inside})
    goals = {url for url in inside if trace.url_target[url]}
    distances = []
    while goals:
        far = nx.multi_source_dijkstra_path_length(by_id.reverse(), goals)
        # Some URLs, such as those never recorded, lead nowhere.
        reached = [far[url] for url in info["action_set"].tolist() if url in far]
        distances.append(min(reached))
        chosen = agent.act(observation, info)
        assert far[chosen] == distances[-1]
        observation, *_, info = env.step(chosen)
        goals.discard(chosen)
    assert max(distances) > 1


# --- the loop


@dataclass
class Scripted(Agent):
    plan: list[int]
    seen: list[Transition] = field(default_factory=list)
    seeds: list[int | None] = field(default_factory=list)

    def reset(self, seed: int | None = None) -> None:
        self.seeds.append(seed)

    def act(self, observation: Any, info: Any) -> int:
        return self.plan[len(self.seen)]

    def learn(self, transition: Transition) -> None:
        self.seen.append(transition)


def test_run_episode_by_hand() -> None:
    trace = web(TREE)
    home, a, b, d = (trace.urls.find(name) for name in ("home", "a", "b", "d"))
    agent = Scripted([home, b, d, a])
    steps: list[Transition] = []
    env = spider(trace, budget=4)
    result = run_episode(env, agent, seed=5, on_step=steps.append)
    assert agent.seeds == [5]
    assert agent.seen == steps
    assert [step.action for step in steps] == [home, b, d, a]
    assert [step.reward for step in steps] == [0, 1, 1, 0]
    assert [step.truncated for step in steps] == [False, False, False, True]
    assert steps[1].observation is steps[0].next_observation
    assert (result.reward, result.steps, result.fetches) == (2, 4, 4)
    assert (result.terminated, result.truncated) == (False, True)
    assert result.events["url"].tolist() == [home, b, d, a]
    assert result.used.tolist() == [0.25, 0.5, 0.75, 1]
    # Targets after a half and three quarters of the budget: held for 0.5 and 0.25.
    assert (result.found, result.area) == (2, 0.75)
    assert result.curve(5).tolist() == [0, 0, 1, 2, 2]
    assert result.summary["recall"] == 1
    assert result.summary["harvest_rate"] == 0.5


def test_a_crawl_that_ends_early_keeps_what_it_has() -> None:
    env = spider(web({"home": Page(["t"]), "t": Page(is_target=True)}), budget=10)
    result = run_episode(env, baselines.load("breadth_first").make(env, 0), seed=0)
    assert (result.terminated, result.fetches) == (True, 2)
    assert (result.found, result.area) == (1, 0.8)


def test_news_counts_what_was_fetched_in_time() -> None:
    # Of the 3 fetches of the one step, 2.6 s each, the third ends after the 6 s.
    env = news(web({"home": Page(["a", "b"]), "a": Page(), "b": Page()}), budget="6s")
    result = run_episode(env, baselines.load("random_walk").make(env, 0), seed=0)
    assert (result.steps, result.fetches, result.summary["relevant"]) == (1, 3, 3)
    assert result.found == 2
    assert result.area == pytest.approx((1 - 2.6 / 6) + (1 - 5.2 / 6))


@pytest.mark.parametrize("question", ["links", "tokens", "version", "depth"])
def test_an_agent_that_peeks_cannot(question: str) -> None:
    trace = web(TREE)
    unseen = trace.urls.find("e")

    class Peeking(Agent):
        def act(self, observation: Any, info: Any) -> int:
            getattr(info["known"], question)(unseen)
            return 0

    with pytest.raises(KeyError, match=f"URL {unseen} has not been"):
        run_episode(spider(trace), Peeking(), seed=0)


def test_other_environments_are_refused() -> None:
    import gymnasium as gym

    env = gym.make("CartPole-v1")
    with pytest.raises(TypeError, match="no environment of gym_webforage"):
        baselines.load("best_first").make(env, 0)
    env.close()


def test_a_name_may_carry_settings():
    env = NewsEnv("synthetic-small-v0", slots=None)
    agent = baselines.load("linear_td:alpha=0.2,first=discovered").make(env, 0)
    assert (agent.alpha, agent.first) == (0.2, "discovered")
    with pytest.raises(LookupError, match="no setting 'speed'; it has: none"):
        baselines.load("breadth_first:speed=2")
    with pytest.raises(LookupError, match="'fast' is no setting, expected key=value"):
        baselines.load("linear_td:fast")


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("linucb:alphas=1", "ridge, gamma, prior, alpha"),
        ("linear_td:is_news=true", "ties, weight_scale, gamma, alpha, start_size"),
        ("weblog_change:weblog=1", "policy, weblog_size, start_size, beta"),
        ("td_naive_bayes:teacher=1", "elsewhere, gamma, page_rate, directory_rate"),
    ],
)
def test_a_setting_that_is_none_brings_the_list(name: str, known: str) -> None:
    with pytest.raises(LookupError, match=f"no setting .* it has: .*{known}"):
        baselines.load(name)


def test_all_settings_are_known_before_a_run() -> None:
    for name in baselines.names():
        settings = baselines.settings_of(baselines.load(name))
        assert settings is not None, name


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("lafc:a=2", "a is 2, expected 0 to 1"),
        ("lafc:a=x", "a is 'x', expected 0 to 1"),
        ("lafc:control=nan", "control is nan, expected 0 to 1"),
        ("hw:alpha=0", "alpha is 0, expected 1e-06 to 1"),
        ("hw:alpha=x", "alpha is 'x', expected 1e-06 to 1"),
        ("ljm:smoothing=x", "smoothing is 'x', expected 0 or more"),
        ("bpm:smoothing=-1", "smoothing is -1, expected 0 or more"),
        ("best_first:page_weight=nan", "page_weight is nan, expected 0 to 1"),
        ("opic:virtual=maybe", "virtual is 'maybe', expected true or false"),
        ("remember_last_crawl:paths=7", "paths is 7, expected true or false"),
        ("energy_forager:greed=x", "greed is 'x', expected 0 to 500"),
        ("weblog_td:alpha=nan", "alpha is nan, expected 0 to 1"),
        ("linear_td:gamma=2", "gamma is 2, expected 0 to 1"),
    ],
)
def test_settings_that_make_no_sense_are_named(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        baselines.load(name).make(make_env("topic"), 0)
