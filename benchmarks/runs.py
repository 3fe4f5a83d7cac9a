"""Runs of agents on the leaderboard's tasks, one JSON row each."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import baselines
import gym_webforage
from baselines.agent import (
    Agent,
    Finds,
    WrongEnvError,
    can_divide,
    make_agent,
    run_episode,
)
from baselines.fleet import FleetResult, hash_events, run_fleet
from benchmarks.code import checksum
from benchmarks.tasks import Task
from benchmarks.work import Row, Work
from gym_webforage.fleet_metrics import population
from gym_webforage.metrics import freshness

__all__ = ["Job", "agent_name", "checksum"]

FORMAT = 1  # of the rows; another number whenever a figure means something else
LIBRARIES = ("numpy", "numba", "scipy", "gymnasium", "pettingzoo")
HEAVY = {"torch": "torch", "sb3_contrib": "sb3-contrib", "sklearn": "scikit-learn"}
COURSE = 49  # moments of a fleet's course that are kept


@dataclass(frozen=True)
class Job(Work):
    """A run to make: it depends on task, agent, seed, the trace's content and code."""

    task: Task
    agent: str  # as `baselines.find` takes it
    seed: int
    digest: str  # of the trace
    code: str  # see `checksum`
    command: str = ""  # what was typed; no part of what a run depends on

    @property
    def key(self) -> Row:
        """What the figures depend on."""
        return {
            "format": FORMAT,
            "task": self.task.key,
            "agent": agent_name(self.agent),
            "seed": self.seed,
            "digest": self.digest,
            "version": gym_webforage.__version__,
            "code": self.code,
        }

    @property
    def label(self) -> str:
        """The run's name for readers."""
        return f"{self.task.id}, {agent_name(self.agent)}, seed {self.seed}"

    @property
    def stem(self) -> str:
        """The first part of the file's name."""
        safe = re.sub(r"[^\w.=-]+", "-", agent_name(self.agent))
        return f"{self.task.id}-{safe}-{self.seed}"

    def outcome(self, row: Row) -> str:
        """Say what was found."""
        if row["status"] == "unsuited":
            return f"takes no part ({row['reason']})"
        return f"{row['result']['found']:,} {self.task.finds}"

    def play(self, folder: Path) -> Row:
        """Make the run."""
        module, trains = _loaded(self.agent)
        crawl = _crawl_alone if self.task.fleet is None else _crawl_together
        try:
            result, agent = crawl(self.task, module, self.seed)
        except Unsuited as error:
            return {"status": "unsuited", "reason": str(error), **self._made()}
        fetches = int(getattr(agent, "training_fetches", 0))
        found: Row = {
            "found": result.found,
            "area": result.area,
            "reward": result.reward,
            "steps": result.steps,
            "fetches": result.fetches,
            "curve": result.curve().tolist(),
            "summary": dict(result.summary),
        }
        if isinstance(result, FleetResult):
            found["events"] = result.event_hash
            found |= _fleet(result, self.task, with_course=self.seed == 0)
        else:
            found["events"] = hash_events(result.events)
        return {
            "privileged": bool(getattr(agent, "privileged", False)),
            "trains": trains or fetches > 0,
            "training_fetches": fetches,
            "learns": type(agent).learn is not Agent.learn,
            "slots": getattr(agent, "slots", None),
            "result": found,
            **self._made(),
        }

    def _made(self) -> Row:
        """Tell with what the row was made, for those who want to make it again."""
        return {
            "made": {
                "versions": versions(),
                "commit": commit(),
                "command": self.command,
            }
        }


@cache
def _loaded(agent: str) -> tuple[Any, bool]:
    """Return an agent's module and whether it trains, looked up once a process."""
    return baselines.load(agent), baselines.trains(agent)


class Unsuited(Exception):
    """An agent cannot take part in a task, such as one for a single crawler alone."""


def _crawl_alone(task: Task, module: Any, seed: int) -> tuple[Any, Agent]:
    env, agent = make_agent(module, task.make, seed)
    return run_episode(env, agent, seed=seed), agent


def _crawl_together(task: Task, module: Any, seed: int) -> tuple[Any, Agent]:
    """Let the foragers of a fleet be of one kind."""
    assert task.fleet is not None
    is_fixed = task.fleet.population == "fixed"
    agents: list[Agent] = []

    def make(env: Any, seed: int) -> Agent:
        agent = module.make(env, seed)
        if not is_fixed and not can_divide(agent):
            raise Unsuited("its agents do not divide")
        agents.append(agent)
        return agent

    slots = getattr(module, "slots", None)
    try:
        if slots is None:  # the agent has to be asked for its view
            env, _ = make_agent(SimpleNamespace(make=make), task.make, seed)
        else:
            env = task.make(slots)
        return run_fleet(env, make, seed=seed), agents[-1]
    except WrongEnvError as error:
        raise Unsuited("made for one crawler alone") from error


def _fleet(result: FleetResult, task: Task, with_course: bool) -> Row:
    """Return what only fleets have."""
    assert task.fleet is not None
    kept: Row = {"births": len(result.births), "deaths": len(result.deaths)}
    if with_course:
        times = np.linspace(result.start, result.end, COURSE).astype(np.int64)
        living = task.fleet.founders + population(result.births, result.deaths, times)
        trace = gym_webforage.load_trace(task.trace)
        kept["course"] = {
            "time": [round((t - result.start) / 3_600_000, 3) for t in times.tolist()],
            "population": living.tolist(),
            "freshness": [
                None if x is None else round(x, 4)
                for x in (freshness(result.events, trace, t)[0] for t in times.tolist())
            ],
            "found": _found_by(result, times),
        }
    return kept


def _found_by(result: Finds, times: np.ndarray) -> list[int]:
    when = np.sort(result.events["time"][result.finds])
    return np.searchsorted(when, times, "right").tolist()


def agent_name(agent: str) -> str:
    """Return an agent's name for readers: that of the file, or of the module."""
    method, colon, settings = agent.partition(":")
    return (Path(method).stem if method.endswith(".py") else method) + colon + settings


# --- what a row is made with


@cache
def _installed(name: str) -> str:
    return metadata.version(name)


def versions() -> dict[str, str]:
    """Return the versions of what figures may depend on."""
    used = [HEAVY[module] for module in HEAVY if module in sys.modules]
    return {
        "python": platform.python_version(),
        "gym_webforage": gym_webforage.__version__,
        **{name: _installed(name) for name in (*LIBRARIES, *used)},
    }


@cache
def commit() -> str:
    """Name the checkout's commit."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        found = subprocess.run(
            command, cwd=baselines.FOLDER, capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return "commit unknown"
    name = found.stdout.strip()
    return f"commit {name}" if name and not found.returncode else "commit unknown"
