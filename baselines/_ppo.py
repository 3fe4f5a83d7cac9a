"""PPO for set policies: sb3-contrib's, its rollout kept as the network takes it.

Z-scores are computed once a rollout and not once an epoch, masks and distributions are
not checked again for every minibatch, and all chance comes from generators of its own,
whose state a checkpoint keeps.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.buffers import MaskableDictRolloutBuffer
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.utils import explained_variance, obs_as_tensor

from baselines._set_policy import Batch, SetPolicy
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
from baselines._weights import Weights
from baselines.agent import load_random, save_random


class SetRollout(MaskableDictRolloutBuffer):
    """Steps of all crawls, with observations as `SetNetwork.prepare` made them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._batch: Batch | None = None
        super().__init__(*args, **kwargs)

    def reset(self) -> None:
        """Begin a rollout; the memory is used again."""
        shape = (self.buffer_size, self.n_envs)
        if self._batch is None:
            self.rewards = np.zeros(shape, np.float32)
            self.returns = np.zeros(shape, np.float32)
            self.advantages = np.zeros(shape, np.float32)
            self.values = np.zeros(shape, np.float32)
            self.log_probs = np.zeros(shape, np.float32)
            self.episode_starts = np.zeros(shape, np.float32)
            self.actions = np.zeros(shape, np.int64)
        self.pos, self.full = 0, False

    def keep(
        self,
        batch: Batch,
        actions: np.ndarray,
        values: torch.Tensor,
        log_probs: torch.Tensor,
        starts: np.ndarray,
    ) -> int:
        """Keep one step of all environments; return its place, for the rewards."""
        if self._batch is None:
            size = self.buffer_size
            made = [
                torch.empty((size, *part.shape), dtype=part.dtype) for part in batch
            ]
            self._batch = made[0], made[1], made[2], made[3]
        at = self.pos
        for kept, part in zip(self._batch, batch, strict=True):
            kept[at] = part
        self.actions[at] = actions
        self.values[at] = values.squeeze(1).numpy()
        self.log_probs[at] = log_probs.numpy()
        self.episode_starts[at] = starts
        self.pos += 1
        self.full = self.pos == self.buffer_size
        return at

    def minibatches(self, size: int, random: np.random.Generator):
        """Yield all steps once, in random order, ``size`` at a time."""
        assert self._batch is not None and self.full
        total = self.buffer_size * self.n_envs
        flat = [part.flatten(0, 1) for part in self._batch]
        others = [
            torch.as_tensor(column.reshape(-1))
            for column in (
                self.actions,
                self.values,
                self.log_probs,
                self.advantages,
                self.returns,
            )
        ]
        order = torch.as_tensor(random.permutation(total))
        for begin in range(0, total, size):
            chosen = order[begin : begin + size]
            yield (
                tuple(part[chosen] for part in flat),
                *(column[chosen] for column in others),
            )


class SetPPO(MaskablePPO):
    """MaskablePPO for a `SetPolicy`: the same updates in less time."""

    policy: SetPolicy  # type: ignore[assignment]
    rollout_buffer: SetRollout  # type: ignore[assignment]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("rollout_buffer_class", SetRollout)
        kwargs.setdefault("device", "cpu")
        super().__init__(*args, **kwargs)
        self.random = np.random.default_rng(self.seed)
        self.env_seconds = 0.0  # CPU time inside the environment

    def collect_rollouts(
        self,
        env: Any,
        callback: Any,
        rollout_buffer: Any,
        n_rollout_steps: int,
        use_masking: bool = True,
    ) -> bool:
        """Fill the rollout; the masks are those of the observations."""
        assert self._last_obs is not None
        self.policy.set_training_mode(False)
        rollout_buffer.reset()
        callback.on_rollout_start()
        for _ in range(n_rollout_steps):
            with torch.no_grad():
                batch = self._prepared(self._last_obs)
                chosen, values, logs = self.policy.choose(batch)
            actions = chosen.numpy()
            began = time.process_time()
            observation, rewards, dones, infos = env.step(actions)
            self.env_seconds += time.process_time() - began
            self.num_timesteps += env.num_envs
            callback.update_locals(locals())
            if not callback.on_step():
                return False
            self._update_info_buffer(infos, dones)
            at = rollout_buffer.keep(
                batch, actions, values, logs, self._last_episode_starts
            )
            rollout_buffer.rewards[at] = rewards
            self._add_what_follows(rollout_buffer, at, infos, dones)
            self._last_obs, self._last_episode_starts = observation, dones
        with torch.no_grad():
            last = self.policy.network(*self._prepared(self._last_obs))[1]
        rollout_buffer.compute_returns_and_advantage(
            last_values=last, dones=self._last_episode_starts
        )
        callback.on_rollout_end()
        return True

    def _prepared(self, observation: Any) -> Batch:
        return self.policy.prepare(obs_as_tensor(observation, self.device))

    def _add_what_follows(
        self, buffer: SetRollout, at: int, infos: list[dict[str, Any]], dones: Any
    ) -> None:
        """Where only the budget ended a crawl, add the value of where it stood."""
        for i in np.flatnonzero(dones):
            if not infos[i].get("TimeLimit.truncated", False):
                continue
            last = {k: v[None] for k, v in infos[i]["terminal_observation"].items()}
            with torch.no_grad():
                value = self.policy.network(*self._prepared(last))[1]
            buffer.rewards[at, i] += self.gamma * float(value)

    def train(self) -> None:
        """Update the policy from the rollout."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        clip = float(self.clip_range(self._current_progress_remaining))  # type: ignore
        assert self.batch_size is not None
        logged: dict[str, list[float]] = {}
        for _ in range(self.n_epochs):
            for batch in self.rollout_buffer.minibatches(self.batch_size, self.random):
                for name, value in self._update(batch, clip).items():
                    logged.setdefault(name, []).append(value)
            if self.target_kl and logged["approx_kl"][-1] > 1.5 * self.target_kl:
                break
        self._n_updates += self.n_epochs
        explained = explained_variance(
            self.rollout_buffer.values.flatten(), self.rollout_buffer.returns.flatten()
        )
        for name, values in logged.items():
            self.logger.record(f"train/{name}", float(np.mean(values)))
        self.logger.record("train/explained_variance", float(explained))

    def _update(self, minibatch: Any, clip: float) -> dict[str, float]:
        batch, actions, _, old_logs, advantages, returns = minibatch
        values, logs, entropy = self.policy.evaluate(batch, actions)
        if self.normalize_advantage and len(advantages) > 1:
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        change = logs - old_logs
        ratio = change.exp()
        policy_loss = -torch.min(
            advantages * ratio, advantages * ratio.clamp(1 - clip, 1 + clip)
        ).mean()
        value_loss = torch.nn.functional.mse_loss(values.squeeze(1), returns)
        loss = policy_loss - self.ent_coef * entropy.mean() + self.vf_coef * value_loss
        optimizer = self.policy.optimizer
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(
            self.policy.network.parameters(), self.max_grad_norm
        )
        optimizer.step()
        with torch.no_grad():
            return {
                "policy_loss": policy_loss.item(),
                "value_loss": value_loss.item(),
                "entropy": float(entropy.mean()),
                "approx_kl": float((ratio - 1 - change).mean()),
                "clip_fraction": float(((ratio - 1).abs() > clip).float().mean()),
            }


class PPOTrainer:
    """Masked PPO in rounds of one rollout each."""

    def __init__(
        self,
        batch: TrainingBatch,
        columns: list[str],
        *,
        seed: int,
        total: int,
        residual: bool,
        attention: bool,
        rollout: int = 64,
        epochs: int = 4,
        batch_size: int = 256,
        rate: float = 1e-3,
        gamma: float = 0.95,
        entropy: float = 0.003,
        start: dict[str, np.ndarray] | None = None,
    ) -> None:
        network = network_settings(columns, residual, attention, seed)
        batch.seed(seed)
        self.batch, self.total = batch, total
        self.model = SetPPO(
            SetPolicy,
            batch,
            n_steps=rollout,
            batch_size=batch_size,
            n_epochs=epochs,
            learning_rate=lambda left: rate * max(left, 0.1),
            gamma=gamma,
            gae_lambda=0.9,
            ent_coef=entropy,
            seed=None,
            policy_kwargs={"network": network},
        )
        self.model.random = np.random.default_rng(seed)
        self.model.set_logger(Logger(None, []))
        if start is not None:
            load_network(self.model.policy.network, start)
        _, self.callback = self.model._setup_learn(total)

    @property
    def steps(self) -> int:
        """Environment steps so far."""
        return self.model.num_timesteps

    def round(self) -> dict[str, float]:
        """Collect a rollout and learn from it."""
        model = self.model
        model.collect_rollouts(
            self.batch, self.callback, model.rollout_buffer, model.n_steps
        )
        model._update_current_progress_remaining(model.num_timesteps, self.total)
        model.train()
        return logged_by(model)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the weights as they are now."""
        return self.model.policy.network.arrays()

    def agent(self, world: Any, weights: Weights) -> SetForager:
        """Make a forager with these weights."""
        return SetForager(world, weights, few=None)

    def save(self) -> dict[str, Any]:
        """Return all that the next rounds depend on."""
        model = self.model
        return {
            "network": self.arrays(),
            "optimizer": save_optimizer(model.policy.optimizer),
            "generator": model.policy.generator.get_state().numpy(),
            "random": save_random(model.random),
            "batch": self.batch.snapshot(),
            "starts": np.asarray(model._last_episode_starts),
            **save_course(model),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Go on from what `save` returned."""
        model = self.model
        load_network(model.policy.network, state["network"])
        load_optimizer(model.policy.optimizer, state["optimizer"])
        model.policy.generator.set_state(torch.tensor(state["generator"]))
        model.random = load_random(state["random"])
        model._last_obs = self.batch.restore(state["batch"])  # type: ignore[assignment]
        model._last_episode_starts = np.array(state["starts"])
        load_course(model, state)
