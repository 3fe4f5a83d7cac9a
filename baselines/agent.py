"""What an agent is, and the loop that lets one crawl; `baselines.fleet` has many."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

import gymnasium as gym
import numpy as np

from gym_webforage.envs import ForageEnv
from gym_webforage.envs.fleet import FleetAECEnv
from gym_webforage.envs.run import Info, Observation, Transition, summarize
from gym_webforage.metrics import NOVEL
from gym_webforage.world import World
from gym_webforage.world.rules import parse_budget

State = dict[str, Any]
"""An agent's memory by name: arrays, numbers and text."""


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

    # For fleets only: those whose foragers divide, and those that keep checkpoints.

    def divide(self, rng: np.random.Generator) -> Self:
        """Return a child, which may take over a part of what this agent has."""
        raise TypeError(f"{type(self).__name__} does not divide")

    def save(self) -> State:
        """Return all that the next choices depend on."""
        raise TypeError(f"{type(self).__name__} cannot be saved")

    def load(self, state: State) -> None:
        """Go on from what `save` returned, in a new object of the same maker."""
        raise TypeError(f"{type(self).__name__} cannot be loaded")


def save_random(random: np.random.Generator) -> str:
    """Return the state of a generator as text."""
    return json.dumps(random.bit_generator.state)


def load_random(text: str) -> np.random.Generator:
    """Return a generator that goes on from a saved state."""
    random = np.random.Generator(np.random.PCG64())
    random.bit_generator.state = json.loads(text)
    return random


def check_number(name: str, value: Any, low: float, high: float = math.inf) -> None:
    """Refuse a setting that is no number between two bounds, by its name."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not low <= value <= high:
        allowed = f"{low:g} or more" if math.isinf(high) else f"{low:g} to {high:g}"
        raise ValueError(f"{name} is {value!r}, expected {allowed}")


def check_flag(name: str, value: Any) -> None:
    """Refuse a setting that is neither true nor false, by its name."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} is {value!r}, expected true or false")


class Finds:
    """What a crawl found within its budget, by one crawler or by a whole fleet."""

    events: Mapping[str, np.ndarray]
    """The log, one row a fetch; empty where the environment keeps none."""
    used: np.ndarray
    """The share of the budget that was used when each fetch ended."""

    @property
    def finds(self) -> np.ndarray:
        """Which fetches found something, within the budget.

        Novel pages in News, relevant ones in Topic, targets in Spider. The last step
        may end after the budget: what it fetched too late does not count here, while
        ``summary`` counts all of the last step.
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


@dataclass(frozen=True)
class Result(Finds):
    """How a crawl went."""

    reward: float
    steps: int
    fetches: int
    terminated: bool
    truncated: bool
    events: Mapping[str, np.ndarray]
    used: np.ndarray
    summary: Mapping[str, float | int | None]
    """All metrics of the whole run; see `gym_webforage.metrics`."""


class WrongEnvError(TypeError):
    """An agent is asked to crawl where it cannot, such as in a fleet."""


def forage_env(env: gym.Env[Any, Any]) -> ForageEnv:
    """Return the environment inside its wrappers."""
    inner = env.unwrapped
    if not isinstance(inner, ForageEnv):
        raise WrongEnvError(f"{env} is no environment of gym_webforage for one crawler")
    return inner


def world_of(env: Any) -> World:
    """Return the world inside an environment, be it for one forager or a fleet."""
    inner = env.unwrapped
    if isinstance(inner, FleetAECEnv):
        return inner.fleet.world
    if isinstance(inner, ForageEnv):
        return inner.world
    raise WrongEnvError(f"{env} is no environment of gym_webforage")


def frontier_world(env: Any) -> World:
    """Return the world for an agent that keeps an order of the whole frontier.

    With ``reach="links"`` most of that order is out of reach: a ValueError says so.
    """
    world = world_of(env)
    if world.rules.reach == "links":
        raise ValueError(
            "reach is 'links', expected 'frontier': this agent orders the frontier "
            "and cannot keep to the links of a page"
        )
    return world


def fleet_env(env: Any) -> FleetAECEnv:
    """Return the fleet's environment inside its wrappers."""
    inner = env.unwrapped
    if not isinstance(inner, FleetAECEnv):
        raise WrongEnvError(f"{env} is no fleet in turns of gym_webforage")
    return inner


def can_divide(agent: Agent) -> bool:
    """Say whether an agent brings a `divide` of its own."""
    return getattr(type(agent), "divide", Agent.divide) is not Agent.divide


def make_agent(
    module: Any, make_env: Callable[[int | None], gym.Env[Any, Any]], seed: int
) -> tuple[gym.Env[Any, Any], Agent]:
    """Make an agent and the environment in the view that it wants.

    ``make_env`` takes the number of slots. A module that trains in ``make`` should say
    which view it wants by a ``slots`` of its own, else it may be made twice.
    """
    slots = getattr(module, "slots", None)
    env = make_env(slots)
    agent = module.make(env, seed)
    wanted = getattr(agent, "slots", None)
    if wanted != slots:
        env = make_env(wanted)
        agent = module.make(env, seed)
    return env, agent


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
        used=used_budget(inner.world, events["time"]),
        summary=summarize(inner.world, events),
    )


def used_budget(world: World, times: np.ndarray) -> np.ndarray:
    """Return the share of the budget that was used at the end of each fetch."""
    time, fetches = parse_budget(world.rules.default_budget)
    if fetches > 0:
        return np.arange(1, len(times) + 1) / fetches
    return (times - world.start) / time
