"""Selection in scale-free small world: weblog (WL) against learning (RL) foragers.

Zs. Palotai, Cs. Farkas, A. Lőrincz, "Selection in scale-free small world", section 4:
fleets of either kind, 2 growing to 16 foragers, on 18 days of a news site; the same on
the site rewired.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.reproduce import pictures, verdicts
from benchmarks.reproduce.course import DAY
from benchmarks.reproduce.fleets import KINDS, FleetRun, Web, code, rewired_web
from benchmarks.reproduce.results import (
    NONE,
    Claim,
    Results,
    Settings,
    Variant,
    claim_table,
    degree_figure,
    higher,
    interval,
    per_cent,
    spread,
    structure_table,
    unchanged,
    unique,
    verdict_matrix,
    words,
)
from benchmarks.reproduce.verdicts import SIMILAR
from benchmarks.standings import markdown

TITLE = "Selection in scale-free small world"
WL, RL, RANDOM = "weblog", "linear_td", "random_walk"
BUDGET, QUICK_BUDGET = "18d", "2d"
MOST = 16
LITTLE = 0.10  # deviation over mean up to which runs differ little

# Table 2: RL and its deviation, WL and its deviation; digits that we show.
TABLE = {
    "downloaded": ("540,636 ± 9,840", "669,673 ± 9,580", 0),
    "sent": ("9,747 ± 98", "6,345 ± 385", 0),
    "relevant": ("2,419 ± 45", "3,107 ± 60", 0),
    "found_urls": ("31,092 ± 1,050", "33,116 ± 3,370", 0),
    "download_efficiency": ("0.0045 ± 0.0001", "0.0046 ± 0.0001", 4),
    "sent_efficiency": ("0.248 ± 0.003", "0.49 ± 0.031", 3),
    "relative_found_url": ("0.058 ± 0.001", "0.05 ± 0.006", 3),
    "freshness_mean": ("0.7 ± 0.006", "0.74 ± 0.011", 3),
    "age_hours_mean": ("1.79 ± 0.04", "1.56 ± 0.08", 2),
    "freshness_all_mean": (NONE, NONE, 3),
    "age_hours_all_mean": (NONE, NONE, 2),
    "freshness_day_mean": (NONE, NONE, 3),
    "age_hours_day_mean": (NONE, NONE, 2),
    "novelty_lag_hours": (NONE, NONE, 2),
    "exclusive_urls": (NONE, NONE, 3),
    "distinct_trajectories": (NONE, NONE, 3),
}
STRUCTURE = {
    "nodes": (NONE, NONE),
    "links": (NONE, NONE),
    "out exponent": ("1.3", "1.3"),
    "out exponent by least squares": ("1.3", "1.3"),
    "in exponent": ("2.57", "2.57"),
    "in exponent by least squares": ("2.57", "2.57"),
    "clustering": ("0.02", "0.003"),
    "mean path": ("7.29", "8.22"),
    "diameter": (NONE, NONE),
}
VARIANTS = (
    Variant("document = URL", {"document": "url"}),
    Variant("visited pages not fetched again", {"refetch_visited": False}),
    Variant("ties: newest", fields={k: {"ties": "newest"} for k in (WL, RL)}),
    Variant("ties: random", fields={k: {"ties": "random"} for k in (WL, RL)}),
    Variant("start list: first known", fields={RL: {"first": "discovered"}}),
)


def fleet(settings: Settings, web: Web, kind: str, checksum: str) -> list[FleetRun]:
    """Return the runs of a kind, by the paper's rules."""
    budget = QUICK_BUDGET if settings.quick else BUDGET
    return [
        FleetRun(web, kind, seed, budget, MOST, checksum)
        for seed in range(settings.seeds)
    ]


CLAIMS_NOTE = f"""\
A claim *holds* or *does not* if the 95 % interval (Student's t; Welch's for a
difference) lies on one side; otherwise it *cannot be told*. Freshness and age are means
over windows of three hours. The paper leaves open over which documents: the newest
found version of each URL stands first, then every document ever found, then documents
of the last 24 hours, which alone are relevant to a judge (this reading was added after
a first look at results, in which the first one's age grew without end). Peaks are those
of the download efficiency in windows of three hours, the first day left out: windows
above both neighbours and 1.5 times the median (more), the highest twentieth over the
median (higher), and the mean change from window to window over the mean (sharper).
Similar and little mean {SIMILAR:.0%}, a convention of ours. Verdicts are not corrected
for their number."""
CONTROL_NOTE = """\
The paper has no control that learns nothing. Random walks visit any page of the
frontier and start from any page they know; they are born and die by the same rules:"""
FIGURE_1 = """\
The paper's diameter is no whole number, so it stands beside the mean path. Rewiring
keeps all degrees.

![Figure 1](figure-1-degrees.png)

*Figure 1 of the paper: distribution of the numbers of links. Small signs are single
degrees, large ones bins that grow by half, lines power laws fitted by maximum
likelihood.*"""

# What is claimed to be larger for whom, Table 2's difference, and digits.
CLAIMED = (
    ("WL has the higher sent efficiency", WL, "sent_efficiency", "+0.242", 3),
    ("RL has the higher relative found URL", RL, "relative_found_url", "+0.008", 4),
    ("WL has the higher freshness", WL, "freshness_mean", "+0.04", 3),
    ("RL has the higher age (hours)", RL, "age_hours_mean", "+0.23", 2),
    ("WL has the higher freshness, all documents", WL, "freshness_all_mean", NONE, 3),
    ("RL has the higher age, all documents (hours)", RL, "age_hours_all_mean", NONE, 2),
    ("WL has the higher freshness, last day", WL, "freshness_day_mean", NONE, 3),
    ("RL has the higher age, last day (hours)", RL, "age_hours_day_mean", NONE, 2),
)
PEAKS = (
    ("RL's efficiency has more peaks (a day)", "more"),
    ("RL's peaks are higher (over the median)", "higher"),
    ("RL's efficiency changes more sharply", "sharper"),
)
EFFICIENCIES = (("download_efficiency", 4), ("sent_efficiency", 3))


class Experiment:
    """All runs of the paper."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.control = {web: rewired_web(web) for web in settings.webs()}
        self.webs = [web for pair in self.control.items() for web in pair]
        self.checksum = code()

    def of(self, web: Web, kind: str, variant: Variant | None = None) -> list[FleetRun]:
        """Return the runs of a kind on a trace."""
        runs = fleet(self.settings, web, kind, self.checksum)
        if variant is None:
            return runs
        return [variant.of(run) for run in runs[: self.settings.spare_seeds]]

    def runs(self) -> list[FleetRun]:
        """Return all runs, the most important first."""
        found = []
        for web in self.webs:
            for kind in (WL, RL, RANDOM):
                found += self.of(web, kind)
        for variant in VARIANTS:
            for web in self.webs[:2]:
                for kind in (WL, RL):
                    found += self.of(web, kind, variant)
        return unique(found)

    # --- claims

    def claims(
        self, results: Results, web: Web, variant: Variant | None = None
    ) -> list[Claim]:
        """Judge what the paper says, on a trace and its control."""
        runs = {kind: self.of(web, kind, variant) for kind in (WL, RL)}

        def compare(
            text: str, more: str, path: tuple[str, str], paper: str, digits: int
        ) -> Claim:
            less = RL if more == WL else WL
            both = [results.values(runs[kind], *path) for kind in (more, less)]
            return higher(text, paper, f"{KINDS[more]} - {KINDS[less]}", both, digits)

        found = [self._similar(results, runs)]
        for text, more, name, paper, digits in CLAIMED:
            found.append(compare(text, more, ("summary", name), paper, digits))
        for text, name in PEAKS:
            found.append(compare(text, RL, ("peaks", name), "Figure 2", 2))
        for kind in (WL, RL):
            own = results.values(runs[kind], "summary", "download_efficiency")
            ratio = verdicts.spread(own)
            text = f"runs of {KINDS[kind]} differ little (deviation below {LITTLE:.0%})"
            measured = f"deviation / mean: {per_cent(ratio, 1)}"
            found.append(Claim(text, "2 %", measured, verdicts.below(ratio, LITTLE)))
        control = self.control[web]
        runs = {kind: self.of(control, kind, variant) for kind in (WL, RL)}
        for name, digits in EFFICIENCIES:
            text = f"rewired, RL beats WL ({words(name)})"
            found.append(compare(text, RL, ("summary", name), "told", digits))
        return found

    def _similar(self, results: Results, runs: dict[str, list[FleetRun]]) -> Claim:
        both = [
            results.values(runs[kind], "summary", "download_efficiency")
            for kind in (WL, RL)
        ]
        verdict, gap = verdicts.similar(*both)
        text = f"WL and RL have similar download efficiency (within {SIMILAR:.0%})"
        return Claim(text, "+2 %", f"WL - RL: {per_cent(gap, 1)}", verdict)

    def control_claims(self, results: Results, web: Web) -> list[Claim]:
        """Compare either kind with random walks, which the paper does not do."""
        found = []
        for kind in (WL, RL):
            for name, digits in EFFICIENCIES:
                both = [
                    results.values(self.of(web, k), "summary", name)
                    for k in (kind, RANDOM)
                ]
                text = f"{KINDS[kind]} beats random walks ({words(name)})"
                gap = f"{KINDS[kind]} - random"
                found.append(higher(text, "not told", gap, both, digits))
        return found

    # --- report

    def introduction(self) -> str:
        """Say what was run."""
        first = self.of(self.webs[0], WL)[0]
        where = " and ".join(f"`{web.name}`" for web in self.control)
        return (
            f"Fleets of WL foragers (a weblog selects where paths start; the direction "
            f"is fixed) and of RL foragers (temporal differences adapt the direction; "
            f"the start list is fixed), 2 growing to {MOST}, for "
            f"{first.time / DAY:g} days on {where}, and on the same with the links "
            f"exchanged at random (rewired); {self.settings.seeds} runs each, with "
            "other random weights. Random walks are the control."
        )

    def table(self, results: Results, web: Web) -> str:
        """Write Table 2 with the paper's figures beside ours."""
        runs = {kind: self.of(web, kind) for kind in (RL, WL, RANDOM)}
        head = ["", "RL, paper", "RL, ours", "RL, spread"]
        head += ["WL, paper", "WL, ours", "WL, spread", "random walk"]
        lines = []
        for name, (rl, wl, digits) in TABLE.items():
            ours = {k: results.values(own, "summary", name) for k, own in runs.items()}
            line = [words(name)]
            for kind, paper in ((RL, rl), (WL, wl)):
                line += [paper, interval(ours[kind], digits)]
                line.append(spread(ours[kind], digits))
            lines.append([*line, interval(ours[RANDOM], digits)])
        line = ["CPU seconds a run"]
        for kind in (RL, WL):
            own = results.cpu_seconds(runs[kind])
            line += [NONE, interval(own, 1), spread(own, 1)]
        lines.append([*line, interval(results.cpu_seconds(runs[RANDOM]), 1)])
        return markdown([head, *lines])

    def report(self, results: Results, out: Path) -> str:
        """Draw the figures and write the report."""
        main, *given = self.control
        parts = [
            self.introduction(),
            "## Claims",
            CLAIMS_NOTE,
            claim_table(self.claims(results, main)),
            CONTROL_NOTE,
            claim_table(self.control_claims(results, main)),
        ]
        for web in self.webs:
            parts += [f"## Table 2 on {web.name}", self.table(results, web)]
            parts.append(self.figures(results, web, out))
        parts += ["## Does the verdict depend on it?", self.matrix(results)]
        degree_figure([main, *given], out / "figure-1-degrees.png")
        parts += ["## The web", structure_table(self.webs, STRUCTURE), FIGURE_1]
        return "\n\n".join(parts)

    def matrix(self, results: Results) -> str:
        """Write the verdicts for each way to read what the paper leaves open."""
        main, *given = self.control
        columns = {"as reported": self.claims(results, main)}
        for variant in VARIANTS:
            columns[variant.name] = self.claims(results, main, variant)
        for web in given:
            columns[web.name] = self.claims(results, web)
        seeds = self.settings.spare_seeds
        note = (
            f"Variants have {seeds} seeds, so their intervals are wider. As reported: "
            "a changed page is a new document, equal values go to the URL known "
            "longest, visited pages are fetched again, and the start list of RL has "
            "the first 10 URLs that a forager visits."
        )
        pairs = {
            variant.name: [
                (run, variant.of(run))
                for web in self.webs[:2]
                for kind in (WL, RL)
                for run in self.of(web, kind)[:seeds]
            ]
            for variant in VARIANTS
        }
        same = unchanged(results, pairs)
        return "\n\n".join(x for x in (note, same, verdict_matrix(columns)) if x)

    def figures(self, results: Results, web: Web, out: Path) -> str:
        """Draw Figures 2 and 3 of a trace; return the links to them."""
        runs = {k: results.series(self.of(web, k)) for k in (RL, WL, RANDOM)}
        shown = {KINDS[kind]: own for kind, own in runs.items() if own}
        if not shown:
            return ""
        for name, figure in (
            ("2-efficiency", pictures.efficiency(shown)),
            ("3-freshness", pictures.freshness_and_age(shown)),
        ):
            pictures.save(figure, out / f"figure-{name}-{web.name}.png")
        return (
            f"![Figure 2](figure-2-efficiency-{web.name}.png)\n\n*Figure 2 of the "
            "paper: relevant documents over downloaded ones in windows of three hours, "
            "a line for each run. The first hours, when a backlog is there for the "
            "taking, may leave the panel.*\n\n"
            f"![Figure 3](figure-3-freshness-{web.name}.png)\n\n*Figure 3 of the "
            "paper: freshness and age of the found relevant documents (the newest "
            "found version of each URL) at the end of each window.*"
        )
