"""The loop that lets a fleet of agents crawl, with births, deaths and checkpoints."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from baselines import _checkpoint
from baselines.agent import (
    Agent,
    Finds,
    Observation,
    Transition,
    fleet_env,
    load_random,
    save_random,
    summarize,
    used_budget,
)
from gym_webforage.world.rules import parse_duration

Maker = Callable[[Any, int], Agent] | ModuleType
"""``make(env, seed)``, or a module that offers it."""

CHECKPOINT = "checkpoint.npz"


@dataclass(frozen=True)
class FleetResult(Finds):
    """How the crawl of a fleet went. Times are in milliseconds."""

    reward: float
    steps: int
    fetches: int
    start: int
    end: int
    events: Mapping[str, np.ndarray] = field(repr=False)
    used: np.ndarray = field(repr=False)
    history: Mapping[str, np.ndarray] = field(repr=False)
    """Scores at the end of every slice: time, forager, score."""
    births: Sequence[tuple[int, int, int]]
    """Time, parent and child of each birth; foragers are numbered by birth."""
    deaths: Sequence[tuple[int, int]]
    """Time and forager of each death."""
    agents: Mapping[str, Agent] = field(repr=False)
    """Those that lived to the end, by the forager's name."""
    summary: Mapping[str, float | int | None] = field(repr=False)
    """All metrics of the whole run; see `gym_webforage.metrics`."""
    event_hash: str
    """SHA-256 of the log: equal for equal runs."""
    cpu_seconds: float
    """CPU time of environment and agents, without checkpoints."""
    stopped: str | None = None
    """Why a population that grew too large was stopped; all else is up to there."""


def hash_events(events: Mapping[str, np.ndarray]) -> str:
    """Return a checksum of a log."""
    total = hashlib.sha256()
    for name in sorted(events):
        column = events[name]
        total.update(f"{name} {column.dtype.str} {column.shape}\n".encode())
        total.update(column.tobytes())
    return total.hexdigest()


def run_fleet(
    env: Any,
    makers: Maker | Sequence[Maker],
    *,
    seed: int,
    options: dict[str, Any] | None = None,
    on_step: Callable[[str, Agent, Transition], None] | None = None,
    checkpoint: Path | str | None = None,
    checkpoint_every: str = "1d",
    resume: bool = True,
) -> FleetResult:
    """Let a fleet of agents crawl in turns until the episode ends.

    Args:
        env: What `gym_webforage.fleet_v0.env` returns.
        makers: Make the founders' agents, in this order, and from the first again if
            there are more founders; children come from `Agent.divide`.
        seed: Sets what ``env`` draws, and all chance of all agents.
        options: Handed to ``env.reset``.
        on_step: Sees every step, with the forager's name and its agent, after the
            agent has learned from it. The last step of one that dies is not learned
            from, nor seen.
        checkpoint: A folder for this run alone. The whole state is kept there from
            time to time, and a run that was killed goes on from it as if nothing had
            happened. At the end of the run it is removed.
        checkpoint_every: How often, in simulated time.
        resume: Whether to go on from a checkpoint, if there is one.
    """
    run = _Run(env, makers, seed, options)
    file = None if checkpoint is None else Path(checkpoint) / CHECKPOINT
    if file is not None and resume and file.exists():
        run.load(_checkpoint.read(file))
    else:
        run.begin()
    every = parse_duration(checkpoint_every, "checkpoint_every")
    world = run.inner.fleet.world
    while run.inner.agents:
        passed = (world.clock - world.start) // every
        run.go_on(world.start + (passed + 1) * every if file else None, on_step)
        if file is not None and run.inner.agents:
            _checkpoint.write(file, run.save())
    if file is not None:
        _checkpoint.remove(file)
    return run.result()


class _Run:
    """A run of a fleet and all its state."""

    def __init__(
        self,
        env: Any,
        makers: Maker | Sequence[Maker],
        seed: int,
        options: dict[str, Any] | None,
    ) -> None:
        makers = list(makers) if isinstance(makers, Sequence) else [makers]
        if not makers:
            raise ValueError("makers is empty, expected at least one")
        self.env = env
        self.inner = fleet_env(env)
        self.make = [m.make if isinstance(m, ModuleType) else m for m in makers]
        self.seed = seed
        self.options = options
        self.agents: dict[str, Agent] = {}
        self.maker_of: dict[str, int] = {}  # which maker made it, or its first ancestor
        self.reward, self.steps, self.cpu_seconds = 0.0, 0, 0.0
        # The environment draws from the seed itself; what is spawned differs from it.
        for_agents, for_births = np.random.SeedSequence(seed).spawn(2)
        self.for_agents = for_agents
        self.random = np.random.default_rng(for_births)

    def begin(self) -> None:
        """Start the crawl with new agents."""
        self.env.reset(seed=self.seed, options=self.options)
        names = list(self.inner.agents)
        seeds = self.for_agents.generate_state(len(names), np.uint64).tolist()
        for number, (name, seed) in enumerate(zip(names, seeds, strict=True)):
            self.maker_of[name] = number % len(self.make)
            self.agents[name] = self._make(name, seed)
            self.agents[name].reset(seed)

    def _make(self, name: str, seed: int) -> Agent:
        agent = self.make[self.maker_of[name]](self.env, seed)
        slots = getattr(agent, "slots", None)
        if slots != self.inner.crew.slots:
            raise ValueError(
                f"slots is {self.inner.crew.slots}, "
                f"expected {slots} for {type(agent).__name__}"
            )
        return agent

    def go_on(
        self,
        until: int | None,
        on_step: Callable[[str, Agent, Transition], None] | None,
    ) -> None:
        """Let the agents act, until a time or the end."""
        began = time.process_time()
        env, world = self.inner, self.inner.fleet.world
        name = ""
        observation: Observation = {}
        while env.agents:
            if env.agent_selection != name:
                name = env.agent_selection
                observation = env.observe(name)
            if env.truncations[name]:
                # So are all, and of thousands none need take its last, empty step.
                for other in [one for one in env.agents if env.terminations[one]]:
                    del self.agents[other], self.maker_of[other]
                env.agents.clear()
                break
            if env.terminations[name]:
                del self.agents[name], self.maker_of[name]
                env.step(None)
                name = ""
                continue
            if until is not None and world.clock >= until:
                break
            agent = self.agents[name]
            action = agent.act(observation, env.infos[name])
            env.step(action)
            reward = env.rewards[name]
            self.reward += reward
            self.steps += 1
            if env.terminations[name]:
                continue
            info = env.infos[name]
            after = env.observe(name)
            transition = Transition(
                observation, action, reward, after, False, env.truncations[name], info
            )
            agent.learn(transition)
            for child in info["children"]:
                self.agents[child] = agent.divide(self.random)
                self.maker_of[child] = self.maker_of[name]
            if on_step is not None:
                on_step(name, agent, transition)
            observation = after
        self.cpu_seconds += time.process_time() - began

    def result(self) -> FleetResult:
        """Return how it went."""
        fleet = self.inner.fleet
        events = self.inner.events()
        return FleetResult(
            reward=self.reward,
            steps=self.steps,
            fetches=fleet.world.fetches,
            start=fleet.world.start,
            end=fleet.world.clock,
            events=events,
            used=used_budget(fleet.world, events["time"]),
            history=fleet.history,
            births=list(fleet.births),
            deaths=list(fleet.deaths),
            agents=dict(self.agents),
            summary=summarize(fleet.world, events),
            event_hash=hash_events(events),
            cpu_seconds=self.cpu_seconds,
            stopped=fleet.stopped,
        )

    # --- checkpoints

    def _identity(self) -> dict[str, Any]:
        """What must be the same for a run to go on."""
        crew, fleet = self.inner.crew, self.inner.fleet
        return {
            "seed": self.seed,
            "options": repr(self.options),
            "makers": [_name(make) for make in self.make],
            "trace": crew.trace.digest,
            "rules": repr(crew.rules),
            "population": repr(fleet.population),
            "founders": fleet.founders,
            "slice": fleet.slice_time,
            "max_births": fleet.max_births,
        }

    def save(self) -> dict[str, Any]:
        """Return the whole state as plain arrays and values."""
        return {
            "identity": self._identity(),
            "env": self.inner.snapshot(),
            "agents": {name: agent.save() for name, agent in self.agents.items()},
            "maker_of": self.maker_of,
            "random": save_random(self.random),
            "reward": self.reward,
            "steps": self.steps,
            "cpu_seconds": self.cpu_seconds,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from what `save` returned."""
        mine, kept = self._identity(), state["identity"]
        other = [key for key in mine if mine[key] != kept.get(key)]
        if other:
            raise ValueError(
                f"the checkpoint is of another run ({', '.join(other)} differ); "
                "resume=False starts anew"
            )
        # The reset only makes the wrappers ready.
        self.env.reset(seed=self.seed, options=self.options)
        self.inner.restore(state["env"])
        self.maker_of = dict(state["maker_of"])
        for name, memory in state["agents"].items():
            self.agents[name] = self._make(name, 0)
            self.agents[name].load(memory)
        self.random = load_random(state["random"])
        self.reward = state["reward"]
        self.steps = state["steps"]
        self.cpu_seconds = state["cpu_seconds"]


def _name(make: Any) -> str:
    return f"{make.__module__}.{getattr(make, '__qualname__', type(make).__name__)}"
