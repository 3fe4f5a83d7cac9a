"""Every registered environment: the checkers, masks, seeding, copies, bad input."""

import copy
import json
import pickle
import subprocess
import sys
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import gym_webforage  # noqa: F401
from gym_webforage.envs import NewsEnv, SpiderEnv, TopicEnv
from gym_webforage.trace import TraceNotFoundError
from tests.toys import Page, web

FLEET = "WebForage/Fleet-v0"  # has tests of its own
IDS = sorted(
    name for name in gym.registry if name.startswith("WebForage/") and name != FLEET
)
SMALL = {
    "WebForage/News-v0": "synthetic-small-v0",
    "WebForage/Topic-v0": "synthetic-small-v0",
    "WebForage/Spider-v0": "synthetic-small-sites-v0",
}


def make(env_id, **kwargs):
    return gym.make(env_id, **{"trace": SMALL[env_id], **kwargs})


def rollout(env, steps, seed, legal=True):
    """Return everything that ``steps`` random steps show."""
    random = np.random.default_rng(seed)
    seen = [env.reset(seed=seed)]
    for _ in range(steps):
        info = seen[-1][-1]
        if legal:
            mask = info["action_mask"]
            choices = np.flatnonzero(mask)
        else:
            choices = np.arange(env.action_space.n)
        action = int(random.choice(choices)) if len(choices) else 0
        seen.append(env.step(action))
        if seen[-1][2] or seen[-1][3]:
            seen.append(env.reset())
    return seen


def assert_same(first, second):
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        for key in one[0]:
            np.testing.assert_array_equal(one[0][key], other[0][key])
        assert one[1:-1] == other[1:-1]


def test_the_three_environments_are_registered():
    assert [f"WebForage/{kind}-v0" for kind in ("News", "Spider", "Topic")] == IDS
    assert FLEET in gym.registry


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("slots", [None, 128, 7])
def test_gymnasium_checker_has_nothing_to_say(env_id, slots):
    env = make(env_id, slots=slots)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=True)


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("view", [{"slots": None}, {"slots": 128, "flat": True}])
def test_stable_baselines_checker_has_nothing_to_say(env_id, view):
    from stable_baselines3.common.env_checker import check_env as check_sb3

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_sb3(make(env_id, **view).unwrapped)


@pytest.mark.parametrize("env_id", IDS)
def test_stable_baselines_checker_only_remarks_on_the_two_dimensions(env_id):
    from stable_baselines3.common.env_checker import check_env as check_sb3

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_sb3(make(env_id).unwrapped)
    assert ["unconventional shape" in str(w.message) for w in caught] == [True]


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("mode", ["ansi", "rgb_array"])
def test_checker_with_rendering(env_id, mode):
    env = make(env_id, render_mode=mode)
    env.reset(seed=1)
    env.step(0)
    frame = env.render()
    assert isinstance(frame, str if mode == "ansi" else np.ndarray)


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("slots", [None, 128])
def test_a_hundred_thousand_unmasked_steps_never_raise(env_id, slots):
    env = make(env_id, slots=slots).unwrapped
    env.reset(seed=0)
    random = np.random.default_rng(0)
    size = int(env.action_space.n)
    # A little beyond both ends of the space, too.
    actions = random.integers(-2, size + 2, 100_000)
    illegal = 0
    for action in actions:
        observation, reward, terminated, truncated, _ = env.step(int(action))
        illegal += reward == -1
        if terminated or truncated:
            assert env.observation_space.contains(observation)
            env.reset()
    assert 0 < illegal


@pytest.mark.parametrize("env_id", IDS)
def test_masks_agree_and_are_honest(env_id):
    env = make(env_id, budget=300)
    seen = rollout(env, 120, seed=3)
    for observation, *_, info in seen[:1]:
        assert observation["action_mask"] is info["action_mask"]
    observation, info = env.reset(seed=5)
    random = np.random.default_rng(5)
    for _ in range(120):
        mask = observation["action_mask"]
        assert mask.dtype == np.int8
        np.testing.assert_array_equal(mask.astype(bool), env.unwrapped.action_masks())
        legal = set(info["action_set"].tolist())
        slots = env.unwrapped.forager.slot_urls()
        assert set(slots[mask == 1].tolist()) <= legal
        assert mask.sum() == min(len(legal), 128)
        assert (slots[mask == 0] == -1).all()
        for slot in np.flatnonzero(mask == 0)[:1]:
            probe = copy.deepcopy(env.unwrapped)
            clock, fetches = probe.world.clock, probe.world.fetches
            _, reward, *_ = probe.step(int(slot))
            assert reward == -1
            assert probe.world.clock - clock == 2600
            assert probe.world.fetches - fetches == 1
        action = int(random.choice(np.flatnonzero(mask)))
        observation, reward, terminated, truncated, info = env.step(action)
        assert info["url"] == slots[action]
        if terminated or truncated:
            observation, info = env.reset()


@pytest.mark.parametrize("env_id", IDS)
def test_native_and_slot_actions_are_two_views_of_one_world(env_id):
    native, slotted = make(env_id, slots=None), make(env_id, slots=64)
    _, info = native.reset(seed=4)
    slotted.reset(seed=4)
    random = np.random.default_rng(4)
    for _ in range(150):
        slots = slotted.unwrapped.forager.slot_urls()
        action = int(random.choice(np.flatnonzero(slots >= 0)))
        np.testing.assert_array_equal(
            np.flatnonzero(info["action_mask"]), np.sort(info["action_set"])
        )
        one = native.step(int(slots[action]))
        two = slotted.step(action)
        info = one[-1]
        assert one[1:4] == two[1:4]
        np.testing.assert_array_equal(one[0]["context"], two[0]["context"])
        np.testing.assert_array_equal(one[-1]["action_set"], two[-1]["action_set"])
        if one[2] or one[3]:
            break


@pytest.mark.parametrize("env_id", IDS)
def test_observations_never_change_afterwards(env_id):
    env = make(env_id)
    observation, _ = env.reset(seed=0)
    held = [(observation, copy.deepcopy(observation))]
    for i in range(200):
        action = int(np.flatnonzero(observation["action_mask"])[i % 3 * 0])
        observation, _, terminated, truncated, _ = env.step(action)
        if i % 5 == 0 or i < 20:
            held.append((observation, copy.deepcopy(observation)))
        if terminated or truncated:
            observation, _ = env.reset()
    for kept, expected in held:
        for key in kept:
            np.testing.assert_array_equal(kept[key], expected[key])


@pytest.mark.parametrize("env_id", IDS)
def test_reused_buffers_show_what_fresh_ones_would(env_id):
    env = make(env_id).unwrapped
    observation, _ = env.reset(seed=2)
    random = np.random.default_rng(2)
    for _ in range(400):
        candidates, mask, context = env.world.observe()
        np.testing.assert_array_equal(observation["candidates"], candidates)
        np.testing.assert_array_equal(observation["action_mask"], mask)
        np.testing.assert_array_equal(observation["context"], context)
        action = int(random.choice(np.flatnonzero(mask)))
        observation, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            observation, _ = env.reset()


# --- seeding


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("slots", [None, 32])
def test_same_seed_same_crawl_other_seed_another(env_id, slots):
    first = rollout(make(env_id, slots=slots), 80, seed=1)
    assert_same(first, rollout(make(env_id, slots=slots), 80, seed=1))
    other = rollout(make(env_id, slots=slots), 80, seed=2)
    assert any(
        not np.array_equal(a[0]["context"], b[0]["context"])
        for a, b in zip(first, other, strict=False)
    )


DIGEST = """
import hashlib, json, sys
import gymnasium as gym, numpy as np, gym_webforage
env = gym.make(sys.argv[1], trace=sys.argv[2])
random = np.random.default_rng(9)
total = hashlib.sha256()
observation, info = env.reset(seed=9)
for _ in range(200):
    action = int(random.choice(np.flatnonzero(observation["action_mask"])))
    observation, reward, terminated, truncated, info = env.step(action)
    for key in sorted(observation):
        total.update(observation[key].tobytes())
    total.update(json.dumps([reward, bool(terminated), bool(truncated)]).encode())
    if terminated or truncated:
        observation, info = env.reset()
print(total.hexdigest())
"""


@pytest.mark.parametrize("env_id", IDS)
def test_same_seed_same_crawl_in_another_process(env_id):
    def digest(hash_seed):
        return subprocess.run(
            [sys.executable, "-c", DIGEST, env_id, SMALL[env_id]],
            capture_output=True,
            text=True,
            check=True,
            env={**__import__("os").environ, "PYTHONHASHSEED": hash_seed},
        ).stdout

    assert digest("1") == digest("2")


# --- what reset draws


def test_news_starts_in_its_split_and_leaves_room_for_the_budget():
    for split in ("train", "test", "all"):
        env = make("WebForage/News-v0", split=split, budget="12h").unwrapped
        trace = env.trace
        border = trace.begin + (trace.end - trace.begin) * 2 // 3
        low = {"train": trace.begin, "test": border, "all": trace.begin}[split]
        high = {"train": border, "test": trace.end, "all": trace.end}[split]
        starts = []
        for seed in range(30):
            env.reset(seed=seed)
            starts.append(env.world.start)
        assert low <= min(starts) and max(starts) <= high - 12 * 3_600_000
        assert len(set(starts)) > 20


def test_topics_and_sites_of_train_and_test_are_apart():
    drawn = {}
    for split in ("train", "test"):
        topic = make("WebForage/Topic-v0", split=split)
        spider = make("WebForage/Spider-v0", split=split)
        topics, sites = set(), set()
        for seed in range(60):
            _, info = topic.reset(seed=seed)
            topics.add(info["topic"].name)
            _, info = spider.reset(seed=seed)
            sites.add(info["episode_start"]["site"])
        drawn[split] = topics, sites
    for train, test in zip(drawn["train"], drawn["test"], strict=True):
        assert train and test and not train & test
        assert len(train) >= len(test)


def test_reset_options_are_obeyed():
    env = make("WebForage/News-v0").unwrapped
    start = env.trace.begin + 3_600_000
    url = env.trace.urls[5]
    env.reset(seed=1, options={"start": start, "roots": [url, 7]})
    assert env.world.start == start
    assert env.forager.action_set().tolist() == [5, 7]
    env.reset(seed=1, options={"start": "2026-03-04T05:06:07Z"})
    assert env.world.clock == 1_772_600_767_000

    topic = make("WebForage/Topic-v0").unwrapped
    label = topic.trace.labels[3]
    _, info = topic.reset(seed=1, options={"topic": label})
    assert info["topic"].name == label
    words = [topic.trace.vocabulary[int(i)] for i in info["topic"].words[:2]]
    _, info = topic.reset(seed=1, options={"topic": words})
    assert len(info["topic"].words) == 2

    spider = make("WebForage/Spider-v0").unwrapped
    site = spider.trace.sites[1]
    _, info = spider.reset(seed=1, options={"site": site})
    assert info["episode_start"]["site"] == site
    for _ in range(40):
        _, _, terminated, _, info = spider.step(
            int(np.flatnonzero(spider.action_masks())[0])
        )
        if terminated:
            break
    known = info["known"]
    assert len(known) > 5
    assert (spider.trace.url_site[known.urls] == 1).all()
    pages = [url for url in known.urls if known.is_fetched(url)]
    shown = np.concatenate([known.targets(page) for page in pages])
    assert len(shown) and (spider.trace.url_site[shown] == 1).all()
    away = [
        link
        for page in pages
        for link in set(range(*spider.trace.link_start[known.version(page) :][:2]))
        - set(known.links(page).tolist())
    ]
    assert away  # the site's pages do link elsewhere
    with pytest.raises(KeyError):
        known.target(away[0])


def test_giving_one_option_leaves_the_other_draws_alone():
    env = make("WebForage/Spider-v0").unwrapped
    env.reset(seed=3)
    site = env.episode.site
    env.reset(seed=3, options={"start": env.trace.begin})
    assert env.episode.site == site


# --- copies


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("slots", [None, 16])
@pytest.mark.parametrize("how", ["pickle", "deepcopy", "snapshot"])
def test_a_copy_goes_on_like_the_original(env_id, slots, how):
    env = make(env_id, slots=slots).unwrapped
    rollout(env, 60, seed=6)
    if how == "pickle":
        other = pickle.loads(pickle.dumps(env))
    elif how == "deepcopy":
        other = copy.deepcopy(env)
    else:
        other = make(env_id, slots=slots).unwrapped
        rollout(other, 30, seed=8)
        other.restore(env.snapshot())
    random = np.random.default_rng(0)
    for _ in range(60):
        choices = np.flatnonzero(env.action_masks())
        np.testing.assert_array_equal(choices, np.flatnonzero(other.action_masks()))
        action = int(random.choice(choices))
        one, two = env.step(action), other.step(action)
        assert_same([one], [two])
        if one[2] or one[3]:
            assert_same([env.reset()], [other.reset()])


def test_restoring_goes_back_in_time():
    env = make("WebForage/News-v0").unwrapped
    rollout(env, 20, seed=1)
    before = env.snapshot()
    first = [env.step(0) for _ in range(30)]
    env.restore(before)
    second = [env.step(0) for _ in range(30)]
    assert_same(first, second)
    for other, what in (
        ({"slots": 3}, "slots"),
        ({"features": "transfer"}, "features"),
        ({"budget": "5h"}, "budget"),
        ({"trace": "synthetic-small-sites-v0"}, "trace"),
    ):
        with pytest.raises(ValueError, match=f"taken with another {what}, so"):
            make("WebForage/News-v0", **other).unwrapped.restore(before)
    with pytest.raises(ValueError, match="another kind, shortlist, features, so"):
        make("WebForage/Topic-v0").unwrapped.restore(before)


def test_a_pickle_finds_its_trace_again_or_says_what_happened(cache, tmp_path):
    import shutil

    from gym_webforage.trace import TraceError, generate, load_trace, save_trace
    from gym_webforage.trace.synthetic import Recipe

    env = NewsEnv("synthetic-small-v0")
    env.reset(seed=0)
    kept = pickle.dumps(env)
    shutil.rmtree(cache)  # it may be deleted at any time
    assert pickle.loads(kept).trace.digest == env.trace.digest

    folder = tmp_path / "mine-v0"
    save_trace(generate(Recipe(urls=300), "mine-v0"), folder)
    mine = NewsEnv(load_trace(folder))
    mine.reset(seed=0)
    kept = pickle.dumps(mine)
    save_trace(generate(Recipe(urls=200), "mine-v0"), folder, overwrite=True)
    with pytest.raises(TraceError, match="was replaced"):
        pickle.loads(kept)
    shutil.rmtree(folder)
    with pytest.raises(TraceNotFoundError, match="does not exist any more"):
        pickle.loads(kept)


# --- info


def test_info_is_made_when_read_and_refuses_to_be_read_late():
    env = make("WebForage/News-v0", slots=None)
    _, info = env.reset(seed=1)
    action = int(info["action_set"][0])
    assert "known" in info and "nonsense" not in info
    _, _, _, _, later = env.step(action)
    assert "clock" not in info and info.get("clock") is None
    with pytest.raises(KeyError, match="was not read before the next step"):
        info["clock"]
    with pytest.raises(KeyError, match="nonsense"):
        later["nonsense"]
    assert later["url"] == action
    assert later["fetched"] >= later["sent"] >= later["novel"]
    plain = pickle.loads(pickle.dumps(later))
    assert type(plain) is dict and plain["url"] == action
    assert copy.deepcopy(later)["clock"] == later["clock"]


def test_known_shows_what_was_seen_and_nothing_else():
    env = make("WebForage/Topic-v0", slots=None)
    _, info = env.reset(seed=1)
    known, trace = info["known"], env.unwrapped.trace
    root = int(info["action_set"][0])
    assert info["url"] == -1
    assert root in known and known.new.tolist() == info["action_set"].tolist()
    with pytest.raises(KeyError, match="has not been fetched"):
        known.links(root)
    unseen = next(u for u in range(len(trace.urls)) if u not in known)
    for ask in (known.address, known.state, known.links, known.number):
        with pytest.raises(KeyError, match="has not been seen"):
            ask(unseen)
    with pytest.raises(KeyError, match="link"):
        known.text(0, "anchor")
    _, _, _, _, info = env.step(root)
    version = trace.version_at(root, env.unwrapped.world.start)
    links = known.links(root)
    assert [known.target(int(link)) for link in links] == trace.links_of(
        version
    ).tolist()
    fresh = set(known.new.tolist())
    assert fresh == set(trace.links_of(version).tolist()) - {root}
    child = int(known.new[0])
    assert known.depth(child) == 1 and known.source(child) == root
    link = int(links[0])
    text = trace.link_text[link]
    np.testing.assert_array_equal(
        known.text(link, "anchor"),
        trace.anchor_token[trace.anchor_start[text] : trace.anchor_start[text + 1]],
    )
    assert len(known.text(link, "url")) and len(known.text(link, "title"))
    tokens, counts = known.tokens(root)
    assert len(tokens) == len(counts) > 0
    with pytest.raises(ValueError, match="anchor, near, url or title"):
        known.text(link, "colour")


# --- bad input


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"slots": 0}, "slots is 0"),
        ({"slots": 10**7}, "slots is 10000000, expected 1 to 65536"),
        ({"refetch_visited": "maybe"}, "refetch_visited is 'maybe'"),
        ({"path_length": True}, "path_length is True"),
        ({"slots": "many"}, "slots is 'many'"),
        ({"features": "smell"}, "features is 'smell'"),
        ({"shortlist": "best"}, "shortlist is 'best'"),
        ({"split": "exam"}, "split is 'exam'"),
        ({"on_illegal": "ignore"}, "on_illegal is 'ignore'"),
        ({"render_mode": "human"}, "render_mode is 'human'"),
        ({"budget": 0}, "budget is 0"),
        ({"budget": "soon"}, "budget is 'soon'"),
        ({"budget": 1.5}, "budget is 1.5"),
        ({"max_age": "0h"}, "max_age is '0h'"),
        ({"fetch_seconds": -1}, "fetch_seconds is -1"),
        ({"fetch_seconds": float("nan")}, "fetch_seconds is nan"),
        ({"path_length": 0}, "path_length is 0"),
        ({"judge": "mother"}, "judge is 'mother'"),
        ({"threshold": 2}, "threshold is 2"),
        ({"site": "nowhere"}, "site 'nowhere' is not in"),
    ],
)
def test_bad_arguments_say_what_is_expected(kwargs, message):
    with pytest.raises(ValueError, match=message):
        NewsEnv("synthetic-small-v0", **kwargs)


def test_other_bad_arguments():
    with pytest.raises(TypeError, match=r"unknown argument colour; .* budget, cost"):
        NewsEnv("synthetic-small-v0", colour="red")
    with pytest.raises(ValueError, match="unknown before a fetch in Topic"):
        TopicEnv("synthetic-small-v0", features="state")
    with pytest.raises(ValueError, match="not a label of synthetic-small-v0"):
        TopicEnv("synthetic-small-v0", topic="nonsense")
    for topic, message in (
        (["qqqqqq"], "has no qqqqqq"),
        ([], "expected a list of words"),
        (["a", 3], "expected a list of words"),
        (5, "expected a label, a list of words"),
        ({"pages": []}, r"topic pages are \[\], expected a list of URLs"),
        ({"pages": ["h://nowhere/"]}, "page 'h://nowhere/' is not in synthetic"),
        ({"page": ["x"]}, r"pages.*with the URLs of example pages"),
    ):
        with pytest.raises(ValueError, match=message):
            TopicEnv("synthetic-small-v0", topic=topic)
    words = list(TopicEnv("synthetic-small-v0").trace.vocabulary[100:103])
    with pytest.raises(ValueError, match="needs a label, not words"):
        TopicEnv("synthetic-small-v0", topic=words, relevance="label")
    with pytest.raises(ValueError, match="topic has no meaning in News"):
        NewsEnv("synthetic-small-v0", topic=words)
    with pytest.raises(TraceNotFoundError, match="synthetic-small-v0"):
        SpiderEnv("no-such-trace")
    env = NewsEnv("synthetic-small-v0")
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)
    env.reset(seed=0)
    for action in ("0", 1.5, None, np.array([1, 2])):
        with pytest.raises(TypeError, match="expected an integer: 0 to 127"):
            env.step(action)
    with pytest.raises(ValueError, match="options has no colour; expected roots, site"):
        env.reset(options={"colour": 1})
    for start in ("noon", -1, [1], 10**18):
        with pytest.raises(ValueError, match="expected a UTC time"):
            env.reset(options={"start": start})
    with pytest.raises(ValueError, match="before the recording"):
        env.reset(options={"start": "2020-01-01"})
    for root in ("https://nowhere.example/", 10**9, -1, True, 2.7, None):
        with pytest.raises(ValueError, match="not a URL of"):
            env.reset(options={"roots": [root]})
    with pytest.raises(ValueError, match=r"roots is 2\.5, expected URLs"):
        env.reset(options={"roots": 2.5})
    with pytest.raises(ValueError, match="site \\[1\\] is not in"):
        env.reset(options={"site": [1]})
    for options in (5, [1], "abc"):
        with pytest.raises(TypeError, match="expected a dict"):
            env.reset(options=options)
    with pytest.raises(ValueError, match=r"the train split of .* lasts 288\.0 hours"):
        NewsEnv("synthetic-small-v0", budget="15d").reset(seed=0)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (TopicEnv, {"topic": "hello"}, r"has no labels; give words: topic=\[\.\.\.\]"),
        (SpiderEnv, {}, "record with --targets or --target-label"),
        (NewsEnv, {}, r"lasts 0\.0 hours; use Topic or Spider"),
    ],
)
def test_a_trace_that_lacks_what_a_task_needs(kind, options, message):
    trace = web({"home": Page(["a"], "hello"), "a": Page()})
    with pytest.raises(ValueError, match=message):
        kind(trace, **options).reset(seed=0)


def test_numbers_of_numpy_are_numbers():
    env = NewsEnv("synthetic-small-v0", slots=np.int64(8), budget=np.int32(50))
    env.reset(seed=0, options={"roots": np.int64(3)})
    assert env.forager.action_set().tolist() == [3]
    env.reset(seed=0, options={"roots": np.array([3, 4])})
    assert env.action_space.n == 8


def test_on_illegal_raise_changes_nothing():
    for slots in (None, 8):
        env = NewsEnv("synthetic-small-v0", slots=slots, on_illegal="raise")
        _, info = env.reset(seed=0)
        with pytest.raises(ValueError, match="is illegal"):
            env.step(7)
        assert env.world.fetches == 0
        legal = 0 if slots else int(info["action_set"][0])
        env.step(legal)
        assert env.world.fetches > 0


def test_import_is_light():
    code = (
        "import sys, gym_webforage; heavy = {'torch', 'numba', 'pyarrow', 'scipy', "
        "'networkx', 'matplotlib', 'stable_baselines3'} & set(sys.modules); "
        "import json; print(json.dumps(sorted(heavy)))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert json.loads(found.stdout) == []


def test_gym_make_needs_no_import():
    code = (
        "import gymnasium as gym; env = gym.make('gym_webforage:WebForage/News-v0', "
        "trace='synthetic-small-v0'); print(env.reset(seed=0)[0]['context'].shape)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "(8,)"
