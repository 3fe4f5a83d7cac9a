"""LAFC: a learning automaton on every page learns which of its links to follow.

A page's automaton draws one of its links; the link is rewarded if the page it leads to
is at least as similar to the topic as the best that any link of that page has led to.
While pages are similar enough the crawl descends, else it resumes from a stack. What
was learned is kept: it is for the *next* crawl of the same web and topic.

Paper: J. Akbari Torkestani, "An adaptive focused Web crawling algorithm based on
learning automata" (2012).

**Differs from the paper in**: where a page was not similar enough, the paper pops the
last URL from the stack and goes on there; read literally this empties the stack after a
few fetches. Here the top page is resumed while it has links that were not visited, and
dropped when it has none (``resume="pop"`` is the literal reading). When the stack is
empty and the budget is not, the crawl goes on from the newest page with such links. As
printed, a page of similarity 0 is rewarded as long as nothing better was seen; a page
that could not be fetched is penalised. The penalty rate b, which the paper names for
L_R-P (b = a) and L_R-eP (b much smaller than a) but does not need, is a / 10 for the
latter. A page has one action for each page it links to. Similarity is the paper's own
(term frequencies over the topic's words), whatever the environment's judge takes;
``similarity="reward"`` takes what the judge pays. Spider, which has no topic, is ours:
similarity is the reward.

Cost per step: the links of the page that is left and of the page that is fetched.
"""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from baselines._automaton import Automaton
from baselines.agent import (
    Agent,
    Info,
    Observation,
    State,
    Transition,
    check_number,
    forage_env,
    frontier_world,
    load_random,
    run_episode,
    save_random,
)

KINDS = ("topic", "spider")
Scheme = Literal["L_R-I", "L_R-P", "L_R-eP"]


def frequency_similarity(
    tokens: np.ndarray, counts: np.ndarray, frequencies: np.ndarray
) -> float:
    """Return the cosine of term frequencies over the topic's words (eq. 4 and 5)."""
    weight = frequencies[tokens]
    own = weight > 0
    if not own.any():
        return 0.0
    often = counts[own] / counts[own].max()
    length = np.sqrt(np.square(frequencies).sum() * np.square(often).sum())
    return min(1.0, float((weight[own] * often).sum() / length))


@dataclass
class LAFC(Agent):
    """A network of automata, isomorphic to the part of the web that it has seen."""

    urls: int  # URL ids are below this
    scheme: Scheme = "L_R-I"
    a: float = 0.09  # learning rate of rewards, sec. 5.1
    b: float | None = None  # of penalties; None: by the scheme
    control: float = 0.8  # descend from this similarity on, sec. 5.1
    similarity: Literal["frequency", "reward"] = "frequency"
    resume: Literal["top", "pop"] = "top"

    networks: dict[str, dict[int, Automaton]] = field(default_factory=dict, init=False)
    """For each topic, the automata of the pages that were fetched."""

    def __post_init__(self) -> None:
        """Refuse what makes no sense; prepare for a crawl."""
        for name, allowed in (
            ("scheme", get_args(Scheme)),
            ("similarity", ("frequency", "reward")),
            ("resume", ("top", "pop")),
        ):
            if getattr(self, name) not in allowed:
                listed = ", ".join(allowed)
                value = getattr(self, name)
                raise ValueError(f"{name} is {value!r}, expected one of {listed}")
        check_number("a", self.a, 0, 1)
        if self.b is None:
            self.b = {"L_R-I": 0.0, "L_R-P": self.a, "L_R-eP": self.a / 10}[self.scheme]
        check_number("b", self.b, 0, 1)
        check_number("control", self.control, 0, 1)
        self._crawls = 0
        self.reset(0)
        self._crawls = 0

    def reset(self, seed: int | None = None) -> None:
        """Enable all links again; what the automata have learned is kept."""
        # Each crawl has chance of its own: repeated ones must not go the same ways.
        stream = None if seed is None else [seed, 5, self._crawls]
        self.random = np.random.default_rng(stream)
        self._crawls += 1
        self._visited = np.zeros(self.urls, bool)
        self._stack: list[int] = []
        self._trail: list[int] = []  # pages fetched, for when the stack is empty
        self._here = -1  # the page to choose from, -1: resume
        self._drawn: tuple[int, int, np.ndarray] | None = None  # page, place, enabled
        self._begun = False

    def act(self, observation: Observation, info: Info) -> int:
        """Draw a link of the current page, or of the one to resume from."""
        if not self._begun:
            self._begun = True
            # The first root is on top.
            self._stack = info["known"].new.tolist()[::-1]
        self._drawn = None
        page, enabled = self._page_to_leave(info)
        if enabled is None:
            return page  # a root
        automaton = self._network(info)[page]
        place = automaton.choose(enabled, self.random)
        self._drawn = page, place, enabled
        return int(automaton.links[place])

    def _page_to_leave(self, info: Info) -> tuple[int, np.ndarray | None]:
        """Return the page to choose from and its open links, or a root and None."""
        network = self._network(info)
        if self._here >= 0:
            enabled = self._open(network, self._here)
            if len(enabled):
                return self._here, enabled
        while self._stack:
            top = self._stack[-1]
            if not self._visited[top]:
                return top, None
            enabled = self._open(network, top)
            if self.resume == "pop" or not len(enabled):
                self._stack.pop()
            if len(enabled):
                return top, enabled
        while self._trail:
            enabled = self._open(network, self._trail[-1])
            if len(enabled):
                return self._trail[-1], enabled
            self._trail.pop()
        raise RuntimeError("no page has links left, so the crawl should have ended")

    def _open(self, network: dict[int, Automaton], page: int) -> np.ndarray:
        """Return the places of links that were not visited in this crawl."""
        automaton = network.get(page)
        if automaton is None:  # it could not be fetched
            return np.zeros(0, np.int64)
        return np.flatnonzero(~self._visited[automaton.links])

    def learn(self, transition: Transition) -> None:
        """Reward or penalise the link; learn of the page's own; descend or not."""
        info = transition.info
        known = info["known"]
        page = int(info["url"])
        self._visited[page] = True
        fetched = known.is_fetched(page)
        value = self._similarity(transition, page) if fetched else -1.0
        if self._drawn is not None:
            self._judge(self._network(info), value)
        self._here = -1
        if not fetched:
            return
        self._meet(self._network(info), page, known.targets(page).tolist())
        self._trail.append(page)
        is_root = self._drawn is None
        if value >= self.control and not is_root:  # a root is on the stack already
            self._stack.append(page)
        if value >= self.control or is_root:
            self._here = page

    def _judge(self, network: dict[int, Automaton], value: float) -> None:
        """Reward the link that was drawn, or penalise it; -1 is no page at all."""
        assert self._drawn is not None and self.b is not None
        page, place, enabled = self._drawn
        automaton = network[page]
        if value >= automaton.tau:
            automaton.reward(place, enabled, self.a)
            automaton.tau = value
        else:
            automaton.penalise(place, enabled, self.b)

    def _meet(
        self, network: dict[int, Automaton], page: int, targets: list[int]
    ) -> None:
        """Make the page's automaton, or bring it up to date."""
        links = [link for link in dict.fromkeys(targets) if link != page]
        automaton = network.get(page)
        if automaton is None:
            network[page] = Automaton(np.array(links, np.int64))
        elif automaton.links.tolist() != links:
            automaton.update(links)

    def _similarity(self, transition: Transition, page: int) -> float:
        topic = transition.info["topic"]
        if topic is None or self.similarity == "reward":
            return transition.reward
        tokens, counts = transition.info["known"].tokens(page)
        return frequency_similarity(tokens, counts, topic.frequencies)

    def _network(self, info: Info) -> dict[int, Automaton]:
        topic = info["topic"]
        return self.networks.setdefault("" if topic is None else topic.name, {})

    # --- fleets, and keeping it

    def divide(self, rng: np.random.Generator) -> LAFC:
        """Return a child that has learned the same and stands where its parent does."""
        child = deepcopy(self)
        child.random = np.random.default_rng(int(rng.integers(2**63)))
        return child

    def save(self) -> State:
        """Return automata and place in the crawl as arrays, numbers and text."""
        rows = [
            (topic, page, automaton)
            for topic, (_, network) in enumerate(self.networks.items())
            for page, automaton in network.items()
        ]
        automata = [automaton for *_, automaton in rows]
        page, place, enabled = self._drawn or (-1, -1, np.zeros(0, np.int64))
        return {
            "topics": json.dumps(list(self.networks)),
            "topic": np.array([topic for topic, *_ in rows], np.int64),
            "page": np.array([page for _, page, _ in rows], np.int64),
            "tau": np.array([automaton.tau for automaton in automata]),
            "count": np.array([len(automaton.links) for automaton in automata], int),
            "links": _joined([automaton.links for automaton in automata], np.int64),
            "chances": _joined([automaton.chances for automaton in automata], float),
            "random": save_random(self.random),
            "crawls": self._crawls,
            "visited": np.flatnonzero(self._visited),
            "stack": np.array(self._stack, np.int64),
            "trail": np.array(self._trail, np.int64),
            "here": self._here,
            "begun": self._begun,
            "drawn": np.array([page, place], np.int64),
            "enabled": enabled,
        }

    def load(self, state: State) -> None:
        """Go on from what `save` returned."""
        topics = json.loads(state["topics"])
        self.networks = {topic: {} for topic in topics}
        ends = np.cumsum(state["count"])[:-1]
        for topic, page, tau, links, chances in zip(
            state["topic"].tolist(),
            state["page"].tolist(),
            state["tau"].tolist(),
            np.split(state["links"], ends),
            np.split(state["chances"], ends),
            strict=False,  # without automata there is still one empty part
        ):
            self.networks[topics[topic]][page] = Automaton(links, chances, tau)
        self.random = load_random(state["random"])
        self._crawls = int(state["crawls"])
        self._visited = np.zeros(self.urls, bool)
        self._visited[state["visited"]] = True
        self._stack = state["stack"].tolist()
        self._trail = state["trail"].tolist()
        self._here = int(state["here"])
        self._begun = bool(state["begun"])
        page, place = state["drawn"].tolist()
        self._drawn = (page, place, state["enabled"]) if page >= 0 else None


def _joined(parts: list[np.ndarray], kind: Any) -> np.ndarray:
    return np.concatenate([np.zeros(0, kind), *parts])


def make(
    env: Any,
    seed: int,
    *,
    scheme: Scheme = "L_R-I",
    a: float = 0.09,
    b: float | None = None,
    control: float = 0.8,
    similarity: Literal["frequency", "reward"] = "frequency",
    resume: Literal["top", "pop"] = "top",
    crawls: int = 0,
) -> LAFC:
    """Make the agent; ``crawls`` are made beforehand, and counted as training.

    They are of what ``env.reset(seed=seed)`` draws, and `LAFC` explains the others.
    """
    if isinstance(crawls, bool) or not isinstance(crawls, int) or crawls < 0:
        raise ValueError(f"crawls is {crawls!r}, expected 0 or more")
    urls = len(frontier_world(env).trace.urls)
    agent = LAFC(urls, scheme, a, b, control, similarity, resume)
    agent.reset(seed)
    if not crawls:
        return agent
    practice = deepcopy(forage_env(env))
    for _ in range(crawls):
        agent.training_fetches += run_episode(practice, agent, seed=seed).fetches
    return agent
