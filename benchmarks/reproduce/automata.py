"""LAFC, the focused crawler of learning automata, against its rivals.

J. Akbari Torkestani, "An adaptive focused Web crawling algorithm based on learning
automata" (2012), section 5: precision against downloads for five topics, a t-test,
recall, any-time behaviour, and sweeps of the control threshold and the learning rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.reproduce import pictures, topic_pictures, verdicts
from benchmarks.reproduce.automata_tables import (
    AGENTS,
    PAPERS,
    PRECISION,
    RATES,
    THRESHOLDS,
    VARIANTS,
    Tables,
)
from benchmarks.reproduce.fleets import Web
from benchmarks.reproduce.results import (
    Claim,
    Results,
    Settings,
    claim_table,
    higher,
    verdict_matrix,
)
from benchmarks.reproduce.topics import TopicRun, code, largest_labels
from gym_webforage import load_trace

TITLE = "Focused crawling by learning automata"
TOPICS, QUICK_TOPICS = 5, 2
BUDGET, GIVEN_BUDGET, QUICK_BUDGET = 2_000, 1_000, 200  # fetches of a crawl
CRAWLS, QUICK_CRAWLS = 5, 2  # by LAFC; the last one counts
SIMILARITY = {"similarity": "frequency", "threshold": 0.75}
JUDGES: dict[str, dict[str, Any]] = {
    "similarity": SIMILARITY,
    "label": {"relevance": "label"},
}
CONTROLS = ("random_walk", "breadth_first", "best_first", "remember_last_crawl")

NOTE = """\
A claim *holds* or *does not* if the 95 % interval (Student's t, of the differences
seed by seed; a seed's figure is the mean over the topics) lies on one side; otherwise
it *cannot be told*. Verdicts are not corrected for their number."""


class Experiment:
    """All runs of the paper."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.webs = settings.webs()
        self.topics: dict[Web, list[str]] = {}
        count = QUICK_TOPICS if settings.quick else TOPICS
        for web in self.webs:
            found = largest_labels(load_trace(web.source), count)
            if not found:
                raise ValueError(f"{web.name} has no labels to serve as topics")
            self.topics[web] = found
        self.checksum = code(tuple(AGENTS))
        self.crawls = QUICK_CRAWLS if settings.quick else CRAWLS

    def budget(self, web: Web) -> int:
        """Return the fetches of a crawl on a trace."""
        if self.settings.quick:
            return QUICK_BUDGET
        return BUDGET if web == self.webs[0] else GIVEN_BUDGET

    def of(
        self,
        web: Web,
        agent: str,
        topic: str,
        judge: str = "similarity",
        seeds: int | None = None,
    ) -> list[TopicRun]:
        """Return an agent's runs of a topic, by seed."""
        crawls = 1
        if agent.startswith("lafc"):
            crawls = self.crawls
        if agent == "remember_last_crawl":  # as many crawls before the last
            agent = f"{agent}:crawls={self.crawls - 1}"
        rules = tuple(sorted(JUDGES[judge].items()))
        budget = self.budget(web)
        return [
            TopicRun(web, topic, agent, seed, budget, crawls, rules, self.checksum)
            for seed in range(seeds or self.settings.seeds)
        ]

    def sweep(self, web: Web, agent: str) -> list[TopicRun]:
        """Return runs of a variant of LAFC on the first topic."""
        return self.of(web, agent, self.topics[web][0])

    def swept(self) -> list[str]:
        """Return the variants of LAFC that the sweeps need."""
        rates, thresholds = list(RATES), list(THRESHOLDS)
        if self.settings.quick:
            rates, thresholds = rates[::9], thresholds[::10]
        return [
            *(f"lafc:a=0.1,control={level}" for level in thresholds),
            *(f"lafc:a={rate}" for rate in rates),
            *list(VARIANTS.values())[1:],
        ]

    def runs(self) -> list[TopicRun]:
        """Return all runs, the most important first."""
        found = []
        for web in self.webs:
            for judge in JUDGES:
                for topic in self.topics[web]:
                    for agent in AGENTS:
                        found += self.of(web, agent, topic, judge)
        for web in self.webs:
            for agent in self.swept():
                found += self.sweep(web, agent)
        return list({run.name: run for run in found}.values())

    # --- figures of an agent, one for each seed

    def by_seed(
        self, results: Results, web: Web, agent: str, judge: str, *path: str
    ) -> list[float]:
        """Return a figure, a mean over the topics, for each seed."""
        rows = [
            results.values(self.of(web, agent, topic, judge), *path)
            for topic in self.topics[web]
        ]
        if len({len(row) for row in rows}) != 1:
            return []  # some runs have failed
        return np.array(rows, np.float64).mean(axis=0).tolist()

    def curves(
        self, results: Results, web: Web, agent: str, topic: str, judge: str
    ) -> np.ndarray:
        """Return what was found over the budget, a row a run."""
        found: Any = results.values(self.of(web, agent, topic, judge), "curve")
        return np.array(found, np.float64)

    def union_recall(
        self, results: Results, web: Web, judge: str, agents: Sequence[str]
    ) -> dict[str, list[float]]:
        """Return recall over what the agents found together, for each seed."""
        shares: dict[str, list[list[float]]] = {agent: [] for agent in agents}
        for topic in self.topics[web]:
            found: dict[str, list[Any]] = {
                agent: results.values(self.of(web, agent, topic, judge), "relevant")
                for agent in agents
            }
            for own in shares.values():
                own.append([])
            for urls in zip(*found.values(), strict=False):
                union = len(set().union(*urls))
                for agent, own in zip(found, urls, strict=True):
                    shares[agent][-1].append(len(set(own)) / union if union else 0.0)
        return {
            agent: [float(np.mean(row)) for row in zip(*rows, strict=False)]
            for agent, rows in shares.items()
        }

    # --- claims

    def claims(self, results: Results, web: Web, judge: str) -> list[Claim]:
        """Judge what the paper says of the crawlers."""
        own = {a: self.by_seed(results, web, a, judge, "precision") for a in AGENTS}
        found = []
        for more, less in (
            ("lafc", "bpm"),
            ("lafc", "hw"),
            ("lafc", "ljm"),
            ("bpm", "ljm"),
            ("bpm", "hw"),
            ("hw", "ljm"),
        ):
            gap = PRECISION[more] - PRECISION[less]
            text = f"{PAPERS[more]} is more precise than {PAPERS[less]}"
            name = f"{PAPERS[more]} - {PAPERS[less]}"
            both = own[more], own[less]
            found.append(higher(text, f"+{gap:.4f}", name, both, 4, pairs=True))
        for agent, name in PAPERS.items():
            found.append(self._falls(results, web, agent, name, judge))
        recall = self.union_recall(results, web, judge, list(PAPERS))
        for other in ("bpm", "hw", "ljm"):
            both = recall["lafc"], recall[other]
            text = f"LAFC has the higher recall than {PAPERS[other]} (over the union)"
            name = f"LAFC - {PAPERS[other]}"
            found.append(higher(text, "Table 5", name, both, 3, pairs=True))
        area = {a: self.by_seed(results, web, a, judge, "area") for a in PAPERS}
        both = area["lafc"], area["bpm"]
        text = "LAFC finds sooner than BPM (area under the curve over the budget)"
        found.append(higher(text, "Figure 8", "LAFC - BPM", both, 4, pairs=True))
        return found

    def _falls(
        self, results: Results, web: Web, agent: str, name: str, judge: str
    ) -> Claim:
        rows = []
        for topic in self.topics[web]:
            curve = self.curves(results, web, agent, topic, judge)
            share = np.arange(1, curve.shape[1] + 1) / curve.shape[1]
            precision = curve / (share * self.budget(web))
            rows.append(precision[:, 0] - precision[:, -1])
        gap = verdicts.mean(np.mean(rows, axis=0))
        text = f"{name}'s precision falls with downloads"
        measured = f"first tenth - whole: {gap.show(4)}"
        return Claim(text, "Figure 7", measured, verdicts.above(gap))

    def learning_claims(self, results: Results, web: Web, judge: str) -> list[Claim]:
        """Judge whether learning shows, and compare with controls."""
        rows: Any = self.by_seed_crawls(results, web, judge)
        first, last = [row[0] for row in rows], [row[-1] for row in rows]
        text = f"LAFC's crawl {self.crawls} is more precise than its first"
        both = last, first
        found = [higher(text, "told", "last - first", both, 4, pairs=True)]
        own = self.by_seed(results, web, "lafc", judge, "precision")
        for other in CONTROLS:
            both = own, self.by_seed(results, web, other, judge, "precision")
            text = f"LAFC is more precise than {other}"
            name = f"LAFC - {other}"
            found.append(higher(text, "not told", name, both, 4, pairs=True))
        return found

    def by_seed_crawls(
        self, results: Results, web: Web, judge: str, agent: str = "lafc"
    ) -> list[list[float]]:
        """Return the precision of each crawl, a row a seed, mean over the topics."""
        rows: Any = [
            results.values(self.of(web, agent, topic, judge), "precision_by_crawl")
            for topic in self.topics[web]
        ]
        return np.mean(np.array(rows, np.float64), axis=0).tolist()

    def sweep_claims(self, results: Results, web: Web) -> list[Claim]:
        """Judge what Tables 2 and 3 say."""

        def values(agent: str) -> list[float | None]:
            return results.values(self.sweep(web, agent), "precision")

        both = values("lafc:a=0.1,control=0.95"), values("lafc:a=0.1,control=0.45")
        text = "a higher control threshold is more precise (.95 against .45)"
        found = [higher(text, "+0.0789", "difference", both, 4, pairs=True)]
        both = values("lafc:a=0.05"), values("lafc:a=0.5")
        text = "a lower learning rate is more precise (.05 against .5)"
        found.append(higher(text, "+0.1573", "difference", both, 4, pairs=True))
        return found

    # --- report

    def introduction(self) -> str:
        """Say what was run, and on what terms."""
        budgets = ", ".join(
            f"`{web.name}` {self.budget(web):,} fetches" for web in self.webs
        )
        return (
            f"Crawlers look for pages of a topic: {budgets} a crawl (the paper: 10,000 "
            f"of the live web), {self.settings.seeds} seeds. Topics are the labels on "
            "most pages of a trace. For each topic and seed two pages that carry the "
            "label and have links are drawn as roots, the same for all crawlers. A "
            "page is relevant from a similarity of 0.75 on (term frequencies, as in "
            "the paper), or if it carries the label: both judges are shown. LAFC "
            f"repeats the crawl with one agent, and crawl {self.crawls} counts; "
            "remember_last_crawl has as many crawls before the one that counts; LJM, "
            "BPM and HW learn from a crawl by best_first of 300 "
            "fetches; the others learn nothing beforehand. All that came before is "
            "shown as training fetches. Running time is CPU seconds of the crawl that "
            "counts, with the training of those that learn at its first step (LJM, "
            "BPM, HW, remember_last_crawl); the paper's minutes were those of the live "
            "web."
        )

    def report(self, results: Results, out: Path) -> str:
        """Draw the figures and write the report."""
        main = self.webs[0]
        parts = [self.introduction(), "## Claims", NOTE]
        parts.append(claim_table(self.claims(results, main, "similarity")))
        parts.append("The paper has no controls; learning and controls:")
        parts.append(claim_table(self.learning_claims(results, main, "similarity")))
        parts.append("Tables 2 and 3:")
        parts.append(claim_table(self.sweep_claims(results, main)))
        parts += ["## Does the verdict depend on it?", self.matrix(results)]
        for web in self.webs:
            for judge in JUDGES:
                parts += self.section(results, web, judge, out)
            parts += Tables(self, results).sweeps(web)
        return "\n\n".join(parts)

    def matrix(self, results: Results) -> str:
        """Write the verdicts on each trace and by each judge."""
        columns = {
            f"{web.name}, {judge}": [
                *self.claims(results, web, judge),
                *self.learning_claims(results, web, judge),
            ]
            for web in self.webs
            for judge in JUDGES
        }
        return verdict_matrix(columns)

    def section(self, results: Results, web: Web, judge: str, out: Path) -> list[str]:
        """Write tables and draw figures of a trace and a judge."""
        tables = Tables(self, results)
        stem = f"{web.name}-{judge}"
        panels = {}
        for topic in self.topics[web]:
            curves = {
                name: self.curves(results, web, agent, topic, judge)
                for agent, name in AGENTS.items()
            }
            panels[topic] = {name: c for name, c in curves.items() if len(c)}
        shared = set.intersection(*(set(own) for own in panels.values()))
        average = {
            name: np.mean([own[name].mean(axis=0) for own in panels.values()], axis=0)[
                None
            ]
            for name in AGENTS.values()
            if name in shared
        }
        budget = self.budget(web)
        panels["average"] = average
        figure = topic_pictures.over_downloads(panels, budget)
        pictures.save(figure, out / f"precision-{stem}.png")
        figure = topic_pictures.over_downloads({"average": average}, budget, "found")
        pictures.save(figure, out / f"found-{stem}.png")
        crawls = self.by_seed_crawls(results, web, judge)
        pictures.save(topic_pictures.by_crawl(crawls), out / f"crawls-{stem}.png")
        return [
            f"## {web.name}, relevant by {judge}",
            f"Topics: {', '.join(self.topics[web])}.",
            tables.side_by_side(web, judge),
            tables.paper_table(web, judge),
            "Table 4 (t-tests over seeds, a seed's figure the mean over the topics):",
            tables.t_tests(web, judge),
            f"![Precision](precision-{stem}.png)\n\n*Figures 2 to 7 of the paper: "
            "precision against downloads by topic, and averaged; mean over seeds.*",
            f"![Found](found-{stem}.png)\n\n*Figure 8 of the paper: relevant pages "
            "found, against downloads in place of minutes.*",
            f"![Crawls](crawls-{stem}.png)\n\n*Not in the paper: precision of each of "
            "LAFC's repeated crawls, mean over seeds with 95 % interval.*",
        ]
