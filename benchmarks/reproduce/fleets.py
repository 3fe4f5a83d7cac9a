"""One fleet's run: what it depends on, how it is made, and what is kept of it."""

from __future__ import annotations

import io
import math
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import baselines
import gym_webforage
from baselines.fleet import run_fleet
from benchmarks.reproduce.course import Series, course, figures
from benchmarks.runs import checksum
from benchmarks.work import Row, Work, run, write_whole
from gym_webforage import fleet_v0, load_trace, save_trace
from gym_webforage.cache import cache_folder
from gym_webforage.trace import Trace
from gym_webforage.world.population import ScorePopulation
from gym_webforage.world.rules import parse_duration

FOUNDERS = 2
MAX_BIRTHS = 4096  # more than were ever seen, so that only the cap limits a population
CHECKPOINTS = "checkpoints"  # beside the folder of rows
KINDS = {
    "weblog": "WL",
    "linear_td": "RL",
    "weblog_td": "WLRL",
    "random_walk": "random",
}


@dataclass(frozen=True)
class Web:
    """A trace to run on."""

    source: str  # name or path
    name: str  # for readers
    digest: str
    length: int  # of the recording, ms
    begin: int


def as_web(trace: Trace, source: str) -> Web:
    """Describe a trace."""
    return Web(source, trace.name, trace.digest, trace.end - trace.begin, trace.begin)


def rewired_web(web: Web, seed: int = 0) -> Web:
    """Return the control of a trace, which is made once and kept in the cache."""
    home = cache_folder("traces")
    if home is None:
        raise OSError("the rewired control needs a cache folder that can be written")
    folder = home / f"{web.name}-rewired-{seed}-{web.digest[:12]}"
    if not (folder / "meta.json").is_file():
        save_trace(load_trace(web.source).rewired(seed), folder)
    return as_web(load_trace(folder), str(folder))


@dataclass(frozen=True)
class FleetRun(Work):
    """A fleet of one kind on one trace."""

    web: Web
    kind: str  # a baseline
    seed: int
    budget: str
    most: int  # foragers
    code: str
    variant: str = ""  # "" for the rules of the paper
    rules: tuple[tuple[str, Any], ...] = ()  # of the world
    fields: tuple[tuple[str, Any], ...] = ()  # of the agent

    @property
    def key(self) -> Row:
        """What the figures depend on."""
        own = asdict(self)
        del own["web"], own["variant"]
        trace = {"trace": self.web.name, "digest": self.web.digest}
        return {**trace, **own, "version": gym_webforage.__version__}

    @property
    def label(self) -> str:
        """The run's name for readers."""
        variant = f", {self.variant}" if self.variant else ""
        where = f"{self.web.name}, {KINDS.get(self.kind, self.kind)}"
        return f"{where}, {self.most} foragers{variant}, seed {self.seed}"

    @property
    def stem(self) -> str:
        """The first part of the file's name."""
        return f"{self.web.name}-{self.kind}-{self.most}-{self.seed}"

    def outcome(self, row: Row) -> str:
        """Say what was found, and by how many."""
        found = row["result"]["summary"]
        return f"{found['relevant']:,} relevant of {found['downloaded']:,} downloaded"

    @property
    def time(self) -> int:
        """How long the run is, in milliseconds: no longer than the recording."""
        return min(parse_duration(self.budget), self.web.length)

    def series_file(self, folder: Path) -> Path:
        """Return the place of what the run keeps of its course."""
        return folder / f"{self.name}.npz"

    def play(self, folder: Path) -> Row:
        """Make the run, continuing one that was interrupted."""
        trace = load_trace(self.web.source)
        env = fleet_v0.env(
            trace,
            founders=FOUNDERS,
            population=ScorePopulation(most=self.most),
            max_births=MAX_BIRTHS,
            slots=None,
            budget=f"{self.time / 1000}s",
            split="all",
            **dict(self.rules),
        )
        checkpoint = folder.parent / CHECKPOINTS / self.name
        inner: Any = env.unwrapped
        norms = Norms(lambda: inner.fleet.world.clock)
        result = run_fleet(
            env,
            self.maker(),
            seed=self.seed,
            options={"start": self.web.begin},
            on_step=norms,
            checkpoint=checkpoint,
        )
        series = course(result, trace, FOUNDERS, norms.rows)
        folder.mkdir(parents=True, exist_ok=True)
        with io.BytesIO() as buffer:
            np.savez_compressed(buffer, allow_pickle=False, **series)
            write_whole(self.series_file(folder), buffer.getvalue())
        if checkpoint.is_dir():
            checkpoint.rmdir()  # the run has emptied it
        return {
            "result": {
                **figures(result, trace, FOUNDERS, series),
                "event_hash": result.event_hash,
            },
            "timing": {"fleet_cpu_seconds": result.cpu_seconds},
        }

    @property
    def family(self) -> str:
        """The baseline; its agents bring compiled code of their own."""
        return self.kind

    def warm_up(self) -> None:
        """Make a short run."""
        with tempfile.TemporaryDirectory() as folder:
            run(replace(self, budget="20m"), Path(folder) / "rows")

    def log(self, folder: Path, place: Path) -> None:
        """Write the course of the fleet."""
        from benchmarks.tensorboard_log import log_series

        series = read_series(self, folder)
        log_series(place, series, start=self.web.begin, title=self.label)

    def maker(self) -> Any:
        """Return the baseline, its agents made with this run's options."""
        module = baselines.load(self.kind)
        if not self.fields:
            return module

        def make(env: Any, seed: int) -> Any:
            agent = replace(module.make(env, seed), **dict(self.fields))
            agent.reset(seed)
            return agent

        return make


class Norms:
    """Lengths of the foragers' weight vectors, looked at every now and then."""

    EVERY = 32  # steps

    def __init__(self, clock: Callable[[], int]) -> None:
        self.clock = clock
        self.rows: list[tuple[int, float]] = []  # time, length
        self._steps = 0

    def __call__(self, name: str, agent: Any, transition: Any) -> None:
        """Look at the agent that has just taken a step."""
        self._steps += 1
        if self._steps % self.EVERY:
            return
        weights = getattr(agent, "weights", None)
        if weights is not None:
            self.rows.append((self.clock(), math.hypot(*weights)))


def code() -> str:
    """Return a checksum of all code that a run depends on."""
    own = [f"benchmarks.reproduce.{name}" for name in ("fleets", "course")]
    return checksum(*KINDS, *own)


def read_series(run: FleetRun, folder: Path) -> Series:
    """Return what a run kept of its course."""
    with np.load(run.series_file(folder), allow_pickle=False) as kept:
        return {name: kept[name] for name in kept.files}
