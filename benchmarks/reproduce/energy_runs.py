"""One run of an energy population: what it depends on, and what is kept of it."""

from __future__ import annotations

import io
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import baselines
import gym_webforage
from baselines.fleet import FleetResult, run_fleet
from benchmarks.reproduce.fleets import Web
from benchmarks.runs import checksum
from benchmarks.work import Row, Work, read_row, run, write_whole
from gym_webforage import TraceError, fleet_v0, load_trace
from gym_webforage.metrics import NOVEL
from gym_webforage.trace import Trace
from gym_webforage.world.energy import EnergyPopulation
from gym_webforage.world.topic import Topic, topic_of_label

AGENT = "energy_forager"
FOUNDERS = 200
MOST = 2_000
ROOTS, ROOT_CHOICE = 3, 10
FEWEST_LINKS = 5  # of a root, lest a crawl begins in a dead end
FIGURES = ("fetches", "last", "highest", "lowest", "births", "precision", "harvest")
GRID = 200  # points of a course

Options = tuple[tuple[str, Any], ...]
Series = dict[str, np.ndarray]


def topics(trace: Trace, number: int) -> list[str]:
    """Return the labels that most pages have."""
    counts = np.bincount(trace.url_label, minlength=len(trace.labels))
    if len(counts) < number:
        reason = f"{trace.name} has {len(counts)} labels, expected at least {number}"
        raise TraceError("labels", reason)
    order = np.argsort(-counts, kind="stable")[:number]
    return [trace.labels[int(label)] for label in order]


def best_pages(trace: Trace, topic: Topic, number: int) -> np.ndarray:
    """Return the URLs of the pages most similar to a topic, those with few links aside.

    Pages are taken as they were recorded last.
    """
    newest = trace.version_start[1:] - 1
    urls = np.flatnonzero(np.diff(trace.version_start) > 0)
    links = np.diff(trace.link_start)[newest[urls]]
    text = trace.version_text[newest[urls]]
    urls, text = (x[(links >= FEWEST_LINKS) & (text >= 0)] for x in (urls, text))
    weight = trace.body_count * trace.idf[trace.body_token]
    weight = weight * topic.weights[trace.body_token]
    total = np.concatenate([[0.0], np.cumsum(weight)])
    start, norm = trace.body_start, trace.text_norm[text]
    value = (total[start[text + 1]] - total[start[text]]) / np.where(norm > 0, norm, 1)
    return urls[np.argsort(-value, kind="stable")[:number]]


@dataclass(frozen=True)
class EnergyRun(Work):
    """A population of one kind on one trace and topic."""

    web: Web
    setting: str  # for readers
    population: Options
    rules: Options
    topic: str
    seed: int
    pages: int
    code: str
    variant: str = ""
    agent: str = AGENT

    @property
    def key(self) -> Row:
        """What the figures depend on."""
        own = asdict(self)
        del own["web"], own["variant"], own["setting"]
        trace = {"trace": self.web.name, "digest": self.web.digest}
        return {**trace, **own, "version": gym_webforage.__version__}

    @property
    def label(self) -> str:
        """The run's name for readers."""
        variant = f", {self.variant}" if self.variant else ""
        return f"{self.web.name}, {self.setting}{variant}, seed {self.seed}"

    @property
    def stem(self) -> str:
        """The first part of the file's name."""
        return f"{self.web.name}-energy-{self.seed}"

    def outcome(self, row: Row) -> str:
        """Say how the population fared."""
        found = row["result"]
        end = "stopped at the cap, " if found["stopped"] else ""
        return f"{end}{found['last']} live after {found['fetches']:,} visits"

    def series_file(self, folder: Path) -> Path:
        """Return the place of what the run keeps of its course."""
        return folder / f"{self.name}.npz"

    def play(self, folder: Path) -> Row:
        """Make the run."""
        trace = load_trace(self.web.source)
        population = EnergyPopulation(most=MOST, **dict(self.population))
        env = fleet_v0.env(
            trace,
            kind="topic",
            reach="links",
            founders=FOUNDERS,
            population=population,
            slots=None,
            split="all",
            budget=self.pages,
            **dict(self.rules),
        )
        best = best_pages(trace, topic_of_label(trace, self.topic), ROOT_CHOICE)
        random = np.random.default_rng([self.seed, 2])
        roots = random.permutation(best)[:ROOTS].tolist()
        result = run_fleet(
            env,
            baselines.load(self.agent),
            seed=self.seed,
            options={"topic": self.topic, "roots": roots},
        )
        series = course(result, self.pages)
        folder.mkdir(parents=True, exist_ok=True)
        with io.BytesIO() as buffer:
            np.savez_compressed(buffer, allow_pickle=False, **series)
            write_whole(self.series_file(folder), buffer.getvalue())
        return {
            "result": {**figures(result, population), "event_hash": result.event_hash},
            "timing": {"fleet_cpu_seconds": result.cpu_seconds},
        }

    def warm_up(self) -> None:
        """Make a short run."""
        with tempfile.TemporaryDirectory() as folder:
            run(replace(self, pages=50), Path(folder) / "rows")

    def log(self, folder: Path, place: Path) -> None:
        """Write the course of the population."""
        from benchmarks.tensorboard_log import log_curves

        row, series = read_row(self, folder), read_course(self, folder)
        assert row is not None
        result = row["result"]
        visits = series["visits"].tolist()
        names = {name: name for name in ("precision", "different")}
        names |= {f"population/{x}": x for x in ("living", "energy", "left", "balance")}
        options = {**dict(self.population), **dict(self.rules)}
        log_curves(
            place,
            {tag: (visits, series[name].tolist()) for tag, name in names.items()},
            {
                "agent": self.agent,
                "trace": self.web.name,
                "topic": self.topic,
                "seed": self.seed,
                **{
                    name: ",".join(value) if isinstance(value, tuple) else value
                    for name, value in options.items()
                },
            },
            {
                **{f"result/{name}": result[name] for name in FIGURES},
                "result/stopped": float(bool(result["stopped"])),
                "result/cpu_seconds": row["timing"]["fleet_cpu_seconds"],
            },
        )


def course(result: FleetResult, pages: int) -> Series:
    """Return population, energy and precision by the number of visits.

    What was stopped or has died out goes on as NaN or 0; precision is the share of
    relevant ones among the different pages visited so far.
    """
    events, history = result.events, result.history
    at = np.unique(np.linspace(1, pages, GRID).astype(np.int64))
    seen = at[at <= result.fetches] - 1
    first = np.zeros(len(events["url"]), bool)
    first[np.unique(events["url"], return_index=True)[1]] = True
    different = np.cumsum(first & (events["url"] >= 0))
    relevant = np.cumsum(events["flags"] & NOVEL > 0)

    def fill(values: np.ndarray, rest: float) -> np.ndarray:
        filled = np.full(len(at), rest)
        filled[: len(seen)] = values[seen]
        return filled

    precision = relevant / np.maximum(1, different)
    after = np.nan if result.stopped else 0.0
    return {
        "visits": at,
        "living": fill(history["living"], after),
        "energy": fill(history["energy"], after),
        "left": fill(history["left"], np.nan),
        "balance": fill(history["balance"], np.nan),
        "precision": fill(precision, np.nan),
        "different": fill(different.astype(np.float64), np.nan),
    }


def figures(result: FleetResult, population: EnergyPopulation) -> dict[str, Any]:
    """Return the figures of a run."""
    living = result.history["living"]
    settled = living[len(living) // 5 :]  # from 200 founders on to where it tends
    upper = population.upper or 250
    urls = result.events["url"]
    relevant = int(np.count_nonzero(result.events["flags"] & NOVEL))
    different = len(np.unique(urls[urls >= 0]))
    last = 0 if not len(living) else int(living[-1])
    return {
        "fetches": result.fetches,
        "stopped": result.stopped or "",
        "last": last,
        "as_it_ended": MOST if result.stopped else last,
        "highest": int(living.max(initial=0)),
        "lowest": int(living.min(initial=FOUNDERS)),
        "range": float(np.log10((settled.max() + 1) / (settled.min() + 1)))
        if len(settled)
        else None,
        "near_upper": float(np.mean(settled >= 0.9 * upper)) if len(settled) else None,
        "births": len(result.births),
        "different": different,
        "relevant": relevant,
        "precision": relevant / max(1, different),
        "harvest": relevant / max(1, result.fetches),
    }


def read_course(one: EnergyRun, folder: Path) -> Series:
    """Return what a run kept of its course."""
    with np.load(one.series_file(folder), allow_pickle=False) as kept:
        return {name: kept[name] for name in kept.files}


def code() -> str:
    """Return a checksum of all code that a run depends on."""
    return checksum(AGENT, "random_walk", "benchmarks.reproduce.energy_runs")
