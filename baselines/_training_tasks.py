"""What learned methods train on and are validated on, all out of ``split="train"``.

A *source* is a kind of crawl over a trace. Some of its topics, sites or days are held
out of training and serve as fixed validation tasks: every fifth topic or site, and in
News the last fifth of the training period.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from baselines import split as split_name
from gym_webforage.cache import cache_folder
from gym_webforage.envs import ForageEnv, NewsEnv, SpiderEnv, TopicEnv
from gym_webforage.envs.episode import EpisodeMaker
from gym_webforage.envs.forage import make_rules
from gym_webforage.trace import Trace, load_trace
from gym_webforage.trace.synthetic import Recipe, generate
from gym_webforage.trace.tables import save_trace
from gym_webforage.world.rules import Kind, Rules, parse_budget

ENVS: dict[Kind, type[ForageEnv]] = {
    "news": NewsEnv,
    "topic": TopicEnv,
    "spider": SpiderEnv,
}
EVERY = 5  # topics and sites: each fifth one is for validation


def training_trace(name: str) -> Trace:
    """Return a trace by name or path, or ``synthetic:urls=9000,seed=7`` freshly made.

    What stands behind the colon are the generator's settings; such a trace is kept in
    the cache.
    """
    method, settings = split_name(name)
    if method != "synthetic":
        return load_trace(name)
    recipe = Recipe(**settings)  # type: ignore[arg-type]
    title = f"synthetic-{recipe.checksum()}-v0"
    home = cache_folder("traces")
    if home is None:
        return generate(recipe, title)
    if not (home / title).is_dir():
        # Another process may be first, which is as good.
        with suppress(OSError):
            save_trace(generate(recipe, title), home / title)
    return load_trace(home / title)


class TrainingEpisodes(EpisodeMaker):
    """Draws what training may see: the training split less what is held out."""

    def __init__(self, trace: Trace, rules: Rules, held_out: bool = True) -> None:
        super().__init__(trace, rules, "train")
        begin, end = trace.begin, trace.end
        self.last_start = self._end = begin + (end - begin) * 2 // 3
        self.held_topics: list[str] = []
        self.held_sites: list[int] = []
        self.held_from = -1  # a time
        if held_out:
            self._hold_out()

    def _hold_out(self) -> None:
        if self.rules.kind == "news":
            period, budget = self._end - self.trace.begin, self._duration()
            if period >= 3 * budget:
                self.held_from = self._end - max(budget, period // EVERY)
                self.last_start = self.held_from
            return
        self.topics, self.held_topics = _parted(sorted(self.topics))
        self.sites, self.held_sites = _parted(sorted(self.sites))

    def _duration(self) -> int:
        time, fetches = parse_budget(self.rules.default_budget)
        return time if time > 0 else round(fetches * self.rules.fetch_seconds * 1000)

    def _draw_start(self, random: np.random.Generator) -> int:
        if self.rules.kind != "news":
            return super()._draw_start(random)
        latest = self.last_start - self._duration()
        return int(random.integers(self.trace.begin, max(self.trace.begin, latest) + 1))

    def validation(self, count: int) -> list[dict[str, Any]]:
        """Return options of ``count`` crawls at most over what is held out."""
        found: list[dict[str, Any]] = [{"topic": topic} for topic in self.held_topics]
        found += [{"site": site} for site in self.held_sites]
        if self.held_from >= 0:
            latest = self._end - self._duration()
            starts = np.linspace(self.held_from, latest, count).astype(np.int64)
            found += [{"start": int(start)} for start in starts]
        places = np.linspace(0, len(found) - 1, min(count, len(found)))
        return [found[int(place)] for place in places]


def _parted(names: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    held = list(names[EVERY - 1 :: EVERY]) or list(names[1:][-1:])
    return [name for name in names if name not in held], held


@dataclass(frozen=True)
class Source:
    """A kind of crawl over a trace, to train on."""

    kind: Kind
    trace: Trace = field(repr=False)
    budget: int | str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What it is called in reports."""
        return f"{self.kind} on {self.trace.name}"

    def rules(self) -> dict[str, Any]:
        """Return the arguments of the environment that are rules and view."""
        return {"budget": self.budget, **self.options}

    def episodes(self) -> TrainingEpisodes:
        """Return what draws episodes for training."""
        view = ("features", "shortlist", "slots")
        options = {k: v for k, v in self.rules().items() if k not in view}
        return TrainingEpisodes(self.trace, make_rules(self.kind, options))


@dataclass(frozen=True)
class ValidationTask:
    """A crawl that training never sees."""

    source: Source
    options: dict[str, Any]
    seed: int

    @property
    def name(self) -> str:
        """What it is called in reports."""
        given = ", ".join(f"{key} {value}" for key, value in self.options.items())
        return f"{self.source.name}, {given}"

    def make(self, **kwargs: Any) -> ForageEnv:
        """Make the environment."""
        rules = {**self.source.rules(), "slots": None, **kwargs}
        return ENVS[self.source.kind](self.source.trace, split="train", **rules)


def sources(
    kinds: Sequence[Kind],
    traces: Sequence[str],
    budget: int | str | None,
    options: dict[str, Any],
) -> list[Source]:
    """Return all pairs of kind and trace that can be played and split.

    A trace whose only topic or site would serve for tests as well is passed over.
    """
    found, reasons = [], []
    for kind in kinds:
        for name in traces or (ENVS[kind](budget=1).trace.name,):
            trace = training_trace(name)
            chosen = budget if budget is not None else Rules(kind=kind).default_budget
            source = Source(kind, trace, chosen, options)
            try:
                made = source.episodes()
            except ValueError as error:
                reasons.append(f"{source.name}: {error}")
                continue
            several = {
                "news": True,
                "topic": len(made.topics) + len(made.held_topics) > 1,
                "spider": len(made.sites) + len(made.held_sites) > 1,
            }[kind]
            if several:
                found.append(source)
            else:
                reasons.append(f"{source.name}: only one {kind}, which tests use")
    if not found:
        raise ValueError(f"nothing to train on: {'; '.join(reasons)}")
    return found


def validation_tasks(
    found: Sequence[Source], count: int, budget: int | str | None = None
) -> list[ValidationTask]:
    """Return ``count`` fixed tasks, evenly from all sources.

    Their crawls may be longer than those of training: ``budget``.
    """
    share = -(-count // len(found))
    if budget is not None:
        found = [replace(source, budget=budget) for source in found]
    tasks = [
        ValidationTask(source, options, seed=place)
        for source in found
        for place, options in enumerate(source.episodes().validation(share))
    ]
    return tasks
