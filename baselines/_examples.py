"""A crawl before the crawl: what methods that learn from examples are given.

LJM, BPM and HW learn from pages of their topic and from the ways that lead to them: a
user's browsing, or the pages that link to known ones. A recording has no user, so a
*teacher*, another baseline, makes a crawl of the same topic from the same roots first,
in a world of its own under the same rules. What it fetched is all that the method gets
to learn from, through the same view (`Known`) as any crawler, and each fetch counts as
one of `Agent.training_fetches`. This happens at the first step of a crawl, when the
topic is known, and again only if an agent is set to another topic.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

import baselines
from baselines._frontier import Frontier
from baselines.agent import Agent, Info, Observation, Transition, frontier_world
from baselines.best_first import similarity
from gym_webforage.envs import Known, SpiderEnv, TopicEnv
from gym_webforage.world import World

Bag = tuple[np.ndarray, np.ndarray]
"""Vocabulary ids of the words of a text, and how often each occurs."""


def subject(info: Info) -> str:
    """Return a mark of what a crawl is about: topic, site, roots and start."""
    mark = blake2b(repr(info["episode_start"]).encode(), digest_size=16)
    if info["topic"] is not None:
        mark.update(info["topic"].weights.tobytes())
    return mark.hexdigest()


def crawl_before(
    world: World,
    info: Info,
    make: Callable[[Any, int], Agent],
    seed: int,
    fetches: int | None = None,
    on_step: Callable[[Transition], None] | None = None,
) -> tuple[Known, int]:
    """Let an agent make the crawl that begins with ``info``, in a world of its own.

    Return what it knows at the end, and how many fetches it made: ``fetches`` at most,
    or what the budget of ``world`` allows.
    """
    kind = world.rules.kind
    rules = asdict(world.rules)
    del rules["kind"]
    if fetches is not None:
        rules["budget"] = fetches
    topic = info["topic"]
    make_env = {"topic": TopicEnv, "spider": SpiderEnv}[kind]
    env = make_env(
        world.trace, slots=None, split="all", log=False, topic=topic, **rules
    )
    agent = make(env, seed)
    agent.reset(seed)
    options = {**info["episode_start"], "topic": topic}
    observation, here = env.reset(seed=seed, options=options)
    ended = False
    while not ended:
        action = agent.act(observation, here)
        after, reward, terminated, truncated, here = env.step(action)
        step = Transition(
            observation, action, float(reward), after, terminated, truncated, here
        )
        agent.learn(step)
        if on_step is not None:
            on_step(step)
        observation, ended = after, terminated or truncated
    return env.known, env.world.fetches


@dataclass(frozen=True)
class Examples:
    """The pages that a teacher fetched: their words, relevance and links."""

    texts: list[Bag]
    is_target: np.ndarray  # bool, one a page
    links: list[tuple[int, int]]  # between these pages, by their numbers

    def distances(self, furthest: int) -> np.ndarray:
        """Return for each page the links to the nearest target, ``furthest`` at most.

        Pages from which no target can be reached are furthest, too.
        """
        sources: dict[int, list[int]] = {}
        for source, target in self.links:
            sources.setdefault(target, []).append(source)
        far = np.full(len(self.texts), furthest)
        far[self.is_target] = 0
        queue = deque(np.flatnonzero(self.is_target).tolist())
        while queue:
            page = queue.popleft()
            for source in sources.get(page, []):
                if far[source] > far[page] + 1:
                    far[source] = far[page] + 1
                    queue.append(source)
        return far


def examples_of(known: Known, steps: list[tuple[int, bool]], topic: Any) -> Examples:
    """Gather what a crawl fetched; ``steps`` has URLs in order and who was relevant.

    If nothing was, the page whose words are closest to the topic stands in.
    """
    steps = [(url, good) for url, good in steps if known.is_fetched(url)]
    number = {url: i for i, (url, _) in enumerate(steps)}
    texts = [known.tokens(url) for url in number]
    links = {
        (i, number[target])
        for url, i in number.items()
        for target in known.targets(url).tolist()
        if target in number and target != url
    }
    is_target = np.array([good for _, good in steps], np.bool_)
    if len(texts) and not is_target.any():
        closeness = [similarity(*text, topic.weights) for text in texts]
        is_target[np.argmax(closeness)] = True
    return Examples(texts, is_target, sorted(links))


@dataclass
class ExampleCrawler(Agent):
    """Learns from examples, then takes the link of highest value first.

    A method writes `study` and `rate`.
    """

    world: World
    training: int = 300  # fetches of the crawl before
    teacher: str = "best_first"
    seed: int = 0

    frontier: Frontier = field(default_factory=Frontier, init=False)
    came_from: dict[int, int] = field(default_factory=dict, init=False)
    """The page with the link of highest value to a URL; roots have none."""
    subject: str = field(default="", init=False)
    has_studied: bool = field(default=False, init=False)
    training_fetches: int = field(default=0, init=False)

    def study(self, examples: Examples) -> None:
        """Learn from pages of a topic."""
        raise NotImplementedError

    def rate(self, known: Known, page: int, links: np.ndarray) -> np.ndarray:
        """Return the value of each of these links of a page just fetched."""
        raise NotImplementedError

    def reset(self, seed: int | None = None) -> None:
        """Start a crawl; what was learned of a topic is kept for that topic."""
        self.frontier = Frontier()
        self.came_from = {}

    def act(self, observation: Observation, info: Info) -> int:
        """Take the best link seen so far; before the first visit, a root."""
        if not self.frontier.number and subject(info) != self.subject:
            self._learn_before(info)
        # Where a link was seen `learn` has valued it; this adds the roots.
        for url in info["known"].new.tolist():
            self.frontier.add(url, 0.0)
        return self.frontier.take()

    def _learn_before(self, info: Info) -> None:
        steps: list[tuple[int, bool]] = []

        def note(step: Transition) -> None:
            steps.append((step.action, step.info["novel"] > 0))

        teacher = baselines.load(self.teacher).make
        known, fetches = crawl_before(
            self.world, info, teacher, self.seed, self.training, note
        )
        self.training_fetches += fetches
        examples = examples_of(known, steps, info["topic"])
        self.has_studied = len(examples.texts) > 0  # else all roots were dead
        if self.has_studied:
            self.study(examples)
        self.subject = subject(info)

    def learn(self, transition: Transition) -> None:
        """Value the links of the page that was fetched."""
        known: Known = transition.info["known"]
        page = int(transition.info["url"])
        if not known.is_fetched(page):
            return
        links, targets = known.links(page), known.targets(page)
        waits = [not self.frontier.is_done(url) for url in targets.tolist()]
        links, targets = links[waits], targets[waits]
        values = np.zeros(len(links))
        if self.has_studied:
            values = self.rate(known, page, links)
        for target, value in zip(targets.tolist(), values.tolist(), strict=True):
            if self.frontier.add(target, value):
                self.came_from[target] = page


def check_training(env: Any, training: int, teacher: str) -> World:
    """Return the world of an environment, after a look at the settings."""
    if isinstance(training, bool) or not isinstance(training, int) or training < 1:
        raise ValueError(f"training is {training!r}, expected 1 or more fetches")
    baselines.find(teacher)
    return frontier_world(env)
