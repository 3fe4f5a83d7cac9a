"""Foragers that live on energy: what a page gives, who divides, who starves.

A forager has energy. A visit changes it by what the page gives: with the *linear* model
``rate * r - cost``, r being the page's relevance; with the *sigmoid* model something
between ``-cost`` and ``gain``:

    (gain + cost) / (1 + exp(-slope * (r - R))) - cost

R is a running balance: of the relevances seen so far, in ascending order, the one at
rank n / (cost / gain + 1). So the share cost / (gain + cost) of the pages gives energy,
and gains and costs are level. The slope is the larger of 8 / (R - lowest relevance) and
8 / (highest relevance - R), so that both ends of the curve are reached; where one of
them would divide by zero the curve is a step: ``gain`` above R, ``-cost`` else.

Who has more than ``divide_at`` divides: n = floor(energy / divide_at) clones, which
share the energy equally with their parent (``division="pair"``: one clone, half each).
Who has less than nothing dies.

**The roots.** Founders stand on the roots when a crawl begins, as in the paper's
algorithms, whose loops begin with the picking of a link. So a founder's first visit, by
which it comes to its root, costs and gives nothing, and the balance does not count it
(``roots="visited"``: like any other). It matters: 200 founders come to three roots
chosen for their relevance; if these were the first 200 relevances of the balance, R
would be theirs for thousands of visits, no other page would give energy, and all would
starve.

**Again.** By the rule ``revisit`` of the world a page that somebody has visited gives
nothing and costs nothing (``free``), gives again (``pays``), or costs ``cost``
(``costs``). The balance counts the same visits that change energy: first ones, all, or
all with a relevance of 0 for a page that gives no more. With ``history="pages"`` it
counts each page once, whoever comes again: "previously visited pages" can be read so,
but where every visit pays, gains and costs are then not level. A dead page has
relevance 0; an illegal action costs ``cost``.

**Buffer.** With ``upper`` and ``lower`` pages keep energy. While more than ``upper``
foragers live, a visit costs ``cost`` and a page that would give energy keeps it for a
later visitor. Pages with energy left belong to everyone's action set. While no more
than ``lower`` live, a starving forager does not die: in its next turn its action set is
the pages with energy left, if there are any. One that visits such a page and finds no
links on it goes back to where it stood.

**The paper's print** contradicts itself in places; ``printed`` names those to be taken
literally: ``sign`` (r + R in the curve), ``ratio`` (Prob(r > R) / Prob(r <= R) =
gain / cost), ``slope`` (8 / (R - lowest) if that is at most highest - R, else
8 / (highest - R)), ``division`` (each of the n clones and the parent get energy / n,
which creates energy) and ``floor`` (a forager starves to death unless fewer than
``lower`` live, so that lower - 1 remain).

A population that grows beyond ``most`` stops the run: all are truncated, with a reason.

Paper: A. Mouton, P.-F. Marteau, "Population control for multi-agents based topical
crawlers" (2008), sections II and III.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Literal

import numpy as np

from gym_webforage.world.rules import Rules

PRINTED = ("sign", "ratio", "slope", "division", "floor")
CHOICES = {
    "model": ("sigmoid", "linear"),
    "division": ("shared", "pair"),
    "roots": ("given", "visited"),
    "history": ("visits", "pages"),
}
TOTALS = ("energy_left", "granted", "charged", "created", "buried")
PLATEAU = 8.0  # 1 / (1 + exp(-8)) is 0.9997


@dataclass(frozen=True, kw_only=True)
class EnergyPopulation:
    """How foragers gain and lose energy, divide and die."""

    model: Literal["sigmoid", "linear"] = "sigmoid"
    cost: float = 0.5  # C
    gain: float = 10.0  # G, sigmoid
    rate: float = 10.0  # rho, linear
    start: float = 1.0
    divide_at: float = 1.0
    division: Literal["shared", "pair"] = "shared"
    upper: int | None = None  # UB
    lower: int | None = None  # LB
    most: int = 2_000
    roots: Literal["given", "visited"] = "given"
    history: Literal["visits", "pages"] = "visits"  # that the balance counts
    printed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what makes no sense, naming the argument and what is allowed."""
        for name, (one, other) in CHOICES.items():
            value = getattr(self, name)
            if value not in (one, other):
                raise ValueError(f"{name} is {value!r}, expected {one} or {other}")
        _within("cost", self.cost, 0, 1e6)
        _within("gain", self.gain, 1e-6, 1e6)
        _within("rate", self.rate, 0, 1e6)
        _within("divide_at", self.divide_at, 1e-6, 1e6)
        _within("start", self.start, 0, self.divide_at)
        _count("most", self.most, 1)
        if (self.upper is None) != (self.lower is None):
            raise ValueError("upper and lower: expected both or neither")
        if self.upper is not None and self.lower is not None:
            _count("lower", self.lower, 0)
            _count("upper", self.upper, 1)
            if self.lower > self.upper:
                raise ValueError(
                    f"lower is {self.lower} and upper {self.upper}, expected "
                    "0 <= lower <= upper"
                )
        printed = tuple(self.printed)
        if isinstance(self.printed, str) or not set(printed) <= set(PRINTED):
            raise ValueError(
                f"printed is {self.printed!r}, expected a tuple of {', '.join(PRINTED)}"
            )
        object.__setattr__(self, "printed", printed)

    @property
    def share(self) -> float:
        """The share of relevances that are not above the balance."""
        if "ratio" in self.printed:
            return self.cost / (self.gain + self.cost)
        return self.gain / (self.gain + self.cost)

    def divided(self, energy: float) -> tuple[int, float]:
        """Return how many clones are born, and what each and the parent then have."""
        if energy <= self.divide_at:
            return 0, energy
        clones = math.floor(energy / self.divide_at)
        if "division" in self.printed:
            return clones, energy / clones
        if self.division == "pair":
            clones = 1
        return clones, energy / (clones + 1)

    def starves(self, energy: float, living: int) -> Literal["no", "dies", "waits"]:
        """Say what becomes of a forager with so little energy, one of ``living``."""
        if energy >= 0:
            return "no"
        if self.lower is None:
            return "dies"
        floor = self.lower - 1 if "floor" in self.printed else self.lower
        return "dies" if living > floor else "waits"


def _within(name: str, value: float, low: float, high: float) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not low <= value <= high:
        raise ValueError(f"{name} is {value!r}, expected {low:g} to {high:g}")


def _count(name: str, value: int, low: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise ValueError(f"{name} is {value!r}, expected an integer from {low} on")


class Balance:
    """The relevance at rank ``share * n`` of the n seen so far, in ascending order.

    The lower ones are in one heap and the higher ones in another, and the rank grows by
    at most one for each relevance that is added: so the border is exact at any time,
    for O(log n) a page.
    """

    def __init__(self, share: float) -> None:
        self.share = share
        self.low: list[float] = []  # negated: the largest comes first
        self.high: list[float] = []
        self.lowest, self.highest = math.inf, -math.inf

    @property
    def rank(self) -> int:
        """The rank of the border, from 1 on: the nearest to ``share * n``."""
        count = len(self.low) + len(self.high)
        return min(count, max(1, math.floor(self.share * count + 0.5)))

    @property
    def value(self) -> float:
        """The relevance at that rank; 0 before the first."""
        return -self.low[0] if self.low else 0.0

    def add(self, relevance: float) -> None:
        """Take in a relevance."""
        self.lowest = min(self.lowest, relevance)
        self.highest = max(self.highest, relevance)
        if self.low and relevance < -self.low[0]:
            heappush(self.low, -relevance)
        else:
            heappush(self.high, relevance)
        rank = self.rank
        while len(self.low) < rank:
            heappush(self.low, -heappop(self.high))
        while len(self.low) > rank:
            heappush(self.high, -heappop(self.low))

    def slope(self, printed: bool) -> float:
        """Return how steep the curve is at the border; infinite: a step."""
        below, above = self.value - self.lowest, self.highest - self.value
        to_low = PLATEAU / below if below > 0 else math.inf
        to_high = PLATEAU / above if above > 0 else math.inf
        if printed:
            return to_low if to_low <= above else to_high
        return max(to_low, to_high)


class Economy:
    """The energy of a crawl: what pages give, keep, and what became of it all."""

    def __init__(self, population: EnergyPopulation, rules: Rules) -> None:
        if rules.kind == "news":
            raise ValueError("population: energy needs kind topic or spider")
        if population.upper is not None and rules.reach != "links":
            raise ValueError(
                "upper and lower: pages keep energy only with reach='links'"
            )
        self.population = population
        self.revisit = rules.revisit
        self.balance = Balance(population.share)
        self.visited: set[int] = set()
        self.left: dict[int, float] = {}  # energy that pages keep, all positive
        self.energy_left = 0.0  # its sum
        self.granted = 0.0  # by pages, at visits
        self.charged = 0.0  # for visits that gave nothing
        self.created = 0.0  # by dividing as printed
        self.buried = 0.0  # with the dead, mostly less than nothing

    def curve(self, relevance: float) -> float:
        """Return what a page of this relevance gives now."""
        rule = self.population
        if rule.model == "linear":
            return rule.rate * relevance - rule.cost
        border = self.balance.value
        distance = relevance + border if "sign" in rule.printed else relevance - border
        slope = self.balance.slope("slope" in rule.printed)
        if math.isinf(slope):
            return rule.gain if distance > 0 else -rule.cost
        steps = min(700.0, max(-700.0, -slope * distance))  # as far as exp can go
        return (rule.gain + rule.cost) / (1 + math.exp(steps)) - rule.cost

    def visit(self, url: int, relevance: float, living: int) -> float:
        """Return by how much a visit changes the energy of one of ``living``."""
        rule = self.population
        known = url in self.visited
        crowded = rule.upper is not None and living > rule.upper
        if known and self.revisit != "pays":
            if url in self.left and not crowded:
                return self._take(url)
            if crowded:
                return self.charge()
            if self.revisit == "costs":
                self._count(0.0, known)
                return self.charge()
            return 0.0
        self.visited.add(url)
        self._count(relevance, known)
        given = self.curve(relevance)
        old = self._take(url)  # with revisit="pays" what it gives takes over
        if not crowded:
            self.granted += given - old
            return given
        kept = max(0.0, given)
        self.granted += kept - old
        if kept > 0:
            self.left[url] = kept
            self.energy_left += kept
        return self.charge()

    def _count(self, relevance: float, known: bool) -> None:
        """Let the balance count a visit, to a page that was visited before or not."""
        if not known or self.population.history == "visits":
            self.balance.add(relevance)

    def _take(self, url: int) -> float:
        """Return what a page has kept; it keeps nothing any more."""
        energy = self.left.pop(url, 0.0)
        self.energy_left = self.energy_left - energy if self.left else 0.0
        return energy

    def charge(self) -> float:
        """Return the change by a visit that gave nothing."""
        self.charged += self.population.cost
        return -self.population.cost

    def open_pages(self) -> np.ndarray:
        """Return the URLs of pages with energy left, in the order they came to it."""
        return np.fromiter(self.left, np.int32, len(self.left))

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain arrays and values."""
        balance = self.balance
        return {
            "low": np.array(balance.low, np.float64),
            "high": np.array(balance.high, np.float64),
            "range": np.array([balance.lowest, balance.highest]),
            "visited": np.array(sorted(self.visited), np.int64),
            "left_url": np.array(list(self.left), np.int64),
            "left_energy": np.array(list(self.left.values()), np.float64),
            "totals": np.array([getattr(self, name) for name in TOTALS]),
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Put back a state that `snapshot` took."""
        balance = self.balance
        balance.low = snapshot["low"].tolist()
        balance.high = snapshot["high"].tolist()
        balance.lowest, balance.highest = snapshot["range"].tolist()
        self.visited = set(snapshot["visited"].tolist())
        urls, energy = snapshot["left_url"].tolist(), snapshot["left_energy"].tolist()
        self.left = dict(zip(urls, energy, strict=True))
        for name, total in zip(TOTALS, snapshot["totals"].tolist(), strict=True):
            setattr(self, name, total)
