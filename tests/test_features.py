"""The candidates' columns for slots and for whole frontiers, in all environments."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import gym_webforage  # noqa: F401  (registers the ids)
from gym_webforage import fleet_v0
from gym_webforage.envs import ForageEnv, NewsEnv, SpiderEnv, TopicEnv
from gym_webforage.trace import Trace
from gym_webforage.world import Rules, World
from gym_webforage.world import layout as L

NOW = 1_600_000_000_000
MAKERS = {
    "news": lambda **options: NewsEnv("synthetic-small-v0", **options),
    "topic": lambda **options: TopicEnv("synthetic-small-v0", **options),
    "spider": lambda **options: SpiderEnv("synthetic-small-sites-v0", **options),
}
STEPS = 60


def walk(env: ForageEnv, steps: int = STEPS, seed: int = 0) -> tuple[Any, Any]:
    """Take random steps."""
    observation, info = env.reset(seed=seed)
    random = np.random.default_rng(seed)
    for _ in range(steps):
        if env.slots is None:
            action = random.choice(info["action_set"])
        else:
            action = random.choice(np.flatnonzero(info["action_mask"]))
        observation, _, _, _, info = env.step(int(action))
    return observation, info


def z_scores(rows: np.ndarray) -> np.ndarray:
    rows = rows.astype(np.float64)
    width = rows.std(axis=0)
    is_flat = np.ptp(rows, axis=0) <= 1e-6
    made = (rows - rows.mean(axis=0)) / np.where(is_flat, 1.0, width)
    return np.where(is_flat, 0.0, made)


@pytest.fixture(params=[*MAKERS, "news transfer", "news all"])
def env(request: pytest.FixtureRequest) -> ForageEnv:
    kind, _, features = request.param.partition(" ")
    return MAKERS[kind](**({"features": features} if features else {}))


def test_features_of_the_action_set(env: ForageEnv) -> None:
    observation, info = walk(env)
    urls = info["action_set"]
    rows = env.features()
    assert rows.shape == (len(urls), len(env.feature_names)) and len(urls) > env.slots
    assert rows.dtype == np.float32
    assert len(set(env.feature_names)) == len(env.feature_names)
    # The same, whoever asks, for some URLs, in any order, and in the slots.
    np.testing.assert_array_equal(info["known"].features(), rows)
    assert info["known"].feature_names == env.feature_names
    np.testing.assert_array_equal(env.features(urls[::-3]), rows[::-3])
    slots = env.forager.slot_urls()
    held = slots >= 0
    np.testing.assert_array_equal(
        env.features(slots[held]), observation["candidates"][held]
    )
    scaled = env.features(scaled=True)
    np.testing.assert_allclose(scaled, z_scores(rows), atol=2e-3)
    np.testing.assert_array_equal(env.features(urls[5:9], scaled=True), scaled[5:9])
    assert env.features([]).shape == (0, len(env.feature_names))


def test_features_without_slots() -> None:
    env = MAKERS["topic"](slots=None)
    _, info = walk(env)
    rows = dict(zip(info["action_set"].tolist(), env.features(), strict=True))
    column = dict(zip(env.feature_names, range(len(env.feature_names)), strict=True))
    known = info["known"]
    for url, row in list(rows.items())[::7]:
        assert row[column["depth"]] == pytest.approx(
            known.depth(url) / (known.depth(url) + 5)
        )


def test_unknown_urls_are_refused() -> None:
    env = MAKERS["spider"]()
    _, info = walk(env, 3)
    unknown = next(u for u in range(len(env.trace.urls)) if u not in info["known"])
    for wrong in ([unknown], [-1], [2**40], [*info["action_set"][:2], unknown]):
        with pytest.raises(KeyError, match="has not been seen"):
            env.features(np.array(wrong))
    for bad in ([0.5], "no", [[1]]):
        with pytest.raises(TypeError, match="URL ids"):
            env.features(bad)
    for ask in (info["known"].directory, info["known"].ending):
        with pytest.raises(KeyError):
            ask(unknown)
    with pytest.raises(KeyError):
        info["known"].tag_path(len(env.trace.link_target))


@pytest.mark.parametrize("kind", MAKERS)
def test_scaled_candidates_are_z_scores_over_the_slots(kind: str) -> None:
    raw, scaled = MAKERS[kind](slots=16), MAKERS[kind](slots=16, scaled=True)
    observations = [walk(env)[0] for env in (raw, scaled)]
    mask = observations[0]["action_mask"]
    np.testing.assert_array_equal(mask, observations[1]["action_mask"])
    held = mask > 0
    expected = z_scores(observations[0]["candidates"][held])
    found = observations[1]["candidates"]
    np.testing.assert_allclose(found[held], expected, atol=2e-3)
    assert not found[~held].any()
    assert scaled.observation_space.contains(observations[1])
    np.testing.assert_array_equal(raw.features(), scaled.features())


@pytest.mark.parametrize("kind", ["news", "topic", "spider"])
@pytest.mark.parametrize("scaled", [False, True])
def test_a_batch_shows_the_same(kind: str, scaled: bool) -> None:
    options: dict[str, Any] = {"features": "transfer", "scaled": scaled, "slots": 16}
    trace = MAKERS[kind]().trace
    batch = gym.make_vec(
        f"WebForage/{kind.capitalize()}-v0",
        num_envs=2,
        vectorization_mode="vector_entry_point",
        trace=trace,
        **options,
    )
    singles = [MAKERS[kind](**options) for _ in range(2)]
    found, _ = batch.reset(seed=3)
    shown = [env.reset(seed=3 + i)[0] for i, env in enumerate(singles)]
    for step in range(40):
        for i, one in enumerate(shown):
            np.testing.assert_array_equal(found["candidates"][i], one["candidates"])
        legal = [np.flatnonzero(one["action_mask"]) for one in shown]
        actions = np.array([slots[7 * step % len(slots)] for slots in legal])
        found, *_ = batch.step(actions)
        shown = [
            env.step(int(action))[0]
            for env, action in zip(singles, actions, strict=True)
        ]
    assert batch.unwrapped.feature_names == singles[0].feature_names
    batch.close()


@pytest.mark.parametrize("kind", ["news", "topic"])
def test_foragers_of_a_fleet_have_their_own(kind: str) -> None:
    env = fleet_v0.parallel_env(
        "synthetic-small-v0", kind=kind, founders=2, features="transfer", slots=16
    )
    observations, infos = env.reset(seed=1)
    random = np.random.default_rng(1)
    for _ in range(10):
        actions = {
            name: int(random.choice(np.flatnonzero(one["action_mask"])))
            for name, one in observations.items()
        }
        observations, _, _, _, infos = env.step(actions)
    rows = [infos[name]["known"].features() for name in env.agents]
    for name, found in zip(env.agents, rows, strict=True):
        urls = infos[name]["action_set"]
        assert len(found) == len(urls)
        seen = {row.tobytes() for row in found}
        held = observations[name]["action_mask"] > 0
        shown = observations[name]["candidates"][held]
        assert all(row.tobytes() in seen for row in shown)
    assert rows[0].tobytes() != rows[1].tobytes()


def test_features_come_back_with_a_snapshot(env: ForageEnv) -> None:
    walk(env, 30)
    before, taken = env.features(), env.snapshot()
    slots = env.forager.slot_urls()
    random = np.random.default_rng(9)
    for _ in range(20):
        env.step(int(random.choice(np.flatnonzero(env.action_masks()))))
    assert not np.array_equal(env.features(), before)
    env.restore(taken)
    np.testing.assert_array_equal(env.features(), before)
    np.testing.assert_array_equal(env.forager.slot_urls(), slots)


def test_changes_of_a_page_are_counted() -> None:
    """A page alone, visited every 50 s, that changes after 100 and after 220 s."""
    trace = Trace.build(
        {"name": "alone", "roots": ["http://a.example/"]},
        urls=["http://a.example/"],
        version_start=[0, 3],
        version_seen=[NOW, NOW + 100_000, NOW + 220_000],
    )
    world = World(trace, Rules(kind="news", fetch_seconds=50, budget="1d"))
    world.reset(start=NOW, roots=np.array([0]))
    found = []
    for _ in range(6):  # fetched as of 0, 50, 100, 150, 200, 250 s
        world.step(0)
        row = world.features([0])[0].tolist()
        found.append(dict(zip(world.feature_names, row, strict=True)))
    assert [row["change_rate"] for row in found] == pytest.approx(
        [0, 0, 1 / 3, 1 / 4, 1 / 5, 2 / 6]
    )
    assert [row["fetches"] for row in found] == pytest.approx(
        [n / (n + 5) for n in range(1, 7)]
    )
    seconds = [row["since_change"] for row in found]
    assert seconds[:3] == [1, 1, 0] and seconds[5] == 0
    assert seconds[3:5] == pytest.approx([t / (t + 86_400) for t in (50, 100)], 1e-3)
    age = found[4]["age_now"]  # at 250 s, of the version seen at 100 s
    assert age == pytest.approx(150 / (150 + 86_400), 1e-3)


def test_the_promising_get_the_slots() -> None:
    env = MAKERS["topic"](slots=8)
    assert env.world.view.shortlist == "promising"
    walk(env, 80)
    column = [
        env.feature_names.index(name)
        for name in (
            *("anchor", "near", "url", "anchor_paid", "url_paid", "source"),
            *("source_rate", "directory_rate", "path_rate", "ending_rate"),
        )
    ]
    held = env.forager.slot_urls()
    promise = env.features(held[held >= 0])[:, column].sum(axis=1)
    everyone = env.features()[:, column].sum(axis=1)
    assert promise.mean() > np.quantile(everyone, 0.9)


def test_promising_is_for_frontiers_alone() -> None:
    with pytest.raises(ValueError, match="newest and oldest"):
        MAKERS["news"](shortlist="promising")
    with pytest.raises(ValueError, match="newest and oldest"):
        MAKERS["topic"](shortlist="promising", reach="links")
    assert MAKERS["topic"](reach="links").world.view.shortlist == "newest"
    with pytest.raises(ValueError, match="scaled is 'yes'"):
        MAKERS["topic"](scaled="yes")
    with pytest.raises(ValueError, match="features='all' needs"):
        MAKERS["topic"](features="all")


def test_urls_of_a_directory_share_a_number() -> None:
    env = MAKERS["spider"](slots=None)
    _, info = walk(env, 20)
    known = info["known"]
    by_number: dict[int, set[str]] = {}
    for url in known.urls.tolist():
        directory = known.address(url).rpartition("/")[0]
        by_number.setdefault(known.directory(url), set()).add(directory)
    assert len(by_number) == len(
        {name for names in by_number.values() for name in names}
    )
    link = int(known.links(info["url"])[0]) if known.is_fetched(info["url"]) else None
    if link is not None:
        assert known.tag_path(link) == -1  # the synthetic web has no markup


def test_a_layout_that_fits_its_names() -> None:
    """Every column has a line in the documentation."""
    from gym_webforage.world import observe

    text = observe.__doc__ or ""
    for name in (*L.NEWS_COLUMNS, *L.HISTORY_COLUMNS, *L.TRANSFER_COLUMNS):
        assert f"\n{name} " in text, name
    world = World(MAKERS["news"]().trace, Rules(kind="news"), features="all")
    states = world.trace.states
    assert world.columns == states + len(L.NEWS_COLUMNS) + len(L.HISTORY_COLUMNS)
