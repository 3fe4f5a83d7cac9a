"""LAFC, the focused crawler of learning automata, against its rivals.

J. Akbari Torkestani, "An adaptive focused Web crawling algorithm based on learning
automata" (2012), section 5: precision against downloads for five topics, a t-test,
recall, any-time behaviour, and sweeps of the control threshold and the learning rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.reproduce import pictures, topic_pictures, verdicts
from benchmarks.reproduce.fleets import Web
from benchmarks.reproduce.results import (
    NONE,
    Claim,
    Results,
    Settings,
    claim_table,
    higher,
    interval,
    verdict_matrix,
)
from benchmarks.reproduce.topics import TopicRun, code, largest_labels
from benchmarks.standings import markdown
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
PAPERS = {"lafc": "LAFC", "bpm": "BPM", "hw": "HW", "ljm": "LJM"}
AGENTS = {
    **PAPERS,
    "best_first": "best_first",
    "best_first:links=parent": "best_first, parent page",
    "best_first:links=anchor": "best_first, anchor",
    "backlink": "backlink",
    "opic": "opic",
    "remember_last_crawl": "remember_last_crawl",
    "breadth_first": "breadth_first",
    "random_walk": "random_walk",
    "oracle": "oracle",
}
CONTROLS = ("random_walk", "breadth_first", "best_first", "remember_last_crawl")
# Tables 2 and 3: precision and minutes.
THRESHOLDS = {
    0.45: (0.1123, 623.1),
    0.50: (0.1227, 670.9),
    0.55: (0.1342, 707.3),
    0.60: (0.1403, 765.3),
    0.65: (0.1512, 810.4),
    0.70: (0.1642, 860.1),
    0.75: (0.1702, 900.2),
    0.80: (0.1861, 955.1),
    0.85: (0.1872, 1207.7),
    0.90: (0.1890, 1415.5),
    0.95: (0.1912, 1891.4),
}
RATES = {
    0.05: (0.2305, 2315.4),
    0.06: (0.2287, 2092.0),
    0.07: (0.2216, 1878.9),
    0.08: (0.2205, 1562.2),
    0.09: (0.2189, 1023.1),
    0.10: (0.1861, 955.1),
    0.20: (0.1675, 870.4),
    0.30: (0.1276, 622.0),
    0.40: (0.1112, 586.2),
    0.50: (0.0732, 432.9),
}
VARIANTS = {
    "as reported": "lafc",
    "L_R-P": "lafc:scheme=L_R-P",
    "L_R-eP": "lafc:scheme=L_R-eP",
    "stack popped literally": "lafc:resume=pop",
    "similarity is what the judge pays": "lafc:similarity=reward",
}
PRECISION = {"bpm": 0.1380, "ljm": 0.0992, "hw": 0.1096, "lafc": 0.1724}  # Table 4
RECALL = {"bpm": ".61-.73", "ljm": ".41-.56", "hw": ".42-.61", "lafc": ".76-.85"}
MINUTES = {
    "bpm": "1,419-1,878",
    "ljm": "1,295-1,556",
    "hw": "1,382-1,690",
    "lafc": "902-1,181",
}

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

    # --- tables

    def side_by_side(self, results: Results, web: Web, judge: str) -> str:
        """Write all crawlers with harvest rate, recall, area, and what it cost."""
        budget = self.budget(web)
        head = ["crawler", f"precision at {budget:,}", "recall over the union"]
        head += ["true recall", "area under the curve", "training fetches"]
        head += ["CPU seconds a crawl"]
        union = self.union_recall(results, web, judge, list(AGENTS))
        lines = []
        for agent, name in AGENTS.items():
            cells = [name]
            cells.append(self._cell(results, web, agent, judge, "precision", 4))
            cells.append(interval(union[agent], 3))
            cells.append(self._cell(results, web, agent, judge, "recall", 3))
            cells.append(self._cell(results, web, agent, judge, "area", 4))
            training = self.by_seed(results, web, agent, judge, "training_fetches")
            cells.append(f"{verdicts.mean(training).mean:,.0f}" if training else NONE)
            cells.append(f"{self._seconds(results, web, agent, judge):.3f}")
            lines.append(cells)
        return markdown([head, *lines])

    def _cell(
        self, results: Results, web: Web, agent: str, judge: str, name: str, digits: int
    ) -> str:
        return interval(self.by_seed(results, web, agent, judge, name), digits)

    def _seconds(self, results: Results, web: Web, agent: str, judge: str) -> float:
        rows = [
            results.rows[run.name]["timing"]["crawl_cpu_seconds"]
            for topic in self.topics[web]
            for run in self.of(web, agent, topic, judge)
            if run.name in results.rows
        ]
        return float(np.mean(rows)) if rows else 0.0

    def t_tests(self, results: Results, web: Web, judge: str) -> str:
        """Write Table 4: each pair of the paper's crawlers, paired t-tests."""
        own = {a: self.by_seed(results, web, a, judge, "precision") for a in PAPERS}
        head = ["x", "y", "paper: x - y", "x: mean (± SD)", "x - y", "significance"]
        head.append("performance")
        lines = []
        for x, y in combinations(("bpm", "ljm", "hw", "lafc"), 2):
            one, two = np.array(own[x]), np.array(own[y])
            gap = one - two
            # Of equal differences t has no meaning, and SciPy warns of rounding.
            enough = len(gap) > 1 and gap.std() > 1e-9
            p = float(stats.ttest_rel(one, two).pvalue) if enough else np.nan
            sign = "+" if gap.mean() > 0 else "-"
            deviation = one.std(ddof=1) if len(one) > 1 else 0.0
            lines.append(
                [
                    PAPERS[x],
                    PAPERS[y],
                    f"{PRECISION[x] - PRECISION[y]:+.4f}",
                    f"{one.mean():.4f} (± {deviation:.4f})",
                    f"{gap.mean():+.4f}",
                    f"{p:.2g}" if np.isfinite(p) else NONE,
                    sign if p < 0.05 else f"{sign}, not significant",
                ]
            )
        return markdown([head, *lines])

    def paper_table(self, results: Results, web: Web, judge: str) -> str:
        """Write the paper's precision, recall and running time beside ours."""
        union = self.union_recall(results, web, judge, list(PAPERS))
        head = ["crawler", "precision, paper", "precision, ours", "recall, paper"]
        head += ["recall over the four, ours", "minutes, paper", "CPU seconds, ours"]
        lines = []
        for agent, name in PAPERS.items():
            lines.append(
                [
                    name,
                    f"{PRECISION[agent]:.4f}",
                    self._cell(results, web, agent, judge, "precision", 4),
                    RECALL[agent],
                    interval(union[agent], 3),
                    MINUTES[agent],
                    f"{self._seconds(results, web, agent, judge):.3f}",
                ]
            )
        return markdown([head, *lines])

    def sweep_table(
        self,
        results: Results,
        web: Web,
        agents: Mapping[str, str],
        paper: Mapping[str, str] | None = None,
    ) -> str:
        """Write the precision of variants of LAFC on the first topic."""
        swept = set(self.swept()) | {"lafc"}
        head = ["", *(["precision, paper"] if paper else []), "precision, ours"]
        head += ["first crawl", "CPU seconds a crawl"]
        lines = []
        for name, agent in agents.items():
            if agent not in swept:
                continue
            runs = self.sweep(web, agent)
            crawls: Any = results.values(runs, "precision_by_crawl")
            seconds = [
                results.rows[run.name]["timing"]["crawl_cpu_seconds"]
                for run in runs
                if run.name in results.rows
            ]
            cells = [name, *([paper[name]] if paper else [])]
            cells.append(interval(results.values(runs, "precision"), 4))
            cells.append(interval([row[0] for row in crawls], 4))
            cells.append(f"{np.mean(seconds):.3f}" if seconds else NONE)
            lines.append(cells)
        return markdown([head, *lines])

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
            "counts; the papers' minutes were those of the live web."
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
            parts += self.sweeps(results, web)
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
        crawls = {"LAFC": self.by_seed_crawls(results, web, judge)}
        pictures.save(topic_pictures.by_crawl(crawls), out / f"crawls-{stem}.png")
        return [
            f"## {web.name}, relevant by {judge}",
            f"Topics: {', '.join(self.topics[web])}.",
            self.side_by_side(results, web, judge),
            self.paper_table(results, web, judge),
            "Table 4 (t-tests over seeds, a seed's figure the mean over the topics):",
            self.t_tests(results, web, judge),
            f"![Precision](precision-{stem}.png)\n\n*Figures 2 to 7 of the paper: "
            "precision against downloads by topic, and averaged; mean over seeds.*",
            f"![Found](found-{stem}.png)\n\n*Figure 8 of the paper: relevant pages "
            "found, against downloads in place of minutes.*",
            f"![Crawls](crawls-{stem}.png)\n\n*Not in the paper: precision of each of "
            "LAFC's repeated crawls.*",
        ]

    def sweeps(self, results: Results, web: Web) -> list[str]:
        """Write Tables 2 and 3 and the variants."""
        levels = {f"{c:.2f}": f"lafc:a=0.1,control={c}" for c in THRESHOLDS}
        rates = {f"{a:.2f}": f"lafc:a={a}" for a in RATES}
        told = {f"{c:.2f}": f"{p:.4f}" for c, (p, _) in THRESHOLDS.items()}
        told_rates = {f"{a:.2f}": f"{p:.4f}" for a, (p, _) in RATES.items()}
        return [
            f"## Sweeps on {web.name}, topic {self.topics[web][0]}",
            "Table 2, control threshold (learning rate 0.1):",
            self.sweep_table(results, web, levels, told),
            "Table 3, learning rate (control threshold 0.8):",
            self.sweep_table(results, web, rates, told_rates),
            "Other readings of LAFC:",
            self.sweep_table(results, web, VARIANTS),
        ]
