"""Learning the prior of `prior_bandit`: some crawls a round, a fit to all so far.

The bandit crawls with the prior learned so far, so that candidates are those that it
gets to choose from; the trace tells which of them would have paid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from baselines._oracle_q import OracleQ
from baselines._training_envs import TrainingBatch
from baselines._training_tasks import ENVS, Source
from baselines._weights import State, Weights
from baselines.agent import Transition, load_random, save_random
from baselines.prior_bandit import PriorBandit, make_bandit

EVERY = 4  # steps between two looks at the frontier
BEST, RANDOM = 16, 16  # candidates that are looked at: the best, and some by lot


class PriorTrainer:
    """Crawls training tasks, and keeps of each what a regression needs."""

    def __init__(
        self,
        batch: TrainingBatch,
        columns: list[str],
        sources: Sequence[Source],
        *,
        seed: int,
        crawls: int = 8,
        ridge: float = 0.02,
        doubt: float = 20.0,
    ) -> None:
        if any(source.kind == "news" for source in sources):
            raise ValueError("prior_bandit is for topic and spider, not for news")
        for name, value in (("crawls", crawls), ("ridge", ridge), ("doubt", doubt)):
            if value <= 0:
                raise ValueError(f"{name} is {value}, expected a positive number")
        self.batch, self.columns, self.sources = batch, columns, list(sources)
        self.episodes = [source.episodes() for source in sources]
        self.random = np.random.default_rng(seed)
        self.crawls, self.ridge, self.doubt = crawls, ridge, doubt
        size = len(columns) + 2  # link text and a constant
        self.products = np.zeros((0, size, size))  # of each crawl: means of x x'
        self.moments = np.zeros((0, size))  # of x y
        self.squares = np.zeros(0)  # of y y
        self.counts = np.zeros(0)  # candidates looked at
        self.steps = 0

    def round(self) -> dict[str, float]:
        """Crawl some tasks, drawn from one source after the other; fit after each."""
        told = [self._learn_from_one() for _ in range(self.crawls)]
        return {key: float(np.mean([one[key] for one in told])) for key in told[0]}

    def _learn_from_one(self) -> dict[str, float]:
        place = len(self.counts) % len(self.sources)
        source = self.sources[place]
        drawn = self.episodes[place].draw(self.random)
        env = ENVS[source.kind](
            source.trace, split="all", slots=None, topic=drawn.topic, **source.rules()
        )
        learned = Weights(self.arrays(), {"columns": self.columns})
        agent = make_bandit(env.world, learned if len(self.counts) else None)
        options: dict[str, Any] = {"start": drawn.start, "roots": drawn.roots.tolist()}
        if drawn.site >= 0:
            options["site"] = drawn.site
        rows, pays, fetches, found = self._crawl(env, agent, options)
        self._keep(rows, pays)
        self.steps += fetches
        self.batch.fetches += fetches
        return {
            "train/noise": float(self.arrays()["noise"][0]),
            "train/paying": float(pays.mean()),
            "rollout/reward": found / max(1, fetches),
        }

    def _crawl(
        self, env: Any, agent: PriorBandit, options: dict[str, Any]
    ) -> tuple[np.ndarray, np.ndarray, int, float]:
        """Return candidates on the way, whether they pay, fetches, and pages found."""
        observation, info = env.reset(seed=0, options=options)
        oracle = OracleQ(env.world)
        rows, pays, found, step, ended = [], [], 0.0, 0, False
        while not ended:
            action = agent.act(observation, info)
            if step % EVERY == 0:
                features = agent.features(info)
                chosen = self._some(features @ agent.weights)
                rows.append(features[chosen])
                urls = np.asarray(info["action_set"])[chosen].astype(np.int64)
                pays.append(oracle.pays(urls))
            after, reward, terminated, truncated, info = env.step(action)
            agent.learn(
                Transition(
                    observation, action, reward, after, terminated, truncated, info
                )
            )
            found += info["novel"]
            observation, ended = after, terminated or truncated
            step += 1
        return np.concatenate(rows), np.concatenate(pays), env.world.fetches, found

    def _some(self, values: np.ndarray) -> np.ndarray:
        best = np.argsort(-values, kind="stable")[:BEST]
        return np.unique(
            np.append(best, self.random.integers(len(values), size=RANDOM))
        )

    def _keep(self, rows: np.ndarray, pays: np.ndarray) -> None:
        count = len(rows)
        product, moment = rows.T @ rows / count, rows.T @ pays / count
        self.products = np.concatenate([self.products, product[None]])
        self.moments = np.concatenate([self.moments, moment[None]])
        self.squares = np.append(self.squares, np.square(pays).mean())
        self.counts = np.append(self.counts, count)

    def arrays(self) -> State:
        """Fit: mean, covariance in units of the noise, and the noise's variance."""
        size = len(self.columns) + 2
        crawls = max(1, len(self.counts))
        diagonal = np.eye(size)
        product = self.products.sum(axis=0) / crawls + self.ridge * diagonal
        mean = np.linalg.solve(product, self.moments.sum(axis=0) / crawls)
        errors = self.squares - 2 * self.moments @ mean
        errors += np.einsum("i,cij,j->c", mean, self.products, mean)
        noise = max(float(errors.mean()) if len(errors) else 1.0, 1e-4)
        spread = np.zeros((size, size))
        for own, moment, count in zip(
            self.products, self.moments, self.counts, strict=True
        ):
            # Weights of this crawl alone, as far as its candidates can tell.
            away = np.linalg.solve(
                count * own + self.doubt * diagonal, count * (moment - own @ mean)
            )
            spread += np.outer(away, away) / crawls
        sphere = np.trace(spread) / size * diagonal
        return {
            "mean": mean,
            "covariance": (spread + sphere) / (2 * noise),
            "noise": np.array([noise]),
        }

    def agent(self, world: Any, weights: Weights) -> PriorBandit:
        """Make a bandit with this prior."""
        return make_bandit(world, weights)

    def save(self) -> dict[str, Any]:
        """Return all that the next rounds depend on."""
        return {
            "random": save_random(self.random),
            "products": self.products,
            "moments": self.moments,
            "squares": self.squares,
            "counts": self.counts,
            "steps": self.steps,
            "fetches": self.batch.fetches,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Go on from what `save` returned."""
        self.random = load_random(state["random"])
        self.products, self.moments = state["products"], state["moments"]
        self.squares, self.counts = state["squares"], state["counts"]
        self.steps, self.batch.fetches = state["steps"], state["fetches"]
