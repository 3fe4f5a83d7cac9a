"""Who is born and who dies: the rules of a fleet's population."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Literal, Protocol

from gym_webforage.world.energy import EnergyPopulation

Fate = Literal["live", "divide", "die"]


class Population(Protocol):
    """Keeps a score for each forager and decides its fate when its slice ends."""

    @property
    def start(self) -> float:
        """The score of a founder, and of parent and child after a division."""
        ...

    def score(self, score: float, sent: int, novel: int) -> float:
        """Return the score after a slice in which so much was sent and novel."""
        ...

    def fate(self, score: float, living: int) -> Fate:
        """Decide what becomes of a forager, one of ``living``."""
        ...


@dataclass(frozen=True, kw_only=True)
class ScorePopulation:
    """The population of the selection and evolution papers (Algorithms 7 and 8).

    Each document sent costs a little and each novel one earns; who has enough divides
    in two, both starting anew, and who has nothing left dies.
    """

    start: float = 100.0  # INIT_SCORE
    per_sent: float = -0.05  # SCORE-
    per_novel: float = 1.0  # SCORE+
    divide_at: float = 200.0  # MAX_SCORE
    die_at: float = 0.0  # MIN_SCORE
    fewest: int = 2  # MIN_FORAGER
    most: int = 16  # MAX_FORAGER; 22 and more in the evolution paper

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int | float) or not math.isfinite(value):
                raise ValueError(f"{field.name} is {value!r}, expected a number")
        if not self.die_at < self.start < self.divide_at:
            raise ValueError(
                f"start is {self.start}, expected between die_at ({self.die_at}) and "
                f"divide_at ({self.divide_at})"
            )
        if not 0 <= self.fewest <= self.most:
            raise ValueError(
                f"fewest is {self.fewest} and most {self.most}, "
                "expected 0 <= fewest <= most"
            )

    def score(self, score: float, sent: int, novel: int) -> float:
        """Return the score after a slice."""
        return score + sent * self.per_sent + novel * self.per_novel

    def fate(self, score: float, living: int) -> Fate:
        """Divide at enough, while there is room; die at nothing, while others live."""
        if score >= self.divide_at and living < self.most:
            return "divide"
        if score <= self.die_at and living > self.fewest:
            return "die"
        return "live"


@dataclass(frozen=True, kw_only=True)
class FixedPopulation(ScorePopulation):
    """Nobody is born and nobody dies; the scores are kept all the same."""

    def fate(self, score: float, living: int) -> Fate:
        """Let everyone live."""
        return "live"


def as_population(
    population: str | Population | EnergyPopulation,
) -> Population | EnergyPopulation:
    """Return a population by its name, or as it is."""
    if population == "fixed":
        return FixedPopulation()
    if population == "score":
        return ScorePopulation()
    if population == "energy":
        return EnergyPopulation()
    if isinstance(population, EnergyPopulation):
        return population
    if isinstance(population, str) or not hasattr(population, "fate"):
        raise ValueError(
            f"population is {population!r}, expected fixed, score, energy or a "
            "Population"
        )
    return population
