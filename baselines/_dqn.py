"""DQN for set policies: Stable-Baselines3's, with masks wherever an action is chosen.

The mask holds in exploration, in the greedy choice and in the bootstrapped maximum. The
replay keeps each candidate's row once, in eight bits a column, and for each step the
ids of the rows in its slots: a row is written again only when it has changed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import DQN
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.logger import Logger

from baselines._set_policy import SetQPolicy
from baselines._set_scorer import SetForager
from baselines._trainer import (
    load_course,
    load_network,
    load_optimizer,
    logged_by,
    network_settings,
    save_course,
    save_optimizer,
)
from baselines._training_envs import TrainingBatch
from baselines._weights import State, Weights
from baselines.agent import load_random, save_random

LEVELS = 127
NOTHING = -1

Observation = dict[str, np.ndarray]


class Sample(NamedTuple):
    """Transitions as `DQN.train` takes them."""

    observations: dict[str, torch.Tensor]
    actions: torch.Tensor
    next_observations: dict[str, torch.Tensor]
    dones: torch.Tensor
    rewards: torch.Tensor
    discounts: None = None


class RowReplay(ReplayBuffer):
    """Steps as ids of candidates' rows, which stand in a ring of their own.

    ``buffer_size`` transitions are kept, and ``rows_each`` times as many rows. A row
    that has stayed in its slot is not written again while it is in the newer half of
    the ring; so a transition can be relied on until half a ring has been written after
    it.
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Dict,
        action_space: spaces.Space[Any],
        device: Any = "cpu",
        n_envs: int = 1,
        rows_each: int = 64,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        candidates = observation_space["candidates"]
        assert isinstance(candidates, spaces.Box) and len(candidates.shape) == 2
        contexts = observation_space["context"].shape
        assert contexts is not None
        self.slots, self.columns = candidates.shape
        self.n_envs, self.device = n_envs, device
        self.buffer_size = max(buffer_size // n_envs, 1)
        self.observation_space, self.action_space = observation_space, action_space
        self.scale = np.maximum(np.abs(candidates.high[0]), 1e-6).astype(np.float32)
        self.random = np.random.default_rng(seed)
        # One step may write twice this many rows, all in the newer half of the ring.
        self._most = 2 * n_envs * self.slots
        least = 4 * self._most
        size = max(rows_each * self.buffer_size * n_envs, least)
        self.ring = np.zeros((size, self.columns), np.int8)
        self.written = 0  # rows so far; row i stands at i % len(ring)
        steps = (self.buffer_size, n_envs)
        self.ids = np.full((2, *steps, self.slots), NOTHING, np.int64)  # now, after
        self.contexts = np.zeros((2, *steps, *contexts), np.float32)
        self.kept = {
            "action": np.zeros(steps, np.int64),
            "reward": np.zeros(steps, np.float32),
            "done": np.zeros(steps, np.float32),
        }
        self.at = np.zeros(self.buffer_size, np.int64)  # `written` after each step
        self.pos, self.full = 0, False
        self._shown = np.zeros((n_envs, self.slots, self.columns), np.int8)
        self._shown_ids = np.full((n_envs, self.slots), NOTHING, np.int64)

    # --- writing

    def _write(self, rows: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Write the rows that changed; return all ids, `NOTHING` where masked."""
        packed = np.rint(np.clip(rows / self.scale, -1, 1) * LEVELS).astype(np.int8)
        before = self._shown_ids
        recent = before >= max(self.written - len(self.ring) // 2, 0)
        same = recent & (packed == self._shown).all(-1)
        present = mask > 0
        ids = np.where(present & same, before, NOTHING)
        fresh = present & ~same
        count = int(fresh.sum())
        ids[fresh] = self.written + np.arange(count)
        self.ring[ids[fresh] % len(self.ring)] = packed[fresh]
        self.written += count
        self._shown, self._shown_ids = packed, ids
        return ids

    def add(
        self,
        obs: Any,
        next_obs: Any,
        action: np.ndarray,
        reward: np.ndarray,
        done: np.ndarray,
        infos: list[dict[str, Any]],
    ) -> None:
        """Keep one step of all environments."""
        for place, seen in enumerate((obs, next_obs)):
            ids = self._write(seen["candidates"], seen["action_mask"])
            self.ids[place, self.pos] = ids
            self.contexts[place, self.pos] = seen["context"]
        cut = np.array([info.get("TimeLimit.truncated", False) for info in infos])
        self.kept["action"][self.pos] = action.reshape(-1)
        self.kept["reward"][self.pos] = reward
        self.kept["done"][self.pos] = done & ~cut
        self.at[self.pos] = self.written
        self.pos = (self.pos + 1) % self.buffer_size
        self.full |= self.pos == 0

    # --- reading

    def valid(self) -> np.ndarray:
        """Return the places of steps whose rows are all still there."""
        places = np.arange(self.buffer_size if self.full else self.pos)
        reach = len(self.ring) // 2 - self._most
        return places[self.written - self.at[places] <= reach]

    def size(self) -> int:
        """Return how many transitions can be drawn."""
        return len(self.valid()) * self.n_envs

    def observation(
        self, after: int, steps: np.ndarray, envs: np.ndarray
    ) -> dict[str, torch.Tensor]:
        """Return observations before (0) or after (1) steps, made from their rows."""
        ids = self.ids[after, steps, envs]
        there = ids != NOTHING
        rows = self.ring[np.where(there, ids, 0) % len(self.ring)].astype(np.float32)
        rows *= self.scale / LEVELS
        rows[~there] = 0
        return {
            "candidates": torch.as_tensor(rows),
            "action_mask": torch.as_tensor(there.astype(np.int8)),
            "context": torch.as_tensor(self.contexts[after, steps, envs]),
        }

    def sample(self, batch_size: int, env: Any = None) -> Any:
        """Draw transitions."""
        steps = self.random.choice(self.valid(), batch_size)
        envs = self.random.integers(self.n_envs, size=batch_size)
        column = {
            name: torch.as_tensor(values[steps, envs]).unsqueeze(1)
            for name, values in self.kept.items()
        }
        return Sample(
            self.observation(0, steps, envs),
            column["action"],
            self.observation(1, steps, envs),
            column["done"],
            column["reward"],
        )

    def save(self) -> dict[str, Any]:
        """Return all of it as arrays."""
        return {
            "ring": self.ring,
            "written": self.written,
            "ids": self.ids,
            "contexts": self.contexts,
            "kept": self.kept,
            "at": self.at,
            "pos": self.pos,
            "full": self.full,
            "shown": self._shown,
            "shown_ids": self._shown_ids,
            "random": save_random(self.random),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Go on from what `save` returned."""
        for name in ("ring", "written", "ids", "contexts", "at", "pos", "full"):
            setattr(self, name, state[name])
        self.kept = dict(state["kept"])
        self._shown, self._shown_ids = state["shown"], state["shown_ids"]
        self.random = load_random(state["random"])


class SetDQN(DQN):
    """DQN that never chooses, explores or bootstraps from what is masked.

    The network itself gives `NEVER` to masked candidates, so the maximum that
    `DQN.train` bootstraps from is one over legal actions.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("replay_buffer_class", RowReplay)
        kwargs.setdefault("device", "cpu")
        super().__init__(*args, **kwargs)
        self.random = np.random.default_rng(self.seed)

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, Any]:
        """Choose by Q-values, or with the exploration rate any legal action."""
        action, state = self.policy.predict(observation, state, episode_start, True)
        if deterministic:
            return action, state
        mask = np.asarray(observation["action_mask"])
        chance = self._any_legal(mask.reshape(-1, mask.shape[-1])).reshape(action.shape)
        explores = self.random.random(action.shape) < self.exploration_rate
        return np.where(explores, chance, action), state

    def _any_legal(self, mask: np.ndarray) -> np.ndarray:
        return (self.random.random(mask.shape) * (mask > 0)).argmax(1)

    def _sample_action(
        self, learning_starts: int, action_noise: Any = None, n_envs: int = 1
    ) -> tuple[np.ndarray, np.ndarray]:
        assert isinstance(self._last_obs, dict)
        if self.num_timesteps < learning_starts:
            action = self._any_legal(self._last_obs["action_mask"])
        else:
            action, _ = self.predict(self._last_obs)
        return action, action


class DQNTrainer:
    """Masked DQN in rounds of a few steps and updates."""

    def __init__(
        self,
        batch: TrainingBatch,
        columns: list[str],
        *,
        seed: int,
        total: int,
        attention: bool,
        rollout: int = 8,
        updates: int = 24,
        batch_size: int = 128,
        buffer: int = 20_000,
        rate: float = 5e-4,
        gamma: float = 0.9,
        start: State | None = None,
    ) -> None:
        network = network_settings(columns, False, attention, seed)
        batch.seed(seed)
        self.batch, self.total, self.updates = batch, total, updates
        self.model = SetDQN(
            SetQPolicy,
            batch,
            learning_rate=rate,
            buffer_size=buffer,
            learning_starts=min(1_000, total // 4),
            batch_size=batch_size,
            gamma=gamma,
            train_freq=rollout,
            gradient_steps=updates,
            target_update_interval=2_000,
            exploration_fraction=0.5,
            exploration_final_eps=0.05,
            replay_buffer_kwargs={"seed": seed},
            policy_kwargs={"network": network},
        )
        self.model.random = np.random.default_rng(seed)
        self.model.set_logger(Logger(None, []))
        if start is not None:
            for net in (self.model.q_net, self.model.q_net_target):
                load_network(net.network, start)  # type: ignore[arg-type]
        _, self.callback = self.model._setup_learn(total)

    @property
    def replay(self) -> RowReplay:
        """The replay buffer."""
        assert isinstance(self.model.replay_buffer, RowReplay)
        return self.model.replay_buffer

    @property
    def steps(self) -> int:
        """Environment steps so far."""
        return self.model.num_timesteps

    def round(self) -> dict[str, float]:
        """Take some steps, then learn from the replay."""
        model = self.model
        model.collect_rollouts(
            self.batch,
            self.callback,
            model.train_freq,  # type: ignore[arg-type]
            self.replay,
            learning_starts=model.learning_starts,
        )
        if model.num_timesteps > model.learning_starts:
            model.train(self.updates, model.batch_size)
        return logged_by(model)

    def arrays(self) -> State:
        """Return the weights as they are now."""
        return self.model.q_net.network.arrays()  # type: ignore[operator]

    def agent(self, world: Any, weights: Weights) -> SetForager:
        """Make a forager with these weights."""
        return SetForager(world, weights, few=None)

    def save(self) -> dict[str, Any]:
        """Return all that the next rounds depend on."""
        model = self.model
        return {
            "network": self.arrays(),
            "target": model.q_net_target.network.arrays(),  # type: ignore[operator]
            "optimizer": save_optimizer(model.policy.optimizer),
            "random": save_random(model.random),
            "replay": self.replay.save(),
            "batch": self.batch.snapshot(),
            "calls": model._n_calls,
            "exploration": model.exploration_rate,
            **save_course(model),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Go on from what `save` returned."""
        model = self.model
        load_network(model.q_net.network, state["network"])  # type: ignore[arg-type]
        load_network(
            model.q_net_target.network,  # type: ignore[arg-type]
            state["target"],
        )
        load_optimizer(model.policy.optimizer, state["optimizer"])
        model.random = load_random(state["random"])
        self.replay.load(state["replay"])
        model._last_obs = self.batch.restore(state["batch"])  # type: ignore[assignment]
        model._n_calls = state["calls"]
        model.exploration_rate = state["exploration"]
        load_course(model, state)
