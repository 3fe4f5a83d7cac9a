"""Follow the link whose words promise most reward, by what was learned on other sites.

A spider that was shown whole sites knows what each of their links was worth: rewards
soon to be found behind it, discounted. Naive Bayes over the words in and around a link
learns to tell such values in bins, and values the links of a site never seen.
``bins=2`` is the paper's RL-Immediate (links to a target or not), 3, 4 and 5 are its
RL-Future. ``text`` is what is read: ``related`` (title and headers, anchor, URL, words
near the link) or ``full-page`` (the whole page; anchor and URL).

Paper: J. Rennie, A. McCallum, "Using reinforcement learning to spider the web
efficiently" (ICML-99 workshop on machine learning in text data analysis).

**Differs from the paper in**: what it leaves open. A bin called immediate holds the
links to targets, not those of value 1, which the paper takes for the same. A URL with
several links takes its best value; among equal ones the URL discovered first comes
first. A link that stands twice is two examples, and links of a page to itself are none.
Words never met in training do not count. Roots come first, since no link tells of them.
Training sites are those that the trace has for training, never the one that is
crawled, whatever the split; where it has no others, those of the trace ``elsewhere``
(the embedded one with several sites; "" refuses). ``model=`` takes a file of
`save_model` instead.
``endings=False`` leaves the file endings of targets out of the URLs' words, for traces
whose targets are defined by them (recorders can leave them out as well).

Cost per step: the words of the fetched page's links, and of the page with
``full-page``; the frontier is a heap, of which only what is new or better is touched.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, get_args

import numpy as np

from baselines._naive_bayes import Model, Reader, add_texts, check, train
from baselines._spider_q import SiteLinks, site_links
from baselines.agent import Agent, Info, Observation, State, Transition, frontier_world
from gym_webforage.envs import ForageEnv, Known
from gym_webforage.envs.episode import EpisodeMaker, Split
from gym_webforage.envs.knowledge import Field
from gym_webforage.trace import Trace, load_trace
from gym_webforage.world.rules import Rules

KINDS = ("spider",)
TRAINS = True

FIELDS: tuple[Field, ...] = get_args(Field)
NO_COUNT = np.ones(0, np.int32)
ELSEWHERE = "synthetic-sites-v0"


@dataclass(eq=False)
class Teacher:
    """Gives the model for a site: learned from the others, or from a file."""

    trace: Trace
    sites: list[str]  # that may be learned from
    bins: int
    text: str
    endings: bool
    given: Model | None = None
    elsewhere: str = ""  # a trace, for crawls that leave no site to learn from

    def __post_init__(self) -> None:
        """Remember what was worked out."""
        self._readers: dict[tuple[str, ...], Reader] = {}
        self._links: dict[str, SiteLinks] = {}

    def reader(self, site: str | None) -> Reader:
        """Return the model for a crawl of ``site``, in terms of the trace."""
        if self.given is not None:
            if (self.trace.name, site) in self.given.trained_on:
                raise ValueError(
                    f"the model was trained on {site!r} of {self.trace.name}, "
                    "so it must not crawl it"
                )
            others = ()
        else:
            others = tuple(name for name in self.sites if name != site)
            if site is None:
                others = ()
            if not others and not self.elsewhere:
                raise ValueError(
                    f"{self.trace.name} has no site with targets to train on other "
                    f"than {site or 'those crawled'!r}; give model=, a file of "
                    "save_model, or elsewhere=, another trace"
                )
        if others not in self._readers:
            model = self.given
            if model is None:
                model = self._learn(others) if others else self._learn_elsewhere()
            self._readers[others] = model.on(self.trace)
        return self._readers[others]

    def _learn_elsewhere(self) -> Model:
        trace = load_trace(self.elsewhere)
        if trace.digest == self.trace.digest:
            raise ValueError(
                f"{trace.name} is both crawled and to be learned from: give elsewhere="
            )
        sites = EpisodeMaker(trace, Rules(kind="spider"), "train").sites
        found = [site_links(trace, trace.sites[site]) for site in sites]
        return train(found, bins=self.bins, text=self.text, endings=self.endings)

    def _learn(self, others: tuple[str, ...]) -> Model:
        for name in others:
            if name not in self._links:
                self._links[name] = site_links(self.trace, name)
        return train(
            [self._links[name] for name in others],
            bins=self.bins,
            text=self.text,
            endings=self.endings,
        )


@dataclass
class NaiveBayesQ(Agent):
    """Takes the URL with the best link, by a model for the site."""

    teacher: Teacher
    training_fetches: int = 0

    heap: list[tuple[float, int, int]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        """Prepare for a crawl."""
        self.reset()

    def reset(self, seed: int | None = None) -> None:
        """Forget the frontier."""
        urls = len(self.teacher.trace.urls)
        self.heap = []  # value with its sign changed, discovery number, URL
        self._best = np.full(urls, -np.inf)  # the value of each URL's best link
        self._number = np.full(urls, -1)
        self._done = np.zeros(urls, np.bool_)
        self._site = ""
        self._reader: Reader | None = None

    def act(self, observation: Observation, info: Info) -> int:
        """Take the best URL."""
        if self._reader is None:
            self._begin(info)
        while True:
            negative, _, url = heappop(self.heap)
            if not self._done[url] and self._best[url] == -negative:
                self._done[url] = True
                return url

    def learn(self, transition: Transition) -> None:
        """Value the links of the page that was fetched."""
        known: Known = transition.info["known"]
        page = int(transition.info["url"])
        new = known.new
        self._number[new] = np.arange(len(known) - len(new), len(known))
        if not known.is_fetched(page):
            return
        target = known.targets(page)
        value = self._values(known, page, len(target))
        better = (value > self._best[target]) & ~self._done[target]
        for i in np.flatnonzero(better).tolist():
            url, worth = int(target[i]), float(value[i])
            if worth > self._best[url]:  # or else the page has an even better link
                self._best[url] = worth
                heappush(self.heap, (-worth, int(self._number[url]), url))

    def _begin(self, info: Info) -> None:
        self._read_as(info["episode_start"]["site"])
        known: Known = info["known"]
        self._number[known.urls] = np.arange(len(known))
        for url in info["action_set"].tolist():
            self._best[url] = np.inf
            heappush(self.heap, (-np.inf, int(self._number[url]), url))

    def _read_as(self, site: str | None) -> None:
        self._site = site or ""
        self._reader = self.teacher.reader(site)
        self.training_fetches = self._reader.model.pages

    def _values(self, known: Known, page: int, links: int) -> np.ndarray:
        reader = self._reader
        assert reader is not None
        logs = reader.empty(links)
        every = np.arange(links)
        for source, table in reader.table.items():
            if source == "body":
                token, count = known.tokens(page)
                _add_to_all(token, count, table, logs)
            elif source == "title":
                token = known.text(int(known.links(page)[0]), "title") if links else ()
                _add_to_all(np.asarray(token, np.int32), NO_COUNT, table, logs)
            else:
                start, token = known.texts(page, _field(source))
                add_texts(every, start, token, NO_COUNT, table, logs)
        return reader.worth(logs)

    # --- fleets

    def divide(self, rng: np.random.Generator) -> NaiveBayesQ:
        """Return another one that has learned the same."""
        return NaiveBayesQ(self.teacher, self.training_fetches)

    def save(self) -> State:
        """Return the frontier; what was learned on other sites is learned again."""
        return {
            "site": self._site,
            "heap_value": np.array([entry[0] for entry in self.heap], np.float64),
            "heap_url": np.array([entry[2] for entry in self.heap], np.int64),
            "best": self._best,
            "number": self._number,
            "done": self._done,
        }

    def load(self, state: State) -> None:
        """Go on from what `save` returned."""
        self.reset()
        for name in ("best", "number", "done"):
            getattr(self, f"_{name}")[:] = state[name]
        urls = state["heap_url"].tolist()
        numbers = self._number[urls].tolist()
        values = state["heap_value"].tolist()
        self.heap = list(zip(values, numbers, urls, strict=True))
        if state["site"]:
            self._read_as(state["site"])


def _field(source: str) -> Field:
    return next(name for name in FIELDS if name == source)


def _add_to_all(
    token: np.ndarray, count: np.ndarray, table: np.ndarray, logs: np.ndarray
) -> None:
    """Add what one text says to all links."""
    said = np.zeros((1, logs.shape[1]))
    whole = np.array([0, len(token)])
    add_texts(np.zeros(1, np.int64), whole, token, count, table, said)
    logs += said


def make(
    env: Any,
    seed: int,
    bins: int = 3,
    text: str = "related",
    endings: bool = True,
    model: str = "",
    elsewhere: str = ELSEWHERE,
) -> NaiveBayesQ:
    """Make the agent; it learns from the trace's training sites, or loads a model.

    A model brings its own bins, text and endings.
    """
    check(bins, text)
    trace = frontier_world(env).trace
    if not any(len(x) for x in (trace.anchor_token, trace.near_token, trace.url_token)):
        raise ValueError(f"the trace {trace.name} has no link text to learn from")
    inner = env.unwrapped
    drawn = inner.episodes if isinstance(inner, ForageEnv) else inner.crew.episodes
    split: Split = "all" if drawn.split == "all" else "train"
    taught = EpisodeMaker(trace, drawn.rules, split)
    teacher = Teacher(
        trace,
        [trace.sites[site] for site in taught.sites],
        bins,
        text,
        endings,
        Model.load(model) if model else None,
        elsewhere,
    )
    # What all crawls of a test split share is learned here; the rest when it is needed.
    first = trace.sites[(drawn.sites or [drawn.site])[0]]
    return NaiveBayesQ(teacher, teacher.reader(first).model.pages)


def save_model(agent: NaiveBayesQ, file: str | Path, site: str | None = None) -> None:
    """Keep what an agent has learned for crawls of ``site``, for ``model=``.

    Without a site: for crawls of any that the agent must not learn from anyway.
    """
    agent.teacher.reader(site or "").model.save(file)
