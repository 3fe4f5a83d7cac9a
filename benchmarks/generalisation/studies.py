"""What is trained on and what is tested on: studies, their folds and crawls.

A *study* asks one question, such as whether a learner does well on topics that it has
never seen. Its *folds* part the same crawls in different ways into those to train on
and those to test on; no topic, site or hour is on both sides of a fold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gym_webforage import load_trace
from gym_webforage.envs import ForageEnv, NewsEnv, SpiderEnv, TopicEnv
from gym_webforage.envs.episode import EpisodeMaker, Split
from gym_webforage.trace import Trace
from gym_webforage.world.rules import Kind, Rules, parse_budget

ENVS: dict[Kind, type[ForageEnv]] = {
    "news": NewsEnv,
    "topic": TopicEnv,
    "spider": SpiderEnv,
}
FINDS = {"news": "novel pages", "topic": "relevant pages", "spider": "targets"}
HOUR = 3_600_000
GROUPS = 3  # of sites, each left out once
FEWEST_LABELS = 8  # of a recording whose topics are parted
VERSIONS_A_DAY = 50  # of a recording that is crawled for news
DOCUMENTATION = ("python-docs-v0", "sqlalchemy-docs-v0")
NEWS_TRACES = ("synthetic-v0", "synthetic-calm-v0", "synthetic-fast-v0")


@dataclass(frozen=True)
class Ground:
    """A kind of crawl over a trace."""

    kind: Kind
    trace: str  # a name or path
    budget: int | str
    options: tuple[tuple[str, Any], ...] = ()  # further rules

    @property
    def name(self) -> str:
        """The trace's name, wherever it lies."""
        return Path(self.trace).name


@dataclass(frozen=True)
class Crawl:
    """One task: a topic, a site, or a time to start at."""

    ground: Ground
    given: tuple[tuple[str, str | int], ...]  # options of a reset

    @property
    def options(self) -> dict[str, str | int]:
        """What the reset is told."""
        return dict(self.given)

    @property
    def name(self) -> str:
        """What it is called in reports."""
        told = ", ".join(f"{key} {value}" for key, value in self.given)
        return f"{self.ground.name}: {told}"

    def make(self, **view: Any) -> ForageEnv:
        """Make the environment, which can crawl nothing but this topic or site."""
        ground = self.ground
        fixed = {key: value for key, value in self.given if key != "start"}
        return ENVS[ground.kind](
            load_trace(ground.trace),
            split="all",
            budget=ground.budget,
            **dict(ground.options),
            **fixed,
            **view,
        )


@dataclass(frozen=True)
class Fold:
    """Crawls to train on, and others to test on."""

    study: str
    name: str
    train: tuple[Crawl, ...]
    test: tuple[Crawl, ...]


@dataclass(frozen=True)
class Study:
    """A question, and the folds that answer it."""

    id: str
    title: str
    folds: tuple[Fold, ...]

    @property
    def kind(self) -> Kind:
        """By which rules it is played."""
        return self.folds[0].test[0].ground.kind

    @property
    def tests(self) -> int:
        """How many crawls are tested, over all folds."""
        return sum(len(fold.test) for fold in self.folds)


@dataclass(frozen=True)
class Size:
    """How much is done."""

    tasks: int = 30  # to test on, a study (each direction and group has its share)
    fetches: int = 500  # of a crawl in Topic and Spider on the synthetic traces
    few_fetches: int = 250  # on recordings, which are smaller
    time: str = "12h"  # of a crawl in News
    folds: int | None = None  # at most; None: all
    small: bool = False  # on the small synthetic traces


# --- shipped traces


def topics_study(size: Size) -> Study:
    """Topics of the synthetic trace: those of its training split, and the others."""
    ground = Ground("topic", _synthetic("synthetic-v0", size), size.fetches)
    train, test = (_topics(ground, split) for split in ("train", "test"))
    fold = Fold("topics", "held-out topics", train, _some(test, size.tasks))
    return Study("topics", f"Topics never seen, {ground.trace}", (fold,))


def sites_study(size: Size) -> Study:
    """Sites of the synthetic trace, a group of them left out at a time."""
    name = _synthetic("synthetic-sites-v0", size)
    title = f"Sites never seen, {name}"
    return left_out_sites("sites", title, name, size.fetches, size)


def docs_study(size: Size) -> Study:
    """Documentation: trained on one trace, tested on the other."""
    options = (("relevance", "label"),)
    grounds = [
        Ground("topic", name, size.few_fetches // 2, options) for name in DOCUMENTATION
    ]
    every = [_topics(ground, "all") for ground in grounds]
    few = min(len(every[1]), size.tasks // 2)
    folds = (
        Fold(
            "docs",
            f"tested on {DOCUMENTATION[0]}",
            every[1],
            _some(every[0], size.tasks - few),
        ),
        Fold("docs", f"tested on {DOCUMENTATION[1]}", every[0], _some(every[1], few)),
    )
    title = f"Another site's documentation, {' and '.join(DOCUMENTATION)}"
    return Study("docs", title, folds[: size.folds])


def news_studies(size: Size) -> list[Study]:
    """Days of the synthetic trace: trained on the first two thirds of the time."""
    if size.small:
        return [later_days("news", "synthetic-small-v0", size)]
    from gym_webforage import trace_names

    found = [name for name in NEWS_TRACES if name in trace_names()]
    ids = [name.removeprefix("synthetic-").removesuffix("v0") for name in found]
    return [
        later_days(f"news-{part}".rstrip("-"), name, size)
        for part, name in zip(ids, found, strict=True)
    ]


# --- recordings


def recording_studies(source: str, size: Size) -> list[Study]:
    """Return the studies that a recording is fit for, by what it holds."""
    trace = load_trace(source)
    found: list[Study] = []
    reasons = []
    sites = _rich_sites(trace)
    if len(sites) > 1:
        title = f"Sites never seen, {trace.name}"
        id = f"{trace.name}/sites"
        found.append(left_out_sites(id, title, source, size.few_fetches, size))
    else:
        reasons.append("fewer than two sites with a root and targets")
    if len(_labels(trace)) >= FEWEST_LABELS:
        found.append(other_subjects(f"{trace.name}/topics", source, size))
    else:
        reasons.append(f"fewer than {FEWEST_LABELS} labels on five pages")
    days = (trace.end - trace.begin) / (24 * HOUR)
    if days and len(trace.version_url) / days >= VERSIONS_A_DAY and _fits(trace, size):
        found.append(later_days(f"{trace.name}/news", source, size))
    else:
        reasons.append(f"fewer than {VERSIONS_A_DAY} versions a day, or too short")
    if not found:
        raise ValueError(f"{trace.name} suits no study: {'; '.join(reasons)}")
    return found


def other_subjects(study: str, source: str, size: Size) -> Study:
    """Topics of other subjects than those trained on, by labels alone.

    Labels such as ``subject.Art.Music`` have a subject, the first part in which they
    differ; whole subjects are parted. Labels without subjects are parted themselves.
    """
    ground = Ground("topic", source, size.few_fetches, (("relevance", "label"),))
    trace = load_trace(source)
    train, test = parted_labels(_labels(trace))
    fold = Fold(
        study,
        "other subjects",
        tuple(Crawl(ground, (("topic", label),)) for label in train),
        _some([Crawl(ground, (("topic", label),)) for label in test], size.tasks),
    )
    return Study(study, f"Topics of other subjects, {trace.name}", (fold,))


def parted_labels(labels: Sequence[str]) -> tuple[list[str], list[str]]:
    """Part labels by subject: every second subject, in order of names, is for tests."""
    subjects = _subjects(labels)
    names = sorted(set(subjects))
    if len(names) < 2:
        subjects, names = list(labels), sorted(labels)
    held = set(names[1::2])
    sides: tuple[list[str], list[str]] = [], []
    for label, subject in sorted(zip(labels, subjects, strict=True)):
        sides[subject in held].append(label)
    return sides


def _subjects(labels: Sequence[str]) -> list[str]:
    parts = [label.split(".") for label in labels]
    if min(map(len, parts)) < 2:
        return list(labels)
    for place in range(min(map(len, parts))):
        found = [part[place] for part in parts]
        if len(set(found)) > 1:
            return found
    return list(labels)


def left_out_sites(
    study: str, title: str, source: str, fetches: int, size: Size
) -> Study:
    """Spider sites, each left out of training once: alone if they are few."""
    trace = load_trace(source)
    sites = _rich_sites(trace)
    ground = Ground("spider", source, fetches)
    crawls = [Crawl(ground, (("site", site),)) for site in sites]
    groups = len(sites) if len(sites) < 2 * GROUPS else GROUPS
    folds = []
    for group in range(groups):
        # Every third site, not the next three: sites may be in an order of size.
        test = crawls[group::groups]
        train = [crawl for crawl in crawls if crawl not in test]
        told = ", ".join(str(crawl.options["site"]) for crawl in test)
        share = -(-size.tasks // groups)
        folds.append(Fold(study, f"without {told}", tuple(train), _some(test, share)))
    return Study(study, title, tuple(folds[: size.folds]))


def later_days(study: str, source: str, size: Size) -> Study:
    """News after the time trained on; test crawls do not overlap if time suffices."""
    trace = load_trace(source)
    ground = Ground("news", source, size.time)
    border = trace.begin + (trace.end - trace.begin) * 2 // 3
    time = parse_budget(size.time)[0]
    train = np.arange(trace.begin, border - time + 1, HOUR)
    count = max(1, min(size.tasks, (trace.end - border) // time))
    test = np.linspace(border, trace.end - time, count).astype(np.int64)
    fold = Fold(
        study,
        "later days",
        tuple(Crawl(ground, (("start", int(start)),)) for start in train),
        tuple(Crawl(ground, (("start", int(start)),)) for start in test),
    )
    return Study(study, f"News of later days, {trace.name}", (fold,))


SHIPPED: dict[str, Callable[[Size], Study | list[Study]]] = {
    "topics": topics_study,
    "sites": sites_study,
    "docs": docs_study,
    "news": news_studies,
}
RECORDINGS = "recordings"


def make_studies(
    wanted: Sequence[str], traces: Sequence[str], size: Size
) -> list[Study]:
    """Return the studies that were asked for; ``recordings`` are those of traces."""
    found: list[Study] = []
    for name in wanted:
        if name == RECORDINGS:
            for source in traces:
                found += recording_studies(source, size)
        else:
            made = SHIPPED[name](size)
            found += made if isinstance(made, list) else [made]
    ids = [study.id for study in found]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise ValueError(f"--traces: two recordings are called {', '.join(twice)}")
    return found


# --- what traces have


def _synthetic(name: str, size: Size) -> str:
    return name.replace("synthetic-", "synthetic-small-") if size.small else name


def _topics(ground: Ground, split: Split) -> tuple[Crawl, ...]:
    trace = load_trace(ground.trace)
    names = sorted(EpisodeMaker(trace, Rules(kind="topic"), split).topics)
    return tuple(Crawl(ground, (("topic", name),)) for name in names)


def _labels(trace: Trace) -> list[str]:
    try:
        return sorted(EpisodeMaker(trace, Rules(kind="topic"), "all").topics)
    except ValueError:  # no text, or no label on enough pages
        return []


def _rich_sites(trace: Trace) -> list[str]:
    try:
        sites = EpisodeMaker(trace, Rules(kind="spider"), "all").sites
    except ValueError:  # no targets
        return []
    return [trace.sites[site] for site in sites]


def _fits(trace: Trace, size: Size) -> bool:
    return (trace.end - trace.begin) // 3 >= parse_budget(size.time)[0]


def _some(crawls: Sequence[Crawl], count: int) -> tuple[Crawl, ...]:
    """Return so many of them, evenly from all."""
    places = np.linspace(0, len(crawls) - 1, min(count, len(crawls)))
    return tuple(crawls[int(place)] for place in places)
