"""The native batch as a Stable-Baselines3 ``VecEnv``."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import (
    VecEnvIndices,
    VecEnvObs,
    VecEnvStepReturn,
)

import gym_webforage  # noqa: F401  (registers the ids)
from gym_webforage.envs.vector import ForageVectorEnv


class ForageVecEnv(VecEnv):
    """What PPO, MaskablePPO and DQN of Stable-Baselines3 train on.

    Ended crawls are reset at once; the last observation stands in
    ``infos[i]["terminal_observation"]``, and ``TimeLimit.truncated`` says whether the
    budget ended it. Each episode's return and length are reported as SB3's ``Monitor``
    does.
    """

    def __init__(self, env: ForageVectorEnv) -> None:
        if env.autoreset_mode != AutoresetMode.SAME_STEP:
            raise ValueError("the batch must be made with autoreset_mode=SAME_STEP")
        self.batch = env
        self._actions: np.ndarray | None = None
        self._started = time.monotonic()
        self._returns = np.zeros(env.num_envs)
        self._lengths = np.zeros(env.num_envs, np.int64)
        super().__init__(
            env.num_envs, env.single_observation_space, env.single_action_space
        )

    def reset(self) -> VecEnvObs:
        """Start all crawls."""
        everyone = np.ones(self.num_envs, np.bool_)
        observation, _ = self.batch.reset_each(self._seeds, self._options, everyone)
        self._reset_seeds()
        self._reset_options()
        self._returns[:] = 0
        self._lengths[:] = 0
        return observation

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """Take the step."""
        assert self._actions is not None
        observation, rewards, terminated, truncated, extra = self.batch.step(
            self._actions
        )
        done = terminated | truncated
        self._returns += rewards
        self._lengths += 1
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(done):
            infos[i] = {
                "terminal_observation": extra["final_obs"][i],
                "TimeLimit.truncated": bool(truncated[i] and not terminated[i]),
                "episode": {
                    "r": float(self._returns[i]),
                    "l": int(self._lengths[i]),
                    "t": time.monotonic() - self._started,
                },
            }
        self._returns[done] = 0
        self._lengths[done] = 0
        return observation, rewards.astype(np.float32), done, infos

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain arrays and values."""
        return {
            "batch": self.batch.snapshot(),
            "returns": self._returns.copy(),
            "lengths": self._lengths.copy(),
        }

    def restore(self, snapshot: Mapping[str, Any]) -> VecEnvObs:
        """Put back a state that `snapshot` took; return the observation there."""
        self._returns = np.array(snapshot["returns"])
        self._lengths = np.array(snapshot["lengths"])
        return self.batch.restore(snapshot["batch"])[0]

    def action_masks(self) -> np.ndarray:
        """Return which actions are legal now, as booleans (envs, slots)."""
        return self.batch.action_masks()

    def close(self) -> None:
        """Close the batch."""
        self.batch.close()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return an attribute for each of the chosen environments."""
        if attr_name == "action_masks":
            return [lambda i=i: self.action_masks()[i] for i in self._which(indices)]
        if attr_name == "render_mode":
            return [None for _ in self._which(indices)]
        value = getattr(self.batch, attr_name)
        return [value for _ in self._which(indices)]

    def set_attr(
        self, attr_name: str, value: Any, indices: VecEnvIndices = None
    ) -> None:
        """Set an attribute of the batch, which all environments share."""
        if len(list(self._which(indices))) != self.num_envs:
            raise ValueError(f"{attr_name} is shared by all environments of the batch")
        setattr(self.batch, attr_name, value)

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Call ``action_masks`` for each environment, anything else on the batch."""
        if method_name == "action_masks":
            return list(self.action_masks()[list(self._which(indices))])
        method = getattr(self.batch, method_name)
        return [method(*method_args, **method_kwargs) for _ in self._which(indices)]

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper], indices: VecEnvIndices = None
    ) -> list[bool]:
        """Say that nothing is wrapped."""
        return [False for _ in self._which(indices)]

    def _which(self, indices: VecEnvIndices) -> Iterable[int]:
        if indices is None:
            return range(self.num_envs)
        return [indices] if isinstance(indices, int) else indices


def make_sb3_env(
    env: str = "WebForage/News-v0", num_envs: int = 8, **kwargs: Any
) -> ForageVecEnv:
    """Make a batch for Stable-Baselines3 by environment id."""
    batch = gym.make_vec(
        env,
        num_envs=num_envs,
        vectorization_mode="vector_entry_point",
        autoreset_mode=AutoresetMode.SAME_STEP,
        **kwargs,
    )
    assert isinstance(batch.unwrapped, ForageVectorEnv)
    return ForageVecEnv(batch.unwrapped)
