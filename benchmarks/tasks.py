"""The tasks of the leaderboard, one line each.

A task is an environment over a trace with a fixed budget, played on what is held out
for tests. A run's seed decides start, topic and site, the same for all agents. Tasks of
one group are ranked together. Those marked ``core`` make up the usual run; ``--full``
takes all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gym_webforage.trace import Trace, load_trace
from gym_webforage.world.rules import Kind

FINDS: dict[Kind, str] = {
    "news": "novel pages",
    "topic": "relevant pages",
    "spider": "targets",
}
GROUPS = {
    "news": "News: novel pages",
    "topic": "Topic: relevant pages",
    "spider": "Spider: targets",
    "fleet-news": "Fleets: novel pages",
    "fleet-topic": "Fleets: relevant pages",
    "fleet-spider": "Fleets: targets",
}


@dataclass(frozen=True)
class Fleet:
    """Several foragers in turns, on one clock."""

    founders: int
    population: Literal["fixed", "score", "energy"] = "fixed"

    def __str__(self) -> str:
        """Say it in a few words."""
        return f"{self.founders} foragers, {self.population} population"


@dataclass(frozen=True)
class Task:
    """What is to be done, and within which budget."""

    id: str
    kind: Kind
    trace: str  # a name or a path
    budget: int | str  # fetches, or simulated time; a fleet's foragers share it
    options: tuple[tuple[str, Any], ...] = ()  # further arguments of the environment
    fleet: Fleet | None = None
    core: bool = False

    @property
    def group(self) -> str:
        """Which tasks it is ranked together with."""
        return f"fleet-{self.kind}" if self.fleet else self.kind

    @property
    def finds(self) -> str:
        """What is counted, for readers."""
        return FINDS[self.kind]

    @property
    def trace_name(self) -> str:
        """The trace's name for readers, without its place."""
        return Path(self.trace).name

    @property
    def title(self) -> str:
        """Say what the task is."""
        unit = " fetches" if isinstance(self.budget, int) else ""
        by = f", {self.fleet}" if self.fleet else ""
        return f"{self.finds} in {self.budget}{unit} on {self.trace_name}{by}"

    @property
    def key(self) -> dict[str, Any]:
        """What the figures depend on, as JSON can say it."""
        own = asdict(self)
        del own["core"]
        return {**own, "trace": self.trace_name, "options": dict(self.options)}

    @classmethod
    def from_key(cls, key: dict[str, Any], trace: str | None = None) -> Task:
        """Return the task of a row; its trace may stand elsewhere now."""
        fleet = Fleet(**key["fleet"]) if key["fleet"] else None
        own = {**key, "options": tuple(key["options"].items()), "fleet": fleet}
        return cls(**{**own, "trace": trace or key["trace"]})

    def make(self, slots: int | None = None) -> Any:
        """Make the environment, seen through ``slots``."""
        import gymnasium as gym

        import gym_webforage  # noqa: F401  registers the environments
        from gym_webforage import fleet_v0

        arguments = {
            "trace": held(self.trace),
            "budget": self.budget,
            "split": "test",
            "slots": slots,
            **dict(self.options),
        }
        if self.fleet is None:
            return gym.make(f"WebForage/{self.kind.capitalize()}-v0", **arguments)
        fleet = asdict(self.fleet)
        return fleet_v0.env(kind=self.kind, max_births=4_096, **fleet, **arguments)


@lru_cache(maxsize=8)
def held(trace: str) -> Trace:
    """Load a trace and keep it for the next run of this process."""
    return load_trace(trace)


# News of a site that changes every other year, at the site's own pace.
SLOW = (("fetch_seconds", 86_400), ("max_age", "365d"))
LABEL = (("relevance", "label"),)  # the similarity that is usual fits the synthetic
FOUR, SCORE, ENERGY = Fleet(4), Fleet(2, "score"), Fleet(10, "energy")

TASKS = (
    Task("news", "news", "synthetic-v0", "1d", core=True),
    Task("news-rewired", "news", "synthetic-rewired-v0", "1d"),
    Task("news-calm", "news", "synthetic-calm-v0", "1d", core=True),
    Task("news-fast", "news", "synthetic-fast-v0", "1d", core=True),
    Task("news-sites", "news", "synthetic-sites-v0", "1d"),
    Task("news-sqlalchemy", "news", "sqlalchemy-docs-v0", "1500d", SLOW, core=True),
    Task("topic", "topic", "synthetic-v0", 1_000, core=True),
    Task("topic-rewired", "topic", "synthetic-rewired-v0", 1_000),
    Task("topic-sites", "topic", "synthetic-sites-v0", 1_000),
    Task("topic-python", "topic", "python-docs-v0", 100, LABEL, core=True),
    Task("topic-sqlalchemy", "topic", "sqlalchemy-docs-v0", 50, LABEL, core=True),
    Task("spider", "spider", "synthetic-sites-v0", 1_000, core=True),
    Task("spider-one-site", "spider", "synthetic-v0", 1_000),
    Task("spider-rewired", "spider", "synthetic-rewired-v0", 1_000),
    Task("spider-python", "spider", "python-docs-v0", 100, core=True),
    Task("fleet-news", "news", "synthetic-v0", "1d", fleet=FOUR),
    Task("fleet-news-score", "news", "synthetic-v0", "2d", fleet=SCORE, core=True),
    Task("fleet-news-fast", "news", "synthetic-fast-v0", "2d", fleet=SCORE),
    Task("fleet-topic", "topic", "synthetic-v0", 1_000, fleet=FOUR),
    Task("fleet-topic-energy", "topic", "synthetic-v0", 1_000, fleet=ENERGY),
    Task("fleet-spider", "spider", "synthetic-sites-v0", 1_000, fleet=FOUR),
)

# The same on small traces with small budgets: to see whether an agent runs at all.
QUICK = (
    Task("quick-news", "news", "synthetic-small-v0", "2h"),
    Task("quick-topic", "topic", "synthetic-small-v0", 100),
    Task("quick-spider", "spider", "synthetic-small-sites-v0", 100),
    Task("quick-fleet", "news", "synthetic-small-v0", "2h", fleet=SCORE),
)


# --- traces of users

DAY = 86_400_000  # milliseconds


def tasks_on(trace: str) -> list[Task]:
    """Return the tasks that fit a trace: what it holds decides which kinds do.

    News needs pages with several versions in time, Spider targets, Topic labels. Small
    sites have small budgets, and those that seldom change a clock that runs faster.
    """
    loaded = load_trace(trace)
    place = str(Path(trace).resolve()) if Path(trace).exists() else trace
    tasks = []
    pages = int(np.count_nonzero(np.diff(loaded.version_start)))
    fetches = int(np.clip(pages // 5, 20, 1_000))
    if np.any(np.diff(loaded.version_start) > 1):
        budget, options = _pace(loaded)
        tasks.append(Task(f"news-{loaded.name}", "news", place, budget, options))
    if len(loaded.labels) and len(loaded.vocabulary):
        tasks.append(Task(f"topic-{loaded.name}", "topic", place, fetches, LABEL))
    if loaded.url_target.any():
        tasks.append(Task(f"spider-{loaded.name}", "spider", place, fetches))
    return [task for task in tasks if _can_be_made(task)]


def _pace(trace: Trace) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """Return a budget for News, and how fast the clock runs."""
    third = (trace.end - trace.begin) // 3  # what is held out for tests
    moments = len(np.unique(trace.version_seen))
    if (trace.end - trace.begin) / max(1, moments) <= DAY:
        return f"{min(DAY, third) // 1000}s", ()
    return f"{min(1_500 * DAY, third) // 1000}s", SLOW


def _can_be_made(task: Task) -> bool:
    """Say whether a trace has all that a kind needs, such as labels on many pages."""
    try:
        task.make()
    except ValueError:
        return False
    return True


def chosen(tasks: Sequence[Task], names: Sequence[str] | None) -> list[Task]:
    """Return the tasks of these ids or groups, all if none is named."""
    if not names:
        return list(tasks)
    for name in names:
        if not any(name in _names(task) for task in tasks):
            known = ", ".join(task.id for task in tasks)
            groups = ", ".join(dict.fromkeys(task.group for task in tasks))
            raise LookupError(
                f"there is no task {name!r}: {known}; or a group: {groups}"
            )
    return [task for task in tasks if any(name in _names(task) for name in names)]


def _names(task: Task) -> tuple[str, ...]:
    return task.id, task.id.removeprefix("quick-"), task.group
