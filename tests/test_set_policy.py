"""Set policies: equivariance, masks, their NumPy twin, replay by ids, trees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import baselines
from baselines._set_scorer import (
    SetForager,
    SetScorer,
    ZSumScorer,
    first_best,
    z_scores,
    z_signs,
)
from baselines._trees import TreeScorer, arrays_of, tree_rows
from baselines._weights import FOLDER, Weights
from baselines.agent import run_episode
from gym_webforage.envs import NewsEnv, SpiderEnv, TopicEnv

torch = pytest.importorskip("torch")

from gymnasium import spaces  # noqa: E402

from baselines._dqn import RowReplay, SetDQN  # noqa: E402
from baselines._oracle_q import GAMMA, OracleQ  # noqa: E402
from baselines._ppo import SetPPO  # noqa: E402
from baselines._set_policy import (  # noqa: E402
    NEVER,
    SetNetwork,
    SetPolicy,
    SetQPolicy,
)
from gym_webforage.envs.sb3 import make_sb3_env  # noqa: E402
from tests.toys import Page, web  # noqa: E402

COLUMNS, CONTEXTS, SLOTS = 7, 8, 10
SPACE = spaces.Dict(
    {
        "candidates": spaces.Box(-1, 1, (SLOTS, COLUMNS), np.float32),
        "action_mask": spaces.Box(0, 1, (SLOTS,), np.int8),
        "context": spaces.Box(-1, 1, (CONTEXTS,), np.float32),
    }
)


def network(**kwargs: Any) -> SetNetwork:
    made = SetNetwork(COLUMNS, CONTEXTS, np.linspace(-1, 1, COLUMNS), seed=1, **kwargs)
    with torch.no_grad():  # so that the residual says something, too
        made.score.weight.normal_(generator=torch.Generator().manual_seed(2))
    return made


def observation(seed: int, count: int = 4, n: int = 3) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    mask = np.zeros((n, SLOTS), np.int8)
    for row in mask:
        row[random.permutation(SLOTS)[:count]] = 1
    rows = random.uniform(-1, 1, (n, SLOTS, COLUMNS)).astype(np.float32)
    rows[mask == 0] = 0
    context = random.uniform(-1, 1, (n, CONTEXTS)).astype(np.float32)
    return {"candidates": rows, "action_mask": mask, "context": context}


def tensors(seen: dict[str, np.ndarray]) -> tuple[Any, Any, Any]:
    mask = torch.as_tensor(seen["action_mask"]).bool()
    return torch.as_tensor(seen["candidates"]), mask, torch.as_tensor(seen["context"])


KINDS = [(False, False), (True, False), (True, True)]


@pytest.mark.parametrize(("residual", "attention"), KINDS)
@given(seed=st.integers(0, 10_000), count=st.integers(1, SLOTS))
@settings(max_examples=20, deadline=None)
def test_exchanged_candidates_exchange_their_scores(residual, attention, seed, count):
    net = network(residual=residual, attention=attention)
    rows, mask, context = tensors(observation(seed, count))
    order = torch.as_tensor(np.random.default_rng(seed).permutation(SLOTS))
    with torch.no_grad():
        scores, value = net(*net.prepare(rows, mask, context))
        moved, same = net(*net.prepare(rows[:, order], mask[:, order], context))
    torch.testing.assert_close(moved, scores[:, order], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(same, value, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("residual", "attention"), KINDS)
def test_numpy_scores_the_same(residual, attention):
    net = network(residual=residual, attention=attention)
    seen = observation(5, 6)
    rows, mask, context = tensors(seen)
    with torch.no_grad():
        expected = net(*net.prepare(rows, mask, context))[0].numpy()
    scorer = SetScorer(net.arrays(), residual, attention)
    for i in range(3):
        there = seen["action_mask"][i] > 0
        found, _ = scorer.score(seen["candidates"][i][there], seen["context"][i])
        np.testing.assert_allclose(found, expected[i][there], atol=1e-4)
    assert (expected[seen["action_mask"] == 0] == NEVER).all()


@pytest.mark.parametrize("attention", [False, True])
def test_a_part_scores_as_it_does_in_the_whole(attention):
    scorer = SetScorer(
        network(residual=True, attention=attention).arrays(), True, attention
    )
    random = np.random.default_rng(0)
    rows = random.random((40, COLUMNS)).astype(np.float32)
    context = random.random(CONTEXTS).astype(np.float32)
    whole, survey = scorer.score(rows, context)
    part, same = scorer.score(rows[10:20], context, survey=survey)
    np.testing.assert_allclose(part, whole[10:20], atol=1e-4)
    assert same is survey


def test_a_residual_begins_as_the_z_sum():
    names = ["anchor", "depth", "source_rate"]
    signs = z_signs(names)
    assert signs.tolist() == [1, 0, 1]
    net = SetNetwork(3, CONTEXTS, signs, residual=True)
    rows = np.random.default_rng(0).random((1, 5, 3)).astype(np.float32)
    mask = torch.ones(1, 5, dtype=torch.bool)
    batch = net.prepare(torch.as_tensor(rows), mask, torch.zeros(1, CONTEXTS))
    expected, _ = ZSumScorer(names).score(rows[0], np.zeros(8))
    found = net(*batch)[0].detach()[0]  # less steep, which changes no order
    np.testing.assert_allclose(found, expected / np.sqrt(3), atol=1e-5)


def test_the_z_sum_is_that_of_the_baseline():
    env = TopicEnv("synthetic-small-v0", slots=None, budget=60)
    ours = SetForager(
        env.world,
        Weights({}, {"columns": list(env.feature_names)}),
        scorer=ZSumScorer(env.feature_names),
    )
    theirs = baselines.load("z_sum").make(env, 0)
    areas = [run_episode(env, agent, seed=3).area for agent in (ours, theirs)]
    assert areas[0] == pytest.approx(areas[1], rel=0.02)  # float32, and ties


def test_z_scores_by_hand():
    rows = np.array([[1, 5], [3, 5]], np.float32)
    assert z_scores(rows).tolist() == [[-1, 0], [1, 0]]
    assert first_best(np.array([1, 2, 2 + 1e-7, 0])) == 1


def test_it_has_about_thirty_thousand_weights():
    network = SetNetwork(25, 8, np.zeros(25))
    weights = sum(p.numel() for p in network.parameters() if p.requires_grad)
    assert 25_000 < weights < 35_000


# --- masks


@pytest.mark.parametrize("count", [1, 2, SLOTS])
def test_no_policy_chooses_what_is_masked(count):
    space = spaces.Discrete(SLOTS)
    policy = SetPolicy(SPACE, space, lambda _: 1e-3, network={"residual": True})
    values = SetQPolicy(SPACE, space, lambda _: 1e-3)
    for seed in range(10):
        seen = observation(seed, count)
        for deterministic in (True, False):
            for chosen in (policy, values):
                actions, _ = chosen.predict(seen, deterministic=deterministic)
                assert (seen["action_mask"][np.arange(3), actions] == 1).all()
        one = {key: value[0] for key, value in seen.items()}
        assert one["action_mask"][policy.predict(one)[0]] == 1


def test_dqn_explores_legal_actions_only():
    env = make_sb3_env("WebForage/Spider-v0", 2, trace="synthetic-small-sites-v0")
    model = SetDQN(SetQPolicy, env, buffer_size=64, learning_starts=20)
    model.exploration_rate = 1.0
    seen: Any = env.reset()
    for _ in range(50):  # the first step has one legal action, the root
        actions, _ = model.predict(seen)
        assert (seen["action_mask"][np.arange(2), actions] == 1).all()
        seen = env.step(actions)[0]
    model._last_obs = seen
    actions, _ = model._sample_action(learning_starts=1000, n_envs=2)
    assert (seen["action_mask"][np.arange(2), actions] == 1).all()


def test_dqn_bootstraps_from_legal_actions_only():
    env = make_sb3_env("WebForage/Spider-v0", 1, trace="synthetic-small-sites-v0")
    model = SetDQN(SetQPolicy, env, buffer_size=16, gamma=0.5, seed=0)
    target: Any = model.q_net_target
    seen = {k: torch.as_tensor(v) for k, v in env.reset().items()}  # type: ignore
    assert int(seen["action_mask"].sum()) == 1
    with torch.no_grad():
        q = target(seen)
        batch = target.network.prepare(
            seen["candidates"], seen["action_mask"].bool(), seen["context"]
        )
        scores, value = target.network(*batch)
    there = int(seen["action_mask"].argmax())
    # By hand: the only legal action's value and score; all others can never be best.
    assert float(q.max()) == pytest.approx(float(value + scores[0, there]))
    assert (q[seen["action_mask"] == 0] == NEVER).all()


# --- replay


def test_replay_gives_back_what_was_seen():
    random = np.random.default_rng(0)
    replay = RowReplay(40, SPACE, spaces.Discrete(SLOTS), n_envs=2, rows_each=16)
    now = observation(0, 5, 2)
    kept = []
    for step in range(60):
        after = {key: value.copy() for key, value in now.items()}
        changed = random.integers(SLOTS)  # one row a step changes
        after["candidates"][:, changed] = random.uniform(-1, 1, COLUMNS)
        after["candidates"][after["action_mask"] == 0] = 0
        done = np.array([step % 7 == 0, False])
        infos: list[dict[str, Any]] = [{"TimeLimit.truncated": step % 14 == 0}, {}]
        replay.add(now, after, random.integers(SLOTS, size=2), done * 1.0, done, infos)
        kept.append((now, after))
        now = after
    assert replay.written < 200  # and not 60 x 2 x 2 x 5 rows
    valid = replay.valid()
    assert 0 < len(valid) <= 20
    for place in valid:
        step = place + 40 if place + 40 < 60 else place + 20
        for which in (0, 1):
            steps, envs = np.full(2, place), np.arange(2)
            found = replay.observation(which, steps, envs)
            for key, value in kept[step][which].items():
                np.testing.assert_allclose(found[key].numpy(), value, atol=1 / 127)
    sample = replay.sample(5)
    assert sample.rewards.shape == sample.dones.shape == (5, 1)


def test_replay_forgets_what_was_overwritten():
    replay = RowReplay(100, SPACE, spaces.Discrete(SLOTS), n_envs=1, rows_each=1)
    for step in range(100):
        seen = observation(step, SLOTS, 1)
        replay.add(seen, seen, np.zeros(1), np.zeros(1), np.zeros(1, bool), [{}])
    assert len(replay.ring) == 100 and replay.written == 1000
    for place in replay.valid():
        found = replay.observation(0, np.array([place]), np.zeros(1, int))
        expected = observation(int(place), SLOTS, 1)["candidates"]
        np.testing.assert_allclose(found["candidates"], expected, atol=1 / 127)


# --- PPO


def test_ppo_through_the_usual_door():
    env = make_sb3_env(
        "WebForage/Spider-v0", 2, trace="synthetic-small-sites-v0", slots=8, budget=20
    )
    model = SetPPO(SetPolicy, env, n_steps=8, batch_size=8, n_epochs=1, seed=0)
    before = model.policy.network.arrays()
    model.learn(64)
    after = model.policy.network.arrays()
    assert any((before[name] != after[name]).any() for name in before)
    assert 0 < model.env_seconds


# --- the oracle's values


def test_oracle_values_by_hand():
    trace = web(
        {
            "home": Page(["a", "b", "t"]),
            "a": Page(["s"]),
            "b": Page(["c"]),
            "c": Page(["u", "v"]),
            **{name: Page(is_target=True) for name in "stuv"},
        }
    )
    env = SpiderEnv(trace, slots=None, split="all")
    _, info = env.reset(seed=0)
    env.step(int(info["action_set"][0]))
    names = ["a", "b", "t"]
    urls = np.array([trace.urls.find(name) for name in names], np.int64)
    oracle = OracleQ(env.world)
    # a: nothing, then s. b: nothing, c nothing, then u and v. t pays at once.
    expected = [GAMMA, GAMMA**2 + GAMMA**3, 1.0]
    assert oracle.values(urls) == pytest.approx(expected)
    env.step(int(urls[0]))
    env.step(trace.urls.find("s"))  # taken: a leads to nothing any more
    assert oracle.values(urls) == pytest.approx([0, *expected[1:]])


def test_oracle_values_news_by_what_a_visit_brings():
    env = NewsEnv("synthetic-small-v0", slots=None, budget="2h")
    _, info = env.reset(seed=1)
    for _ in range(5):
        *_, info = env.step(int(info["action_set"][-1]))
    urls = info["action_set"].astype(np.int64)[:20]
    values = OracleQ(env.world).values(urls)
    before = env.snapshot()
    for url, value in zip(urls.tolist(), values, strict=True):
        env.restore(before)
        *_, after = env.step(url)
        assert value == pytest.approx(after["novel"] / after["fetched"])


# --- trees


def test_trees_as_arrays_predict_what_scikit_learn_predicts():
    from sklearn.ensemble import HistGradientBoostingRegressor

    random = np.random.default_rng(0)
    rows = random.uniform(-1, 1, (800, 5)).astype(np.float32)
    labels = rows[:, 0] * rows[:, 1] + (rows[:, 2] > 0.3)
    model = HistGradientBoostingRegressor(max_iter=20, max_leaf_nodes=8, random_state=0)
    model.fit(rows, labels)
    scorer = TreeScorer(arrays_of(model))
    np.testing.assert_array_equal(scorer.predict(rows), model.predict(rows))


def test_trees_remember_only_what_is_still_true():
    from sklearn.ensemble import HistGradientBoostingRegressor

    random = np.random.default_rng(0)
    context = np.zeros(8, np.float32)
    rows = random.uniform(-1, 1, (300, 3)).astype(np.float32)
    inputs = tree_rows(rows, context)
    model = HistGradientBoostingRegressor(max_iter=10, random_state=0)
    scorer = TreeScorer(arrays_of(model.fit(inputs, inputs[:, 0] + inputs[:, 4])))
    numbers = np.arange(300)
    for _ in range(5):
        rows = rows + random.normal(0, 0.05, rows.shape).astype(np.float32)
        context = random.uniform(-1, 1, 8).astype(np.float32)
        kept = random.random(300) < 0.8
        found, _ = scorer.score(rows[kept], context, numbers[kept])
        expected = model.predict(tree_rows(rows[kept], context))
        np.testing.assert_array_equal(found, expected)


# --- weights


def test_weights_come_back_as_they_were(tmp_path: Path):
    arrays = network().arrays()
    Weights(arrays, {"columns": ["a", "b"], "name": "é"}).save(tmp_path / "w")
    found = Weights.load(tmp_path / "w")
    assert found.card == {"columns": ["a", "b"], "name": "é"}
    assert found.arrays.keys() == arrays.keys()
    for name, value in arrays.items():
        np.testing.assert_array_equal(found.arrays[name], value)
    assert found.places(["x", "b", "a"]).tolist() == [2, 1]
    with pytest.raises(ValueError, match=r"need the columns b, .*it has a, c"):
        found.places(["a", "c"])
    with pytest.raises(FileNotFoundError, match=r"baselines\.train makes"):
        Weights.load(tmp_path / "none")
    (tmp_path / "w.safetensors").write_bytes(b"broken")
    with pytest.raises(ValueError, match="holds no weights"):
        Weights.load(tmp_path / "w")


def test_shipped_weights_are_small_and_have_their_cards():
    files = sorted(FOLDER.glob("*.safetensors"))
    assert len(files) >= 8
    for file in files:
        assert file.stat().st_size < 1_000_000
        card = Weights.load(file).card
        assert card["command"].startswith("python -m baselines.train ")
        assert card["validation"]["tasks"] and card["licence"] and card["steps"]
        for source in card["trained_on"]:
            assert source["split"] == "train"


def test_weights_of_another_kind_are_refused():
    env = TopicEnv("synthetic-small-v0", slots=None)
    with pytest.raises(ValueError, match="expected masked_ppo in focused ones"):
        news = str(FOLDER / "masked_ppo-news")
        baselines.load(f"masked_ppo:weights={news}").make(env, 0)


def test_a_learned_fleet_shares_its_weights():
    from baselines.fleet import run_fleet
    from gym_webforage import fleet_v0

    for name in ("masked_ppo", "boosted_trees"):
        env = fleet_v0.env(
            "synthetic-small-v0", founders=2, slots=None, budget="1h", split="all"
        )
        result = run_fleet(env, baselines.load(name), seed=0)
        assert result.fetches > 100
        parent: Any = result.agents["forager_0"]
        child = parent.divide(np.random.default_rng(0))
        assert child.weights is parent.weights and child.scorer is not parent.scorer
