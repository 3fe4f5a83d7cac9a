"""What a run of an agent is made of: its steps, and its metrics at the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from gym_webforage.metrics import count_relevant, summary
from gym_webforage.world import World
from gym_webforage.world import layout as L
from gym_webforage.world.rules import parse_budget

Observation = Mapping[str, np.ndarray]
Info = Mapping[str, Any]


class Transition(NamedTuple):
    """One step: what was seen, done and found. ``info`` describes its end."""

    observation: Observation
    action: int
    reward: float
    next_observation: Observation
    terminated: bool
    truncated: bool
    info: Info


def summarize(
    world: World, events: Mapping[str, np.ndarray]
) -> dict[str, float | int | None]:
    """Return all metrics of a whole run."""
    rules = world.rules
    fetches = parse_budget(rules.default_budget)[1]
    relevant = count_relevant(
        world.trace,
        kind=rules.kind,
        time=world.start,
        site=int(world.ints[L.SITE]),
        topic=world.topic,
        threshold=rules.threshold,
        by_label=rules.relevance == "label",
        similarity=rules.similarity,
    )
    return summary(
        events,
        world.trace,
        start=world.start,
        end=world.clock,
        kind=rules.kind,
        total_relevant=relevant,
        budget=fetches if fetches > 0 else None,
    )
