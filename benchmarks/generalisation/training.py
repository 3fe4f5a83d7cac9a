"""Training for a fold, by the loop of `baselines.train`, on the fold's crawls alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from baselines import train as command
from baselines._training import WEIGHTS, Loop
from baselines._training_envs import make_training_batch, worlds_of
from baselines._training_tasks import Source, validation_tasks
from baselines._validation import Validation
from baselines._weights import columns_of, family
from benchmarks.generalisation.studies import Crawl, Fold, Ground
from gym_webforage import load_trace
from gym_webforage.envs.episode import Episode, EpisodeMaker
from gym_webforage.envs.forage import make_rules
from gym_webforage.trace import Trace
from gym_webforage.world.rules import Rules

EVERY = 5  # each fifth training crawl is for validation; in News the last fifth
VALIDATIONS = 3  # times that a training is validated
VALIDATION_CRAWLS = 8
CRAWLS_AT_ONCE = 16


class ChosenEpisodes(EpisodeMaker):
    """Draws from given crawls and from nothing else."""

    def __init__(
        self,
        trace: Trace,
        rules: Rules,
        crawls: Sequence[Mapping[str, str | int]],
    ) -> None:
        super().__init__(trace, rules, "all")
        if rules.kind == "news":
            held = max(1, len(crawls) // EVERY)
            self.chosen, self.held = list(crawls[:-held]), list(crawls[-held:])
        else:
            self.held = list(crawls[EVERY - 1 :: EVERY]) or list(crawls[1:][-1:])
            self.chosen = [crawl for crawl in crawls if crawl not in self.held]

    def draw(
        self, random: np.random.Generator, options: Mapping[str, Any] | None = None
    ) -> Episode:
        """Draw one of the crawls, unless it is given."""
        crawl = self.chosen[int(random.integers(len(self.chosen)))]
        return super().draw(random, {**crawl, **(options or {})})

    def validation(self, count: int) -> list[dict[str, Any]]:
        """Return so many of the crawls that are never drawn."""
        places = np.linspace(0, len(self.held) - 1, min(count, len(self.held)))
        return [dict(self.held[int(place)]) for place in places]


@dataclass(frozen=True)
class ChosenSource(Source):
    """A kind of crawl over a trace, some of its topics, sites or hours."""

    crawls: tuple[Mapping[str, str | int], ...] = ()

    def episodes(self) -> Any:
        """Return what draws episodes for training."""
        view = ("features", "shortlist", "slots")
        options = {k: v for k, v in self.rules().items() if k not in view}
        rules = make_rules(self.kind, options)
        return ChosenEpisodes(self.trace, rules, self.crawls)


def sources(crawls: Sequence[Crawl]) -> list[ChosenSource]:
    """Return the crawls to train on, together by trace."""
    grounds: dict[Ground, list[Mapping[str, str | int]]] = {}
    for crawl in crawls:
        grounds.setdefault(crawl.ground, []).append(crawl.options)
    found = []
    for ground, own in grounds.items():
        options = dict(ground.options)
        if ground.kind == "news":  # states tell of one trace alone
            options["features"] = "transfer"
        trace = load_trace(ground.trace)
        found.append(
            ChosenSource(ground.kind, trace, ground.budget, options, tuple(own))
        )
    return found


def train(
    method: str,
    settings: Mapping[str, Any],
    fold: Fold,
    seed: int,
    steps: int,
    folder: Path,
) -> Path:
    """Train a method on a fold; return where its weights are."""
    weights = folder / WEIGHTS
    if weights.with_suffix(".json").is_file():
        return weights
    command.one_thread()
    found = sources(fold.train)
    kind = found[0].kind
    residual = method == "masked_ppo" and settings.get("residual", False)
    chosen = command.parser().parse_args(
        [method, "--task", kind, "--steps", str(steps), "--seed", str(seed)]
        + ["--num-envs", str(CRAWLS_AT_ONCE)]
        + (["--residual"] if residual else [])
    )
    batch = make_training_batch(
        found,
        chosen.num_envs,
        slots=chosen.slots,
        price=chosen.price if kind == "news" else 0.0,
    )
    columns = columns_of(worlds_of(batch.parts[0])[0][0])
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "log.txt").open("a", encoding="utf-8") as log:
        Loop(
            command.make_trainer(chosen, batch, columns, {}, found),
            batch,
            Validation(validation_tasks(found, VALIDATION_CRAWLS)),
            {
                "method": method,
                "family": family(kind),
                "columns": columns,
                "settings": {"residual": residual, "attention": False},
                "seed": seed,
            },
            {"method": method, "seed": seed, "steps": steps},
            folder,
            steps,
            validate_every=max(1, steps // VALIDATIONS),
            patience=VALIDATIONS,
            console=Console(file=log, width=100),
        ).run()
    return weights
