"""What the papers' reports share: settings, runs sorted by what they are, tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.reproduce import pictures, verdicts
from benchmarks.reproduce.course import Series
from benchmarks.reproduce.fleets import (
    FleetRun,
    Web,
    as_web,
    read_series,
)
from benchmarks.reproduce.verdicts import Interval
from benchmarks.standings import markdown
from benchmarks.work import Row, Work
from gym_webforage import load_trace
from gym_webforage.trace.structure import distinct_links, nodes_of, structure

NONE = "-"
SPARE_SEEDS = 5  # of a variant, at most


@dataclass(frozen=True)
class Settings:
    """What the command line asks for."""

    quick: bool
    seeds: int
    traces: tuple[str, ...] = ()

    @property
    def spare_seeds(self) -> int:
        """How many seeds a variant gets."""
        return min(self.seeds, SPARE_SEEDS)

    def webs(self) -> list[Web]:
        """Return the embedded trace, and those that were given."""
        main = "synthetic-small-v0" if self.quick else "synthetic-v0"
        found: dict[str, Web] = {}
        for source in (main, *self.traces):
            web = as_web(load_trace(source), source)
            if web.name in (other.name for other in found.values()):
                web = replace(web, name=f"{web.name}-{web.digest[:6]}")
            found.setdefault(web.digest, web)
        return list(found.values())


@dataclass(frozen=True)
class Variant:
    """A rule that the papers leave open, read in another way."""

    name: str
    rules: Mapping[str, Any] | None = None  # of the world
    fields: Mapping[str, Mapping[str, Any]] | None = None  # of the agents, by kind

    def of(self, run: FleetRun) -> FleetRun:
        """Return the run with this rule; one that it does not touch stays the same."""
        rules = {**dict(run.rules), **(self.rules or {})}
        fields = {**dict(run.fields), **(self.fields or {}).get(run.kind, {})}
        return replace(
            run,
            variant=self.name,
            rules=tuple(sorted(rules.items())),
            fields=tuple(sorted(fields.items())),
        )


def unique(runs: Sequence[FleetRun]) -> list[FleetRun]:
    """Leave out runs that stand there already, if under another name."""
    found: dict[str, FleetRun] = {}
    for run in runs:
        found.setdefault(run.name, run)
    return list(found.values())


class Results:
    """Finished runs, to be asked for by what they are."""

    def __init__(self, runs: Sequence[Work], rows: Sequence[Row], folder: Path):
        self.folder = folder
        self.rows = {
            run.name: row
            for run, row in zip(runs, rows, strict=True)
            if row["status"] == "done"
        }

    def series(self, runs: Sequence[FleetRun]) -> list[Series]:
        """Return the courses of the runs that are finished."""
        return [read_series(run, self.folder) for run in runs if run.name in self.rows]

    def values(self, runs: Sequence[Work], *path: str) -> list[float | None]:
        """Return one figure of all finished runs, in their order."""
        found = []
        for run in runs:
            if run.name not in self.rows:
                continue
            value: Any = self.rows[run.name]["result"]
            for name in path:
                value = value[name]
            found.append(value)
        return found

    def cpu_seconds(self, runs: Sequence[FleetRun]) -> list[float]:
        """Return the CPU time of the fleets, without start and figures."""
        rows = [self.rows[run.name] for run in runs if run.name in self.rows]
        return [row["timing"]["fleet_cpu_seconds"] for row in rows]


# --- claims


@dataclass(frozen=True)
class Claim:
    """What a paper says, what was measured, and the verdict."""

    text: str
    paper: str
    measured: str
    verdict: str


def higher(
    text: str,
    paper: str,
    name: str,
    both: Sequence[verdicts.Values],
    digits: int,
    pairs: bool = False,
) -> Claim:
    """Judge the claim that the first of two is larger than the second.

    ``name`` says what the difference is; with ``pairs`` it is taken run by run.
    """
    more, less = both
    gap = (verdicts.paired if pairs else verdicts.difference)(more, less)
    return Claim(text, paper, f"{name}: {gap.show(digits)}", verdicts.above(gap))


def claim_table(claims: Sequence[Claim]) -> str:
    """Write claims in Markdown."""
    head = ["claim", "paper", "ours: mean (95 % interval)", "verdict"]
    lines = [[c.text, c.paper, c.measured, f"**{c.verdict}**"] for c in claims]
    return left_markdown([head, *lines])


def verdict_matrix(columns: Mapping[str, Sequence[Claim]]) -> str:
    """Write only the verdicts, a column for each way to run the experiment."""
    everything = list(columns.values())
    lines = [
        [claims[0].text, *(claim.verdict for claim in claims)]
        for claims in zip(*everything, strict=True)
    ]
    return left_markdown([["claim", *columns], *lines])


def unchanged(
    results: Results, pairs: Mapping[str, Sequence[tuple[FleetRun, FleetRun]]]
) -> str:
    """Name the variants whose runs are, fetch for fetch, those reported; "" if none.

    Their verdicts can differ only because they have fewer seeds.
    """
    names = []
    for name, both in pairs.items():
        logs = [[results.values([run], "event_hash") for run in two] for two in both]
        if logs and all(one and one == other for one, other in logs):
            names.append(name)
    if not names:
        return ""
    return (
        f"No evidence from {', '.join(names)}: on this trace these runs are, fetch for "
        "fetch, the reported ones, and verdicts differ only by the number of seeds."
    )


def left_markdown(cells: list[list[str]]) -> str:
    """Write a table of text in Markdown."""
    lines = [cells[0], ["---"] * len(cells[0]), *cells[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# --- tables


def spread(values: verdicts.Values, digits: int) -> str:
    """Write the standard deviation over runs, then the range."""
    found = verdicts.known(values)
    if len(found) < 2:
        return NONE
    low, high = found.min(), found.max()
    deviation = found.std(ddof=1)
    return f"{deviation:,.{digits}f} ({low:,.{digits}f} to {high:,.{digits}f})"


def interval(values: verdicts.Values, digits: int) -> str:
    """Write mean and 95 % interval."""
    return verdicts.mean(values).show(digits)


def structure_table(webs: Sequence[Web], paper: Mapping[str, Sequence[str]]) -> str:
    """Write structure figures, with the papers' beside them.

    ``paper`` has a line for each figure of `structure`, its cells to be put first.
    """
    measured = [structure(load_trace(web.source)) for web in webs]
    width = len(next(iter(paper.values())))
    head = ["", *(["paper", "paper, rewired"][:width]), *(web.name for web in webs)]
    lines = []
    for name, cells in paper.items():
        figures = [figure[name] for figure in measured]
        digits = [4 if isinstance(x, float) and abs(x) < 1 else 2 for x in figures]
        shown = [
            f"{x:,}" if isinstance(x, int) else f"{x:.{d}f}"
            for x, d in zip(figures, digits, strict=True)
        ]
        lines.append([name, *cells, *shown])
    return markdown([head, *lines])


def degree_figure(webs: Sequence[Web], file: Path) -> None:
    """Draw the degree distributions of traces."""
    counts, exponents = {}, {}
    for web in webs:
        trace = load_trace(web.source)
        source, target = distinct_links(trace)
        between = source != target
        nodes = nodes_of(trace)
        counts[web.name] = tuple(
            np.bincount(ends[between], minlength=len(trace.urls))[nodes]
            for ends in (source, target)
        )
        found = structure(trace)
        exponents[web.name] = tuple(
            (found[f"{side} exponent"], found[f"{side} exponent from degree"])
            for side in ("out", "in")
        )
    pictures.save(pictures.degrees(counts, exponents), file)


def failures(runs: Sequence[Work], rows: Sequence[Row]) -> str:
    """Write what went wrong, "" if nothing did."""
    parts = []
    for run, row in zip(runs, rows, strict=True):
        if row["status"] != "done":
            text = row["traceback"].rstrip()
            parts.append(f"**{run.label}**\n\n```\n{text}\n```")
    return "\n\n".join(["## Failed runs", *parts]) if parts else ""


def per_cent(found: Interval, digits: int) -> str:
    """Write an interval in per cent."""
    scaled = Interval(*(100 * x for x in (found.mean, found.low, found.high)))
    return f"{scaled.show(digits)} %"


def words(name: str) -> str:
    """Return a figure's name for readers."""
    known = {
        "found_urls": "found URLs",
        "relative_found_url": "relative found URL",
        "freshness_mean": "freshness",
        "age_hours_mean": "age (hours)",
        "freshness_all_mean": "freshness, all documents",
        "age_hours_all_mean": "age (hours), all documents",
        "freshness_day_mean": "freshness, documents of the last day",
        "age_hours_day_mean": "age (hours), documents of the last day",
        "novelty_lag_hours": "novelty lag (hours)",
        "exclusive_urls": "URLs of one forager alone (75 min)",
        "exclusive_urls_run": "URLs of one forager alone (whole run)",
        "distinct_trajectories": "distinct two-step trajectories (75 min)",
        "distinct_trajectories_run": "distinct two-step trajectories (whole run)",
        "new_starts": "new starting points",
    }
    return known.get(name, name.replace("_", " "))
