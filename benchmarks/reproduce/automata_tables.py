"""The tables of the learning automata paper, its figures beside ours."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from benchmarks.reproduce import verdicts
from benchmarks.reproduce.fleets import Web
from benchmarks.reproduce.results import NONE, Results, interval
from benchmarks.standings import markdown

if TYPE_CHECKING:
    from benchmarks.reproduce.automata import Experiment

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
PRECISION = {"bpm": 0.1380, "ljm": 0.0992, "hw": 0.1096, "lafc": 0.1724}  # Table 4
RECALL = {"bpm": ".61-.73", "ljm": ".41-.56", "hw": ".42-.61", "lafc": ".76-.85"}
MINUTES = {
    "bpm": "1,419-1,878",
    "ljm": "1,295-1,556",
    "hw": "1,382-1,690",
    "lafc": "902-1,181",
}

VARIANTS = {
    "as reported": "lafc",
    "L_R-P": "lafc:scheme=L_R-P",
    "L_R-eP": "lafc:scheme=L_R-eP",
    "stack popped literally": "lafc:resume=pop",
    "similarity is what the judge pays": "lafc:similarity=reward",
}


class Tables:
    """Writes the tables of finished runs."""

    def __init__(self, experiment: Experiment, results: Results) -> None:
        self.experiment = experiment
        self.results = results

    def side_by_side(self, web: Web, judge: str) -> str:
        """Write all crawlers with harvest rate, recall, area, and what it cost."""
        budget = self.experiment.budget(web)
        head = ["crawler", f"precision at {budget:,}", "recall over the union"]
        head += ["true recall", "area under the curve", "training fetches"]
        head += ["CPU seconds a crawl"]
        union = self.experiment.union_recall(self.results, web, judge, list(AGENTS))
        lines = []
        for agent, name in AGENTS.items():
            cells = [name]
            cells.append(self._cell(web, agent, judge, "precision", 4))
            cells.append(interval(union[agent], 3))
            cells.append(self._cell(web, agent, judge, "recall", 3))
            cells.append(self._cell(web, agent, judge, "area", 4))
            training = self.experiment.by_seed(
                self.results, web, agent, judge, "training_fetches"
            )
            cells.append(f"{verdicts.mean(training).mean:,.0f}" if training else NONE)
            cells.append(f"{self._seconds(web, agent, judge):.3f}")
            lines.append(cells)
        return markdown([head, *lines])

    def _cell(self, web: Web, agent: str, judge: str, name: str, digits: int) -> str:
        return interval(
            self.experiment.by_seed(self.results, web, agent, judge, name), digits
        )

    def _seconds(self, web: Web, agent: str, judge: str) -> float:
        rows = [
            self.results.rows[run.name]["timing"]["crawl_cpu_seconds"]
            for topic in self.experiment.topics[web]
            for run in self.experiment.of(web, agent, topic, judge)
            if run.name in self.results.rows
        ]
        return float(np.mean(rows)) if rows else 0.0

    def t_tests(self, web: Web, judge: str) -> str:
        """Write Table 4: each pair of the paper's crawlers, paired t-tests."""
        own = {
            a: self.experiment.by_seed(self.results, web, a, judge, "precision")
            for a in PAPERS
        }
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

    def paper_table(self, web: Web, judge: str) -> str:
        """Write the paper's precision, recall and running time beside ours."""
        union = self.experiment.union_recall(self.results, web, judge, list(PAPERS))
        head = ["crawler", "precision, paper", "precision, ours", "recall, paper"]
        head += ["recall over the four, ours", "minutes, paper", "CPU seconds, ours"]
        lines = []
        for agent, name in PAPERS.items():
            lines.append(
                [
                    name,
                    f"{PRECISION[agent]:.4f}",
                    self._cell(web, agent, judge, "precision", 4),
                    RECALL[agent],
                    interval(union[agent], 3),
                    MINUTES[agent],
                    f"{self._seconds(web, agent, judge):.3f}",
                ]
            )
        return markdown([head, *lines])

    def sweep_table(
        self,
        web: Web,
        agents: Mapping[str, str],
        paper: Mapping[str, str] | None = None,
    ) -> str:
        """Write the precision of variants of LAFC on the first topic."""
        swept = set(self.experiment.swept()) | {"lafc"}
        head = ["", *(["precision, paper"] if paper else []), "precision, ours"]
        head += ["first crawl", "CPU seconds a crawl"]
        lines = []
        for name, agent in agents.items():
            if agent not in swept:
                continue
            runs = self.experiment.sweep(web, agent)
            crawls: Any = self.results.values(runs, "precision_by_crawl")
            seconds = [
                self.results.rows[run.name]["timing"]["crawl_cpu_seconds"]
                for run in runs
                if run.name in self.results.rows
            ]
            cells = [name, *([paper[name]] if paper else [])]
            cells.append(interval(self.results.values(runs, "precision"), 4))
            cells.append(interval([row[0] for row in crawls], 4))
            cells.append(f"{np.mean(seconds):.3f}" if seconds else NONE)
            lines.append(cells)
        return markdown([head, *lines])

    def sweeps(self, web: Web) -> list[str]:
        """Write Tables 2 and 3 and the variants."""
        levels = {f"{c:.2f}": f"lafc:a=0.1,control={c}" for c in THRESHOLDS}
        rates = {f"{a:.2f}": f"lafc:a={a}" for a in RATES}
        told = {f"{c:.2f}": f"{p:.4f}" for c, (p, _) in THRESHOLDS.items()}
        told_rates = {f"{a:.2f}": f"{p:.4f}" for a, (p, _) in RATES.items()}
        return [
            f"## Sweeps on {web.name}, topic {self.experiment.topics[web][0]}",
            "Table 2, control threshold (learning rate 0.1):",
            self.sweep_table(web, levels, told),
            "Table 3, learning rate (control threshold 0.8):",
            self.sweep_table(web, rates, told_rates),
            "Other readings of LAFC:",
            self.sweep_table(web, VARIANTS),
        ]
