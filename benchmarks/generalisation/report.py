"""The report: what won, what tied, what lost, study by study, and a figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.assemble import RANDOM
from benchmarks.generalisation.methods import (
    BAYES,
    SCALE,
    TAUGHT,
    TAUGHT_SHARE,
    is_trained,
)
from benchmarks.generalisation.results import Outcome
from benchmarks.generalisation.statistics import LOST, TIED, WON, interval, verdict
from benchmarks.generalisation.studies import FINDS, Study
from benchmarks.reproduce.pictures import FAINT, GRID, INK, make_figure
from benchmarks.reproduce.results import left_markdown
from benchmarks.standings import markdown

COLOURS = {"online": "#2a8c68", "trained": "#2f6db3", "paper": "#d9731a"}
FIGURE = "differences.png"

LEGEND = """\
*area*: pages found so far, the mean over the whole budget; *found*: pages found within
it. Both are scaled for each task from the random walk (0, the mean of its seeds) to the
greedy oracle (1), and are means over tasks. Differences are paired: same task, same
place to start; with 95 % intervals over tasks and training seeds (tasks and trained
models are both samples). *won* and *lost*: the interval excludes zero; *tied*: it does
not. Intervals are not corrected for the number of comparisons. *paper*: a method of one
of the papers that are reproduced here; *trained*: trained anew for each fold and seed
on the fold's training crawls, never on what is tested; *online*: everything else, be it
a fixed rule or one that learns while it crawls. *fetches before*: of crawls that a
model learned from; those of `ljm`, `bpm`, `hw` and `lafc` are of the very topic or site
that is tested."""


def report(outcomes: Sequence[Outcome], *, seeds: int, steps: int) -> str:
    """Write everything but the head and the failures."""
    shown = [outcome for outcome in outcomes if outcome.scores["area"]]
    parts = [
        f"Trained methods: {seeds} training seeds, {steps:,} environment steps each; "
        f"{listed(TAUGHT)}, which learn from the oracle's values of all candidates: "
        f"{steps // TAUGHT_SHARE:,}; {listed(BAYES)} read their training sites whole, "
        f"once. Methods with chance of their own: {seeds} seeds.",
        "## What came out",
        "\n".join(f"- {sentence}" for sentence in map(summary, shown)),
        f"![Differences in area, by study]({FIGURE})",
        LEGEND,
    ]
    for outcome in shown:
        parts += section(outcome)
    return "\n\n".join(parts)


def summary(outcome: Outcome) -> str:
    """Say in a few sentences who beat whom in a study."""
    tasks = outcome.study.tests
    head = f"**{outcome.study.title}** ({tasks} task{'s' if tasks > 1 else ''}): "
    names = [name for name in outcome.ranked if name not in outcome.rivals]
    if not outcome.rivals or not names:
        return f"{head}no two to compare."
    winners, rivals = outcome.winners, listed(outcome.rivals)
    if winners:
        gaps = ", ".join(
            f"{outcome.gap(winners[0], rival).show(2)} over {code(rival)}"
            for rival in outcome.rivals
        )
        said = f"{code(winners[0])} beats {rivals} in area: {gaps}."
        if winners[1:]:
            said += f" The same holds for {listed(winners[1:])}."
    else:
        short = [
            f"{code(rival)} ({what}: {outcome.gap(names[0], rival).show(2)})"
            for rival, what in outcome.against(names[0]).items()
            if what != WON
        ]
        said = (
            f"nothing learned or online beats all of {rivals} in area. The best, "
            f"{code(names[0])}, does not beat {', '.join(short)}."
        )
    rival = outcome.reference
    by_verdict = {TIED: "Tied with", LOST: "Worse than"}
    for what, told in by_verdict.items():
        same = [x for x in names if rival and verdict(outcome.gap(x, rival)) == what]
        if rival and same:
            said += f" {told} {code(rival)}: {listed(same)}."
    return head + said


def section(outcome: Outcome) -> list[str]:
    """Write a study: what was trained and tested on, scores, differences."""
    parts = [f"## {outcome.study.title}", _folds(outcome.study)]
    parts.append(markdown(scores_table(outcome)))
    papers = [name for name in outcome.rivals if name != outcome.reference]
    if papers:
        parts += [
            "Differences in area to each of the other rivals:",
            left_markdown(rivals_table(outcome, papers)),
        ]
    if outcome.failed:
        parts.append(f"Without scores, since a trial failed: {listed(outcome.failed)}.")
    return parts


def _folds(study: Study) -> str:
    ground = study.folds[0].test[0].ground
    unit = " fetches" if isinstance(ground.budget, int) else ""
    lines = []
    for fold in study.folds:
        told = [str(crawl.given[0][1]) for crawl in fold.test]
        if study.kind == "news":
            told = []
        names = f": {', '.join(told)}" if told else ""
        lines.append(
            f"- {fold.name}: {len(fold.train)} crawls to train on, {len(fold.test)} "
            f"tested{names}"
        )
    rules = "".join(f", {key} = {value}" for key, value in ground.options)
    head = f"{FINDS[study.kind].capitalize()} in {ground.budget}{unit} a crawl{rules}."
    return "\n".join([head, "", *lines])


def scores_table(outcome: Outcome) -> list[list[str]]:
    """Return the cells: a line for each method, the best area first."""
    rival = outcome.reference
    told = f"- {rival}" if rival else "difference"
    head = ["method", "is", "area", f"area {told}", "", "found", f"found {told}"]
    head += [f"{FINDS[outcome.study.kind]} a crawl", "fetches before", "training CPU s"]
    lines = []
    for name in [*outcome.ranked, *SCALE]:
        area, found = (interval(outcome.scores[x][name]) for x in ("area", "found"))
        cells = ["", "", ""]
        if rival is not None and name not in (rival, *SCALE):
            gaps = [outcome.gap(name, rival, figure) for figure in ("area", "found")]
            cells = [gaps[0].show(3), verdict(gaps[0]), gaps[1].show(3)]
        kind = "scale" if name in SCALE else outcome.group(name)
        cpu = f"{outcome.cpu[name]:,.1f}" if is_trained(name) else ""
        own = [_plain(area.mean), *cells[:2], _plain(found.mean), cells[2]]
        raw, before = outcome.found[name], outcome.before[name]
        cells = [f"{raw:,.1f}", f"{before:,.0f}" if before else "", cpu]
        lines.append([code(name), kind, *own, *cells])
    return [head, *lines]


def _plain(value: float) -> str:
    return f"{round(value, 3) + 0.0:.3f}"  # no minus before nothing


def rivals_table(outcome: Outcome, rivals: Sequence[str]) -> list[list[str]]:
    """Return the cells: differences to each rival, with what they mean."""
    lines = []
    for name in outcome.ranked:
        cells = []
        for rival in rivals:
            if name == rival:
                cells.append("")
                continue
            gap = outcome.gap(name, rival)
            cells.append(f"{gap.show(2)} {verdict(gap)}")
        lines.append([code(name), *cells])
    return [["area -", *rivals], *lines]


def code(name: str) -> str:
    """Write a method's name."""
    return f"`{name}`"


def listed(names: Sequence[str]) -> str:
    """Write names in a row."""
    return ", ".join(map(code, names)) or "none"


# --- the figure


def differences(outcomes: Sequence[Outcome]) -> Figure:
    """Draw each method's difference to the study's reference, a panel a study."""
    shown = [outcome for outcome in outcomes if outcome.reference]
    columns = min(2, max(1, len(shown)))
    rows = max(1, -(-len(shown) // columns))
    most = max((len(_drawn(outcome)) for outcome in shown), default=1)
    figure = make_figure(6.6 * columns, rows * (0.24 * most + 0.9))
    panels: Any = figure.subplots(rows, columns, squeeze=False)
    for axes, outcome in zip(panels.flat, shown, strict=False):
        _panel(axes, outcome)
    for axes in panels.flat[len(shown) :]:
        axes.set_axis_off()
    return figure


def _drawn(outcome: Outcome) -> list[str]:
    chance = [RANDOM] if RANDOM in outcome.scores["area"] else []
    return [*(x for x in outcome.ranked if x != outcome.reference), *chance]


def _panel(axes: Any, outcome: Outcome) -> None:
    rival = outcome.reference
    assert rival is not None
    names = _drawn(outcome)
    for place, name in enumerate(names):
        gap = outcome.gap(name, rival)
        colour = COLOURS.get(outcome.group(name), FAINT) if name != RANDOM else FAINT
        filled = verdict(gap) in (WON, LOST)
        if np.isfinite(gap.low):
            axes.plot([gap.low, gap.high], [place, place], color=colour, lw=1.6)
        axes.plot(
            gap.mean,
            place,
            "o",
            ms=5,
            color=colour,
            mfc=colour if filled else "white",
        )
    axes.axvline(0, color=INK, lw=0.8)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_title(outcome.study.title, size=9, color=INK, loc="left", weight="bold")
    hollow = f"hollow: {TIED}"
    axes.set_xlabel(f"scaled area - that of {rival} ({hollow})", size=8, color=INK)
    axes.tick_params(labelsize=7.5, colors=INK, length=3)
    axes.grid(color=GRID, linewidth=0.7, axis="x")
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(FAINT)
