"""The generated sites: the same every time, possible in time, and as described."""

import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from gym_webforage.trace import load_trace, save_trace
from gym_webforage.trace.synthetic import EMBEDDED, PUBLISHED, Recipe, generate
from gym_webforage.trace.trace import MILLISECONDS_A_DAY, Trace, to_iso

SMALL = Recipe(urls=2_000)
SITES = Recipe(urls=2_400, sites=6)


@pytest.fixture(scope="module")
def news() -> Trace:
    return generate(SMALL)


@pytest.fixture(scope="module")
def sites() -> Trace:
    return generate(SITES)


def link_versions(trace: Trace) -> np.ndarray:
    return np.repeat(np.arange(len(trace.version_seen)), np.diff(trace.link_start))


def first_seen(trace: Trace) -> np.ndarray:
    """When each URL appears; the never recorded ones are dead from the start."""
    seen = np.full(len(trace.urls), -1)
    recorded = np.diff(trace.version_start) > 0
    seen[recorded] = trace.version_seen[trace.version_start[:-1][recorded]]
    return seen


def reachable(trace: Trace) -> np.ndarray:
    """Which URLs can be found from the roots at the end of the period."""
    found = np.zeros(len(trace.urls), bool)
    found[trace.roots] = True
    frontier = trace.roots.tolist()
    while frontier:
        version = trace.version_at(frontier.pop(), trace.end)
        for target in trace.links_of(version).tolist() if version >= 0 else ():
            if not found[target]:
                found[target] = True
                frontier.append(target)
    return found


def articles(trace: Trace) -> np.ndarray:
    """URL ids whose path holds a date and that are not documents."""
    dated = [url.count("/") == 8 for url in trace.urls]
    return np.flatnonzero(np.array(dated) & ~trace.url_target)


def test_same_recipe_gives_same_trace_in_another_process(news):
    code = (
        "from gym_webforage.trace.synthetic import Recipe, generate\n"
        f"print(generate({SMALL!r}).digest)"
    )
    # Hashes of strings differ between processes with different hash seeds.
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    printed = subprocess.check_output(
        [sys.executable, "-c", code], env=environment, text=True
    )
    assert printed.strip() == news.digest
    assert generate(replace(SMALL, seed=1)).digest != news.digest


def test_checksum_follows_the_recipe():
    assert Recipe().checksum() == Recipe(days=18).checksum()
    assert len(Recipe().checksum()) == 16
    assert int(Recipe().checksum(), 16) >= 0
    assert len({recipe.checksum() for recipe in EMBEDDED.values()}) == len(EMBEDDED)
    assert Recipe(urls=np.int64(2_000)).checksum() == SMALL.checksum()


@pytest.mark.parametrize("name", ["news", "sites"])
def test_no_page_links_to_one_that_is_not_there_yet(name, request):
    trace = request.getfixturevalue(name)
    version = link_versions(trace)
    assert (first_seen(trace)[trace.link_target] <= trace.version_seen[version]).all()
    assert (trace.version_url[version] != trace.link_target).all()
    pairs = np.stack([version, trace.link_target], axis=1)
    assert len(np.unique(pairs, axis=0)) == len(pairs)


@pytest.mark.parametrize("name", ["news", "sites"])
def test_nearly_everything_can_be_found(name, request):
    trace = request.getfixturevalue(name)
    recorded = np.diff(trace.version_start) > 0
    found = reachable(trace)
    assert found[recorded].mean() > 0.95
    assert found[trace.url_target].mean() > 0.95


def test_period_and_rhythm():
    trace = generate(Recipe(urls=8_000, text=False, days=14))
    assert trace.meta["begin"] == "2026-03-02T00:00:00.000Z"
    assert trace.end - trace.begin == 14 * MILLISECONDS_A_DAY
    assert trace.version_seen.min() == trace.begin
    assert trace.version_seen.max() <= trace.end
    assert (trace.version_published <= trace.version_seen).all()

    pages = articles(trace)
    born = trace.version_published[trace.version_start[pages]]
    new = born[born > trace.begin]
    assert len(new) == pytest.approx(0.025 * 14 * 8_000, rel=0.02)
    old = (trace.begin - born[born <= trace.begin]) / MILLISECONDS_A_DAY
    assert old.max() <= 365
    assert np.median(old) < 60  # rather recent than evenly over the year
    passed = (new - trace.begin) / MILLISECONDS_A_DAY
    hour, weekday = passed % 1 * 24, passed // 1 % 7
    day, night = ((10 <= hour) & (hour < 18)).sum(), (hour < 6).sum()
    assert day / 8 > 3 * night / 6
    workday, weekend = (weekday < 5).sum() / 5, (weekday >= 5).sum() / 2
    assert workday > 1.5 * weekend


def test_hubs_change_and_articles_fade(news):
    home = int(news.roots[0])
    low, high = news.version_start[home : home + 2]
    assert high - low > 50
    shown = [set(news.links_of(version).tolist()) for version in range(low, high)]
    assert all(one != two for one, two in pairwise(shown))
    stays = set.intersection(*shown)  # navigation
    assert 5 <= len(stays) <= 15
    assert len(shown[0] & shown[-1]) < len(shown[0]) / 2


def test_versions_of_articles(news):
    pages = articles(news)
    counts = np.diff(news.version_start)
    assert 0.05 < (counts[pages] > 1).mean() < 0.2
    gone = news.version_status == 410
    assert 0.003 < gone.sum() / len(pages) < 0.03
    assert (np.diff(news.link_start)[gone] == 0).all()
    assert (news.version_text[gone] == -1).all()
    last = news.version_start[news.version_url[gone] + 1] - 1
    assert (np.flatnonzero(gone) == last).all()
    assert len(np.unique(news.version_hash)) == len(news.version_hash)


def test_shares(sites):
    count = len(sites.urls)
    assert count == SITES.urls
    assert sites.counts["targets"] == round(0.03 * count)
    never = np.diff(sites.version_start) == 0
    assert 0.005 < never.mean() < 0.02
    assert np.isin(np.flatnonzero(never), sites.link_target).all()
    assert [sites.urls[root] for root in sites.roots] == sites.meta["roots"]
    assert np.array_equal(sites.url_site[sites.roots], np.arange(6))
    source = sites.url_site[sites.version_url[link_versions(sites)]]
    abroad = source != sites.url_site[sites.link_target]
    assert 0 < abroad.mean() < 0.05


def test_targets_are_leaves_behind_dossiers(sites):
    targets = np.flatnonzero(sites.url_target)
    version = sites.version_start[targets]
    assert (np.diff(sites.version_start)[targets] == 1).all()
    assert (np.diff(sites.link_start)[version] == 0).all()
    assert (sites.version_text[version] == -1).all()
    assert (sites.version_status[version] == 200).all()
    ending = np.array([sites.urls[int(url)].endswith(".pdf") for url in targets])
    assert 0.3 < ending.mean() < 0.7
    classes = sites.url_label[sites.url_label_start[targets]]
    largest = np.bincount(classes, minlength=50).max()
    assert largest > 3 * len(targets) / 50  # clustered, not spread evenly


def test_link_text_tells_of_documents(sites):
    words = {"report", "dataset", "annex", "download", "tables", "paper"}
    known = np.array([word in words for word in sites.vocabulary])
    owner = np.repeat(
        np.arange(len(sites.anchor_start) - 1), np.diff(sites.anchor_start)
    )
    says = np.bincount(owner, known[sites.anchor_token]) > 0
    to_target = sites.url_target[sites.link_target]
    assert 0.4 < says[sites.link_text[to_target]].mean() < 0.95
    assert 0 < says[sites.link_text[~to_target]].mean() < 0.1


def test_states_tell_the_class_and_stay_distinct(news):
    pages = articles(news)
    version = news.version_start[pages]
    state = news.version_state[version]
    assert state.shape[1] == 50
    assert np.abs(state).max() <= 1
    classes = news.url_label[news.url_label_start[pages]]
    assert (state.argmax(axis=1) == classes).mean() > 0.9
    assert len(np.unique(state, axis=0)) > 0.99 * len(state)
    home = news.version_state[slice(*news.version_start[news.roots[0] :][:2])]
    assert np.ptp(home, axis=0).max() < 0.02


def test_links_prefer_the_class(news):
    label = np.full(len(news.urls), -1)
    labelled = np.diff(news.url_label_start) > 0
    label[labelled] = news.url_label
    pages = np.zeros(len(news.urls), bool)
    pages[articles(news)] = True
    source, target = news.version_url[link_versions(news)], news.link_target
    between = pages[source] & pages[target]
    same = label[source[between]] == label[target[between]]
    assert same.mean() > 0.2  # one in fifty by chance


def test_text(news):
    assert 4_000 < len(news.vocabulary) < 6_000
    assert 35 < np.diff(news.body_start).mean() < 45
    home = int(news.roots[0])
    of_home = news.version_text[slice(*news.version_start[home : home + 2])]
    assert len(set(of_home.tolist())) == 1
    # A page uses some words of its class: its text tells more than chance, not all.
    label = news.url_label[news.url_label_start[articles(news)]]
    text = news.version_text[news.version_start[articles(news)]]
    row = np.repeat(np.arange(len(news.body_start) - 1), np.diff(news.body_start))
    bag = np.zeros((len(news.body_start) - 1, len(news.vocabulary)))
    bag[row, news.body_token] = news.idf[news.body_token]
    bag = bag[text]
    teach = np.arange(len(text)) % 2 == 0
    centre = np.stack(
        [bag[teach & (label == one)].sum(axis=0) for one in np.unique(label)]
    )
    centre /= np.linalg.norm(centre, axis=1, keepdims=True) + 1e-9
    guess = np.unique(label)[(bag[~teach] @ centre.T).argmax(axis=1)]
    assert 0.5 < (guess == label[~teach]).mean() <= 1


def test_without_text_the_graph_is_the_same(news):
    bare = generate(replace(SMALL, text=False))
    assert bare.urls == news.urls
    assert np.array_equal(bare.link_target, news.link_target)
    assert np.array_equal(bare.version_seen, news.version_seen)
    assert len(bare.vocabulary) == 0
    assert (bare.link_text == -1).all()
    assert (bare.version_text == -1).all()


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(urls=50),
        Recipe(urls=50, states=2, dead=0.1, targets=0.2),
        Recipe(urls=100, sites=2, days=0.1),
        Recipe(urls=60, daily=0, targets=0, dossiers=0, dead=0, vanished=0),
        Recipe(urls=300, days=100, states=7, daily=1, updated=1, vanished=1),
        Recipe(urls=300, states=1_000, same_class=1, same_section=0, other_site=0),
    ],
)
def test_extreme_recipes(recipe):
    trace = generate(recipe)
    assert len(trace.urls) == recipe.urls
    assert trace.states == recipe.states
    version = link_versions(trace)
    assert (first_seen(trace)[trace.link_target] <= trace.version_seen[version]).all()
    assert trace.version_seen.max() <= trace.end


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"urls": 49}, "urls must be from 50 to"),
        ({"urls": 100, "sites": 3}, "urls must be at least 50 a site, so 150"),
        ({"urls": 100.5}, "urls must be a whole number"),
        ({"urls": True}, "urls must be a whole number"),
        ({"sites": 0}, "sites must be from 1"),
        ({"days": 0}, "days must be from 0.1"),
        ({"days": float("nan")}, "days must be from 0.1"),
        ({"days": "18"}, "days must be a number"),
        ({"seed": -1}, "seed must be from 0"),
        ({"states": 1}, "states must be from 2"),
        ({"dead": 0.5}, r"dead must be from 0 to 0\.1"),
        ({"text": "no"}, "text must be True or False"),
        ({"same_class": 0.9, "same_section": 0.2}, "must not sum to more than 1"),
    ],
)
def test_bad_recipes(arguments, message):
    with pytest.raises(ValueError, match=message):
        Recipe(**arguments)


def test_card(news):
    assert news.meta["licence"] == "CC0-1.0"
    assert news.meta["recorder"] == "webforage trace synthetic --urls 2000 --seed 0"
    assert Recipe(**news.meta["recipe"]) == SMALL
    card = news.meta["structure"]
    assert card["published"] == PUBLISHED
    assert card["meets"].keys() == PUBLISHED.keys() <= card["measured"].keys()


def test_progress():
    told: list[str] = []
    generate(Recipe(urls=50), progress=told.append)
    assert told[0] == "pages"
    assert told[-1] == "structure"


def test_saved_and_loaded(news, tmp_path, monkeypatch):
    monkeypatch.setenv("GYM_WEBFORAGE_CACHE", str(tmp_path / "cache"))
    folder = save_trace(news, tmp_path / "news")
    loaded = load_trace(folder)
    assert loaded.digest == news.digest
    assert loaded.meta["structure"] == news.meta["structure"]
    embedded = load_trace("synthetic-small-v0")
    assert embedded.name == "synthetic-small-v0"
    assert embedded.digest == news.digest


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_default_size_meets_the_published_structure(seed):
    trace = generate(Recipe(seed=seed, text=False))
    assert all(trace.meta["structure"]["meets"].values())
    hub_versions = np.diff(trace.version_start)[:100].sum()
    assert hub_versions > 2_000
    assert to_iso(trace.begin) == trace.meta["begin"]
