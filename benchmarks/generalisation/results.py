"""Rows sorted into scores: what each method got in each study, and against whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.assemble import ORACLE, RANDOM
from benchmarks.generalisation import methods
from benchmarks.generalisation.statistics import (
    WON,
    Scores,
    interval,
    scaled,
    verdict,
)
from benchmarks.generalisation.studies import Study
from benchmarks.generalisation.trials import Trial
from benchmarks.reproduce.verdicts import Interval
from benchmarks.work import Row

FIGURES = ("area", "found")


@dataclass(frozen=True)
class Outcome:
    """A study's scores, for each figure by method, and what they were made from."""

    study: Study
    scores: Mapping[str, Mapping[str, Scores]]  # by figure, by method
    found: Mapping[str, float]  # pages in a crawl, the mean
    cpu: Mapping[str, float]  # seconds of training, a model
    before: Mapping[str, float]  # fetches of crawls to learn from, a model
    failed: Sequence[str] = field(default_factory=tuple)

    @property
    def ranked(self) -> list[str]:
        """The methods without the ends of the scale, the best area first."""
        own = self.scores["area"]
        names = [name for name in own if name not in methods.SCALE]
        return sorted(names, key=lambda name: (-own[name].mean, name))

    @property
    def papers(self) -> list[str]:
        """The papers' methods that took part."""
        return [name for name in self.ranked if self.group(name) == "paper"]

    @property
    def rivals(self) -> list[str]:
        """What has to be beaten: the z-sum, the papers' methods; in News chance too."""
        bar = [methods.Z_SUM] if methods.Z_SUM in self.scores["area"] else []
        chance = [RANDOM] if self.study.kind == "news" else []
        return [*bar, *self.papers, *chance]

    @property
    def reference(self) -> str | None:
        """What the others are compared with: the z-sum, else the best of the papers."""
        if methods.Z_SUM in self.scores["area"]:
            return methods.Z_SUM
        return next(iter(self.papers), None)

    def group(self, name: str) -> str:
        """Return what a method is."""
        return methods.group(name, self.study.kind)

    def gap(self, name: str, rival: str, figure: str = "area") -> Interval:
        """Return by how much a method is ahead of another."""
        own = self.scores[figure]
        return interval(own[name].minus(own[rival]))

    def against(self, name: str) -> dict[str, str]:
        """Return what came out against each rival, in area."""
        return {
            rival: verdict(self.gap(name, rival))
            for rival in self.rivals
            if rival != name
        }

    @property
    def winners(self) -> list[str]:
        """Learned and online methods that beat every rival, the best first."""
        found = []
        for name in self.ranked:
            against = self.against(name)
            if name not in self.rivals and against:
                if all(what == WON for what in against.values()):
                    found.append(name)
        return found


def outcome(study: Study, trials: Sequence[Trial], rows: Mapping[str, Row]) -> Outcome:
    """Sort a study's rows; a method with a failed trial has no scores."""
    own = [trial for trial in trials if trial.fold in study.folds]
    names = list(dict.fromkeys(trial.method for trial in own))
    done, failed = [], []
    for name in names:
        whole = all(_row(trial, rows) for trial in own if trial.method == name)
        (done if whole else failed).append(name)
    values = {
        figure: {name: _table(study, name, own, rows, figure) for name in done}
        for figure in FIGURES
    }
    scores: dict[str, dict[str, Scores]] = {figure: {} for figure in FIGURES}
    if RANDOM in done and ORACLE in done:
        for figure, table in values.items():
            low, high = table[RANDOM], table[ORACLE]
            for name in done:
                folds = zip(table[name], low, high, strict=True)
                scores[figure][name] = Scores(tuple(scaled(*fold) for fold in folds))
    found = {
        name: float(np.mean(np.concatenate([x.mean(axis=1) for x in table])))
        for name, table in values["found"].items()
    }
    cpu, before = {}, {}
    for name in done:
        made = [rows[trial.name] for trial in own if trial.method == name]
        spent = [row["timing"]["training_cpu_seconds"] for row in made]
        cpu[name] = float(np.mean(spent))
        before[name] = float(np.mean([row["training_fetches"] for row in made]))
    return Outcome(study, scores, found, cpu, before, tuple(failed))


def _row(trial: Trial, rows: Mapping[str, Row]) -> Row | None:
    row = rows.get(trial.name)
    return row if row is not None and row["status"] == "done" else None


def _table(
    study: Study,
    name: str,
    trials: Sequence[Trial],
    rows: Mapping[str, Row],
    figure: str,
) -> list[np.ndarray]:
    """Return a figure by fold, tasks by seeds."""
    found = []
    for fold in study.folds:
        own = [t for t in trials if t.fold == fold and t.method == name]
        own.sort(key=lambda trial: trial.seed)
        columns = [rows[trial.name][figure] for trial in own]
        found.append(np.array(columns, np.float64).T)
    return found
