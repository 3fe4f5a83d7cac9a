"""Visit the URL that promises most, judged by what links to it say.

Topic: a link is as good as the page it stands on and its own words are close to the
topic; ``links="parent"`` goes by the page alone, ``"anchor"`` by the link's words
alone, and ``"combined"``, the default, by both. Spider, which has no topic: as its
words are close to those of links that led to targets. News: a page is as good as it has
links to young pages not fetched so far.

Paper: F. Menczer, G. Pant, P. Srinivasan, "Topical web crawlers: evaluating adaptive
algorithms" (2004), best-first; M. Hersovici et al., "The shark-search algorithm"
(1998), for the words of and near the link; S. Batsakis, E. Petrakis, E. Milios,
"Improving the performance of focused web crawlers" (2009), for the three settings.

**Differs from the paper in**: words are not weighted by rarity, since a crawler has no
statistics of the web it has yet to see; anchor, near text and words of the URL are one
bag. Combined, the page counts a quarter, as a link's words say more about its target;
``page_weight=0.5`` is the plain mean of Batsakis et al. The frontier is not bounded. A
URL with several links takes its best value, ties go to the one discovered first. Spider
and News are ours: in Spider what was valued is valued again when the number of targets
found has doubled, new links at once. In News a link's age is not known before its
target is fetched, but a page version can only link to what was there when it was
published: so the links of versions older than 24 hours count nothing.

Cost per step: Topic and Spider, the links of the fetched page (a heap); News, the same
and listing the action set, compiled.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Literal, Self, get_args

import numpy as np

from baselines._frontier import Frontier
from baselines.agent import (
    Agent,
    Info,
    Observation,
    State,
    Transition,
    check_number,
    frontier_world,
)
from gym_webforage.envs import Known
from gym_webforage.world.rules import parse_duration


def similarity(tokens: np.ndarray, counts: np.ndarray, weights: np.ndarray) -> float:
    """Return the cosine of a bag of words with a unit vector over the vocabulary."""
    length = np.sqrt(np.square(counts, dtype=np.float64).sum())
    return float(counts @ weights[tokens] / length) if length else 0.0


def bag(known: Known, link: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the words that are known of a link before it is followed, and counts."""
    words = [known.text(link, "anchor"), known.text(link, "near")]
    words.append(known.text(link, "url"))
    return np.unique(np.concatenate(words), return_counts=True)


Links = Literal["parent", "anchor", "combined"]


class _Divides(Agent):
    """Has children that know what it knows, as their foragers do."""

    def divide(self, rng: np.random.Generator) -> Self:
        """Return a copy, which goes its own way from here on."""
        return copy.deepcopy(self)


@dataclass
class BestFirstTopic(_Divides):
    """Best-first by similarity to the topic."""

    page_weight: float = 0.25  # of the page that a link stands on; the rest: its words

    frontier: Frontier = field(default_factory=Frontier, init=False)

    def reset(self, seed: int | None = None) -> None:
        """Forget the frontier."""
        self.frontier = Frontier()

    def act(self, observation: Observation, info: Info) -> int:
        """Take the best link seen so far; before the first visit, a root."""
        return self.frontier.take_with(info["known"].new)

    def learn(self, transition: Transition) -> None:
        """Value the links of the page that was fetched."""
        known: Known = transition.info["known"]
        page = int(transition.info["url"])
        if not known.is_fetched(page):
            return
        topic = transition.info["topic"].weights
        parent = similarity(*known.tokens(page), topic)
        for link, target in zip(
            known.links(page).tolist(), known.targets(page).tolist(), strict=True
        ):
            if not self.frontier.is_done(target):
                words = similarity(*bag(known, link), topic)
                value = self.page_weight * parent + (1 - self.page_weight) * words
                self.frontier.add(target, value)

    def save(self) -> State:
        """Return the frontier."""
        return {"frontier": self.frontier.save()}

    def load(self, state: State) -> None:
        """Go on from what `save` returned."""
        self.frontier.load(state["frontier"])


@dataclass
class BestFirstSpider(_Divides):
    """Best-first by similarity to the links that led to targets."""

    frontier: Frontier = field(default_factory=Frontier, init=False)
    profile: dict[int, float] = field(default_factory=dict, init=False)
    targets: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Prepare for a crawl."""
        self.reset()

    def reset(self, seed: int | None = None) -> None:
        """Forget frontier and targets."""
        self.frontier = Frontier()
        self.profile = {}
        self.targets = 0
        self._length = 1.0
        self._bags: dict[int, list[dict[int, int]]] = defaultdict(list)

    def act(self, observation: Observation, info: Info) -> int:
        """Take the best link seen so far; before the first visit, a root."""
        return self.frontier.take_with(info["known"].new)

    def learn(self, transition: Transition) -> None:
        """Learn the words of links to a target; value the links of the page."""
        known: Known = transition.info["known"]
        page = int(transition.info["url"])
        led_here = self._bags.pop(page, [])
        if transition.reward > 0:
            self._found(led_here)
        if not known.is_fetched(page):
            return
        for link, target in zip(
            known.links(page).tolist(), known.targets(page).tolist(), strict=True
        ):
            if not self.frontier.is_done(target):
                tokens, counts = bag(known, link)
                words = dict(zip(tokens.tolist(), counts.tolist(), strict=True))
                self._bags[target].append(words)
                self.frontier.add(target, self._value(words))

    def _found(self, led_here: list[dict[int, int]]) -> None:
        for words in led_here:
            for token, count in words.items():
                self.profile[token] = self.profile.get(token, 0.0) + count
        self._length = sum(weight**2 for weight in self.profile.values()) ** 0.5 or 1.0
        self.targets += 1
        if self.targets & (self.targets - 1) == 0:  # 1, 2, 4, 8, ...
            self.frontier.replace(
                {url: max(map(self._value, bags)) for url, bags in self._bags.items()}
            )

    def _value(self, words: dict[int, int]) -> float:
        product = sum(n * self.profile.get(token, 0.0) for token, n in words.items())
        length = sum(n**2 for n in words.values()) ** 0.5
        return product / (length * self._length) if length else 0.0

    def save(self) -> State:
        """Return the frontier, and the words of the links that led to it."""
        return {
            "frontier": self.frontier.save(),
            "targets": self.targets,
            "profile": [[*self.profile], [*self.profile.values()]],
            "length": self._length,
            "bags": [
                [url, [[[*words], [*words.values()]] for words in bags]]
                for url, bags in self._bags.items()
            ],
        }

    def load(self, state: State) -> None:
        """Go on from what `save` returned."""
        self.reset()
        self.frontier.load(state["frontier"])
        self.targets = state["targets"]
        self.profile = dict(zip(*state["profile"], strict=True))
        self._length = state["length"]
        for url, bags in state["bags"]:
            self._bags[url] = [dict(zip(*words, strict=True)) for words in bags]


@dataclass
class BestFirstNews(_Divides):
    """Best-first by the number of young links that were not fetched so far."""

    urls: int  # URL ids are below this
    max_age: int = 86_400_000  # milliseconds

    def __post_init__(self) -> None:
        """Prepare for a crawl."""
        self.reset()

    def reset(self, seed: int | None = None) -> None:
        """Forget everything."""
        self._value = np.zeros(self.urls, np.int64)  # number of unfetched links
        self._young_until = np.zeros(self.urls, np.int64)
        self._version: dict[int, int] = {}  # whose links are counted, by page
        self._fetched: set[int] = set()  # or tried in vain
        self._unfetched: dict[int, set[int]] = {}  # links by page, and the reverse
        self._linked_from: dict[int, set[int]] = defaultdict(set)

    def act(self, observation: Observation, info: Info) -> int:
        """Take the page with most unfetched links; at zero the first discovered."""
        choices = info["action_set"]
        is_young = self._young_until[choices] >= info["clock"]
        return int(choices[np.argmax(self._value[choices] * is_young)])

    def learn(self, transition: Transition) -> None:
        """Cross off what was fetched, then count the links of what is new."""
        info = transition.info
        known: Known = info["known"]
        page = int(info["url"])
        fetched = {page: None}
        # A dead page is a single fetch, and what is known of it an older version.
        if known.is_fetched(page) and info["fetched"] > 1:
            fetched.update(dict.fromkeys(known.targets(page).tolist()))
        for url in fetched.keys() - self._fetched:
            self._cross_off(url)
        for url in fetched:
            if url in known and known.is_fetched(url):
                version = known.version(url)
                if version != self._version.get(url):
                    self._version[url] = version
                    self._count_links(url, known, info["clock"])

    def _cross_off(self, url: int) -> None:
        self._fetched.add(url)
        for page in self._linked_from.pop(url, ()):
            self._unfetched[page].discard(url)
            self._value[page] -= 1

    def _count_links(self, page: int, known: Known, clock: int) -> None:
        for url in self._unfetched.pop(page, ()):  # of an older version
            self._linked_from[url].discard(page)
        self._value[page] = 0
        self._young_until[page] = known.published(page) + self.max_age
        if self._young_until[page] < clock:
            return
        links = set(known.targets(page).tolist()) - self._fetched
        self._unfetched[page] = links
        self._value[page] = len(links)
        for url in links:
            self._linked_from[url].add(page)


def make(
    env: Any,
    seed: int,
    links: Links = "combined",
    page_weight: float = 0.25,
) -> Agent:
    """Make the agent for the environment's kind."""
    world = frontier_world(env)
    if world.rules.kind == "topic":
        return BestFirstTopic(_weight_of_page(links, page_weight))
    if (links, page_weight) != ("combined", 0.25):
        raise ValueError(
            "best_first: links and page_weight are settings of Topic alone"
        )
    if world.rules.kind == "spider":
        return BestFirstSpider()
    max_age = parse_duration(world.rules.max_age)
    return BestFirstNews(urls=len(world.trace.urls), max_age=max_age)


def _weight_of_page(links: Links, page_weight: float) -> float:
    if links not in get_args(Links):
        raise ValueError(f"links is {links!r}, expected parent, anchor or combined")
    check_number("page_weight", page_weight, 0, 1)
    return {"parent": 1.0, "anchor": 0.0}.get(links, page_weight)
