"""Learning from the oracle's values: cloning with a set network, and boosted trees.

Both let a mixture crawl (the oracle, chance, and what was learned so far), so that the
states are those that the learner itself gets into, and ask the oracle about every
candidate there: S. Ross, G. Gordon, D. Bagnell, "A reduction of imitation learning and
structured prediction to no-regret online learning" (2011).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from baselines._oracle_q import OracleQ
from baselines._set_policy import Batch, network_of
from baselines._set_scorer import SetForager, z_scores, z_signs
from baselines._trainer import load_network, load_optimizer, save_optimizer
from baselines._training_envs import TrainingBatch
from baselines._trees import TreeScorer, arrays_of, tree_rows
from baselines._weights import State, Weights
from baselines.agent import load_random, save_random

SHARP = 0.1  # temperature of the oracle's preferences, its best value counting 1
CHANCE = 0.1  # share of random visits

Observation = dict[str, np.ndarray]


class Teacher:
    """Crawls with a mixture of policies, and labels every candidate."""

    def __init__(self, batch: TrainingBatch, seed: int, oracle: float = 0.4) -> None:
        self.batch, self.oracle = batch, oracle
        self.random = np.random.default_rng(seed)
        batch.seed(seed)
        self.observation: Any = batch.reset()
        self._places = batch.worlds()
        self._oracles = [OracleQ(world, number) for world, number in self._places]

    def step(
        self, scores: Callable[[Observation], np.ndarray]
    ) -> tuple[Observation, np.ndarray, np.ndarray]:
        """Take a step; return what was seen, the oracle's values, and the rewards."""
        seen = self.observation
        values = np.stack(
            [
                oracle.values(_slots(world, number, seen["action_mask"][i]))
                for i, (oracle, (world, number)) in enumerate(
                    zip(self._oracles, self._places, strict=True)
                )
            ]
        )
        mask = seen["action_mask"] > 0
        who = self.random.random(len(mask))
        wanted = np.where(mask, scores(seen), -np.inf)
        is_oracle = who < self.oracle
        # Ties of the oracle go by lot: else it would favour low slots.
        lots = self.random.random(mask.shape)
        wanted[is_oracle] = np.where(mask, values + 1e-6 * lots, -np.inf)[is_oracle]
        by_chance = who > 1 - CHANCE
        wanted[by_chance] = np.where(mask, lots, -np.inf)[by_chance]
        self.observation, rewards, _, _ = self.batch.step(wanted.argmax(1))
        return seen, np.where(mask, values, 0), rewards

    def save(self) -> dict[str, Any]:
        """Return the state of crawls and chance."""
        return {"batch": self.batch.snapshot(), "random": save_random(self.random)}

    def load(self, state: dict[str, Any]) -> None:
        """Go on from what `save` returned."""
        self.observation = self.batch.restore(state["batch"])
        self.random = load_random(state["random"])


def _slots(world: Any, number: int, mask: np.ndarray) -> np.ndarray:
    forager = world.foragers[number]
    if not len(forager.slot):  # out of the crawl
        return np.full(len(mask), -1, np.int64)
    return forager.slot_urls().astype(np.int64)


def preferences(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the oracle's preferences as unnormalised logits, and where it has any."""
    best = values.max(axis=1, keepdims=True)
    has_any = (best[:, 0] > 0) & (values < best).any(axis=1)
    return values / np.where(best > 0, best, 1) / SHARP, has_any


class CloneTrainer:
    """A set network that learns to prefer what the oracle prefers."""

    def __init__(
        self,
        batch: TrainingBatch,
        columns: list[str],
        *,
        seed: int,
        residual: bool,
        attention: bool,
        rollout: int = 32,
        epochs: int = 2,
        batch_size: int = 256,
        rate: float = 1e-3,
        start: State | None = None,
    ) -> None:
        self.teacher = Teacher(batch, seed)
        self.network = network_of(
            batch.observation_space,
            signs=z_signs(columns),
            residual=residual,
            attention=attention,
            seed=seed,
        )
        if start is not None:
            load_network(self.network, start)
        self.rollout, self.epochs, self.batch_size = rollout, epochs, batch_size
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=rate)
        self.steps = 0

    def round(self) -> dict[str, float]:
        """Collect labelled steps and learn from them."""
        parts: list[Batch] = []
        wanted, certain, paid = [], [], []
        for _ in range(self.rollout):
            _, values, rewards = self.teacher.step(self._scores)
            parts.append(self._last)
            logits, has_any = preferences(values)
            wanted.append(torch.as_tensor(logits, dtype=torch.float32))
            certain.append(torch.as_tensor(has_any, dtype=torch.float32))
            paid.append(rewards.mean())
            self.steps += len(rewards)
        data = [torch.cat(column) for column in zip(*parts, strict=True)]
        losses, agree = self._learn(data, torch.cat(wanted), torch.cat(certain))
        return {
            "train/loss": losses,
            "train/agreement": agree,
            "rollout/reward": float(np.mean(paid)),
        }

    def _scores(self, seen: Observation) -> np.ndarray:
        with torch.no_grad():
            self._last = self.network.prepare(
                torch.as_tensor(seen["candidates"]),
                torch.as_tensor(seen["action_mask"]).bool(),
                torch.as_tensor(seen["context"]),
            )
            return self.network(*self._last)[0].numpy()

    def _learn(
        self, data: list[torch.Tensor], wanted: torch.Tensor, certain: torch.Tensor
    ) -> tuple[float, float]:
        losses, agreements = [], []
        target = wanted.masked_fill(~data[2], -1e9).softmax(1)
        for _ in range(self.epochs):
            order = torch.as_tensor(self.teacher.random.permutation(len(wanted)))
            for begin in range(0, len(order), self.batch_size):
                at = order[begin : begin + self.batch_size]
                scores, _ = self.network(*(column[at] for column in data))
                logs = scores.log_softmax(1).clamp(min=-50)
                each = -(target[at] * logs).sum(1) * certain[at]
                loss = each.sum() / certain[at].sum().clamp(min=1)
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
                self.optimizer.step()
                with torch.no_grad():
                    best = wanted[at].gather(1, scores.argmax(1, keepdim=True))[:, 0]
                    right = (best >= wanted[at].amax(1) - 1e-6).float() * certain[at]
                losses.append(loss.item())
                agreements.append(float(right.sum() / certain[at].sum().clamp(min=1)))
        return float(np.mean(losses)), float(np.mean(agreements))

    def arrays(self) -> State:
        """Return the weights as they are now."""
        return self.network.arrays()

    def agent(self, world: Any, weights: Weights) -> SetForager:
        """Make a forager with these weights."""
        return SetForager(world, weights, few=None)

    def save(self) -> dict[str, Any]:
        """Return all that the next rounds depend on."""
        return {
            "network": self.arrays(),
            "optimizer": save_optimizer(self.optimizer),
            "teacher": self.teacher.save(),
            "steps": self.steps,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Go on from what `save` returned."""
        load_network(self.network, state["network"])
        load_optimizer(self.optimizer, state["optimizer"])
        self.teacher.load(state["teacher"])
        self.steps = state["steps"]


class TreesTrainer:
    """Boosted trees on the oracle's values, fit anew after each round of crawling."""

    def __init__(
        self,
        batch: TrainingBatch,
        columns: list[str],
        *,
        seed: int,
        rollout: int,
        kept: int = 8,
        trees: int = 100,
        leaves: int = 16,
        rate: float = 0.1,
    ) -> None:
        self.teacher = Teacher(batch, seed, oracle=0.3)
        self.seed, self.rollout, self.kept = seed, rollout, kept
        self.settings = {
            "max_iter": trees,
            "max_leaf_nodes": leaves,
            "learning_rate": rate,
            "min_samples_leaf": 40,
            "early_stopping": False,
            "random_state": seed,
        }
        self.signs = z_signs(columns)
        self.rows: list[np.ndarray] = []
        self.labels: list[np.ndarray] = []
        self.scorer: TreeScorer | None = None
        self._arrays: State = {}
        self.steps = 0

    def round(self) -> dict[str, float]:
        """Crawl, label some candidates of each step, fit."""
        from sklearn.ensemble import HistGradientBoostingRegressor

        paid = []
        for _ in range(self.rollout):
            seen, values, rewards = self.teacher.step(self._scores)
            for i in range(len(values)):
                self._keep(seen, values[i], i)
            paid.append(rewards.mean())
            self.steps += len(rewards)
        rows, labels = np.concatenate(self.rows), np.concatenate(self.labels)
        self.rows, self.labels = [rows], [labels]
        model = HistGradientBoostingRegressor(**self.settings).fit(rows, labels)
        self._arrays = arrays_of(model)
        self.scorer = TreeScorer(self._arrays)
        error = np.square(self.scorer.predict(rows) - labels).mean()
        return {
            "train/loss": float(error),
            "train/explained": float(1 - error / max(labels.var(), 1e-12)),
            "train/rows": float(len(labels)),
            "rollout/reward": float(np.mean(paid)),
        }

    def _keep(self, seen: Observation, values: np.ndarray, i: int) -> None:
        """Keep the best candidate of a step and some others, at random."""
        there = np.flatnonzero(seen["action_mask"][i])
        if len(there) < 2:
            return
        others = self.teacher.random.permutation(there)[: self.kept - 1]
        chosen = np.unique(np.append(others, there[values[there].argmax()]))
        inputs = tree_rows(seen["candidates"][i][there], seen["context"][i])
        self.rows.append(inputs[np.searchsorted(there, chosen)])
        self.labels.append(values[chosen])

    def _scores(self, seen: Observation) -> np.ndarray:
        mask = seen["action_mask"] > 0
        found = np.zeros(mask.shape)
        for i in range(len(mask)):
            rows = seen["candidates"][i][mask[i]]
            if self.scorer is None:
                found[i, mask[i]] = z_scores(rows) @ self.signs
            else:
                inputs = tree_rows(rows, seen["context"][i])
                found[i, mask[i]] = self.scorer.predict(inputs)
        return found

    def arrays(self) -> State:
        """Return the trees as they are now."""
        return self._arrays

    def agent(self, world: Any, weights: Weights) -> SetForager:
        """Make a forager with these trees."""
        return SetForager(world, weights, scorer=TreeScorer(weights.arrays), few=None)

    def save(self) -> dict[str, Any]:
        """Return all that the next rounds depend on."""
        return {
            "teacher": self.teacher.save(),
            "rows": np.concatenate(self.rows),
            "labels": np.concatenate(self.labels),
            "trees": self._arrays,
            "steps": self.steps,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Go on from what `save` returned."""
        self.teacher.load(state["teacher"])
        self.rows, self.labels = [state["rows"]], [state["labels"]]
        self._arrays = dict(state["trees"])
        self.scorer = TreeScorer(self._arrays)
        self.steps = state["steps"]
