"""A policy over a set of candidates, for PPO and DQN of Stable-Baselines3.

One small network encodes every candidate, from its columns and their z-scores over the
set; what the set has in common (mean, maximum, optionally a few attention summaries,
the context) steers the score that each gets. Exchanging two candidates exchanges their
scores and changes nothing else. As a *residual* the score is added to the sum of
z-scores, and is zero before training. The mask comes from the observation, so that no
caller can forget it.

After: M. Zaheer et al., "Deep Sets" (2017); J. Lee et al., "Set Transformer" (2019),
for attention as pooling.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.distributions import MaskableDistribution
from sb3_contrib.common.maskable.policies import MaskableMultiInputActorCriticPolicy
from stable_baselines3.common.type_aliases import Schedule
from stable_baselines3.dqn.policies import DQNPolicy
from torch import nn

from baselines._set_scorer import CLIP, FLAT
from baselines._weights import State

NEVER = -1e9  # the score of what is not there
WIDE, NARROW, SUMMARY, QUERIES = 64, 32, 128, 2

Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]
"""Inputs (n, slots, 2 d), z-sum (n, slots), mask (n, slots), context (n, c)."""


class SetNetwork(nn.Module):
    """Scores for candidates, and a value of the whole."""

    def __init__(
        self,
        columns: int,
        contexts: int,
        signs: np.ndarray,
        *,
        residual: bool = False,
        attention: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.residual, self.attention = residual, attention
        pooled = 2 * NARROW + contexts + (QUERIES * NARROW if attention else 0)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.encode = nn.Sequential(
                nn.Linear(2 * columns, WIDE),
                nn.ReLU(),
                nn.Linear(WIDE, NARROW),
                nn.ReLU(),
            )
            if attention:
                self.queries = nn.Parameter(torch.randn(QUERIES, NARROW) / NARROW**0.5)
            self.summary = nn.Linear(pooled, SUMMARY)
            self.steer = nn.Linear(SUMMARY, NARROW, bias=False)
            self.join = nn.Linear(NARROW, NARROW)
            self.score = nn.Linear(NARROW, 1, bias=False)
            self.value = nn.Sequential(
                nn.Linear(pooled, SUMMARY), nn.ReLU(), nn.Linear(SUMMARY, 1)
            )
        with torch.no_grad():  # begins as an even choice, or as the z-sum
            self.score.weight.mul_(0.0 if residual else 0.1)
        # A sum of z-scores is wide: as it is, hardly anything would be explored.
        scale = torch.full((), -0.5 * math.log(columns))
        self.log_scale = nn.Parameter(scale, requires_grad=residual)
        self.register_buffer("signs", torch.as_tensor(signs, dtype=torch.float32))

    def prepare(
        self, rows: torch.Tensor, mask: torch.Tensor, context: torch.Tensor
    ) -> Batch:
        """Return what `forward` takes; it has no weights, so once is enough."""
        present = mask.to(rows.dtype).unsqueeze(-1)
        count = present.sum(1, keepdim=True).clamp(min=1)
        middle = (rows * present).sum(1, keepdim=True) / count
        apart = (rows - middle) * present
        spread = ((apart * apart).sum(1, keepdim=True) / count).sqrt()
        scaled = apart / spread.clamp(min=FLAT) * (spread > FLAT)
        signs = self.signs
        assert isinstance(signs, torch.Tensor)
        base = scaled @ signs
        return torch.cat([rows, scaled.clamp(-CLIP, CLIP)], -1), base, mask, context

    def forward(
        self,
        inputs: torch.Tensor,
        base: torch.Tensor,
        mask: torch.Tensor,
        context: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return scores (n, slots), those of absent candidates `NEVER`, and values."""
        hidden = self.encode(inputs)
        present = mask.unsqueeze(-1)
        # All is positive after the last ReLU, so zeros never win the maximum.
        kept = hidden * present
        count = mask.sum(1, keepdim=True).clamp(min=1)
        pooled = [kept.sum(1) / count, kept.amax(1)]
        if self.attention:
            logits = (hidden @ self.queries.T).masked_fill(~present, NEVER)
            shares = logits.softmax(1)
            pooled.append((shares.transpose(1, 2) @ kept).flatten(1))
        whole = torch.cat([*pooled, context], 1)
        steer = self.steer(self.summary(whole).relu())
        joined = (self.join(hidden) + steer.unsqueeze(1)).relu()
        scores = self.score(joined).squeeze(-1)
        if self.residual:
            scores = scores + self.log_scale.exp() * base
        return scores.masked_fill(~mask, NEVER), self.value(whole)

    def arrays(self) -> State:
        """Return the weights as arrays by name."""
        return {name: value.numpy().copy() for name, value in self.state_dict().items()}


def network_of(space: spaces.Space[Any], **settings: Any) -> SetNetwork:
    """Make a network for an observation space."""
    assert isinstance(space, spaces.Dict)
    candidates, context = space["candidates"], space["context"]
    assert candidates.shape is not None and context.shape is not None
    if len(candidates.shape) != 2:
        raise ValueError("a set policy takes candidates as rows; use flat=False")
    columns = candidates.shape[1]
    signs = settings.pop("signs", None)
    signs = np.zeros(columns, np.float32) if signs is None else np.asarray(signs)
    return SetNetwork(columns, context.shape[0], signs, **settings)


def masked(observation: Any) -> torch.Tensor:
    """Return which candidates are there; where none is, the first, to choose at all."""
    mask = observation["action_mask"].bool()
    nothing = ~mask.any(1)
    if nothing.any():
        mask = mask.clone()
        mask[nothing, 0] = True
    return mask


class SetPolicy(MaskableMultiInputActorCriticPolicy):
    """Actor and critic over a set of candidates.

    The mask stands in the observation; ``action_masks`` may narrow it further.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Schedule,
        network: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self._settings = dict(network or {})
        assert isinstance(observation_space, spaces.Dict)
        super().__init__(observation_space, action_space, lr_schedule, **kwargs)

    def _build(self, lr_schedule: Schedule) -> None:
        self.network = network_of(self.observation_space, **self._settings)
        # Sampling has a generator of its own: nothing depends on the global one.
        self.generator = torch.Generator()
        self.generator.manual_seed(self._settings.get("seed", 0))
        self.mlp_extractor = nn.Identity()  # type: ignore[assignment]
        self.action_net = nn.Identity()  # type: ignore[assignment]
        self.value_net = nn.Identity()  # type: ignore[assignment]
        self.optimizer = self.optimizer_class(
            self.network.parameters(),
            lr=lr_schedule(1),  # type: ignore[call-arg]
            **self.optimizer_kwargs,
        )

    def prepare(self, obs: Any, action_masks: Any = None) -> Batch:
        """Return an observation as the network takes it."""
        mask = masked(obs)
        if action_masks is not None:
            given = torch.as_tensor(action_masks, dtype=torch.bool).reshape(mask.shape)
            mask = mask & given
        return self.network.prepare(obs["candidates"], mask, obs["context"])

    def sample(self, scores: torch.Tensor) -> torch.Tensor:
        """Draw an action from each row of scores."""
        noise = torch.empty_like(scores).exponential_(generator=self.generator)
        return (scores - noise.log()).argmax(1)  # the Gumbel trick

    def choose(
        self, batch: Batch, deterministic: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return actions, values and the actions' log probabilities."""
        scores, values = self.network(*batch)
        actions = scores.argmax(1) if deterministic else self.sample(scores)
        logs = scores.log_softmax(1).gather(1, actions.unsqueeze(1)).squeeze(1)
        return actions, values, logs

    def evaluate(
        self, batch: Batch, actions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return values, log probabilities of actions, and entropies."""
        scores, values = self.network(*batch)
        logs = scores.log_softmax(1)
        entropy = -(logs.exp() * logs.clamp(min=-1e4)).sum(1)
        return values, logs.gather(1, actions.unsqueeze(1)).squeeze(1), entropy

    # --- what sb3-contrib calls

    def forward(
        self, obs: Any, deterministic: bool = False, action_masks: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return actions, values and log probabilities."""
        return self.choose(self.prepare(obs, action_masks), deterministic)

    def evaluate_actions(
        self, obs: Any, actions: torch.Tensor, action_masks: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Return values, log probabilities of actions, and entropies."""
        return self.evaluate(self.prepare(obs, action_masks), actions)

    def get_distribution(
        self, obs: Any, action_masks: Any = None
    ) -> MaskableDistribution:
        """Return the distribution over actions as sb3-contrib has it."""
        batch = self.prepare(obs, action_masks)
        scores, _ = self.network(*batch)
        distribution = self.action_dist.proba_distribution(action_logits=scores)
        distribution.apply_masking(batch[2].numpy())
        return distribution

    def predict_values(self, obs: Any) -> torch.Tensor:
        """Return the value of observations."""
        return self.network(*self.prepare(obs))[1]

    def _predict(
        self, observation: Any, deterministic: bool = False, action_masks: Any = None
    ) -> torch.Tensor:
        return self.choose(self.prepare(observation, action_masks), deterministic)[0]


class SetQNetwork(nn.Module):
    """Q-values of candidates: the value of the whole, and each one's score."""

    def __init__(self, network: SetNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, obs: Any) -> torch.Tensor:
        """Return Q-values, `NEVER` where there is no candidate."""
        batch = self.network.prepare(obs["candidates"], masked(obs), obs["context"])
        scores, value = self.network(*batch)
        return scores.where(~batch[2], scores + value)

    def _predict(self, obs: Any, deterministic: bool = True) -> torch.Tensor:
        return self(obs).argmax(1)

    def set_training_mode(self, mode: bool) -> None:
        """Switch between training and evaluation."""
        self.train(mode)


class SetQPolicy(DQNPolicy):
    """Q-network and target network over a set of candidates."""

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Discrete,
        lr_schedule: Schedule,
        network: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self._settings = dict(network or {})
        super().__init__(observation_space, action_space, lr_schedule, **kwargs)

    def make_q_net(self) -> Any:
        """Make one of the two."""
        return SetQNetwork(network_of(self.observation_space, **self._settings))
