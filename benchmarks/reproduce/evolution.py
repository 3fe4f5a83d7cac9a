"""The evolution of news foragers: a population that divides the web among itself.

Zs. Palotai, S. Mandusitz, A. Lőrincz, "Computer study of the evolution of 'news
foragers' on the Internet", section 4: foragers with a weblog and a learned direction
(WLRL), 2 growing to 22, for two weeks on a news site.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.reproduce import ground, pictures, verdicts
from benchmarks.reproduce.course import DAY, GROUND
from benchmarks.reproduce.fleets import KINDS, FleetRun, Web, code
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
    spread,
    structure_table,
    unchanged,
    unique,
    verdict_matrix,
    words,
)
from benchmarks.standings import markdown
from gym_webforage.metrics import HOUR

TITLE = "Computer study of the evolution of news foragers on the Internet"
WLRL, RANDOM = "weblog_td", "random_walk"
BUDGET, QUICK_BUDGET = "14d", "2d"
CAPS = (22, 64)
RULES = (
    ("fetch_seconds", 1.11),  # gives the paper's 1,090,074 downloads in two weeks
    ("judge", "evolution"),
    ("refetch_visited", False),
)
LOWEST = 60.0  # score below which none fell
EXCLUSIVE = (0.6, 0.7)
NEAR_ONE = 0.9  # share of trajectories that counts as near 1
LINEAR = (0.8, 1.25)  # second week's new URLs over the first week's

TABLE = {
    "downloaded": ("1,090,074", 0),
    "sent": ("94,226", 0),
    "relevant": ("7,423", 0),
    "found_urls": (NONE, 0),
    "download_efficiency": ("0.0068", 4),
    "sent_efficiency": ("0.079", 3),
    "freshness_mean": (NONE, 3),
    "age_hours_mean": (NONE, 2),
    "novelty_lag_hours": (NONE, 2),
    "paths": (NONE, 0),
    "new_starts": (NONE, 0),
    "exclusive_urls": ("0.6 to 0.7", 3),
    "exclusive_urls_run": (NONE, 3),
    "distinct_trajectories": ("near 1", 3),
    "distinct_trajectories_run": (NONE, 3),
}
POPULATION = {
    "most": ("22", 1),
    "births": ("20", 1),
    "deaths": (NONE, 1),
    "days_to_most": (NONE, 1),
    "lowest_score": ("60 or more", 1),
}
WEEKS = {
    "new_urls_a_day": ("about 1,200", 0),
    "download_efficiency": ("increases", 4),
    "sent_efficiency": ("increases", 3),
    "lag_hours": ("decreases", 2),
}
STRUCTURE = {
    "nodes": (NONE,),
    "links": (NONE,),
    "out exponent": ("2.0 ± 0.3",),
    "out exponent by least squares": ("2.0 ± 0.3",),
    "in exponent": ("2.0 ± 0.3",),
    "in exponent by least squares": ("2.0 ± 0.3",),
    "clustering": (NONE,),
    "mean path": (NONE,),
}
VARIANTS = (
    Variant("document = URL", {"document": "url"}),
    Variant("visited pages fetched again", {"refetch_visited": True}),
    Variant("judge of the selection paper", {"judge": "selection"}),
    Variant("ties: newest", fields={WLRL: {"ties": "newest"}}),
    Variant("ties: random", fields={WLRL: {"ties": "random"}}),
    Variant("2.6 s a fetch", {"fetch_seconds": 2.6}),
)
CLAIMS_NOTE = f"""\
A claim *holds* or *does not* if the 95 % interval (Student's t) lies on one side;
otherwise it *cannot be told*. The first and second half of a run (the two weeks) are
compared within each run, the first seventh of either left out: on the first day a
backlog is there for the taking, and so the same days of the week stand beside each
other. The lag counts documents published after the start. Near 1 means at least
{NEAR_ONE}, about linear {LINEAR[0]} to {LINEAR[1]} times as many in the second half:
conventions of ours, written down when single runs had been seen, so judge by the
interval. Verdicts are not corrected for their number."""
CONTROL_NOTE = """\
The paper has no control. Random walks, which start from any page they know and visit
any page of the frontier, live by the same rules; where they do as well, a figure says
nothing about learning:"""


class Experiment:
    """All runs of the paper."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.webs = settings.webs()
        self.checksum = code()

    def of(
        self, web: Web, kind: str, most: int = CAPS[0], variant: Variant | None = None
    ) -> list[FleetRun]:
        """Return the runs of a kind on a trace."""
        budget = QUICK_BUDGET if self.settings.quick else BUDGET
        runs = [
            FleetRun(web, kind, seed, budget, most, self.checksum, rules=RULES)
            for seed in range(self.settings.seeds)
        ]
        if variant is None:
            return runs
        return [variant.of(run) for run in runs[: self.settings.spare_seeds]]

    def runs(self) -> list[FleetRun]:
        """Return all runs, the most important first."""
        found = []
        for web in self.webs:
            for most in CAPS:
                for kind in (WLRL, RANDOM):
                    found += self.of(web, kind, most)
        for variant in VARIANTS:
            found += self.of(self.webs[0], WLRL, variant=variant)
        return unique(found)

    # --- claims

    def claims(self, results: Results, runs: list[FleetRun], most: int) -> list[Claim]:
        """Judge what the paper says, on some runs."""
        largest = results.values(runs, "population", "most")
        lowest = verdicts.known(results.values(runs, "population", "lowest_score"))
        exclusive = verdicts.mean(results.values(runs, "summary", "exclusive_urls"))
        distinct = verdicts.mean(
            results.values(runs, "summary", "distinct_trajectories")
        )

        def week(name: str) -> list[list[float | None]]:
            return [results.values(runs, "halves", w, name) for w in WEEK_NAMES]

        first, second = week("new_urls_a_day")
        pairs = [(a, b) for a, b in zip(first, second, strict=True) if a and b]
        ratio = verdicts.mean([b / a for a, b in pairs])
        found = [
            Claim(
                "the population grows from 2 to the cap",
                "2 to 22",
                f"in {sum(x == most for x in largest)} of {len(largest)} runs",
                verdicts.always([x == most for x in largest]),
            ),
            Claim(
                f"scores never fall below {LOWEST:g}",
                "60 to 200",
                f"lowest of all runs: {lowest.min(initial=np.inf):.1f}",
                verdicts.never_otherwise([bool(x >= LOWEST) for x in lowest]),
            ),
        ]
        gap = "first - second half"
        text = "the lag decreases (hours)"
        found.append(higher(text, "Figure 3a", gap, week("lag_hours"), 2, pairs=True))
        found += [
            Claim(
                "60 to 70 % of URLs are visited by one forager only",
                "0.6 to 0.7",
                exclusive.show(3),
                verdicts.within(exclusive, *EXCLUSIVE),
            ),
            Claim(
                "distinct two-step trajectories near 1",
                "near 1",
                distinct.show(3),
                verdicts.above(distinct, NEAR_ONE),
            ),
            Claim(
                "found URLs grow about linearly",
                "about 1",
                f"second / first half: {ratio.show(2)}",
                verdicts.within(ratio, *LINEAR),
            ),
        ]
        for name, digits in (("download_efficiency", 4), ("sent_efficiency", 3)):
            both = week(name)[::-1]
            text = f"{words(name)} increases with time"
            gap = "second - first half"
            found.append(higher(text, "told", gap, both, digits, pairs=True))
        return found

    def control_claims(self, results: Results, web: Web) -> list[Claim]:
        """Compare with random walks, which the paper does not do."""
        found = []
        for name, digits in (
            ("download_efficiency", 4),
            ("sent_efficiency", 3),
            ("exclusive_urls", 3),
            ("exclusive_urls_run", 3),
            ("distinct_trajectories", 3),
        ):
            both = [
                results.values(self.of(web, kind), "summary", name)
                for kind in (WLRL, RANDOM)
            ]
            text = f"WLRL has more than random walks: {words(name)}"
            found.append(higher(text, "not told", "WLRL - random", both, digits))
        return found

    # --- report

    def introduction(self) -> str:
        """Say what was run."""
        first = self.of(self.webs[0], WLRL)[0]
        where = " and ".join(f"`{web.name}`" for web in self.webs)
        return (
            "Foragers with a weblog and a learned direction (WLRL), 2 growing to "
            f"{CAPS[0]} and, to see what the cap does, to {CAPS[1]}, for "
            f"{first.time / DAY:g} days on {where}; {self.settings.seeds} runs each. "
            "A send costs 1 and a novel page pays 100 on top; pages visited in a path "
            "are not fetched again; a fetch takes 1.11 s, which gives the paper's "
            "number of downloads. Random walks are the control."
        )

    def table(self, results: Results, web: Web) -> str:
        """Write the paper's figures beside ours."""
        fleets = {
            f"{KINDS[kind]}, up to {most}": self.of(web, kind, most)
            for most in CAPS
            for kind in (WLRL, RANDOM)
        }
        main = f"WLRL, up to {CAPS[0]}"
        head = ["", "paper", main, "spread", *(x for x in fleets if x != main)]
        lines = []

        def line(name: str, paper: str, digits: int, *path: str) -> None:
            ours = {x: results.values(runs, *path) for x, runs in fleets.items()}
            cells = [interval(ours[main], digits), spread(ours[main], digits)]
            cells += [interval(ours[x], digits) for x in fleets if x != main]
            lines.append([name, paper, *cells])

        for name, (paper, digits) in TABLE.items():
            line(words(name), paper, digits, "summary", name)
        for name, (paper, digits) in POPULATION.items():
            line(POPULATION_WORDS[name], paper, digits, "population", name)
        for name, (paper, digits) in WEEKS.items():
            for week in WEEK_NAMES:
                told = paper if week == "second" or name == "new_urls_a_day" else NONE
                text = f"{WEEK_WORDS.get(name, words(name))}, {week} half"
                line(text, told, digits, "halves", week, name)
        cpu = {x: results.cpu_seconds(runs) for x, runs in fleets.items()}
        cells = [interval(cpu[main], 1), spread(cpu[main], 1)]
        cells += [interval(cpu[x], 1) for x in fleets if x != main]
        lines.append(["CPU seconds a run", NONE, *cells])
        return markdown([head, *lines])

    def report(self, results: Results, out: Path) -> str:
        """Draw the figures and write the report."""
        main = self.webs[0]
        parts = [
            self.introduction(),
            "## Claims",
            CLAIMS_NOTE,
            claim_table(self.claims(results, self.of(main, WLRL), CAPS[0])),
            CONTROL_NOTE,
            claim_table(self.control_claims(results, main)),
        ]
        for web in self.webs:
            parts += [f"## Figures on {web.name}", self.table(results, web)]
            parts.append(self.figures(results, web, out))
        parts += ["## Does the verdict depend on it?", self.matrix(results)]
        degree_figure(self.webs, out / "figure-2-degrees.png")
        parts += ["## The web", structure_table(self.webs, STRUCTURE), FIGURE_2]
        return "\n\n".join(parts)

    def matrix(self, results: Results) -> str:
        """Write the verdicts for each way to run and to read the rules."""
        main, *given = self.webs
        cap, more = CAPS
        columns = {
            "as reported": self.claims(results, self.of(main, WLRL), cap),
            f"cap {more}": self.claims(results, self.of(main, WLRL, more), more),
            "random walks": self.claims(results, self.of(main, RANDOM), cap),
        }
        for variant in VARIANTS:
            runs = self.of(main, WLRL, variant=variant)
            columns[variant.name] = self.claims(results, runs, cap)
        for web in given:
            columns[web.name] = self.claims(results, self.of(web, WLRL), cap)
        seeds = self.settings.spare_seeds
        note = (
            f"Variants have {seeds} seeds, so their intervals are wider. From 25 "
            "foragers on a round takes longer than the windows of 75 minutes, and the "
            "shares say little."
        )
        pairs = {
            variant.name: [
                (run, variant.of(run)) for run in self.of(main, WLRL)[:seeds]
            ]
            for variant in VARIANTS
        }
        same = unchanged(results, pairs)
        return "\n\n".join(x for x in (note, same, verdict_matrix(columns)) if x)

    def figures(self, results: Results, web: Web, out: Path) -> str:
        """Draw Figures 3 to 6 of a trace; return the links to them."""
        runs = {k: results.series(self.of(web, k)) for k in (WLRL, RANDOM)}
        shown = {KINDS[kind]: own for kind, own in runs.items() if own}
        if KINDS[WLRL] not in shown:
            return ""
        one = {kind: own[0] for kind, own in shown.items()}
        days = 3 * float(one[KINDS[WLRL]]["window_end"][-1]) / DAY / 14
        crawler = one[KINDS[WLRL]]
        title = (
            f"Forager {int(crawler['ground_forager'])}, last {GROUND // HOUR} hours: "
            f"{len(crawler['ground_url'])} URLs"
        )
        drawn = (
            ("3a-detector", pictures.detector(shown), FIGURE_3A),
            ("3b-population", pictures.bands(one), FIGURE_3B),
            ("4-division", pictures.division(one, days), FIGURE_4),
            ("5-starts", pictures.starting_points(one), FIGURE_5),
            ("6-territory", ground.territory(crawler, title), FIGURE_6),
        )
        parts = []
        for name, figure, caption in drawn:
            file = f"figure-{name}-{web.name}.png"
            pictures.save(figure, out / file)
            number = name.split("-")[0]
            parts.append(f"![Figure {number}]({file})\n\n*{caption}*")
        return "\n\n".join(parts)


WEEK_NAMES = ("first", "second")
WEEK_WORDS = {"new_urls_a_day": "new URLs a day", "lag_hours": "lag (hours)"}
POPULATION_WORDS = {
    "most": "largest population",
    "births": "births",
    "deaths": "deaths",
    "days_to_most": "days until then",
    "lowest_score": "lowest score",
}
FIGURE_2 = """\
![Figure 2](figure-2-degrees.png)

*Figure 2 of the paper: distribution of the numbers of links. Small signs are single
degrees, large ones bins that grow by half, lines power laws fitted by maximum
likelihood.*"""
FIGURE_3A = """\
Figure 3a of the paper: rewarded over sent and over downloaded documents, and hours from
publication to sending, in windows of three hours; mean and range over the runs."""
FIGURE_3B = """\
Figure 3b of the paper: who lived when, and with what score, in the first run of each
kind. Orange lines lead from parent to child. At the cap nobody divides, and scores go
on rising."""
FIGURE_4 = """\
Figure 4 of the paper: the share of URLs that one forager alone visited within 75
minutes, first days and whole run, and of two-step trajectories that one alone took
among those from URLs where several started one; colours are foragers, the first born
below. Dashed: the paper's 0.6 to 0.7. Neighbouring windows are drawn together."""
FIGURE_5 = """\
Figure 5 of the paper: new starting points of paths by time and by the place of the URL
in the order of discovery. The line is the number of found URLs."""
FIGURE_6 = """\
Figure 6 of the paper: the territory of the oldest forager (of more than 300 URLs those
visited most). Size: visits."""
