"""Spidering with naive-Bayes Q-values: does looking ahead pay?

J. Rennie, A. McCallum, "Using reinforcement learning to spider the web efficiently"
(1999), sections 3 and 4: each site is crawled by spiders that learned on all others;
many targets a site (Cora), or a single one (WebKB companies).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.reproduce import pictures
from benchmarks.reproduce.results import (
    NONE,
    Claim,
    Results,
    Settings,
    claim_table,
    interval,
    left_markdown,
    spread,
    verdict_matrix,
)
from benchmarks.reproduce.spidering_claims import many_claims, percent, single_claims
from benchmarks.reproduce.spidering_pictures import crawls
from benchmarks.reproduce.spidering_runs import (
    BREADTH,
    OPTIMAL,
    RANDOM,
    SHARES,
    SPIDERS,
    Fold,
    Group,
    area,
    code,
    links_to,
    rich_sites,
    rooted_sites,
    spider,
    with_single_targets,
)
from benchmarks.standings import markdown
from gym_webforage import load_trace

TITLE = "Using reinforcement learning to spider the web efficiently"
DEFAULT = ("synthetic-sites-v0", "python-docs-v0", "sqlalchemy-docs-v0")
QUICK = ("synthetic-small-sites-v0", "python-docs-v0", "sqlalchemy-docs-v0")
CLOSED_FROM = 0.05  # share of URLs never recorded, from which the closed world is run
NAMES = (OPTIMAL, *SPIDERS, BREADTH, RANDOM)
TABLE_1 = {
    OPTIMAL: "3 %",
    spider(4, "related"): "13 %",
    spider(3, "related"): "22 %",
    spider(5, "related"): "27 %",
    spider(2, "related"): "27 %",
    BREADTH: "38 %",
}
CORA_75 = {
    spider(2, "full-page"): "14 %",
    spider(3, "full-page"): "14 %",
    BREADTH: "43 %",
}
ACCURACY = {2: "85 %", 3: "77 %", 4: "59 %"}
TWO_BIN = {2: "85 %", 3: "92 %", 4: "95 %"}
RECALL = {
    spider(2, "full-page"): "95 %",
    spider(3, "full-page"): "88 %",
    spider(2, "related"): "71 %",
}
# Table 2 of the paper, the first four words of each bin.
WORDS = (
    "board (url), corpinfo (url), information (url), executive (link)",
    "aboutbb (url), corp (url), bb (link), inc (head)",
    "applications (url), siteindex (url), aerial (head), employment (url)",
    "clp (url), and (near), elk (url), region (head)",
)
FIGURES = """\
![Figure 1]({})

*Figure 1 of the paper: full-page text, mean over sites; below, the beginning.*

![Figure 2]({})

*Figure 2 of the paper: both texts; above, the later stages; below, the first 30 % of
the targets.*"""
BIN_NAMES = ("immediate", "two steps", "three steps", "other")

NOTE = """\
A spider that follows a link fetches the URL behind it, and no URL twice, so *links
followed* are URLs fetched, as a share of all that can be reached from the site's root
by its links. A crawl goes on until it has all targets. The area under the curve is the
mean share of targets found over a crawl of the whole site, at random about one half.
Each site is crawled by spiders that learned on the other sites of its group. Optimal
is greedy, one nearest target after another, and not provably best. In the *open* world
URLs of the site that were never recorded are there and empty; the *closed* world has no
links to them, and is run where at least 5 % of the URLs are such."""
CLAIMS_NOTE = """\
Differences are taken site by site; a claim *holds* or *does not* if the 95 % interval
(Student's t over sites) lies on one side, otherwise it *cannot be told*. Shares are in
per cent of the URLs. As in the paper's Figure 1, spiders read the full page where
nothing else is said, and RL Future has three bins."""
SINGLE_NOTE = """\
One target a site: a page of a kind that every site of the group has (a label; where no
label is shared, a word in the title of few pages), at least two links from the root.
The seed draws kind and pages, so the figures are over sites and draws. A kind with many
pages on a site is harder than the paper's, where one page lists the officers."""


Rows = Sequence[Mapping[str, Any]]  # the results of folds


def find_groups(sources: Sequence[str]) -> list[Group]:
    """Return the groups of sites: those of each trace, single ones together."""
    found: dict[str, Group] = {}
    alone: dict[str, tuple[str, str, float]] = {}
    for source in sources:
        trace = load_trace(source)
        unrecorded = float(np.mean(np.diff(trace.version_start) == 0))
        if len(rooted_sites([trace])) > 1:
            group = Group(trace.name, (source,), (trace.digest,), unrecorded)
            found.setdefault(trace.digest, group)
        else:
            alone.setdefault(trace.digest, (trace.name, source, unrecorded))
    if len(alone) > 1:
        names, places, shares = zip(*alone.values(), strict=True)
        name = " and ".join(names)
        group = Group(name, tuple(places), tuple(alone), max(shares))
        found[name] = group
    return list(found.values())


class Experiment:
    """All folds: every site of every group left out once."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        defaults = QUICK if settings.quick else DEFAULT
        self.groups = find_groups((*defaults, *settings.traces))
        self.checksum = code()
        self.many: dict[Group, list[Any]] = {}
        self.single: dict[Group, list[Any]] = {}
        for group in self.groups:
            traces = group.load("open")
            self.many[group] = sites if len(sites := rich_sites(traces)) > 1 else []
            try:
                self.single[group] = with_single_targets(traces, 0)[1]
            except ValueError:
                self.single[group] = []

    def worlds(self, group: Group) -> list[str]:
        """Return the worlds that a group is run in."""
        return ["open", *(["closed"] if group.unrecorded >= CLOSED_FROM else [])]

    def of(
        self, group: Group, world: str, regime: str, endings: bool = True
    ) -> list[Fold]:
        """Return the folds of a group."""
        if regime == "many":
            walks = self.settings.seeds
            return [
                Fold(group, world, regime, site, 0, walks, endings, self.checksum)
                for site in self.many[group]
            ]
        return [
            Fold(group, world, regime, site, seed, 1, endings, self.checksum)
            for seed in range(self.settings.spare_seeds)
            for site in self.single[group]
        ]

    def runs(self) -> list[Fold]:
        """Return all folds, the most important first."""
        found = []
        for group in self.groups:
            for world in self.worlds(group):
                found += self.of(group, world, "many")
            found += self.of(group, "open", "many", endings=False)
        for group in self.groups:
            for world in self.worlds(group):
                found += self.of(group, world, "single")
        return found

    # --- report

    def report(self, results: Results, out: Path) -> str:
        """Draw the figures and write the report."""
        parts = [self._introduction(), NOTE, "## Many targets: claims", CLAIMS_NOTE]
        tables, matrix = [], {}
        for group in self.groups:
            for world in self.worlds(group):
                rows = _rows(results, self.of(group, world, "many"))
                if rows:
                    matrix[f"{group.name}, {world}"] = many_claims(rows)
                    tables.append(self._many(results, group, world, out))
            rows = _rows(results, self.of(group, "open", "many", endings=False))
            if rows:
                matrix[f"{group.name}, no endings"] = many_claims(rows)
        parts += _claims(matrix)
        left_out = [g.name for g in self.groups if not self.many[g]]
        if left_out:
            parts.append(f"Without a second site with targets: {', '.join(left_out)}.")
        parts += tables
        parts += ["## A single target: claims", SINGLE_NOTE]
        matrix, tables = {}, []
        for group in self.groups:
            for world in self.worlds(group):
                rows = _rows(results, self.of(group, world, "single"))
                if rows:
                    matrix[f"{group.name}, {world}"] = single_claims(rows)
                    tables.append(self._single(results, group, world))
        return "\n\n".join([*parts, *_claims(matrix), *tables])

    def _introduction(self) -> str:
        names = ", ".join(f"`{group.name}`" for group in self.groups)
        return (
            f"Spiders on {names}. Learning ones read a link's words: *full-page* (the "
            "page it stands on; anchor and URL) or *related* (title and headers; "
            "anchor; URL; words near). RL Immediate tells links to targets from "
            "others; RL Future has bins for targets some steps away as well. Random "
            f"walks ({self.settings.seeds} a site) and Breadth-First learn nothing."
        )

    def _many(self, results: Results, group: Group, world: str, out: Path) -> str:
        folds = [f for f in self.of(group, world, "many") if f.name in results.rows]
        rows = _rows(results, folds)
        where = f"{group.name}, {world} world"
        targets, urls = (sum(row[x] for row in rows) for x in ("targets", "urls"))
        files = [f"figure-{number}-{_slug(where)}.png" for number in (1, 2)]
        for file, text in zip(files, ("full-page", "both"), strict=True):
            pictures.save(crawls(rows, text, where), out / file)
        parts = [
            f"## Many targets on {where}",
            f"{targets:,} targets among {urls:,} URLs on {len(rows)} sites. Per cent "
            "of the URLs, mean (95 % interval over sites):",
            _progress(rows),
            FIGURES.format(*files),
            "By site, links followed to 75 % of the targets (per cent), and the area:",
            _by_site([fold.site[1] for fold in folds], rows),
            _exceeded(folds, rows),
            "### Classifiers",
            _classifiers(rows),
            "### Table 2: the words that tell a bin best (4 bins, related)",
            _words(folds, rows),
        ]
        return "\n\n".join(parts)

    def _single(self, results: Results, group: Group, world: str) -> str:
        folds = [f for f in self.of(group, world, "single") if f.name in results.rows]
        rows = _rows(results, folds)
        kinds = ", ".join(dict.fromkeys(row["kind"] for row in rows))
        sites = list(dict.fromkeys(fold.site[1] for fold in folds))
        lines, by_site = [], []
        for name in NAMES:
            values = percent(links_to(r, name, 1.0) for r in rows)
            line = [name, TABLE_1.get(name, NONE), interval(values, 1)]
            lines.append([*line, spread(values, 1)])
            cells = []
            for site in sites:
                own = [r for f, r in zip(folds, rows, strict=True) if f.site[1] == site]
                cells.append(interval(percent(links_to(r, name, 1.0) for r in own), 1))
            by_site.append([name, *cells])
        head = ["spider", "paper", "ours: mean (95 % interval)", "deviation (range)"]
        parts = [
            f"## Table 1 on {group.name}, {world} world",
            f"Per cent of links followed to the target, {len(rows)} crawls; kinds: "
            f"{kinds}.",
            markdown([head, *lines]),
            "By site:",
            markdown([["", *sites], *by_site]),
            "Words that tell a bin best (4 bins, related):",
            _words(folds, rows),
        ]
        return "\n\n".join(parts)


def _progress(rows: Rows) -> str:
    """Write how far each spider had to go."""
    head = ["links followed to", *(f"{share:.0%}" for share in SHARES)]
    lines = []
    for name in NAMES:
        cells = [
            interval(percent(links_to(r, name, s) for r in rows), 1) for s in SHARES
        ]
        cells.append(interval([area(r, name) for r in rows], 3))
        lines.append([name, *cells, CORA_75.get(name, NONE)])
    return markdown([[*head, "area", "75 %, paper"], *lines])


def _by_site(sites: Sequence[str], rows: Rows) -> str:
    lines = []
    for name in NAMES:
        cells = [_one(links_to(row, name, 0.75)) for row in rows]
        cells += [_one(area(row, name), 1, 3) for row in rows]
        lines.append([name, *cells])
    return markdown([["", *sites, *(f"{site}, area" for site in sites)], *lines])


def _exceeded(folds: Sequence[Fold], rows: Rows) -> str:
    """Name those that were somewhere faster than Optimal."""
    found = []
    for fold, row in zip(folds, rows, strict=True):
        best = [links_to(row, OPTIMAL, share) or 0.0 for share in SHARES]
        for name in NAMES[1:]:
            own = [links_to(row, name, share) or 2.0 for share in SHARES]
            both = zip(SHARES, own, best, strict=True)
            shares = ", ".join(f"{share:.0%}" for share, a, b in both if a < b)
            if shares:
                found.append(f"{name} on {fold.site[1]} at {shares}")
    return "Optimal is exceeded by: " + ("; ".join(found) or "nobody") + "."


def _classifiers(rows: Rows) -> str:
    head = ["", "accuracy", "paper", "2-bin task", "paper", "recall of immediate"]
    head += ["paper", "precision", "recall of others"]
    lines = []
    for name, (bins, text) in SPIDERS.items():
        own = {
            figure: interval(percent(r["classifiers"][name][figure] for r in rows), 1)
            for figure in rows[0]["classifiers"][name]
        }
        is_told = text == "full-page"
        line = [name, own["accuracy"], ACCURACY.get(bins, NONE) if is_told else NONE]
        line += [own["two_bin_accuracy"], TWO_BIN.get(bins, NONE) if is_told else NONE]
        line += [own["recall"], RECALL.get(name, NONE)]
        lines.append([*line, own["precision"], own["other_recall"]])
    return markdown([head, *lines])


def _rows(results: Results, folds: Sequence[Fold]) -> Rows:
    return [results.rows[f.name]["result"] for f in folds if f.name in results.rows]


def _claims(matrix: Mapping[str, Sequence[Claim]]) -> list[str]:
    """Write the claims of each column in full, then all verdicts side by side."""
    parts = []
    for name, claims in matrix.items():
        parts += [f"### {name}", claim_table(claims)]
    if len(matrix) > 1:
        parts += ["### All verdicts", verdict_matrix(matrix)]
    return parts


def _one(value: float | None, scale: float = 100, digits: int = 1) -> str:
    return NONE if value is None else f"{scale * value:.{digits}f}"


def _slug(text: str) -> str:
    return "-".join(text.replace(",", " ").split())


def _words(folds: Sequence[Fold], rows: Sequence[Mapping[str, Any]]) -> str:
    name = spider(4, "related")
    lines = []
    for fold, row in zip(folds[:1], rows[:1], strict=True):
        for number, words in enumerate(row["words"][name]):
            listed = ", ".join(f"{word} ({bag})" for word, bag in words)
            lines.append([BIN_NAMES[number], WORDS[number], listed])
        where = f"ours, {fold.site[1]} left out"
        return left_markdown([["bin", "paper (companies), first four", where], *lines])
    return ""
