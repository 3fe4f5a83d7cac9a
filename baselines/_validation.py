"""How good a learner is on tasks that it never trains on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import baselines
from baselines._set_scorer import SetForager, ZSumScorer
from baselines._training_tasks import ValidationTask
from baselines._weights import Weights, columns_of
from baselines.agent import Result, run_episode

RANDOM, ORACLE, Z_SUM = "random_walk", "oracle", "z_sum"
POINTS = 21  # of a harvest curve


class Validation:
    """Fixed tasks, and what the random walk, the z-sum and the oracle get on them.

    A score is an area under the curve of pages found, scaled for each task from the
    random walk (0) to the oracle (1), and then the mean over tasks.
    """

    def __init__(self, tasks: Sequence[ValidationTask]) -> None:
        self.tasks = list(tasks)
        self.areas: dict[str, list[float]] = {}
        self.curves: dict[str, list[float]] = {}

    def prepare(self, tell: Callable[[str], None]) -> None:
        """Run what learners are compared with, unless that was done."""
        for name in (RANDOM, Z_SUM, ORACLE):
            if name not in self.areas:
                tell(f"validation tasks: {name}")
                results = self.run(lambda env, name=name: reference(name, env))
                self.areas[name] = [result.area for result in results]
                self.curves[name] = mean_curve(results)

    def run(self, make: Callable[[Any], Any]) -> list[Result]:
        """Let agents crawl, a new one for each task."""
        results = []
        for task in self.tasks:
            env = task.make()
            agent = make(env)
            results.append(
                run_episode(env, agent, seed=task.seed, options=task.options)
            )
        return results

    def score(self, areas: Sequence[float]) -> float:
        """Return the mean of scaled areas."""
        low, high = np.array(self.areas[RANDOM]), np.array(self.areas[ORACLE])
        span = np.where(high > low, high - low, 1)
        return float(np.mean((np.array(areas) - low) / span))

    @property
    def bar(self) -> float:
        """The score of the z-sum."""
        return self.score(self.areas[Z_SUM])

    def save(self) -> dict[str, Any]:
        """Return what was run for comparison."""
        return {"areas": self.areas, "curves": self.curves}

    def load(self, state: dict[str, Any]) -> None:
        """Take what `save` returned."""
        self.areas, self.curves = dict(state["areas"]), dict(state["curves"])


def mean_curve(results: Sequence[Result]) -> list[float]:
    """Return pages found by equal steps of the budget, the mean over crawls."""
    return np.mean([result.curve(POINTS) for result in results], axis=0).tolist()


def freshness(results: Sequence[Result]) -> float | None:
    """Return the mean freshness of what was found, in News."""
    found = [result.summary.get("freshness") for result in results]
    known = [float(value) for value in found if value is not None]
    return float(np.mean(known)) if known else None


def reference(name: str, env: Any) -> Any:
    """Make an agent to compare with."""
    world = env.unwrapped.world
    if name != Z_SUM or world.rules.kind != "news":
        return baselines.load(name).make(env, 0)
    columns = columns_of(world)
    nothing = Weights({}, {"columns": columns})
    return SetForager(world, nothing, scorer=ZSumScorer(columns), few=None)
