"""The news foragers of the selection and evolution papers: what the three share.

A forager crawls in paths. It begins one at a URL of its start list, and goes on with
the URL of the frontier whose page has the highest value, the product of its state with
the forager's weights (Algorithms 2, 3, 11 and 12 of the selection paper). The three
kinds differ in where their start lists (`WeblogStarts`, `FixedStarts`) and weights
(`LearnsWeights`, else they are fixed) come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np

from baselines import _greedy
from baselines.agent import (
    Agent,
    Info,
    Observation,
    State,
    Transition,
    check_number,
    load_random,
    save_random,
    world_of,
)
from gym_webforage.envs import Known

Ties = Literal["oldest", "newest", "random"]
TIES: tuple[Ties, ...] = ("oldest", "newest", "random")


def describe(env: Any) -> dict[str, Any]:
    """Return what a forager must know of its environment, single or fleet."""
    world = world_of(env)
    return {"states": world.trace.states, "is_news": world.rules.kind == "news"}


def _stream(seed: int | None, number: int) -> np.random.Generator:
    # The environment draws from the seed alone: these are other streams.
    return np.random.default_rng(None if seed is None else [seed, number])


@dataclass
class Forager(Agent):
    """Greedy by a linear value of the pages' states; see the module.

    A reset keeps weights that were learned, and nothing else.
    """

    states: int  # k, the length of a page's state; 50, sec. 3.1.2
    is_news: bool = True  # whether pages of the frontier have been fetched
    ties: Ties = "oldest"  # which of equal values: by discovery number, or by lot
    weight_scale: float = 1.0  # random weights are normal with this deviation

    weights: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Make an agent that needs a `reset`, a parent or a `load`."""
        if self.ties not in TIES:
            raise ValueError(f"ties is {self.ties!r}, expected {', '.join(TIES)}")
        self._tie = TIES.index(self.ties)
        self.weights = np.zeros(self.states)
        self.random = np.random.default_rng(0)
        self._way = np.ones(1)  # that the weights went; not 0, lest tiny steps vanish
        self._old_weights = np.zeros(self.states)
        self._forget()

    def _forget(self) -> None:
        """Forget the crawl."""
        self._number = -1  # of the URL visited last
        self._before = -1  # of the one before it in this path
        # What follows only repeats what `Known` tells, by discovery number.
        self._known = 0
        self._rows = np.zeros((0, self.states), np.float32)
        self._facts = np.zeros((0, 3))
        self._equals = np.zeros(0, np.int64)

    # --- what the kinds differ in

    def _begin_path(self, known: Known) -> int:
        """Return the URL that a path starts from."""
        raise NotImplementedError

    def _begin_weights(self, random: np.random.Generator) -> None:
        """Have weights for a new crawl."""
        self.weights[:] = random.normal(scale=self.weight_scale, size=self.states)

    def _inherit(self, parent: Any, rng: np.random.Generator) -> None:
        """Take a newborn's part of what its parent has."""
        self._begin_weights(rng)

    # --- the agent

    def reset(self, seed: int | None = None) -> None:
        """Start a crawl."""
        self.random = _stream(seed, 1)
        self._begin_weights(_stream(seed, 2))
        self._forget()

    def act(self, observation: Observation, info: Info) -> int:
        """Begin a path or go on with it, Algorithm 11."""
        known: Known = info["known"]
        if len(known) != self._known:  # a crawl begins, or goes on after a `load`
            self._catch_up(known)
        if known.at_start:
            url = self._begin_path(known)
            self._before, self._number = -1, known.number(url)
            return url
        self._before, self._number = self._number, self._choose(known.choices)
        return int(known.urls_of(np.array([self._number]))[0])

    def _choose(self, choices: np.ndarray) -> int:
        """Return the choice of highest value, Algorithm 3."""
        is_random = self._tie == _greedy.RANDOM
        if is_random and len(choices) > len(self._equals):
            self._equals = np.zeros(2 * len(choices), np.int64)
        number, count = _greedy.choose(
            choices,
            self._rows,
            self._facts,
            self.weights,
            self._way,
            self._tie,
            self._equals,
        )
        if is_random and count > 1:
            return int(self.random.choice(np.sort(self._equals[:count])))
        return number

    def learn(self, transition: Transition) -> None:
        """Store the states of the pages that were fetched, Algorithm 2."""
        known: Known = transition.info["known"]
        if len(known) != self._known:
            if self.is_news:  # what has a state is among the learnt
                self._make_room(len(known))
            else:
                self._catch_up(known)
        learnt = known.learnt
        if len(learnt):
            self._store(learnt, known.states_of(learnt))

    def _catch_up(self, known: Known) -> None:
        """Store the states of all URLs that have no row yet."""
        numbers = np.arange(self._known, len(known))
        states = known.states_of(numbers)
        if not self.is_news:
            for row, url in enumerate(known.urls_of(numbers).tolist()):
                source = -1 if known.is_fetched(url) else known.source(url)
                if source >= 0:
                    states[row] = known.state(source)
        self._make_room(len(known))
        self._store(numbers, states)

    def _store(self, numbers: np.ndarray, states: np.ndarray) -> None:
        _greedy.remember(
            numbers, states, self._rows, self._facts, self.weights, self._way
        )

    def _make_room(self, known: int) -> None:
        self._known = known
        if known > len(self._rows):
            capacity = max(1024, 2 * known)
            for name in ("_rows", "_facts"):
                old = getattr(self, name)
                new = np.zeros((capacity, old.shape[1]), old.dtype)
                new[: len(old)] = old
                setattr(self, name, new)

    def divide(self, rng: np.random.Generator) -> Self:
        """Return a child, Algorithm 6."""
        child = replace(self)
        child.random = np.random.default_rng(int(rng.integers(2**63)))
        child._inherit(self, rng)
        return child

    def save(self) -> State:
        """Return all that makes the next choices; what `Known` tells is left out."""
        return {
            "weights": self.weights.copy(),
            "random": save_random(self.random),
            "number": self._number,
        }

    def load(self, state: State) -> None:
        """Go on from what `save` returned."""
        self._forget()
        self.weights[:] = state["weights"]
        self.random = load_random(state["random"])
        self._number = int(state["number"])


# --- where paths start


def update_weblog(
    weblog: dict[int, float],
    urls: Sequence[int],
    rewards: Sequence[float],
    beta: float,
    size: int,
) -> dict[int, float]:
    """Return the weblog after a path, Algorithm 1.

    Of equal values the one that stood higher stays higher, and new URLs come last, in
    the order of the path.
    """
    weblog = dict(weblog)
    sums = np.cumsum(np.asarray(rewards, np.float64)[::-1])[::-1].tolist()
    for url, value in zip(urls, sums, strict=True):
        if url in weblog:
            weblog[url] = (1 - beta) * weblog[url] + beta * value
        else:
            weblog[url] = value
    ordered = sorted(weblog.items(), key=lambda item: -item[1])
    return dict(ordered[:size])


def halve(
    weblog: dict[int, float], rng: np.random.Generator
) -> tuple[dict[int, float], dict[int, float]]:
    """Divide a weblog at random between parent and child, Algorithm 6.

    A lone URL cannot be divided: both have it.
    """
    urls = list(weblog)
    half = {urls[i] for i in rng.permutation(len(urls))[: len(urls) // 2].tolist()}
    child = {url: value for url, value in weblog.items() if url in half or not half}
    parent = {url: value for url, value in weblog.items() if url not in half}
    return parent, child


@dataclass
class WeblogStarts(Forager):
    """Starts from the best URLs of a weblog, which it keeps."""

    weblog_size: int = 100  # WEBLOG_SIZE, sec. 3.1.1
    start_size: int = 10  # START_SIZE, sec. 3.1.1
    beta: float = 0.3  # Algorithm 1

    weblog: dict[int, float] = field(init=False, repr=False)  # by descending value

    def _forget(self) -> None:
        super()._forget()
        self.weblog = {}
        self._path: list[tuple[int, float]] = []  # URLs visited, and rewards

    def _begin_path(self, known: Known) -> int:
        if not self.weblog:  # Algorithm 10: only the roots are known
            self.weblog = dict.fromkeys(known.urls[: self.weblog_size].tolist(), 0.0)
        if self._path:
            urls, rewards = zip(*self._path, strict=True)
            self.weblog = update_weblog(
                self.weblog, urls, rewards, self.beta, self.weblog_size
            )
            self._path = []
        starts = list(self.weblog)[: self.start_size]
        return starts[int(self.random.integers(len(starts)))]

    def learn(self, transition: Transition) -> None:
        """Note the step for the weblog."""
        super().learn(transition)
        if self.is_news:  # elsewhere there are no paths
            self._path.append((transition.action, transition.reward))

    def _inherit(self, parent: Any, rng: np.random.Generator) -> None:
        super()._inherit(parent, rng)
        parent.weblog, self.weblog = halve(parent.weblog, rng)

    def save(self) -> State:
        """Add the weblog and the path that will change it."""
        return {
            **super().save(),
            "weblog_urls": np.array(list(self.weblog), np.int64),
            "weblog_values": np.array(list(self.weblog.values()), np.float64),
            "path_urls": np.array([url for url, _ in self._path], np.int64),
            "path_rewards": np.array([paid for _, paid in self._path], np.float64),
        }

    def load(self, state: State) -> None:
        """Go on from what `save` returned."""
        super().load(state)
        urls, values = state["weblog_urls"], state["weblog_values"]
        self.weblog = dict(zip(urls.tolist(), values.tolist(), strict=True))
        urls, rewards = state["path_urls"], state["path_rewards"]
        self._path = list(zip(urls.tolist(), rewards.tolist(), strict=True))


@dataclass
class FixedStarts(Forager):
    """Starts from the first URLs that it came upon."""

    start_size: int = 10  # sec. 4.2.1
    first: Literal["visited", "discovered"] = "visited"  # sec. 4.2.1 says the former

    starts: list[int] = field(init=False, repr=False)

    def _forget(self) -> None:
        super()._forget()
        self.starts = []

    def _begin_path(self, known: Known) -> int:
        starts = self.starts
        if not starts:  # before the first visit: the roots
            starts = known.urls[: self.start_size].tolist()
        return starts[int(self.random.integers(len(starts)))]

    def learn(self, transition: Transition) -> None:
        """Fill the start list, once."""
        super().learn(transition)
        if len(self.starts) < self.start_size:
            if self.first == "discovered":
                known: Known = transition.info["known"]
                self.starts = known.urls[: self.start_size].tolist()
            elif transition.action not in self.starts:
                self.starts.append(transition.action)

    def _inherit(self, parent: Any, rng: np.random.Generator) -> None:
        super()._inherit(parent, rng)
        self.starts = list(parent.starts)

    def save(self) -> State:
        """Add the start list."""
        return {**super().save(), "starts": np.array(self.starts, np.int64)}

    def load(self, state: State) -> None:
        """Go on from what `save` returned."""
        super().load(state)
        self.starts = state["starts"].tolist()


# --- how weights change


@dataclass
class LearnsWeights(Forager):
    """Corrects its weights by temporal difference; a child copies them.

    Weights that would pass 1e100 are not taken, and `refused` counts how often.
    """

    gamma: float = 0.9  # discount, sec. 3.1.2
    alpha: float = 0.1  # learning rate, sec. 3.1.2

    refused: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Make an agent that has no weights yet."""
        check_number("gamma", self.gamma, 0, 1)
        check_number("alpha", self.alpha, 0, 1)
        super().__post_init__()
        self._has_weights = False

    def _begin_weights(self, random: np.random.Generator) -> None:
        if not self._has_weights:
            super()._begin_weights(random)
            self._has_weights = True

    def learn(self, transition: Transition) -> None:
        """Update the weights, but for a path's first step (Algorithm 4)."""
        super().learn(transition)
        if self._before >= 0:
            self.refused += not _greedy.correct(
                self._rows,
                self._before,
                self._number,
                transition.reward,
                self.gamma,
                self.alpha,
                self.weights,
                self._way,
                self._old_weights,
            )

    def _inherit(self, parent: Any, rng: np.random.Generator) -> None:
        self.weights[:] = parent.weights
        self._has_weights = True
        super()._inherit(parent, rng)

    def save(self) -> State:
        """Add the count of refused updates."""
        return {**super().save(), "refused": self.refused}

    def load(self, state: State) -> None:
        """Go on from what `save` returned."""
        super().load(state)
        self._has_weights = True
        self.refused = int(state["refused"])
