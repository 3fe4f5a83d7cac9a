"""The native batch: equal to single environments, autoreset, SB3 adapter, training."""

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import gym_webforage  # noqa: F401
from gym_webforage.envs import NewsVectorEnv

TRACES = {
    "WebForage/News-v0": "synthetic-small-v0",
    "WebForage/Topic-v0": "synthetic-small-v0",
    "WebForage/Spider-v0": "synthetic-small-sites-v0",
}
IDS = sorted(TRACES)


def make_vec(env_id, number, **kwargs):
    return gym.make_vec(env_id, num_envs=number, trace=TRACES[env_id], **kwargs)


def choose(random, masks):
    """Pick a legal action at random in every crawl."""
    noise = random.random(masks.shape) * masks
    return np.where(masks.any(axis=1), noise.argmax(axis=1), 0)


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_batch_equals_single_environments(env_id, mode):
    kwargs = {"slots": 16, "budget": 60}
    batch = make_vec(env_id, 3, autoreset_mode=mode, **kwargs)
    singles = [gym.make(env_id, trace=TRACES[env_id], **kwargs) for _ in range(3)]
    observation, _ = batch.reset(seed=10)
    expected = [env.reset(seed=10 + i)[0] for i, env in enumerate(singles)]
    random = np.random.default_rng(0)
    ended = np.zeros(3, bool)
    resets = 0
    for _ in range(200):
        for i in range(3):
            for key, value in expected[i].items():
                np.testing.assert_array_equal(observation[key][i], value)
        actions = choose(random, observation["action_mask"])
        observation, rewards, terminated, truncated, infos = batch.step(actions)
        for i, env in enumerate(singles):
            if ended[i] and mode == AutoresetMode.NEXT_STEP:
                expected[i], _ = env.reset()
                assert rewards[i] == 0 and not terminated[i] and not truncated[i]
                ended[i] = False
                continue
            expected[i], reward, end, cut, _ = env.step(int(actions[i]))
            assert (reward, end, cut) == (rewards[i], terminated[i], truncated[i])
            ended[i] = end or cut
            resets += ended[i]
            if ended[i] and mode == AutoresetMode.SAME_STEP:
                assert infos["_final_obs"][i]
                for key, value in expected[i].items():
                    np.testing.assert_array_equal(infos["final_obs"][i][key], value)
                expected[i], _ = env.reset()
    assert resets > 6
    np.testing.assert_array_equal(
        batch.unwrapped.action_masks(), observation["action_mask"].astype(bool)
    )


@pytest.mark.parametrize("env_id", IDS)
def test_make_vec_gives_the_native_batch_in_its_declared_spaces(env_id):
    batch = make_vec(env_id, 4)
    assert batch.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    assert type(batch.unwrapped).__name__ == env_id[10:-3] + "VectorEnv"
    observation, infos = batch.reset(seed=1)
    assert batch.observation_space.contains(observation)
    assert infos["action_mask"] is observation["action_mask"]
    observation, *_ = batch.step(choose(np.random.default_rng(1), infos["action_mask"]))
    assert batch.observation_space.contains(observation)


def test_observations_of_a_batch_never_change_afterwards():
    batch = make_vec("WebForage/News-v0", 3, slots=32)
    observation, _ = batch.reset(seed=3)
    random = np.random.default_rng(3)
    held = []
    for _ in range(60):
        held.append((observation, copy.deepcopy(observation)))
        observation, *_ = batch.step(choose(random, observation["action_mask"]))
    for kept, expected in held:
        for key in kept:
            np.testing.assert_array_equal(kept[key], expected[key])


@pytest.mark.parametrize(
    "how", [copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))]
)
def test_a_copy_goes_on_by_itself(how):
    batch = make_vec("WebForage/News-v0", 2, slots=16, budget=200).unwrapped
    observation, _ = batch.reset(seed=3)
    random = np.random.default_rng(3)
    for _ in range(10):
        observation, *_ = batch.step(choose(random, observation["action_mask"]))
    other = how(batch)
    for _ in range(40):
        actions = choose(random, observation["action_mask"])
        observation, rewards, *_ = batch.step(actions)
        twin, twin_rewards, *_ = other.step(actions)
        np.testing.assert_array_equal(rewards, twin_rewards)
        for key in observation:
            np.testing.assert_array_equal(observation[key], twin[key])


def test_reset_mask_starts_only_those():
    batch = make_vec("WebForage/News-v0", 3, slots=16).unwrapped
    observation, _ = batch.reset(seed=0)
    batch.step(choose(np.random.default_rng(0), observation["action_mask"]))
    clocks = [world.clock for world in batch.worlds]
    batch.reset(options={"reset_mask": np.array([False, True, False])})
    after = [world.fetches for world in batch.worlds]
    assert after[1] == 0 and after[0] > 0 and after[2] > 0
    assert batch.worlds[0].clock == clocks[0]


def test_bad_input_to_a_batch():
    with pytest.raises(ValueError, match="num_envs is 0"):
        NewsVectorEnv(0, "synthetic-small-v0")
    with pytest.raises(ValueError, match="slots=None works in single"):
        NewsVectorEnv(2, "synthetic-small-v0", slots=None)
    with pytest.raises(ValueError, match="on_illegal works in single"):
        NewsVectorEnv(2, "synthetic-small-v0", on_illegal="raise")
    batch = NewsVectorEnv(2, "synthetic-small-v0")
    with pytest.raises(gym.error.ResetNeeded):
        batch.step(np.zeros(2, int))
    batch.reset(seed=0)
    for actions in ([0], [0.5, 1.0], "ab"):
        with pytest.raises(TypeError, match="expected 2 integers"):
            batch.step(np.array(actions))
    # An action outside the space is illegal, not a crash.
    _, rewards, *_ = batch.step(np.array([-5, 10**9]))
    assert rewards.tolist() == [-1, -1]


# --- Stable-Baselines3


def test_sb3_adapter_reports_terminal_observations_and_masks():
    from gym_webforage.envs.sb3 import ForageVecEnv, make_sb3_env

    env = make_sb3_env(
        "WebForage/Topic-v0", 3, trace="synthetic-small-v0", slots=16, budget=20
    )
    env.seed(4)
    observation = env.reset()
    random = np.random.default_rng(4)
    finished = 0
    for _ in range(70):
        np.testing.assert_array_equal(
            np.stack(env.env_method("action_masks")),
            observation["action_mask"].astype(bool),
        )
        actions = choose(random, observation["action_mask"])
        observation, rewards, dones, infos = env.step(actions)
        assert rewards.dtype == np.float32
        for i in np.flatnonzero(dones):
            finished += 1
            last = infos[i]["terminal_observation"]
            assert last["context"][0] == 0  # no budget left
            assert observation["context"][i][0] == 1  # the new crawl has all of it
            assert infos[i]["TimeLimit.truncated"]
            assert infos[i]["episode"]["l"] == 20
    assert finished == 9
    assert env.has_attr("action_masks")
    sites = make_sb3_env("WebForage/Spider-v0", 3, trace="synthetic-small-sites-v0")
    names = list(sites.batch.trace.sites[:3])
    sites.set_options([{"site": name} for name in names])
    sites.reset()
    assert [episode.site for episode in sites.batch.running] == [0, 1, 2]
    with pytest.raises(ValueError, match="shared by all"):
        sites.set_attr("slots", 3, indices=0)
    with pytest.raises(ValueError, match="SAME_STEP"):
        ForageVecEnv(NewsVectorEnv(2, "synthetic-small-v0"))


def test_plain_ppo_trains_on_a_single_environment():
    import torch
    from stable_baselines3 import PPO

    torch.set_num_threads(1)
    env = gym.make("WebForage/News-v0", trace="synthetic-small-v0", slots=16)
    model = PPO("MultiInputPolicy", env, n_steps=64, batch_size=32, n_epochs=1, seed=0)
    model.learn(128)
    observation, _ = env.reset(seed=0)
    action, _ = model.predict(observation, deterministic=True)
    assert env.action_space.contains(int(action))


@pytest.mark.parametrize("env_id", IDS)
def test_maskable_ppo_trains_on_the_batch_and_chooses_legally(env_id):
    import torch
    from sb3_contrib import MaskablePPO
    from sb3_contrib.common.maskable.utils import get_action_masks

    from gym_webforage.envs.sb3 import make_sb3_env

    torch.set_num_threads(1)
    env = make_sb3_env(env_id, 4, trace=TRACES[env_id], slots=16, budget=100)
    model = MaskablePPO(
        "MultiInputPolicy", env, n_steps=32, batch_size=64, n_epochs=1, seed=0
    )
    model.learn(256)
    observation = env.reset()
    for _ in range(50):
        masks = get_action_masks(env)
        actions, _ = model.predict(observation, action_masks=masks)
        assert masks[np.arange(4), actions].all()
        observation, _, _, _ = env.step(actions)
