"""Runs of agents on the leaderboard's tasks, one JSON row each."""

from __future__ import annotations

import hashlib
import re
from dataclasses import asdict, dataclass
from pathlib import Path

import baselines
import gym_webforage
from baselines.agent import forage_env, make_agent, run_episode
from benchmarks.tasks import Task
from benchmarks.work import Row, Work


@dataclass(frozen=True)
class Job(Work):
    """A run to make: it depends on task, agent, seed, the trace's content and code."""

    task: Task
    agent: str  # as `baselines.find` takes it
    seed: int
    digest: str  # of the trace
    code: str  # see `checksum`
    logdir: str = ""  # where TensorBoard's files go; no part of what a run depends on

    @property
    def key(self) -> Row:
        """What the figures depend on."""
        return {
            "task": asdict(self.task),
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
        return f"{row['result']['found']:,} {self.task.finds}"

    def play(self, folder: Path) -> Row:
        """Make the run."""
        env, agent = make_agent(baselines.load(self.agent), self.task.make, self.seed)
        result = run_episode(env, agent, seed=self.seed)
        if self.logdir:
            from benchmarks.tensorboard_log import log_run

            world = forage_env(env).world
            hours = max(0.1, (world.clock - world.start) / 3_600_000 / 24)
            log_run(
                Path(self.logdir) / self.stem,
                result,
                world.trace,
                start=world.start,
                end=world.clock,
                hours=min(3.0, hours),
            )
        return {
            "privileged": bool(getattr(agent, "privileged", False)),
            "training_fetches": int(getattr(agent, "training_fetches", 0)),
            "result": {
                "found": result.found,
                "area": result.area,
                "reward": result.reward,
                "steps": result.steps,
                "fetches": result.fetches,
                "curve": result.curve().tolist(),
                "summary": dict(result.summary),
            },
        }


def agent_name(agent: str) -> str:
    """Return an agent's name for readers: that of the file, or of the module."""
    method, colon, settings = agent.partition(":")
    return (Path(method).stem if method.endswith(".py") else method) + colon + settings


def checksum(*agents: str) -> str:
    """Return a checksum of the code that a run depends on.

    That is the package (but not how traces are recorded, nor its command line), the
    agents' files and what baselines share.
    """
    home = Path(gym_webforage.__file__).parent
    package = [
        file
        for file in sorted(home.rglob("*.py"))
        if file.relative_to(home).parts[0] not in ("cli", "record")
    ]
    total = hashlib.sha256()
    loops = [baselines.FOLDER / f"{name}.py" for name in baselines.LOOPS]
    shared = [*loops, *sorted(baselines.FOLDER.glob("_*.py"))]
    own = [baselines.find(agent) for agent in agents]
    for file in [*package, *shared, *own]:
        total.update(file.read_bytes())
    return total.hexdigest()[:20]
