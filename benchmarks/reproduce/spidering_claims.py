"""What the spidering paper says, judged by the folds of a group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from baselines._naive_bayes import BINS
from benchmarks.reproduce import verdicts
from benchmarks.reproduce.results import Claim, higher, interval
from benchmarks.reproduce.spidering_runs import BREADTH, curve, links_to, spider

Rows = Sequence[Mapping[str, Any]]

NOW, LATER, FOUR, _ = (spider(bins, "full-page") for bins in BINS)
NEAR_NOW, NEAR_LATER, NEAR_FOUR, NEAR_FIVE = (spider(bins, "related") for bins in BINS)

# The claim, the paper's figure, who is sooner than whom, at which share of the targets.
SOONER = (
    ("Immediate is sooner than Breadth-First", "43 - 14", NOW, BREADTH, 0.75),
    ("Future is sooner than Breadth-First", "43 - 14", LATER, BREADTH, 0.75),
    ("Future is sooner than Immediate", "350 fetches", LATER, NOW, 0.05),
    ("Future is sooner than Immediate", "Figure 1", LATER, NOW, 0.10),
    ("Immediate is sooner than Future", "Figure 1", NOW, LATER, 0.50),
    ("Immediate is sooner than Future", "Figure 1", NOW, LATER, 0.75),
    ("related text is sooner than full-page", "Figure 2", NEAR_LATER, LATER, 0.10),
    ("related text is sooner than full-page", "Figure 2", NEAR_LATER, LATER, 0.25),
    ("full-page is sooner than related text", "Figure 2", LATER, NEAR_LATER, 0.75),
    ("full-page is sooner than related text", "Figure 2", LATER, NEAR_LATER, 1.00),
)
# The claim, the paper's figure, who is better than whom, in what.
BETTER = (
    ("Immediate recalls more immediate links", "95 - 88", NOW, LATER, "recall"),
    ("full-page recalls more than related", "95 - 71", NOW, NEAR_NOW, "recall"),
    ("related is more accurate (2 bins)", "told", NEAR_NOW, NOW, "accuracy"),
    ("2 bins are more accurate than 3", "85 - 77", NOW, LATER, "accuracy"),
    ("3 bins are more accurate than 4", "77 - 59", LATER, FOUR, "accuracy"),
    ("3 bins do the 2-bin task better", "92 - 85", LATER, NOW, "two_bin_accuracy"),
    ("4 bins do the 2-bin task better", "95 - 85", FOUR, NOW, "two_bin_accuracy"),
)
SINGLE = (
    ("Immediate is sooner than Breadth-First", "38 - 27", NEAR_NOW, BREADTH),
    ("3 bins are sooner than Breadth-First", "38 - 22", NEAR_LATER, BREADTH),
    ("4 bins are sooner than Breadth-First", "38 - 13", NEAR_FOUR, BREADTH),
    ("5 bins are sooner than Breadth-First", "38 - 27", NEAR_FIVE, BREADTH),
    ("4 bins are sooner than Immediate", "27 - 13", NEAR_FOUR, NEAR_NOW),
    ("4 bins are sooner than 3", "22 - 13", NEAR_FOUR, NEAR_LATER),
    ("4 bins are sooner than 5", "27 - 13", NEAR_FOUR, NEAR_FIVE),
)


def many_claims(rows: Rows) -> list[Claim]:
    """Judge what the paper says of many targets."""
    found = []
    for text, paper, fast, slow, share in SOONER:
        found.append(_sooner(f"{text} at {share:.0%}", paper, rows, fast, slow, share))
    text = "Future is three times as fast as Breadth-First at 75%"
    found.insert(2, _ratio(text, rows, BREADTH, LATER, 0.75, 3))
    found[3:3] = [_at_all_times(rows, name) for name in (NOW, LATER)]
    for text, paper, one, two, figure in BETTER:
        both = [percent(r["classifiers"][n][figure] for r in rows) for n in (one, two)]
        name = f"{_short(one)} - {_short(two)}"
        found.append(higher(text, paper, name, both, 1, pairs=True))
    return found


def single_claims(rows: Rows) -> list[Claim]:
    """Judge what the paper says of a single target."""
    found = [_sooner(*claim[:2], rows, *claim[2:], 1.0) for claim in SINGLE]
    text = "4 bins are twice as fast as Immediate"
    found.append(_ratio(text, rows, NEAR_NOW, NEAR_FOUR, 1.0, 2))
    both = ([links_to(r, name, 1.0) for r in rows] for name in (NEAR_FIVE, NEAR_NOW))
    verdict, gap = verdicts.similar(*both)
    text = f"5 bins are as fast as Immediate (within {verdicts.SIMILAR:.0%})"
    found.append(Claim(text, "27, 27", f"relative gap: {gap.show(2)}", verdict))
    return found


def percent(values: Iterable[float | None]) -> list[float | None]:
    """Return shares in per cent."""
    return [None if value is None else 100 * value for value in values]


def _sooner(
    text: str, paper: str, rows: Rows, fast: str, slow: str, share: float
) -> Claim:
    both = [percent(links_to(r, n, share) for r in rows) for n in (slow, fast)]
    name = f"{_short(slow)} - {_short(fast)}"
    return higher(text, paper, name, both, 1, pairs=True)


def _ratio(
    text: str, rows: Rows, slow: str, fast: str, share: float, limit: int
) -> Claim:
    ratios = []
    for row in rows:
        one, two = links_to(row, slow, share), links_to(row, fast, share)
        ratios.append(one / two if one and two else None)
    found = verdicts.mean(ratios)
    measured = f"{_short(slow)} / {_short(fast)}: {found.show(1)}"
    return Claim(text, f"{limit}", measured, verdicts.above(found, limit))


def _at_all_times(rows: Rows, name: str) -> Claim:
    grid = np.linspace(0.01, 1, 100)
    ahead = [
        float(np.mean(curve(r, name, grid) >= curve(r, BREADTH, grid))) for r in rows
    ]
    text = f"{_short(name)} is never behind Breadth-First"
    measured = f"share of the crawl: {interval(percent(ahead), 0)} %"
    return Claim(text, "Figure 1", measured, verdicts.always([x == 1 for x in ahead]))


def _short(name: str) -> str:
    return name.removeprefix("RL ").removesuffix(", full-page").replace(" bins", "")
