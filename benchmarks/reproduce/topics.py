"""Repeated crawls of one topic by one agent: what a run is, and what is kept of it."""

from __future__ import annotations

import re
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import baselines
import gym_webforage
from baselines.agent import forage_env, run_episode
from benchmarks.reproduce.fleets import Web
from benchmarks.runs import checksum
from benchmarks.work import Row, Work, read_row
from gym_webforage import load_trace
from gym_webforage.envs import TopicEnv
from gym_webforage.trace import Trace

POINTS = 10  # of the curves over the budget, as in the paper's figures
FIGURES = ("precision", "area", "recall", "training_fetches")
ROOTS = 2  # for each topic, as in the paper's Table 1


def largest_labels(trace: Trace, count: int) -> list[str]:
    """Return the labels on most pages, the largest first, ties by name."""
    pages = np.bincount(trace.url_label, minlength=len(trace.labels))
    names = sorted(range(len(pages)), key=lambda i: (-pages[i], trace.labels[i]))
    return [trace.labels[i] for i in names[:count] if pages[i] > ROOTS]


def draw_roots(trace: Trace, label: str, seed: int) -> list[int]:
    """Draw pages about the topic that have links, for every crawler the same."""
    candidates = []
    for url in trace.labelled(trace.labels.find(label)).tolist():
        newest = int(trace.version_start[url + 1]) - 1
        if newest < trace.version_start[url]:
            continue
        links = trace.link_start[newest + 1] - trace.link_start[newest]
        if 200 <= trace.version_status[newest] < 300 and links > 1:
            candidates.append(url)
    random = np.random.default_rng([seed, 6])
    chosen = random.permutation(len(candidates))[:ROOTS]
    return [candidates[i] for i in chosen.tolist()]


@dataclass(frozen=True)
class TopicRun(Work):
    """Crawls of one topic from the same roots, one after the other, by one agent."""

    web: Web
    topic: str  # a label
    agent: str  # as `baselines.load` takes it
    seed: int
    budget: int  # fetches of each crawl
    crawls: int  # the last one is what counts
    rules: tuple[tuple[str, Any], ...]
    code: str

    @property
    def key(self) -> Row:
        """What the figures depend on."""
        own = asdict(self)
        del own["web"]
        trace = {"trace": self.web.name, "digest": self.web.digest}
        return {**trace, **own, "version": gym_webforage.__version__}

    @property
    def label(self) -> str:
        """The run's name for readers."""
        judge = "label" if ("relevance", "label") in self.rules else "similarity"
        where = f"{self.web.name}, {self.topic} by {judge}"
        return f"{where}, {self.agent}, seed {self.seed}"

    @property
    def stem(self) -> str:
        """The first part of the file's name."""
        words = f"{self.web.name}-{self.topic}-{self.agent}-{self.seed}"
        return re.sub(r"[^\w.=-]+", "-", words)

    def outcome(self, row: Row) -> str:
        """Say what was found."""
        return f"{row['result']['found']:,} relevant in the last crawl"

    def play(self, folder: Path) -> Row:
        """Make the crawls; keep figures of all and the course of the last."""
        trace = load_trace(self.web.source)
        env = TopicEnv(
            trace,
            topic=self.topic,
            slots=None,
            split="all",
            budget=self.budget,
            **dict(self.rules),
        )
        agent = baselines.load(self.agent).make(env, self.seed)
        options = {"roots": draw_roots(trace, self.topic, self.seed)}
        found, fetches, seconds = [], [], []
        result = None
        for _ in range(self.crawls):
            before = time.process_time()
            result = run_episode(env, agent, seed=self.seed, options=options)
            seconds.append(time.process_time() - before)
            found.append(result.found)
            fetches.append(result.fetches)
        assert result is not None
        total = forage_env(env).world.rules.budget
        assert isinstance(total, int)
        at = np.linspace(0, 1, POINTS + 1)[1:]
        curve = np.searchsorted(result.used[result.finds], at, "right")
        return {
            "result": {
                "found": result.found,
                "precision": result.found / total,
                "area": result.area / total,
                "recall": result.summary["recall"],
                "found_by_crawl": found,
                "precision_by_crawl": [count / total for count in found],
                "curve": curve.tolist(),
                "relevant": result.events["url"][result.finds].tolist(),
                "training_fetches": int(getattr(agent, "training_fetches", 0))
                + sum(fetches[:-1]),
            },
            "timing": {"crawl_cpu_seconds": seconds[-1]},
        }

    @property
    def family(self) -> str:
        """The method; some bring compiled code of their own."""
        return self.agent.partition(":")[0]

    def warm_up(self) -> None:
        """Make a short run."""
        replace(self, budget=20, crawls=1).play(Path())

    def log(self, folder: Path, place: Path) -> None:
        """Write what was found over the fetches, and by crawl."""
        from benchmarks.tensorboard_log import log_curves

        row = read_row(self, folder)
        assert row is not None
        result = row["result"]
        found = result["curve"]
        steps = [round(self.budget * (i + 1) / POINTS) for i in range(POINTS)]
        pairs = list(zip(found, steps, strict=True))
        by_crawl = result["precision_by_crawl"]
        method, options = baselines.split(self.agent)
        log_curves(
            place,
            {
                "found": (steps, found),
                "precision": (steps, [count / step for count, step in pairs]),
                "precision_by_crawl": (range(1, len(by_crawl) + 1), by_crawl),
            },
            {
                "agent": method,
                **options,
                "trace": self.web.name,
                "topic": self.topic,
                "seed": self.seed,
                **dict(self.rules),
            },
            {
                **{f"result/{name}": result[name] or 0.0 for name in FIGURES},
                "result/cpu_seconds": row["timing"]["crawl_cpu_seconds"],
            },
        )


def code(agents: tuple[str, ...]) -> str:
    """Return a checksum of all code that a run depends on."""
    return checksum(*agents, "benchmarks.reproduce.topics")
