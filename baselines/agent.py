"""What an agent is, and the loop that lets one crawl."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import numpy as np

from gym_webforage.envs import ForageEnv
from gym_webforage.metrics import NOVEL, count_relevant, summary
from gym_webforage.world.rules import parse_budget

Observation = Mapping[str, np.ndarray]
Info = Mapping[str, Any]


class Transition(NamedTuple):
    """One step: what was seen, done and found. ``info`` describes its end."""

    observation: Observation
    action: int
    reward: float
    next_observation: Observation
    terminated: bool
    truncated: bool
    info: Info


class Agent(Protocol):
    """Chooses the next URL; may learn from what it finds.

    Inherit from it and write `act`, or bring any object that has these members.
    """

    slots: int | None = None
    """The view it wants: None for URL ids, or the number of slots."""

    privileged: bool = False
    """Whether it looks into the trace, as oracles do."""

    training_fetches: int = 0
    """Fetches of crawls that it learned from before the one that is measured."""

    def reset(self, seed: int | None = None) -> None:
        """Start a crawl. What was learned is kept; a new object forgets."""

    def act(self, observation: Observation, info: Info) -> int:
        """Return one action out of the action set."""
        raise NotImplementedError

    def learn(self, transition: Transition) -> None:
        """Take in what a step has brought; called after every step."""


@dataclass(frozen=True)
class Result:
    """How a crawl went."""

    reward: float
    steps: int
    fetches: int
    terminated: bool
    truncated: bool
    events: Mapping[str, np.ndarray]
    """The log, one row a fetch; empty where the environment keeps none."""
    used: np.ndarray
    """The share of the budget that was used when each fetch ended."""
    summary: Mapping[str, float | int | None]
    """All metrics of the whole run; see `gym_webforage.metrics`."""

    @property
    def finds(self) -> np.ndarray:
        """Which fetches found something, within the budget.

        Novel pages in News, relevant ones in Topic, targets in Spider. The last step
        may end after the budget: what it found too late does not count.
        """
        return (self.events["flags"] & NOVEL > 0) & (self.used <= 1)

    @property
    def found(self) -> int:
        """How many pages that count were found within the budget."""
        return int(np.count_nonzero(self.finds))

    @property
    def area(self) -> float:
        """The area under the curve of pages found against the share of budget used.

        It is the mean over the whole budget of what was found so far: of two crawls
        that find the same pages, the one that is sooner has more. A crawl that ends
        early keeps what it has to the end of the budget.
        """
        return float(np.sum(1 - self.used[self.finds]))

    def curve(self, points: int = 21) -> np.ndarray:
        """Return how much was found by equal steps of the budget, from none to all."""
        shares = np.linspace(0, 1, points)
        return np.searchsorted(self.used[self.finds], shares, "right")


def forage_env(env: gym.Env[Any, Any]) -> ForageEnv:
    """Return the environment inside its wrappers."""
    inner = env.unwrapped
    if not isinstance(inner, ForageEnv):
        raise TypeError(f"{env} is no environment of gym_webforage")
    return inner


def run_episode(
    env: gym.Env[Any, Any],
    agent: Agent,
    *,
    seed: int | None,
    options: dict[str, Any] | None = None,
    on_step: Callable[[Transition], None] | None = None,
) -> Result:
    """Let ``agent`` crawl until the episode ends.

    The seed sets what ``env`` draws (start, topic, site) and the agent's own chance;
    ``on_step`` sees every step after the agent has learned from it.
    """
    agent.reset(seed)
    observation, info = env.reset(seed=seed, options=options)
    total, steps = 0.0, 0
    terminated = truncated = False
    while not (terminated or truncated):
        action = agent.act(observation, info)
        after, reward, terminated, truncated, info = env.step(action)
        reward = float(reward)
        step = Transition(
            observation, action, reward, after, terminated, truncated, info
        )
        agent.learn(step)
        if on_step is not None:
            on_step(step)
        observation = after
        total += reward
        steps += 1
    inner = forage_env(env)
    events = inner.events()
    return Result(
        reward=total,
        steps=steps,
        fetches=inner.world.fetches,
        terminated=terminated,
        truncated=truncated,
        events=events,
        used=_used(inner, events["time"]),
        summary=_summary(inner, events),
    )


def _used(env: ForageEnv, times: np.ndarray) -> np.ndarray:
    """Return the share of the budget that was used at the end of each fetch."""
    time, fetches = parse_budget(env.rules.default_budget)
    if fetches > 0:
        return np.arange(1, len(times) + 1) / fetches
    return (times - env.world.start) / time


def _summary(
    env: ForageEnv, events: Mapping[str, np.ndarray]
) -> dict[str, float | int | None]:
    world, rules = env.world, env.rules
    fetches = parse_budget(rules.default_budget)[1]
    assert env.episode is not None
    relevant = count_relevant(
        env.trace,
        kind=env.kind,
        time=world.start,
        site=env.episode.site,
        topic=env.episode.topic,
        threshold=rules.threshold,
        by_label=rules.relevance == "label",
    )
    return summary(
        events,
        env.trace,
        start=world.start,
        end=world.clock,
        kind=env.kind,
        total_relevant=relevant,
        budget=fetches if fetches > 0 else None,
    )
