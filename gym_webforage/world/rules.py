"""The options of a crawl, with the papers' values as defaults."""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass
from typing import Literal, get_args

from gym_webforage.world.topic import SIMILARITIES, Similarity

Kind = Literal["news", "topic", "spider"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LONGEST = 10_000 * _UNITS["d"]  # keeps every sum of times far from overflow


@dataclass(frozen=True, kw_only=True)
class Rules:
    """How a crawl goes; see `gym_webforage.world` for what each option does."""

    kind: Kind = "news"
    fetch_seconds: float = 2.6  # 600,000 fetches in 18 days on one machine
    cost: Literal["fetch", "bytes"] = "fetch"
    host_delay: float = 0.0  # seconds
    budget: int | str | None = None  # 1000 fetches, or a time: "1d", "90m"
    # News
    max_age: str = "24h"
    path_length: int = 101  # visits: the start, then 100 steps
    refetch_visited: bool = True
    document: Literal["version", "url"] = "version"
    judge: Literal["selection", "evolution"] = "selection"
    reward: float = 100.0
    penalty: float = -1.0
    # Topic and Spider
    reach: Literal["frontier", "links"] = "frontier"
    revisit: Literal["free", "pays", "costs"] = "free"
    # Topic
    relevance: Literal["similarity", "label"] = "similarity"
    similarity: Similarity = "tfidf"
    threshold: float = 0.2

    def __post_init__(self) -> None:
        """Refuse what makes no sense, naming the argument and what is allowed."""
        _one_of("kind", self.kind, KINDS)
        _one_of("cost", self.cost, ("fetch", "bytes"))
        _one_of("document", self.document, ("version", "url"))
        _one_of("judge", self.judge, ("selection", "evolution"))
        _one_of("relevance", self.relevance, ("similarity", "label"))
        _one_of("reach", self.reach, ("frontier", "links"))
        _one_of("revisit", self.revisit, ("free", "pays", "costs"))
        if self.kind == "news" and (self.reach, self.revisit) != ("frontier", "free"):
            raise ValueError("reach and revisit have no meaning in News")
        _one_of("similarity", self.similarity, SIMILARITIES)
        _within("fetch_seconds", self.fetch_seconds, 0.001, 86_400)
        _within("host_delay", self.host_delay, 0, 86_400)
        _within("threshold", self.threshold, 0, 1)
        _within("reward", self.reward, -1e6, 1e6)
        _within("penalty", self.penalty, -1e6, 1e6)
        if not isinstance(self.refetch_visited, bool):
            raise ValueError(
                f"refetch_visited is {self.refetch_visited!r}, expected True or False"
            )
        length = self.path_length
        is_number = isinstance(length, int) and not isinstance(length, bool)
        if not is_number or not 1 <= length < 2**31:
            raise ValueError(
                f"path_length is {self.path_length!r}, expected a positive integer"
            )
        parse_duration(self.max_age, "max_age")
        parse_budget(self.default_budget)

    @property
    def default_budget(self) -> int | str:
        """The budget given, or that of the kind: News one day, others 1,000 fetches."""
        if self.budget is not None:
            return self.budget
        return "1d" if self.kind == "news" else 1_000


def parse_duration(text: str, argument: str = "duration") -> int:
    """Return a time such as "90m" or "1.5d" in milliseconds.

    >>> parse_duration("90m")
    5400000
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd])", str(text).strip())
    milliseconds = round(float(match[1]) * _UNITS[match[2]]) if match else 0
    if not 1 <= milliseconds <= _LONGEST:
        raise ValueError(
            f"{argument} is {text!r}, expected a number and a unit: "
            '"30s", "90m", "24h" or "18d" (10,000 days at most)'
        )
    return milliseconds


def parse_budget(budget: int | str) -> tuple[int, int]:
    """Return a budget as (milliseconds, fetches), -1 for the one that is not limited.

    >>> parse_budget(1000), parse_budget("1d")
    ((-1, 1000), (86400000, -1))
    """
    if isinstance(budget, str):
        if not re.fullmatch(r"\s*-?\d+\s*", budget):
            return parse_duration(budget, "budget"), -1
        budget = int(budget)
    if isinstance(budget, bool) or not hasattr(budget, "__index__"):
        raise ValueError(
            f'budget is {budget!r}, expected a number of fetches or a time such as "1d"'
        )
    budget = operator.index(budget)
    if not 1 <= budget < 2**31:
        raise ValueError(f"budget is {budget}, expected 1 to {2**31 - 1} fetches")
    return -1, budget


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}, expected one of {', '.join(allowed)}")


def _within(name: str, value: float, low: float, high: float) -> None:
    good = isinstance(value, int | float) and math.isfinite(value)
    if not good or not low <= value <= high:
        raise ValueError(f"{name} is {value!r}, expected {low:g} to {high:g}")
