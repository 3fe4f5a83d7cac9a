"""Population control for topical crawlers: energy that decides who divides and dies.

A. Mouton, P.-F. Marteau, "Population control for multi-agents based topical crawlers"
(2008), section IV: 200 agents that start from highly relevant pages, with the linear
and the sigmoid model of energy, and with pages that keep energy (25,000 pages).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.reproduce import energy_claims, energy_pictures, pictures
from benchmarks.reproduce.energy_claims import (
    BOUNDED,
    COST,
    LINEAR,
    LONG,
    LOWER,
    SIGMOID,
    SIMPLE,
    UPPER,
    USABLE,
)
from benchmarks.reproduce.energy_runs import (
    FOUNDERS,
    MOST,
    EnergyRun,
    Options,
    Series,
    code,
    read_course,
    topics,
)
from benchmarks.reproduce.fleets import Web
from benchmarks.reproduce.results import (
    Claim,
    Results,
    Settings,
    claim_table,
    interval,
    verdict_matrix,
)
from benchmarks.standings import markdown
from gym_webforage import load_trace

TITLE = "Population control for multi-agent topical crawlers, run anew"
TOPICS = 5
PAGES, LONG_PAGES, QUICK_PAGES, QUICK_LONG = 10_000, 25_000, 1_500, 3_000
PAYS, FREE = (("revisit", "pays"),), (("revisit", "free"),)


@dataclass(frozen=True)
class Reading:
    """Something that the paper leaves open or misprints, read in another way."""

    name: str
    population: Options = ()
    rules: Options = ()
    agent: str = "energy_forager"


READINGS = (
    Reading("every visit pays", rules=PAYS),
    Reading("a page pays once", rules=FREE),
    Reading("a revisit costs", rules=(("revisit", "costs"),)),
    Reading("roots are visited", (("roots", "visited"),)),
    Reading("balance over pages", (("history", "pages"),)),
    Reading("division in two", (("division", "pair"),)),
    Reading("printed: r + R", (("printed", ("sign",)),)),
    Reading("printed: ratio", (("printed", ("ratio",)),)),
    Reading("printed: slope", (("printed", ("slope",)),)),
    Reading("printed: division", (("printed", ("division",)),)),
    Reading("printed: floor", (("printed", ("floor",)),)),
    Reading("random links", agent="random_walk"),
)


def concerns(reading: Reading, setting: str) -> bool:
    """Say whether a reading's population differs from a setting's."""
    options = dict(reading.population)
    if "history" in options:  # those that pay once are counted once in any case
        return setting in SIGMOID
    if "floor" in options.get("printed", ()):
        return setting == BOUNDED
    if setting in LINEAR:  # which has no curve
        return options.get("printed", ("division",)) == ("division",)
    return True


NOTE = f"""\
Time is the number of visits, since the paper's minutes are those of its network. A
claim about means *holds* or *does not* if the 95 % interval (Student's t, run by run
where two settings are compared) lies on one side, otherwise it *cannot be told*; a
claim about every run holds if it is so in all of them, and does not if it is in none
(bounds: if it fails in one). A population *dies out* if nobody is left, *explodes* if
it would pass {MOST:,} foragers, where it is stopped, and is *usable* otherwise.
Precision is the share of relevant pages among the different pages visited. The paper's
figures give neither its rates nor its lower bound: rates here let a page pay from a
relevance of {COST / 1:g}, {COST / 2.5:g} and {COST / 10:g} on; the lower bound is
{LOWER}. As reported, every visit pays in Figures 2 to 4 (the paper's Algorithm 1), and
a page pays once in Figures 5 and 6 (Algorithm 2); agents stand on the roots at the
start, as in both, so that coming there neither costs nor gives."""


class Experiment:
    """All runs of the paper."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.webs = settings.webs()
        self.code = code()
        self.topics = {web: topics(load_trace(web.source), TOPICS) for web in self.webs}

    def of(
        self, web: Web, setting: str, reading: Reading | None = None
    ) -> list[EnergyRun]:
        """Return the runs of a setting on a trace; seeds go through the topics."""
        is_long = setting in LONG
        base = {**LINEAR, **SIGMOID, **LONG}[setting]
        quick = self.settings.quick
        pages = PAGES if not quick else QUICK_PAGES
        if is_long:
            pages = LONG_PAGES if not quick else QUICK_LONG
        rules = FREE if is_long else PAYS
        agent, name = "energy_forager", ""
        seeds = self.settings.seeds
        if reading is not None:
            seeds = self.settings.spare_seeds
            name, agent = reading.name, reading.agent
            rules = reading.rules or rules
            if concerns(reading, setting):
                base = tuple(sorted({*base, *reading.population}))
        names = self.topics[web]
        return [
            EnergyRun(
                web,
                setting,
                base,
                rules,
                names[seed % len(names)],
                seed,
                pages,
                self.code,
                name,
                agent,
            )
            for seed in range(seeds)
        ]

    def runs(self) -> list[EnergyRun]:
        """Return all runs, the most important first."""
        settings = [*LINEAR, *SIGMOID, *LONG]
        found = {
            run.name: run
            for web in self.webs
            for setting in settings
            for run in self.of(web, setting)
        }
        for reading in READINGS:
            for setting in settings:
                for run in self.of(self.webs[0], setting, reading):
                    found.setdefault(run.name, run)
        return list(found.values())

    # --- claims

    def claims(
        self, results: Results, web: Web, reading: Reading | None = None
    ) -> list[Claim]:
        """Judge what the paper says, on a trace."""

        def values(setting: str, name: str) -> list[Any]:
            return results.values(self.of(web, setting, reading), name)

        def courses(setting: str) -> list[Series]:
            return self.courses(results, self.of(web, setting, reading))

        return energy_claims.judge(values, courses)

    def courses(self, results: Results, runs: Sequence[EnergyRun]) -> list[Series]:
        """Return the courses of finished runs."""
        return [
            read_course(run, results.folder) for run in runs if run.name in results.rows
        ]

    # --- report

    def report(self, results: Results, out: Path) -> str:
        """Draw the figures and write the report."""
        main, *given = self.webs
        parts = [self.introduction(), "## Claims", NOTE]
        parts.append(claim_table(self.claims(results, main)))
        for web in self.webs:
            if web is not main:
                parts += [f"### {web.name}", claim_table(self.claims(results, web))]
        for web in self.webs:
            parts += [f"## {web.name}", self.table(results, web)]
            parts.append(self.figures(results, web, out))
        columns = {"as reported": self.claims(results, main)}
        columns |= {r.name: self.claims(results, main, r) for r in READINGS}
        columns |= {web.name: self.claims(results, web) for web in given}
        parts += ["## Does the verdict depend on it?", self.matrix_note()]
        parts.append(verdict_matrix(columns))
        return "\n\n".join(parts)

    def introduction(self) -> str:
        """Say what was run."""
        where = " and ".join(f"`{web.name}`" for web in self.webs)
        subjects = "; ".join(
            f"{web.name}: {', '.join(names)}" for web, names in self.topics.items()
        )
        short, long = (self.of(self.webs[0], s)[0].pages for s in (SIMPLE, BOUNDED))
        return (
            f"Populations of {FOUNDERS} agents on {where}, from three of the ten pages "
            f"most similar to the topic, for {short:,} visits (Figures 2 to 4) and "
            f"{long:,} visits (Figures 5 and 6), {self.settings.seeds} runs each. Runs "
            f"take the topics in turn ({subjects})."
        )

    def matrix_note(self) -> str:
        """Say what the columns of the matrix are."""
        return (
            f"Readings have {self.settings.spare_seeds} seeds on "
            f"{self.webs[0].name}, so their intervals are wider. Those of the curve "
            "leave the linear model as it is. *Roots are visited*: the first visits, "
            f"of {FOUNDERS} agents to three very relevant pages, change energy and "
            "enter the balance R like any other. *Balance over pages*: R counts each "
            "page once, though every visit pays. *Random links* shows what choosing "
            "links by their context contributes."
        )

    def table(self, results: Results, web: Web) -> str:
        """Write what came of each setting."""
        head = ["setting", "visits", "died out", "stopped", "population at the end"]
        head += ["highest", "births", "different pages", "precision", "CPU seconds"]
        lines = []
        for setting in (*LINEAR, *SIGMOID, *LONG):
            runs = self.of(web, setting)
            done = [results.rows[run.name] for run in runs if run.name in results.rows]
            cpu = [row["timing"]["fleet_cpu_seconds"] for row in done]
            ends = results.values(runs, "last")
            stopped = results.values(runs, "stopped")
            line = [setting, interval(results.values(runs, "fetches"), 0)]
            line.append(f"{sum(end == 0 for end in ends)} of {len(ends)}")
            line.append(f"{sum(bool(s) for s in stopped)} of {len(stopped)}")
            for name, digits in (
                ("last", 0),
                ("highest", 0),
                ("births", 0),
                ("different", 0),
                ("precision", 3),
            ):
                line.append(interval(results.values(runs, name), digits))
            lines.append([*line, interval(cpu, 1)])
        return markdown([head, *lines])

    def figures(self, results: Results, web: Web, out: Path) -> str:
        """Draw Figures 2 to 6 of a trace; return the links to them."""
        every = {
            setting: self.courses(results, self.of(web, setting))
            for setting in (*LINEAR, *SIGMOID, *LONG)
        }
        parts = []
        for number, names, what, text in (
            (2, list(LINEAR), "living", "population with the linear model"),
            (3, list(SIGMOID), "living", "population with the sigmoid model"),
            (4, [USABLE, SIMPLE], "precision", "precision of the two models"),
            (5, list(LONG), "living", "population with and without the buffer"),
            (6, list(LONG), "precision", "precision with and without the buffer"),
        ):
            shown = {name: every[name] for name in names if every[name]}
            if not shown:
                continue
            bounds = (LOWER, UPPER) if number == 5 else ()
            file = f"figure-{number}-{web.name}.png"
            figure = energy_pictures.courses(shown, what, bounds)
            pictures.save(figure, out / file)
            lines = (
                "thick ones their median (those stopped above all others); a cross "
                "marks a run that was stopped"
                if what == "living"
                else "thick ones their mean (while most go on), the band its 95 % "
                "interval"
            )
            parts.append(
                f"![Figure {number}]({file})\n\n*Figure {number} of the paper: {text}. "
                f"Thin lines are runs, {lines}.*"
            )
        return "\n\n".join(parts)
