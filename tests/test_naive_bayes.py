"""Naive-Bayes Q: exact values of links, equations by hand, what may be learned from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import baselines
from baselines._naive_bayes import BAGS, GRAIN, Model, target_endings, train
from baselines._spider_q import bin_of, page_values, site_links
from baselines.agent import Transition, run_episode
from baselines.fleet import run_fleet
from baselines.naive_bayes_q import NaiveBayesQ, make, save_model
from gym_webforage import fleet_v0, load_trace
from gym_webforage.envs import Known, SpiderEnv
from gym_webforage.trace import Trace
from gym_webforage.trace.strings import Strings
from gym_webforage.trace.trace import frozen
from tests.toys import Page, web

SMALL = "synthetic-small-sites-v0"


def spider(trace: Trace | str, split: Any = "all", **rules: Any) -> SpiderEnv:
    return SpiderEnv(trace, slots=None, split=split, on_illegal="raise", **rules)


# --- Q-values


def plain_value(
    links: Mapping[int, Sequence[int]], goals: set[int], page: int
) -> float:
    """The definition: the greedy crawl from a page, every distance anew, no end."""
    left, known, frontier = set(goals), [page], [page]
    total, discount = 0.0, 1.0
    while frontier:
        far = {goal: 0 for goal in left}
        level = list(left)
        while level:
            behind = [p for p in links if p not in far and {*links[p]} & {*level}]
            far.update((p, far[level[0]] + 1) for p in behind)
            level = behind
        reached = [p for p in frontier if p in far]
        if not reached:
            break
        chosen = min(reached, key=lambda p: (far[p], known.index(p)))
        if page in frontier:
            chosen = page  # the link itself comes first, whatever is behind it
        frontier.remove(chosen)
        if chosen in left:
            total += discount
            left.discard(chosen)
        discount *= 0.5
        for linked in links[chosen]:
            if linked not in known:
                known.append(linked)
                frontier.append(linked)
    return total


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[int, list[int]], set[int]]:
    pages = draw(st.integers(1, 12))
    page = st.integers(0, pages - 1)
    links = draw(st.lists(st.lists(page, max_size=4), min_size=pages, max_size=pages))
    return dict(enumerate(links)), draw(st.sets(page))


def values(links: Mapping[int, Sequence[int]], goals: set[int]) -> list[float]:
    source = np.repeat(np.arange(len(links)), [len(row) for row in links.values()])
    target = np.array([t for row in links.values() for t in row], np.int64)
    pays = np.isin(np.arange(len(links)), list(goals))
    return page_values(source, target, pays).tolist()


@settings(deadline=None)  # the first example compiles
@given(graphs())
def test_values_are_those_of_the_definition(
    graph: tuple[dict[int, list[int]], set[int]],
) -> None:
    links, goals = graph
    assert values(links, goals) == [plain_value(links, goals, page) for page in links]


def test_values_of_long_crawls_are_exact() -> None:
    # A hub of 70 rewards: 1/2 + 1/4 + ... rounds to 1 before it ends. A chain to it.
    hub: dict[int, list[int]] = {0: list(range(1, 71))}
    hub |= {page: [] for page in range(1, 71)} | {71: [0]}
    goals = set(range(1, 71))
    found = values(hub, goals)
    assert found == [plain_value(hub, goals, page) for page in hub]
    assert (found[0], found[1], found[71]) == (1.0, 1.0, 0.5)
    chain = {page: [page + 1] for page in range(1200)} | {1200: []}
    found = values(chain, {1200, 60, 3})
    assert found[:2] == [2**-3 + 2**-60, 2**-2 + 2**-59]  # and 2^-1200 is nothing
    assert found[61] == 0.0  # smaller than any float
    assert found[200] == 2.0**-1000


def test_values_are_what_the_oracle_finds() -> None:
    """The crawl that values a link is the oracle's from that page."""
    trace = load_trace(SMALL)
    site = trace.sites[2]
    links = site_links(trace, site)
    oracle = baselines.load("oracle")
    checked = np.random.default_rng(0).choice(len(links.link), 25, replace=False)
    for i in checked.tolist():
        env = spider(trace, budget=80)
        options = {"site": site, "roots": [int(links.target[i])]}
        steps: list[Transition] = []
        agent = oracle.make(env, 0)
        run_episode(env, agent, seed=0, options=options, on_step=steps.append)
        rewards = [step.reward for step in steps]
        assert links.value[i] == math.fsum(r * 0.5**t for t, r in enumerate(rewards))
        assert links.is_immediate[i] == (rewards[0] == 1)


def test_bins() -> None:
    value = np.array([1.5, 1.0, 1.0, 0.5, 0.49, 0.25, 0.2, 0.125, 0.0])
    immediate = np.array([True, True, *[False] * 7])
    for bins, expected in (
        (2, [0, 0, 1, 1, 1, 1, 1, 1, 1]),
        (3, [0, 0, 1, 1, 2, 2, 2, 2, 2]),
        (4, [0, 0, 1, 1, 2, 2, 3, 3, 3]),
        (5, [0, 0, 1, 1, 2, 2, 3, 3, 4]),
    ):
        assert bin_of(value, immediate, bins).tolist() == expected


# --- naive Bayes


def sited(
    pages: Mapping[str, Page], url_words: Mapping[str, str] | None = None
) -> Trace:
    """Draw a web whose sites are the first words of the pages' names."""
    roots = [name for name in pages if name.endswith("home")]
    trace = web(pages, roots)
    sites = sorted({url.split()[0] for url in trace.urls})
    bags = [(url_words or {}).get(url, "").split() for url in trace.urls]
    words = sorted({*trace.vocabulary, *(word for bag in bags for word in bag)})
    number = [words.index(word) for word in trace.vocabulary]

    def renumbered(tokens: np.ndarray) -> np.ndarray:
        return frozen(np.array(number, np.int32)[tokens])

    return replace(
        trace,
        sites=Strings.of(sites),
        url_site=frozen(
            np.array([sites.index(u.split()[0]) for u in trace.urls], np.int32)
        ),
        vocabulary=Strings.of(words),
        anchor_token=renumbered(trace.anchor_token),
        body_token=renumbered(trace.body_token),
        url_token_start=frozen(np.cumsum([0, *map(len, bags)])),
        url_token=frozen(np.array([words.index(w) for b in bags for w in b], np.int32)),
    )


PAGES = {
    "a home": Page([("a staff", "people"), ("a news", "news")]),
    "a staff": Page([("a t1", "my paper"), ("a t2", "paper paper"), ("a staff", "me")]),
    "a news": Page([("a home", "home")]),
    "a t1": Page(is_target=True),
    "a t2": Page(is_target=True),
    "b home": Page([("b news", "news"), ("b staff", "people")]),
    "b staff": Page([("b t1", "paper")]),
    "b news": Page([("b gone", "old news")]),
    "b t1": Page(is_target=True),
}


def test_equations_by_hand() -> None:
    trace = sited(PAGES, {"a t1": "ps", "a staff": "staff"})
    links = site_links(trace, "a")
    # home -> staff is 1/2 + 1/4, staff's are targets (its link to itself is none),
    # news -> home is a step before staff; home -> news another one.
    names = [trace.urls[url] for url in links.target.tolist()]
    assert names == ["a staff", "a news", "a t1", "a t2", "a home"]
    assert links.value.tolist() == [0.75, 0.1875, 1, 1, 0.375]
    model = train([links], bins=3, text="related")
    assert model.links.tolist() == [2, 1, 2]
    assert model.value.tolist() == [1, 0.75, (0.1875 + 0.375) / 2]
    np.testing.assert_allclose(np.exp(model.log_prior), [3 / 8, 2 / 8, 3 / 8])
    # Anchors: "my paper paper paper" | "people" | "news home": 5 words.
    assert list(model.words["link"]) == ["home", "my", "news", "paper", "people"]
    word = dict(zip(model.words["link"], np.exp(model.log_words("link")), strict=True))
    np.testing.assert_allclose(word["paper"], [4 / 9, 1 / 6, 1 / 7])
    np.testing.assert_allclose(word["people"], [1 / 9, 2 / 6, 1 / 7])
    # URLs have a vocabulary of their own: "ps" | "staff" | nothing.
    assert list(model.words["url"]) == ["ps", "staff"]
    np.testing.assert_allclose(np.exp(model.log_words("url"))[0], [2 / 3, 1 / 3, 1 / 2])
    assert len(model.words["head"]) == len(model.words["near"]) == 0

    reader = model.on(trace)
    other = site_links(trace, "b")
    row = [trace.urls[url] for url in other.target.tolist()].index("b t1")
    likely = np.array([3 / 8 * 4 / 9, 2 / 8 * 1 / 6, 3 / 8 * 1 / 7])
    likely /= likely.sum()
    logs = reader.read(other)
    assert reader.worth(logs)[row] == pytest.approx(likely @ model.value)
    # "old" was never met, so "old news" is worth what "news" is.
    by_name = dict(zip((trace.urls[u] for u in other.target), logs, strict=True))
    assert by_name["b gone"].tolist() == by_name["b news"].tolist()
    assert model.telling_words(0, 1) == [("paper", "link")]


def test_a_full_page_is_counted_for_each_of_its_links() -> None:
    pages = {**PAGES, "a staff": replace(PAGES["a staff"], text="we we write")}
    model = train([site_links(sited(pages), "a")], bins=2, text="full-page")
    assert list(model.words["page"]) == ["we", "write"]
    assert model.counts["page"].tolist() == [[4, 0], [2, 0]]  # two links to targets
    assert "paper" in list(model.words["link"])


def test_the_order_of_words_changes_no_bit() -> None:
    trace = load_trace(SMALL)
    sites = [site_links(trace, trace.sites[i]) for i in range(3)]
    model = train(sites[:2], bins=4, text="related")
    turned = trace.anchor_token.copy()
    for low, high in zip(trace.anchor_start, trace.anchor_start[1:], strict=False):
        turned[low:high] = turned[low:high][::-1]
    assert (turned != trace.anchor_token).any()
    other = replace(sites[2], trace=replace(trace, anchor_token=frozen(turned)))
    reader = model.on(trace)
    np.testing.assert_array_equal(reader.read(sites[2]), reader.read(other))
    assert (reader.read(other) / GRAIN % 1 == 0).all()


def test_endings_of_targets_can_be_left_out() -> None:
    pages = {
        "x home": Page([("x dir/a.b.ps.gz", "one"), ("x dir/ps.html", "two")]),
        "x dir/a.b.ps.gz": Page(is_target=True),
        "x dir/ps.html": Page([("x home", "back")]),
    }
    words = {"x dir/a.b.ps.gz": "dir ps gz", "x dir/ps.html": "dir ps html"}
    links = site_links(sited(pages, words), "x")
    assert target_endings([links]) == ("gz", "ps")
    with_endings = train([links], bins=2, text="related")
    without = train([links], bins=2, text="related", endings=False)
    assert list(with_endings.words["url"]) == ["dir", "gz", "html", "ps"]
    assert list(without.words["url"]) == ["dir", "html"]
    assert without.ignored == ("gz", "ps")
    # In full-page the anchor's words share the URL's vocabulary, and still count.
    pages["x home"] = Page([("x dir/a.b.ps.gz", "ps one"), ("x dir/ps.html", "two")])
    links = site_links(sited(pages, words), "x")
    model = train([links], bins=2, text="full-page", endings=False)
    row = list(model.words["link"]).index("ps")
    assert model.counts["link"][row].tolist() == [1, 0]
    table = model.on(links.trace).table
    token = links.trace.vocabulary.find("ps")
    assert table["anchor"][token].any() and not table["url"][token].any()


def test_a_bin_without_links_has_a_value() -> None:
    trace = sited({"x home": Page([("x t", "go")]), "x t": Page(is_target=True)})
    model = train([site_links(trace, "x")], bins=5, text="related")
    assert model.links.tolist() == [1, 0, 0, 0, 0]
    assert model.value.tolist() == [1, 0.5, 0.25, 0.125, 0]


# --- files


def test_a_model_is_kept_and_read_by_another_vocabulary(tmp_path: Path) -> None:
    trace = load_trace(SMALL)
    model = train(
        [site_links(trace, trace.sites[0])], bins=4, text="related", endings=False
    )
    model.save(tmp_path / "m.npz")
    again = Model.load(tmp_path / "m.npz")
    assert again.ignored == model.ignored == ("pdf",)
    assert again.trained_on == ((trace.name, trace.sites[0]),)
    # The same words under other numbers.
    order = np.random.default_rng(1).permutation(len(trace.vocabulary))
    place = np.argsort(order).astype(np.int32)
    renumbered = {
        name: frozen(place[getattr(trace, name)])
        for name in ("url_token", "anchor_token", "near_token", "title_token")
    }
    words = list(trace.vocabulary)
    shuffled = Strings.of(words[i] for i in order.tolist())
    other = replace(trace, vocabulary=shuffled, **renumbered)
    site = trace.sites[1]
    mine = model.on(trace).read(site_links(trace, site))
    theirs = again.on(other).read(site_links(other, site))
    np.testing.assert_array_equal(mine, theirs)


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    file = tmp_path / "m.npz"
    with pytest.raises(FileNotFoundError):
        Model.load(file)
    file.write_bytes(b"PK nothing")
    with pytest.raises(ValueError, match=r"m\.npz holds no model"):
        Model.load(file)
    trace = load_trace(SMALL)
    train([site_links(trace, trace.sites[0])], bins=2, text="related").save(file)
    with np.load(file) as kept:
        arrays = dict(kept)
    for name, wrong in (
        ("value", np.array([1.0, math.nan])),
        ("links", np.array([3])),
        ("url_counts", arrays["url_counts"][1:]),
        ("url_start", arrays["url_start"][::-1]),
        ("head", np.frombuffer(b'{"format": 9}', np.uint8)),
        ("links", np.array([{}, {}], object)),  # would need pickle
    ):
        np.savez(file, **{**arrays, name: wrong})
        with pytest.raises(ValueError, match=r"m\.npz holds no model"):
            Model.load(file)


# --- the agent


def visits(env: SpiderEnv, agent: Any, **options: Any) -> list[str]:
    steps: list[Transition] = []
    run_episode(env, agent, seed=0, options=options, on_step=steps.append)
    return [env.trace.urls[step.action] for step in steps]


def test_a_crawl_by_hand() -> None:
    env = spider(sited(PAGES))
    # Learned on a: "people" promises a step, "paper" a target, "news" little.
    agent = make(env, 0)
    order = ["b home", "b staff", "b t1", "b news", "b gone"]
    assert visits(env, agent, site="b") == order
    assert agent.training_fetches == 5  # the URLs of a


def test_the_best_link_counts_and_ties_go_to_discovery() -> None:
    pages = {
        **PAGES,
        "b home": Page(
            [(f"b {name}", "news") for name in "qwertz"] + [("b w", "my paper")]
        ),
        "b q": Page([("b r", "paper"), ("b home", "paper")]),
    }
    pages |= {f"b {name}": Page() for name in "werz"} | {"b t": Page(is_target=True)}
    env = spider(sited(pages))
    order = [f"b {name}" for name in ("home", *"wqretz")]
    assert visits(env, make(env, 0), site="b") == order


@pytest.mark.parametrize("text", BAGS)
def test_the_frontier_is_ranked_as_if_anew_each_step(text: str) -> None:
    env = spider(SMALL, split="test", budget=150)
    agent = make(env, 0, bins=4, text=text)
    observation, info = env.reset(seed=3)
    site = env.trace.sites[env.episode.site]  # type: ignore[union-attr]
    reader = agent.teacher.reader(site)
    links = site_links(env.trace, site)
    worth = dict(
        zip(links.link.tolist(), reader.worth(reader.read(links)), strict=True)
    )
    done = False
    chosen = []
    while not done:
        known: Known = info["known"]
        best = {url: math.inf for url in env.episode.roots.tolist()}  # type: ignore
        for page in known.urls.tolist():
            if known.is_fetched(page):
                for link in known.links(page).tolist():
                    url = known.target(link)
                    if url != page:
                        best[url] = max(best.get(url, -1), worth[link])
        wanted = min(
            info["action_set"].tolist(), key=lambda u: (-best[u], known.number(u))
        )
        chosen.append(agent.act(observation, info))
        assert chosen[-1] == wanted
        observation, reward, terminated, truncated, info = env.step(wanted)
        agent.learn(
            Transition(
                observation, wanted, float(reward), observation, False, False, info
            )
        )
        done = terminated or truncated
    assert len(chosen) == 150


@pytest.mark.parametrize("split", ["train", "test", "all"])
def test_the_crawled_site_is_never_learned_from(split: Any) -> None:
    env = spider(SMALL, split=split, budget=3)
    agent = make(env, 0)
    train_sites = {env.trace.sites[i] for i in spider(SMALL, "train").episodes.sites}
    for name in env.trace.sites:
        visits(env, agent, site=name)
        learned = {site for _, site in agent._reader.model.trained_on}  # type: ignore
        assert name not in learned
        allowed = set(env.trace.sites) if split == "all" else train_sites
        assert learned == allowed - {name}


def test_what_cannot_be_learned_is_named(tmp_path: Path) -> None:
    alone = {name: page for name, page in PAGES.items() if name.startswith("a")}
    env = spider(sited(alone))
    with pytest.raises(ValueError, match="drawn has no site with targets to train on"):
        make(env, 0, elsewhere="")
    agent = make(env, 0, elsewhere="synthetic-small-sites-v0")
    run_episode(env, agent, seed=0)
    assert agent._reader is not None
    learned = {trace for trace, _ in agent._reader.model.trained_on}
    assert learned == {"synthetic-small-sites-v0"}
    small = SpiderEnv("synthetic-small-sites-v0", slots=None)
    with pytest.raises(ValueError, match="is both crawled and to be learned from"):
        make(small, 0, elsewhere="synthetic-small-sites-v0").teacher.reader(None)
    with pytest.raises(ValueError, match="bins is 6, expected one of 2, 3, 4, 5"):
        make(env, 0, bins=6)
    with pytest.raises(
        ValueError, match="text is 'all', expected one of full-page, rel"
    ):
        make(env, 0, text="all")
    silent = {name: Page([u for u, _ in p.links]) for name, p in PAGES.items()}
    silent["a t1"].is_target = silent["b t1"].is_target = True
    with pytest.raises(ValueError, match="the trace drawn has no link text"):
        make(spider(sited(silent)), 0)
    with pytest.raises(ValueError, match="drawn has no target"):
        spider(sited({"a home": Page(), "b home": Page()}))

    # A model from elsewhere does, unless it comes from this very site.
    both = spider(sited(PAGES))
    save_model(make(both, 0), tmp_path / "all.npz")
    save_model(make(both, 0), tmp_path / "b.npz", site="a")
    agent = make(both, 0, model=str(tmp_path / "b.npz"))
    assert visits(both, agent, site="a")[:2] == ["a home", "a staff"]
    with pytest.raises(ValueError, match="was trained on 'b' of drawn"):
        visits(both, agent, site="b")
    with pytest.raises(ValueError, match="was trained on 'a' of drawn"):
        make(env, 0, model=str(tmp_path / "all.npz"))
    renamed = spider(sited(alone).renamed("elsewhere-v0"))
    agent = make(renamed, 0, model=str(tmp_path / "all.npz"))
    assert visits(renamed, agent)[1:3] == ["a staff", "a t2"]  # "paper paper"


def test_settings_in_the_name() -> None:
    env = spider(SMALL, split="test", budget=5)
    name = "naive_bayes_q:bins=5,text=full-page,endings=false"
    model = baselines.load(name).make(env, 0).teacher.reader("").model
    assert (model.bins, model.text, model.ignored) == (5, "full-page", ("pdf",))


def test_learning_on_other_sites_helps() -> None:
    """Sites of the generator share habits: what is learned on some finds more here."""
    area = {"naive_bayes_q": 0.0, "breadth_first": 0.0, "random_walk": 0.0}
    for name in area:
        env = spider(SMALL, budget=200)
        agent = baselines.load(name).make(env, 0)
        for site in env.trace.sites:
            area[name] += run_episode(env, agent, seed=0, options={"site": site}).area
    assert area["naive_bayes_q"] > 2 * max(area["breadth_first"], area["random_walk"])


def test_fleets_share_a_model() -> None:
    def env() -> Any:
        options = {"kind": "spider", "slots": None, "split": "test", "budget": 120}
        return fleet_v0.env(SMALL, founders=2, **options)

    result = run_fleet(env(), baselines.load("naive_bayes_q"), seed=0)
    assert result.summary["downloaded"] > 100  # dead pages are no downloads
    assert result.summary["relevant"] > 0
    child = make(env(), 0).divide(np.random.default_rng(0))
    assert isinstance(child, NaiveBayesQ)


def test_a_crawl_goes_on_from_what_was_saved() -> None:
    env = spider(SMALL, split="test", budget=60)
    whole = visits(env, make(env, 0))
    agent = make(env, 0)
    observation, info = env.reset(seed=0)
    went = []
    for step in range(60):
        if step in (0, 25):
            state = {name: np.copy(value) for name, value in agent.save().items()}
            agent = make(env, 0)
            agent.load({**state, "site": str(state["site"])})
        action = agent.act(observation, info)
        went.append(env.trace.urls[action])
        observation, reward, _, _, info = env.step(action)
        agent.learn(
            Transition(
                observation, action, float(reward), observation, False, False, info
            )
        )
    assert went == whole


# --- what it needs of traces and views


def test_texts_of_a_page_are_those_of_its_links() -> None:
    env = spider(SMALL, budget=40)
    run_episode(env, baselines.load("random_walk").make(env, 0), seed=0)
    known, compared = env.known, 0
    for page in known.urls.tolist():
        if not known.is_fetched(page):
            with pytest.raises(KeyError):
                known.texts(page, "url")
            continue
        for name in ("anchor", "near", "url", "title"):
            start, token = known.texts(page, name)
            links = known.links(page).tolist()
            assert len(start) == len(links) + 1
            for i, link in enumerate(links):
                np.testing.assert_array_equal(
                    token[start[i] : start[i + 1]], known.text(link, name)
                )
                compared += 1
    assert compared > 100
    with pytest.raises(ValueError, match="field is 'body'"):
        known.texts(int(env.episode.roots[0]), "body")  # type: ignore


def test_a_closed_world_has_no_links_into_nothing() -> None:
    trace = sited(PAGES).closed()
    assert trace.name == "drawn-closed"
    anchors = [
        [trace.vocabulary[int(t)] for t in trace.anchor_token[low:high]]
        for low, high in zip(trace.anchor_start, trace.anchor_start[1:], strict=False)
    ]
    found = {
        trace.urls[page]: [
            (
                trace.urls[int(trace.link_target[i])],
                " ".join(anchors[trace.link_text[i]]),
            )
            for i in range(trace.link_start[page], trace.link_start[page + 1])
        ]
        for page in range(len(PAGES))
    }
    expected = {name: [*page.links] for name, page in PAGES.items()}
    expected["b news"] = []  # which led to "b gone"
    assert found == expected
    # Targets stay, recorded or not.
    gone = trace.urls.find("b gone")
    kept = sited(PAGES).with_targets([gone]).closed()
    assert gone in kept.link_target


def test_other_targets() -> None:
    trace = load_trace(SMALL)
    other = trace.with_targets([7, 3], "two")
    assert np.flatnonzero(other.url_target).tolist() == [3, 7]
    assert other.name == f"{SMALL}-two" and other.digest != trace.digest
    with pytest.raises(ValueError, match="URL ids below"):
        trace.with_targets([len(trace.urls)])
