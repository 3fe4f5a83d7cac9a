"""Several foragers in one world: turns, rounds, births and deaths.

A fleet works in one of two ways. **In turns**, as on the papers' one computer: there is
one clock; a forager works for a slice of time (``slice_seconds``; a step that was
begun is finished), then its score is settled, it may divide or die, and the next one
in order works. A newborn joins the end of the order. **In rounds**, as on many machines
at once: all foragers take one step together and see the web as it was at the round's
start; the round lasts as long as its longest step; what they send reaches the judge in
the order in which their steps end, ties drawn by lot; then all scores are settled.

A newborn knows what its parent knows, has sent nothing, and begins a new path. (In
Topic and Spider it shares the parent's frontier and visited pages as of its birth.)
Foragers are numbered in order of birth, and no number is used twice. When
``max_births`` numbers are used up, births stop. A forager whose action set is empty is
out, whatever the population says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gym_webforage.trace.trace import Trace
from gym_webforage.world import layout as L
from gym_webforage.world.forager import Features, Shortlist
from gym_webforage.world.population import Population
from gym_webforage.world.rules import Rules
from gym_webforage.world.topic import Topic
from gym_webforage.world.world import Step, World


@dataclass(frozen=True)
class Outcome:
    """What came of a forager's step, and of its slice if that ended."""

    step: Step
    slice_ended: bool = False
    children: tuple[int, ...] = ()
    died: bool = False


class Fleet:
    """The foragers of one world, their order and their scores."""

    def __init__(
        self,
        trace: Trace,
        rules: Rules,
        population: Population,
        *,
        founders: int = 2,
        slice_seconds: float = 180.0,
        max_births: int = 256,
        slots: int = 0,
        shortlist: Shortlist = "newest",
        features: Features = "transfer",
        scaled: bool = False,
        log: bool = True,
    ) -> None:
        """Prepare a fleet; `reset` starts a crawl."""
        for name, value in (("founders", founders), ("max_births", max_births)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} is {value!r}, expected a positive number")
        if founders > max_births:
            raise ValueError(
                f"founders is {founders}, expected at most max_births ({max_births})"
            )
        if not 0.001 <= slice_seconds <= 86_400:
            raise ValueError(
                f"slice_seconds is {slice_seconds!r}, expected 0.001 to 86400"
            )
        self.founders = founders
        self.max_births = max_births
        self.population = population
        self.slice_time = round(slice_seconds * 1000)
        self.world = World(
            trace,
            rules,
            foragers=founders,
            slots=slots,
            shortlist=shortlist,
            features=features,
            scaled=scaled,
            log=log,
        )
        self._clear()

    def _clear(self) -> None:
        self.order = list(range(self.founders))
        self.turn = 0
        self.slice_start = 0
        self.scores = [self.population.start] * self.founders
        self.parents = [-1] * self.founders
        self._settled = [(0, 0)] * self.founders  # sent, novel at the last settling
        self._history: list[tuple[int, int, float]] = []
        self.births: list[tuple[int, int, int]] = []  # time, parent, child
        self.deaths: list[tuple[int, int]] = []  # time, forager

    def reset(
        self,
        *,
        start: int,
        roots: np.ndarray,
        topic: Topic | None = None,
        site: int = -1,
    ) -> None:
        """Start a crawl with the founders."""
        self._clear()
        self.world.resize(self.founders)
        self.world.reset(start=start, roots=roots, topic=topic, site=site)
        self.slice_start = start

    # --- who there is

    @property
    def current(self) -> int:
        """The forager whose turn it is, -1 if none is left."""
        return self.order[self.turn] if self.order else -1

    @property
    def births_stopped(self) -> bool:
        """Whether the numbers for newborns are used up."""
        return len(self.scores) >= self.max_births

    @property
    def history(self) -> dict[str, np.ndarray]:
        """Scores at the end of every slice: time, forager, score."""
        times, foragers, scores = (
            zip(*self._history, strict=True) if self._history else ((), (), ())
        )
        return {
            "time": np.array(times, np.int64),
            "forager": np.array(foragers, np.int64),
            "score": np.array(scores, np.float64),
        }

    # --- in turns

    def step(self, action: int, by_slot: bool = False) -> Outcome:
        """Let the current forager visit a URL, or the one in a slot."""
        number = self.current
        world = self.world
        step = (world.step_slot if by_slot else world.step)(action, number)
        over = world.clock - self.slice_start >= self.slice_time
        if not (over or step.terminated):
            return Outcome(step)
        children, died = self._settle(number, step.terminated)
        if not died:
            self.turn += 1
        self.turn = self.turn % len(self.order) if self.order else 0
        self.slice_start = world.clock
        return Outcome(step, True, children, died)

    # --- in rounds

    def step_together(
        self,
        actions: Mapping[int, int],
        random: np.random.Generator,
        by_slot: bool = False,
    ) -> dict[int, Outcome]:
        """Let all foragers take a step at once."""
        steps = self.world.step_together(actions, random, by_slot)
        outcomes = {}
        for number in [number for number in self.order if number in steps]:
            children, died = self._settle(number, steps[number].terminated)
            outcomes[number] = Outcome(steps[number], True, children, died)
        self.turn = 0
        self.slice_start = self.world.clock
        return outcomes

    # --- births and deaths

    def _settle(self, number: int, is_out: bool) -> tuple[tuple[int, ...], bool]:
        """Settle a forager's score; return its children and whether it died."""
        world, population = self.world, self.population
        totals = world.foragers[number].ints
        sent, novel = int(totals[L.SENT_TOTAL]), int(totals[L.NOVEL_TOTAL])
        before = self._settled[number]
        self._settled[number] = sent, novel
        score = population.score(
            self.scores[number], sent - before[0], novel - before[1]
        )
        self.scores[number] = score
        self._history.append((world.clock, number, score))
        fate = "die" if is_out else population.fate(score, len(self.order))
        if fate == "die":
            self.order.remove(number)
            self.deaths.append((world.clock, number))
            world.foragers[number].release()
            return (), True
        if fate == "divide" and not self.births_stopped:
            child = world.add_child(number)
            self.scores[number] = population.start
            self.scores.append(population.start)
            self.parents.append(number)
            self._settled.append((0, 0))
            self.order.append(child)
            self.births.append((world.clock, number, child))
            return (child,), False
        return (), False

    # --- keeping

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain arrays and values."""
        return {
            "world": self.world.snapshot(),
            "order": list(self.order),
            "turn": self.turn,
            "slice_start": self.slice_start,
            "scores": list(self.scores),
            "parents": list(self.parents),
            "settled": [list(pair) for pair in self._settled],
            "history": {key: value.copy() for key, value in self.history.items()},
            "births": [list(row) for row in self.births],
            "deaths": [list(row) for row in self.deaths],
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Put back a state that `snapshot` took."""
        self.world.restore(snapshot["world"])
        self.order = [int(number) for number in snapshot["order"]]
        self.turn = int(snapshot["turn"])
        self.slice_start = int(snapshot["slice_start"])
        self.scores = [float(score) for score in snapshot["scores"]]
        self.parents = [int(parent) for parent in snapshot["parents"]]
        self._settled = [(int(a), int(b)) for a, b in snapshot["settled"]]
        history = snapshot["history"]
        self._history = list(
            zip(
                history["time"].tolist(),
                history["forager"].tolist(),
                history["score"].tolist(),
                strict=True,
            )
        )
        self.births = [(int(t), int(p), int(c)) for t, p, c in snapshot["births"]]
        self.deaths = [(int(t), int(f)) for t, f in snapshot["deaths"]]
