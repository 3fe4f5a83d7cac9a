"""What the faces of a fleet share: arguments, names, spaces, infos."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding

from gym_webforage.envs.episode import OPTIONS, Episode, EpisodeMaker, Split, TopicGiven
from gym_webforage.envs.forage import (
    DEFAULT_TRACES,
    make_rules,
    make_view,
    slot_space,
    whole_number,
)
from gym_webforage.envs.knowledge import Info, Known
from gym_webforage.trace import Trace, load_trace
from gym_webforage.world.energy import EnergyPopulation
from gym_webforage.world.fleet import Fleet
from gym_webforage.world.forager import Features, Forager, Shortlist
from gym_webforage.world.observe import CONTEXT_COLUMNS
from gym_webforage.world.population import Population, as_population
from gym_webforage.world.rules import Kind
from gym_webforage.world.world import World

Observation = dict[str, np.ndarray]

BIRTHS, ENERGY_BIRTHS = 256, 65_536  # foragers that are born in all, by default


class Seat:
    """One forager's place in a fleet: what its `Info` is made from."""

    def __init__(self, crew: Crew, number: int) -> None:
        self.crew = crew
        self.number = number
        self.known = Known(crew.world, number)
        self.moment = 0

    @property
    def world(self) -> World:
        """The world of the fleet."""
        return self.crew.world

    @property
    def trace(self) -> Trace:
        """The trace under it."""
        return self.crew.trace

    @property
    def episode(self) -> Episode | None:
        """What the reset drew."""
        return self.crew.episode

    @property
    def forager(self) -> Forager:
        """The forager itself."""
        return self.crew.world.foragers[self.number]

    def action_masks(self) -> np.ndarray:
        """Return which of its actions are legal, as booleans."""
        if self.crew.slots is not None:
            return self.forager.slot >= 0
        mask = np.zeros(len(self.trace.urls), np.bool_)
        mask[self.action_set()] = True
        return mask

    def action_set(self) -> np.ndarray:
        """Return the URLs that it may visit."""
        return self.crew.fleet.action_set(self.number)

    def with_energy(self) -> np.ndarray:
        """Return the URLs of pages with energy left."""
        economy = self.crew.fleet.economy
        return economy.open_pages() if economy else np.zeros(0, np.int32)


class Crew:
    """What the three faces of a fleet share: arguments, names, spaces, infos."""

    def __init__(
        self,
        trace: str | Trace | None = None,
        *,
        kind: Kind = "news",
        founders: int = 2,
        population: str | Population | EnergyPopulation = "fixed",
        slice_seconds: float = 180.0,
        max_births: int | None = None,
        slots: int | None = 128,
        features: Features | None = None,
        shortlist: Shortlist | None = None,
        scaled: bool = False,
        split: Split = "train",
        topic: TopicGiven | None = None,
        site: str | None = None,
        log: bool = True,
        **rules: Any,
    ) -> None:
        self.rules = make_rules(kind, rules)
        view = make_view(self.rules, slots, features, shortlist, scaled)
        self.slots = slots
        self.trace = load_trace(DEFAULT_TRACES[kind] if trace is None else trace)
        self.episodes = EpisodeMaker(self.trace, self.rules, split, topic, site)
        rule = as_population(population)
        if max_births is None:
            many = isinstance(rule, EnergyPopulation)
            max_births = max(ENERGY_BIRTHS if many else BIRTHS, founders)
        self.fleet = Fleet(
            self.trace,
            self.rules,
            rule,
            founders=founders,
            slice_seconds=slice_seconds,
            max_births=max_births,
            **asdict(view),
            log=log,
        )
        self.names = [f"forager_{i}" for i in range(max_births)]
        self.numbers = {name: i for i, name in enumerate(self.names)}
        self.seats: dict[int, Seat] = {}
        self.episode: Episode | None = None
        self.random = seeding.np_random()[0]
        if slots is None:
            self.action_space: spaces.Space[Any] = spaces.Discrete(len(self.trace.urls))
            context = spaces.Box(-1, 1, (CONTEXT_COLUMNS,), np.float32)
            self.observation_space = spaces.Dict({"context": context})
        else:
            self.action_space = spaces.Discrete(slots)
            self.observation_space = slot_space(self.world, slots, False)

    @property
    def world(self) -> World:
        """The world of the fleet."""
        return self.fleet.world

    def reset(self, seed: int | None, options: Mapping[str, Any] | None) -> None:
        """Start a crawl with the founders.

        Unknown options are passed over: PettingZoo's own tests send some.
        """
        if seed is not None:
            self.random = seeding.np_random(seed)[0]
        known = {key: value for key, value in (options or {}).items() if key in OPTIONS}
        self.episode = self.episodes.draw(self.random, known)
        self.fleet.reset(
            start=self.episode.start,
            roots=self.episode.roots,
            topic=self.episode.topic,
            site=self.episode.site,
        )
        self.seats = {number: Seat(self, number) for number in self.fleet.order}

    def observation(self, number: int) -> Observation:
        """Return what a forager observes; a dead one sees nothing."""
        forager = self.world.foragers[number]
        if not len(forager.ledger):
            return {
                key: np.zeros(space.shape or (), space.dtype)
                for key, space in self.observation_space.items()
            }
        candidates, mask, context = self.world.observe(number)
        if self.slots is None:
            return {"context": context}
        return {"candidates": candidates, "action_mask": mask, "context": context}

    def info(self, number: int, children: Sequence[int] = ()) -> Info:
        """Return a forager's info; most of it is made when it is read."""
        fleet = self.fleet
        seat = self.seats[number]
        seat.moment += 1
        parent = fleet.parents[number]
        info = Info(
            score=fleet.scores[number],
            parent=self.names[parent] if parent >= 0 else None,
            children=[self.names[child] for child in children],
            births_stopped=fleet.births_stopped,
            stopped=fleet.stopped,
        )
        if self.slots is not None:
            info["action_mask"] = self.world.foragers[number].mask()
        info._env = seat
        info._moment = seat.moment
        return info

    def welcome(self, children: Sequence[int]) -> list[str]:
        """Give newborns their seats; return their names."""
        for child in children:
            self.seats[child] = Seat(self, child)
        return [self.names[child] for child in children]

    def action(self, action: Any) -> int:
        """Check an action's type; what is out of range is illegal, not an error."""
        expected = "a URL id" if self.slots is None else f"0 to {self.slots - 1}"
        return whole_number(action, expected)

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain arrays and values."""
        return {
            "fleet": self.fleet.snapshot(),
            "episode": asdict(self.episode) if self.episode else None,
            "random": self.random.bit_generator.state,
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Put back a state that `snapshot` took."""
        self.fleet.restore(snapshot["fleet"])
        self.episode = Episode.restored(snapshot["episode"])
        self.random.bit_generator.state = snapshot["random"]
        self.seats = {number: Seat(self, number) for number in self.fleet.order}
