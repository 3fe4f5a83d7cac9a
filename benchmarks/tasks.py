"""The tasks of the leaderboard, one line each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym

import gym_webforage  # noqa: F401  registers the environments


@dataclass(frozen=True)
class Task:
    """An environment over a trace with a fixed budget, on what is held out for tests.

    A run's seed decides start, topic and site, the same for all agents.
    """

    id: str
    env: str
    trace: str
    budget: int | str  # fetches, or simulated time
    finds: str  # what is counted, for readers
    options: tuple[tuple[str, Any], ...] = ()  # further arguments of the environment

    @property
    def kind(self) -> str:
        """Which rules it is played by: news, topic or spider."""
        return self.env.removeprefix("WebForage/").removesuffix("-v0").lower()

    def make(self, slots: int | None = None) -> gym.Env[Any, Any]:
        """Make the environment, seen through ``slots``."""
        return gym.make(
            self.env,
            trace=self.trace,
            budget=self.budget,
            split="test",
            slots=slots,
            **dict(self.options),
        )


NEWS, TOPIC, SPIDER = (f"WebForage/{kind}-v0" for kind in ("News", "Topic", "Spider"))

TASKS = (
    Task("news", NEWS, "synthetic-v0", "1d", "novel pages"),
    Task("topic", TOPIC, "synthetic-v0", 1_000, "relevant pages"),
    Task("spider", SPIDER, "synthetic-sites-v0", 1_000, "targets"),
)

# The same on small traces with small budgets: to see whether an agent runs at all.
QUICK = (
    Task("quick-news", NEWS, "synthetic-small-v0", "2h", "novel pages"),
    Task("quick-topic", TOPIC, "synthetic-small-v0", 100, "relevant pages"),
    Task("quick-spider", SPIDER, "synthetic-small-sites-v0", 100, "targets"),
)
