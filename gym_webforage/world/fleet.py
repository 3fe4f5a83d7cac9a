"""Several foragers in one world: turns, rounds, births and deaths.

A fleet works in one of two ways. **In turns**, as on the papers' one computer: there is
one clock; a forager works for a slice of time (``slice_seconds``; a step that was
begun is finished), then its score is settled, it may divide or die, and the next one
in order works. A newborn joins the end of the order. **In rounds**, as on many machines
at once: all foragers take one step together and see the web as it was at the round's
start; the round lasts as long as its longest step; what they send reaches the judge in
the order in which their steps end, ties drawn by lot; then all scores are settled.

A newborn knows what its parent knows, has sent nothing, and begins a new path. (In
Topic and Spider it shares the parent's frontier and visited pages as of its birth; with
``reach="links"`` it stands where its parent stands, and knows that page alone.)
Foragers are numbered in order of birth, and no number is used twice. When
``max_births`` numbers are used up, births stop. A forager whose action set is empty is
out, whatever the population says.

With an energy population (see `energy`) a slice is one visit, and one forager may have
many children at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gym_webforage.trace.trace import Trace
from gym_webforage.world import layout as L
from gym_webforage.world.energy import Economy, EnergyPopulation
from gym_webforage.world.forager import Features, Shortlist
from gym_webforage.world.population import Population
from gym_webforage.world.rules import Rules
from gym_webforage.world.topic import Topic
from gym_webforage.world.world import Step, World

COLUMNS = {"time": np.int64, "forager": np.int64, "score": np.float64}
ENERGY_COLUMNS = {
    **COLUMNS,
    "living": np.int64,  # after births and deaths
    "energy": np.float64,  # of all that live
    "left": np.float64,  # on pages
    "balance": np.float64,  # R
}


@dataclass(frozen=True)
class Outcome:
    """What came of a forager's step, and of its slice if that ended."""

    step: Step
    children: tuple[int, ...] = ()
    died: bool = False


class Fleet:
    """The foragers of one world, their order and their scores."""

    def __init__(
        self,
        trace: Trace,
        rules: Rules,
        population: Population | EnergyPopulation,
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
        self.by_energy = isinstance(population, EnergyPopulation)
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
        self._history: list[tuple[float, ...]] = []
        self.stopped: str | None = None
        """Why the run was stopped before its budget was spent, if it was."""
        self.economy: Economy | None = None
        self.coming: set[int] = set()  # founders on their way to a root that is given
        if isinstance(self.population, EnergyPopulation):
            self.economy = Economy(self.population, self.world.rules)
            if self.population.roots == "given":
                self.coming = set(range(self.founders))
        self.energy = self.population.start * self.founders
        self.waiting: list[int] = []  # those who will be sent to pages with energy
        self.sent: set[int] = set()  # those who were
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
        """Scores at the end of every slice: time, forager, score.

        With an energy population the score is the energy before any division, and
        there are ``living``, ``energy`` (of all who live), ``left`` (energy on pages)
        and ``balance`` after it.
        """
        types = ENERGY_COLUMNS if self.economy else COLUMNS
        columns = zip(*self._history, strict=True) if self._history else [()] * 7
        return {
            name: np.array(column, dtype)
            for (name, dtype), column in zip(types.items(), columns, strict=False)
        }

    def action_set(self, number: int) -> np.ndarray:
        """Return the URLs that a forager may visit, in order of discovery.

        Behind those of its own world come the other pages with energy left.
        """
        own = self.world.foragers[number].action_set()
        if not self.economy or not self.economy.left or number in self.sent:
            return own
        pages = self.economy.open_pages()
        return np.concatenate([own, pages[~np.isin(pages, own)]])

    # --- in turns

    def step(self, action: int, by_slot: bool = False) -> Outcome:
        """Let the current forager visit a URL, or the one in a slot."""
        number = self.current
        world = self.world
        jumps = not by_slot and self._open(number, action)
        path = world.foragers[number].ints[L.PATH]
        step = (world.step_slot if by_slot else world.step)(action, number)
        if self.economy:
            self._land(number, step, path, jumps)
            children, died = self._settle_energy(number, step)
            if not died:
                self.turn += 1
            self.turn = self.turn % len(self.order) if self.order else 0
            self.slice_start = world.clock
            self._send([self.current])
            return Outcome(self._cut(step), children, died)
        over = world.clock - self.slice_start >= self.slice_time
        if not (over or step.terminated):
            return Outcome(step)
        children, died = self._settle(number, step.terminated)
        if not died:
            self.turn += 1
        self.turn = self.turn % len(self.order) if self.order else 0
        self.slice_start = world.clock
        return Outcome(step, children, died)

    # --- in rounds

    def step_together(
        self,
        actions: Mapping[int, int],
        random: np.random.Generator,
        by_slot: bool = False,
    ) -> dict[int, Outcome]:
        """Let all foragers take a step at once."""
        foragers = self.world.foragers
        jumps = {n: not by_slot and self._open(n, url) for n, url in actions.items()}
        paths = {n: foragers[n].ints[L.PATH] for n in actions}
        steps = self.world.step_together(actions, random, by_slot)
        outcomes = {}
        if self.economy:
            for number in [number for number in self.order if number in steps]:
                self._land(number, steps[number], paths[number], jumps[number])
                children, died = self._settle_energy(number, steps[number])
                outcomes[number] = Outcome(steps[number], children, died)
            self._send(list(self.waiting))
            self.turn = 0
            self.slice_start = self.world.clock
            return {
                number: replace(outcome, step=self._cut(outcome.step))
                for number, outcome in outcomes.items()
            }
        for number in [number for number in self.order if number in steps]:
            children, died = self._settle(number, steps[number].terminated)
            outcomes[number] = Outcome(steps[number], children, died)
        self.turn = 0
        self.slice_start = self.world.clock
        return outcomes

    # --- births and deaths

    def _settle(self, number: int, is_out: bool) -> tuple[tuple[int, ...], bool]:
        """Settle a forager's score; return its children and whether it died."""
        world, population = self.world, self.population
        assert not isinstance(population, EnergyPopulation)
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
            self._bury(number)
            return (), True
        if fate == "divide" and not self.births_stopped:
            self.scores[number] = population.start
            return (self._bear(number, population.start),), False
        return (), False

    def _bury(self, number: int) -> None:
        self.order.remove(number)
        self.deaths.append((self.world.clock, number))
        self.world.foragers[number].release()

    def _bear(self, parent: int, score: float) -> int:
        child = self.world.add_child(parent)
        self.scores.append(score)
        self.parents.append(parent)
        self._settled.append((0, 0))
        self.order.append(child)
        self.births.append((self.world.clock, parent, child))
        return child

    # --- energy

    def _settle_energy(self, number: int, step: Step) -> tuple[tuple[int, ...], bool]:
        """Change a forager's energy by its visit; return children, and if it died."""
        economy, population = self.economy, self.population
        assert economy is not None and isinstance(population, EnergyPopulation)
        forager, living = self.world.foragers[number], len(self.order)
        if step.illegal:
            change = economy.charge()
        elif number in self.coming:
            self.coming.remove(number)
            change = 0.0
        else:
            url = int(forager.ints[L.LAST_URL])
            relevance = float(forager.ledger_floats[forager.number(url), L.VALUE])
            change = economy.visit(url, relevance, living)
        energy = self.scores[number] + change
        self.scores[number] = energy
        self.energy += change
        children: tuple[int, ...] = ()
        fate = population.starves(energy, living)
        if step.terminated:
            fate = "dies"
        if fate == "dies":
            economy.buried += energy
            self.energy -= energy
            self.sent.discard(number)
            self._bury(number)
        elif fate == "waits":
            self.waiting.append(number)
        else:
            children = self._divide(number, energy)
        self._history.append(
            (
                self.world.clock,
                number,
                energy,
                len(self.order),
                self.energy,
                economy.energy_left,
                economy.balance.value,
            )
        )
        return children, fate == "dies"

    def _divide(self, number: int, energy: float) -> tuple[int, ...]:
        economy, population = self.economy, self.population
        assert economy is not None and isinstance(population, EnergyPopulation)
        clones, each = population.divided(energy)
        if not clones or self.stopped:
            return ()
        self.stopped = self._too_many(clones, population.most)
        if self.stopped:
            return ()
        self.scores[number] = each
        created = each * (clones + 1) - energy
        economy.created += created
        self.energy += created
        return tuple(self._bear(number, each) for _ in range(clones))

    def _too_many(self, clones: int, most: int) -> str | None:
        """Say why so many newborns are too many, None if they are not."""
        when = f"after {self.world.fetches} fetches"
        if len(self.order) + clones > most:
            return (
                f"the population would have grown from {len(self.order)} to "
                f"{len(self.order) + clones} foragers {when}, more than most={most}"
            )
        if len(self.scores) + clones > self.max_births:
            return f"all names were used {when}: max_births={self.max_births}"
        return None

    def _cut(self, step: Step) -> Step:
        return step._replace(truncated=True) if self.stopped else step

    def _open(self, number: int, url: int) -> bool:
        """Let a forager visit a page with energy left; say if it is no link of it."""
        if not self.economy or url not in self.economy.left:
            return False
        return self.world.admit(url, number)

    def _land(self, number: int, step: Step, path: int, jumped: bool) -> None:
        """Send one back who left its links and found none where it went."""
        if step.illegal:
            return
        away = jumped or number in self.sent
        self.sent.discard(number)
        if away and self.world.foragers[number].ints[L.PATH] == path:
            self.world.send_back(number)

    def _send(self, numbers: list[int]) -> None:
        """Send those of these who wait for it to pages with energy left."""
        assert self.economy is not None
        for number in numbers:
            if number in self.waiting:
                self.waiting.remove(number)
                if self.economy.left:
                    self.world.send_to(self.economy.open_pages(), number)
                    self.sent.add(number)

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
            "stopped": self.stopped,
            "economy": self.economy.snapshot() if self.economy else None,
            "energy": self.energy,
            "waiting": list(self.waiting),
            "sent": sorted(self.sent),
            "coming": sorted(self.coming),
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
        types = ENERGY_COLUMNS if self.economy else COLUMNS
        columns = [history[name].tolist() for name in types]
        self._history = list(zip(*columns, strict=True))
        self.births = [(int(t), int(p), int(c)) for t, p, c in snapshot["births"]]
        self.deaths = [(int(t), int(f)) for t, f in snapshot["deaths"]]
        self.stopped = snapshot["stopped"]
        if self.economy:
            self.economy.restore(snapshot["economy"])
        self.energy = float(snapshot["energy"])
        self.waiting = [int(number) for number in snapshot["waiting"]]
        self.sent = {int(number) for number in snapshot["sent"]}
        self.coming = {int(number) for number in snapshot["coming"]}
