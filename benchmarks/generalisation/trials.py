"""A trial: a method, trained on a fold's crawls if need be, on all of its tests."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import baselines
import gym_webforage
from baselines.agent import run_episode
from benchmarks.code import checksum
from benchmarks.generalisation import methods
from benchmarks.generalisation.studies import Crawl, Fold
from benchmarks.work import Row, Work
from gym_webforage import load_trace

MODELS = "models"  # beside the rows


@dataclass(frozen=True)
class Trial(Work):
    """It depends on the fold, the method, the seed and the steps of training."""

    fold: Fold
    method: str
    seed: int
    steps: int  # 0 for methods that are not trained
    digests: tuple[str, ...]  # of the traces
    code: str

    @property
    def key(self) -> Row:
        """What the figures depend on; where the traces lie does not matter."""
        return {
            "study": self.fold.study,
            "fold": self.fold.name,
            "train": [_told(crawl) for crawl in self.fold.train] if self.steps else [],
            "test": [_told(crawl) for crawl in self.fold.test],
            "method": self.method,
            "seed": self.seed,
            "steps": self.steps,
            "digests": list(self.digests),
            "version": gym_webforage.__version__,
            "code": self.code,
        }

    @property
    def label(self) -> str:
        """The trial's name for readers."""
        return f"{self.fold.study}, {self.fold.name}, {self.method}, seed {self.seed}"

    @property
    def stem(self) -> str:
        """The first part of the file's name."""
        return re.sub(r"[^\w.=]+", "-", f"{self.fold.study}-{self.method}-{self.seed}")

    def outcome(self, row: Row) -> str:
        """Say what was found."""
        return f"{sum(row['found']):,} found"

    def play(self, folder: Path) -> Row:
        """Train, then crawl every task with an agent that knows of no other one."""
        began = time.process_time()
        home = folder.parent / MODELS / self.name
        make = methods.prepare(self.method, self.fold, self.seed, self.steps, home)
        trained = time.process_time() - began
        results, training = [], 0
        for crawl in self.fold.test:
            env = crawl.make(slots=None)
            agent = make(env)
            results.append(
                run_episode(env, agent, seed=self.seed, options=dict(crawl.given))
            )
            training = max(training, int(getattr(agent, "training_fetches", 0)))
        return {
            "found": [result.found for result in results],
            "area": [result.area for result in results],
            "fetches": [result.fetches for result in results],
            "training_fetches": training,
            "timing": {"training_cpu_seconds": trained},
        }


def _code(name: str) -> str:
    """Return a checksum of a method's code, and of what trains it."""
    if not methods.is_trained(name):
        return checksum(name)
    here = Path(__file__).parent
    return checksum(name, str(baselines.FOLDER / "train.py"), str(here / "training.py"))


def _told(crawl: Crawl) -> Row:
    """Return a crawl as plain values, its trace by name."""
    row = asdict(crawl)
    row["ground"]["trace"] = crawl.ground.name
    return row


def plan(
    folds: Sequence[Fold], names: Sequence[str], seeds: int, steps: int
) -> list[Trial]:
    """Return all trials; methods only where they are made for the kind."""
    codes = {name: _code(name) for name in names}
    found = []
    for fold in folds:
        kind = fold.test[0].ground.kind
        grounds = [crawl.ground for crawl in (*fold.train, *fold.test)]
        digests = tuple(sorted({load_trace(ground.trace).digest for ground in grounds}))
        for name in names:
            if not methods.plays(name, kind):
                continue
            own = methods.steps_of(name, steps)
            for seed in range(seeds if methods.has_chance(name) else 1):
                found.append(Trial(fold, name, seed, own, digests, codes[name]))
    return found


def warm_up(folds: Sequence[Fold]) -> None:
    """Compile the kernels here, once, and not in every worker at the same time."""
    for crawl in {fold.test[0].ground.kind: fold.test[0] for fold in folds}.values():
        env = crawl.make(slots=None)
        _, info = env.reset(seed=0, options=dict(crawl.given))
        env.step(int(info["action_set"][0]))
