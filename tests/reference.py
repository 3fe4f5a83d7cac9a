"""The rules of `gym_webforage.world` once more, in plain dicts, sets and lists.

Written from the rules' text and not from the kernels, for reading and not for speed:
where the two disagree, one of them is wrong.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from math import cos, floor, fsum, pi, sin, sqrt
from typing import Any

from gym_webforage.trace.trace import Trace
from gym_webforage.world.layout import DEAD, ILLEGAL, NOVEL, SENT, VISITED
from gym_webforage.world.layout import TRANSFER_COLUMNS as TRANSFER
from gym_webforage.world.rules import Rules, parse_budget, parse_duration

DAY = 86_400_000
HOUR = 3_600_000

PROMISE = (
    "anchor",
    "near",
    "url",
    "anchor_paid",
    "url_paid",
    "source",
    "source_rate",
    "directory_rate",
    "path_rate",
    "ending_rate",
)


@dataclass
class Link:
    target: int
    anchor: list[int]
    near: list[int]
    tag_path: int


@dataclass
class Version:
    number: int
    seen: int
    published: int
    status: int
    size: int
    state: list[float]
    body: list[tuple[int, int]]  # (token, count)
    norm: float
    links: list[Link]

    @property
    def is_page(self) -> bool:
        return 200 <= self.status <= 299

    @property
    def is_alive(self) -> bool:
        return 200 <= self.status <= 399


@dataclass
class Result:
    reward: float
    terminated: bool
    truncated: bool
    illegal: bool


@dataclass
class Memory:
    """What a forager remembers of a URL it knows."""

    depth: int
    found_at: int  # step
    source: int | None = None  # the URL on which it was first found
    anchor: list[int] = field(default_factory=list)  # of the link found first
    near: list[int] = field(default_factory=list)  # of the link found first
    tag_path: int = -1  # of the link found first
    new_words: float = 0.0
    best_anchor: float = 0.0
    best_near: float = 0.0
    source_values: list[float] = field(default_factory=list)
    in_links: int = 0
    visits: int = 0
    novel: int = 0  # documents in the steps that visited it
    version: Version | None = None  # fetched last, if alive
    age: int = 0
    fetched_at: list[int] = field(default_factory=list)  # News: when found alive
    changed_at: list[int] = field(default_factory=list)  # and another than before
    values: list[float] = field(default_factory=list)  # its relevance at each visit


@dataclass
class ReferenceForager:
    number: int
    memory: dict[int, Memory]  # in discovery order
    slots: list[int]
    frontier: dict[int, None] = field(default_factory=dict)  # an ordered set
    visited: set[int] = field(default_factory=set)  # News: in this path
    path_visits: int = 0
    at_start: bool = False  # News: any known URL may be visited
    sent: set[int] = field(default_factory=set)
    paid_links: dict[int, float] = field(default_factory=dict)  # weight by word
    paid_bodies: dict[int, float] = field(default_factory=dict)
    seen_words: set[int] = field(default_factory=set)
    next_scanned: int | None = None  # whose turn it is to be considered for a slot
    steps: int = 0
    last_reward: float = 0.0
    total_reward: float = 0.0

    @property
    def known(self) -> list[int]:
        return list(self.memory)

    def action_set(self) -> list[int]:
        """Return what may be visited, in discovery order."""
        return [url for url in self.memory if self.at_start or url in self.frontier]

    def slot_urls(self) -> list[int]:
        return list(self.slots)


class ReferenceWorld:
    def __init__(
        self,
        trace: Trace,
        rules: Rules,
        *,
        foragers: int = 1,
        slots: int = 8,
        shortlist: str = "newest",
        features: str = "state",
        scaled: bool = False,
    ) -> None:
        self.trace = trace
        self.rules = rules
        self.forager_count = foragers
        self.slots = slots
        self.shortlist = shortlist
        self.features = features
        self.scaled = scaled
        self.is_news = rules.kind == "news"
        self.fetch_time = round(rules.fetch_seconds * 1000)
        self.host_delay = round(rules.host_delay * 1000)
        self.max_age = parse_duration(rules.max_age)
        self.time_limit, self.fetch_limit = parse_budget(rules.default_budget)
        self.versions = read_versions(trace)
        self.url_tokens = ragged(trace.url_token_start, trace.url_token)
        self.url_labels = ragged(trace.url_label_start, trace.url_label)
        self.idf = [float(number) for number in trace.idf]

    def reset(
        self, *, start: int, roots: Iterable[int], topic: Any = None, site: int = -1
    ) -> None:
        self.start = self.clock = int(start)
        self.site = site
        self.weights = [0.0] * len(self.idf)
        self.label = -1
        self.frequencies = [0.0] * len(self.idf)
        if topic is not None:
            self.weights = [float(weight) for weight in topic.weights]
            self.frequencies = [float(often) for often in topic.frequencies]
            self.label = topic.label
        self.fetches = 0
        self.last_fetch: dict[int, int] = {}  # by site: when it ended
        self.judged: set[int] = set()  # News: documents that anyone has sent
        self.paid: set[int] = set()  # Topic, Spider: URLs that have paid
        self.log: list[dict[str, Any]] = []
        self.foragers = []
        for number in range(self.forager_count):
            memory = {int(url): Memory(depth=0, found_at=0) for url in roots}
            forager = ReferenceForager(number, memory, [-1] * self.slots)
            self.foragers.append(forager)
            if self.is_news:
                self.start_path(forager)
            else:
                for url in memory:
                    self.note_words(forager, url)
                    self.join(forager, url)
                self.choose_slots(forager, list(memory))

    def snapshot(self) -> dict[str, Any]:
        return copy.deepcopy(vars(self))

    def restore(self, snapshot: dict[str, Any]) -> None:
        vars(self).update(copy.deepcopy(snapshot))

    # --- stepping

    def step_slot(self, slot: int, forager: int = 0) -> Result:
        urls = self.foragers[forager].slots
        return self.step(urls[slot] if 0 <= slot < len(urls) else -1, forager)

    def step(self, url: int, forager: int = 0) -> Result:
        actor = self.foragers[forager]
        legal = url in actor.action_set()
        actor.steps += 1
        if not legal:
            reward = self.illegal(actor)
        elif self.is_news:
            reward = self.visit_news(actor, url)
        else:
            reward = self.visit_topic(actor, url)
        actor.last_reward = reward
        actor.total_reward += reward
        return Result(reward, not actor.action_set(), self.is_spent(), not legal)

    def illegal(self, forager: ReferenceForager) -> float:
        self.clock += self.fetch_time
        self.fetches += 1
        self.write(forager, -1, None, ILLEGAL, -1.0)
        return -1.0

    def is_spent(self) -> bool:
        return (0 <= self.fetch_limit <= self.fetches) or (
            0 <= self.time_limit <= self.clock - self.start
        )

    def visit_news(self, forager: ReferenceForager, url: int) -> float:
        begin = self.clock
        if forager.at_start:
            forager.at_start = False
            forager.slots = [-1] * self.slots
        else:
            self.leave(forager, url)
        forager.visited.add(url)
        forager.path_visits += 1

        visited = self.shown(url, begin)
        rows = [self.fetch(forager, url, visited, VISITED)]
        fetched = [(url, visited)]
        links = self.links_seen(url, visited)
        for link in links:
            self.meet(forager, url, link, 0.0)
            if link.target in forager.visited and not self.rules.refetch_visited:
                continue
            version = self.shown(link.target, begin)
            rows.append(self.fetch(forager, link.target, version, 0))
            fetched.append((link.target, version))

        reward, novel = 0.0, 0
        for (fetched_url, version), row in zip(fetched, rows, strict=True):
            if version is None or not version.is_alive:
                continue
            memory = forager.memory[fetched_url]
            memory.fetched_at.append(self.clock)
            if memory.version not in (None, version):
                memory.changed_at.append(self.clock)
            memory.version = version
            memory.age = self.clock - version.published
            if not version.is_page or memory.age > self.max_age:
                continue
            by_url = self.rules.document == "url"
            document = fetched_url if by_url else version.number
            if document in forager.sent:
                continue
            forager.sent.add(document)
            row["flags"] |= SENT
            if document not in self.judged:
                row["flags"] |= NOVEL
                novel += 1
            row["value"] = self.judge(document)
            reward += row["value"]
        forager.memory[url].visits += 1
        forager.memory[url].novel += novel

        for link in links:
            version = self.shown(link.target, begin)
            alive = version is not None and version.is_alive
            if alive and link.target not in forager.visited:
                self.join(forager, link.target)
        if forager.path_visits == self.rules.path_length or not forager.frontier:
            self.start_path(forager)
        return reward

    def judge(self, document: int) -> float:
        novel = document not in self.judged
        self.judged.add(document)
        if self.rules.judge == "evolution":
            return self.rules.penalty + (self.rules.reward if novel else 0.0)
        return self.rules.reward if novel else self.rules.penalty

    def start_path(self, forager: ReferenceForager) -> None:
        forager.at_start = True
        forager.path_visits = 0
        forager.visited = set()
        forager.frontier = {}
        first = forager.known[: self.slots]
        forager.slots = first + [-1] * (self.slots - len(first))

    def visit_topic(self, forager: ReferenceForager, url: int) -> float:
        version = self.shown(url, self.clock)
        stands = self.rules.reach == "links"
        if not stands:
            self.leave(forager, url)
        row = self.fetch(forager, url, version, VISITED)
        memory = forager.memory[url]
        memory.visits += 1
        value = self.relevance(url, version)
        memory.values.append(value)
        if value > 0 and url in self.paid:
            row["value"] = self.paid_again(value)
        elif value > 0:
            self.paid.add(url)
            row["value"] = value
            if self.is_relevant(value):
                row["flags"] |= NOVEL
                for token in memory.anchor + self.url_tokens[url]:
                    old = forager.paid_links.get(token, 0.0)
                    forager.paid_links[token] = old + self.idf[token]
                for token, count in version.body if version else []:
                    old = forager.paid_bodies.get(token, 0.0)
                    weight = count * self.idf[token] / version.norm
                    forager.paid_bodies[token] = old + weight
        links = self.links_seen(url, version)
        if stands and links:
            self.leave_all(forager)
        new = []
        for link in links:
            unknown = link.target not in forager.memory
            self.meet(forager, url, link, value)
            if unknown:
                new.append(link.target)
                self.note_words(forager, link.target)
            if unknown or stands:
                self.join(forager, link.target)
        self.choose_slots(forager, new)
        return row["value"]

    def paid_again(self, value: float) -> float:
        again = {"free": 0.0, "pays": value, "costs": self.rules.penalty}
        return again[self.rules.revisit]

    def relevance(self, url: int, version: Version | None) -> float:
        if version is None or not version.is_page:
            return 0.0
        if self.rules.kind == "spider":
            return 1.0 if self.trace.url_target[url] else 0.0
        if self.rules.relevance == "label":
            return 1.0 if self.label in self.url_labels[url] else 0.0
        if self.rules.similarity == "frequency":
            return self.frequency_cosine(version.body)
        total = 0.0
        for token, count in version.body:
            total += count * self.idf[token] * self.weights[token]
        return total / version.norm if version.norm else 0.0

    def frequency_cosine(self, body: list[tuple[int, int]]) -> float:
        """Return equation 4 of the learning automata paper, with 5 put in."""
        counts = [count for token, count in body if self.frequencies[token]]
        if not counts:
            return 0.0
        product = square = 0.0
        for token, count in body:
            often = count / max(counts) if self.frequencies[token] else 0.0
            product += self.frequencies[token] * often
            square += often * often
        topic_square = fsum(often * often for often in self.frequencies)
        return min(1.0, product / sqrt(topic_square * square))

    def is_relevant(self, value: float) -> bool:
        if self.rules.kind == "spider":
            return value == 1.0
        return value >= self.rules.threshold

    # --- pages

    def shown(self, url: int, time: int) -> Version | None:
        old = [version for version in self.versions[url] if version.seen <= time]
        return max(old, key=lambda version: version.seen, default=None)

    def links_seen(self, url: int, version: Version | None) -> list[Link]:
        if version is None or not version.is_alive:
            return []
        found: dict[int, Link] = {}
        for link in version.links:
            leaves = self.site >= 0 and self.trace.url_site[link.target] != self.site
            if link.target != url and link.target not in found and not leaves:
                found[link.target] = link
        return list(found.values())

    def fetch(
        self, forager: ReferenceForager, url: int, version: Version | None, flags: int
    ) -> dict[str, Any]:
        duration = self.fetch_time
        if self.rules.cost == "bytes" and version is not None:
            exact = self.fetch_time * version.size / self.trace.mean_bytes
            duration = max(1, int(exact + 0.5))
        site = int(self.trace.url_site[url])
        if site in self.last_fetch:
            self.clock = max(self.clock, self.last_fetch[site] + self.host_delay)
        self.clock += duration
        self.last_fetch[site] = self.clock
        self.fetches += 1
        if version is None or not version.is_alive:
            flags |= DEAD
        return self.write(forager, url, version, flags, 0.0)

    def write(
        self,
        forager: ReferenceForager,
        url: int,
        version: Version | None,
        flags: int,
        value: float,
    ) -> dict[str, Any]:
        row = {
            "time": self.clock,
            "url": url,
            "version": version.number if version else -1,
            "step": forager.steps,
            "forager": forager.number,
            "flags": flags,
            "value": value,
        }
        self.log.append(row)
        return row

    def events(self) -> dict[str, list[Any]]:
        columns = ("time", "url", "version", "step", "forager", "flags", "value")
        return {name: [row[name] for row in self.log] for name in columns}

    def meet(
        self, forager: ReferenceForager, url: int, link: Link, value: float
    ) -> None:
        """Let the forager see a link on ``url``, a page of that value."""
        if link.target not in forager.memory:
            forager.memory[link.target] = Memory(
                depth=forager.memory[url].depth + 1,
                found_at=forager.steps,
                source=url,
                anchor=link.anchor,
                near=link.near,
                tag_path=link.tag_path,
            )
        memory = forager.memory[link.target]
        memory.in_links += 1
        memory.best_anchor = max(memory.best_anchor, self.about(link.anchor))
        memory.best_near = max(memory.best_near, self.about(link.near))
        memory.source_values.append(value)

    def note_words(self, forager: ReferenceForager, url: int) -> None:
        """Note which share of the words of a URL just found is new."""
        memory = forager.memory[url]
        words = memory.anchor + self.url_tokens[url]
        new = set(words) - forager.seen_words
        memory.new_words = len(new) / len(words) if words else 0.0
        forager.seen_words |= new

    # --- frontier and slots

    def leave(self, forager: ReferenceForager, url: int) -> None:
        if forager.next_scanned == url:
            waiting = list(forager.frontier)
            later = waiting[waiting.index(url) + 1 :]
            forager.next_scanned = later[0] if later else None
        del forager.frontier[url]
        self.update_slots(forager)

    def leave_all(self, forager: ReferenceForager) -> None:
        forager.frontier = {}
        self.update_slots(forager)

    def join(self, forager: ReferenceForager, url: int) -> None:
        forager.frontier.setdefault(url)
        self.update_slots(forager)

    def choose_slots(self, forager: ReferenceForager, new: list[int]) -> None:
        """Let the new URLs and some others compete with those in the slots."""
        if self.shortlist != "promising" or not self.slots:
            return
        held = [url for url in forager.slots if url >= 0]
        if len(forager.frontier) <= self.slots:
            chosen = list(forager.frontier)
        else:
            rivals = [*held, *new, *self.scanned(forager, {*held, *new})]
            order = {url: number for number, url in enumerate(forager.memory)}
            rivals.sort(key=lambda url: (-self.promise(forager, url), order[url]))
            winners = set(rivals[: self.slots])
            chosen = [url for url in forager.memory if url in winners]
        forager.slots = [url if url in chosen else -1 for url in forager.slots]
        for url in chosen:
            if url not in forager.slots:
                forager.slots[forager.slots.index(-1)] = url

    def scanned(self, forager: ReferenceForager, others: set[int]) -> list[int]:
        """Return the next 32 of the frontier in turn, apart from ``others``."""
        frontier = list(forager.frontier)
        turn = forager.next_scanned
        at = 0 if turn is None else frontier.index(turn)
        found = []
        for _ in frontier:
            if len(found) == 32:
                break
            url = frontier[at % len(frontier)]
            at = at % len(frontier) + 1
            if url not in others:
                found.append(url)
        forager.next_scanned = frontier[at] if at < len(frontier) else None
        return found

    def promise(self, forager: ReferenceForager, url: int) -> int:
        row = dict(zip(TRANSFER, self.topic_row(forager, url), strict=True))
        total = sum(row[name] for name in PROMISE)
        return floor(1024 * total + 0.3137)

    def update_slots(self, forager: ReferenceForager) -> None:
        if self.shortlist == "promising":
            forager.slots = [
                url if url in forager.frontier else -1 for url in forager.slots
            ]
            return
        newest = self.shortlist == "newest"
        ordered = reversed(forager.frontier) if newest else iter(forager.frontier)
        shortlist = list(islice(ordered, self.slots))
        slots = [url if url in shortlist else -1 for url in forager.slots]
        for url in shortlist:
            if url not in slots:
                slots[slots.index(-1)] = url
        forager.slots = slots

    # --- what the forager observes

    def observe(self, forager: int) -> tuple[list[list[float]], list[int], list[float]]:
        actor = self.foragers[forager]
        urls = [url for url in actor.slots if url >= 0]
        found = dict(zip(urls, self.feature_rows(actor, urls), strict=True))
        if self.scaled:
            rows = z_scores(list(found.values()), list(found.values()))
            found = dict(zip(urls, rows, strict=True))
        width = len(self.row(actor, actor.known[0]))
        candidates = [found.get(url, [0.0] * width) for url in actor.slots]
        mask = [1 if url >= 0 else 0 for url in actor.slots]
        return candidates, mask, self.context(actor)

    def feature_rows(
        self, forager: ReferenceForager, urls: list[int]
    ) -> list[list[float]]:
        return [self.row(forager, url) for url in urls]

    def row(self, forager: ReferenceForager, url: int) -> list[float]:
        if not self.is_news:
            return self.topic_row(forager, url)
        row = self.news_row(forager, url)
        return row if self.features == "state" else row + self.history(forager, url)

    def news_row(self, forager: ReferenceForager, url: int) -> list[float]:
        memory = forager.memory[url]
        version = memory.version
        state: list[float] = []
        if self.features != "transfer":
            state = version.state if version else [0.0] * self.trace.states
        return [
            *state,
            ratio(memory.age // 100, 24 * HOUR / 100),  # in tenths of a second
            ratio(len(version.links) if version else 0, 20),
            ratio(memory.in_links, 5),
            ratio(memory.visits, 5),
            ratio(memory.novel / memory.visits if memory.visits else 0.0, 5),
            1.0 if version else 0.0,
        ]

    def history(self, forager: ReferenceForager, url: int) -> list[float]:
        memory = forager.memory[url]
        version, fetched = memory.version, memory.fetched_at
        changed = memory.changed_at
        visits = novel = 0
        for other, remembered in forager.memory.items():
            if self.is_beside(url, other):
                visits += remembered.visits
                novel += remembered.novel
        return [
            ratio(len(fetched), 5),
            len(changed) / len(fetched) if fetched else 0.0,
            ratio(self.clock - fetched[-1], DAY) if fetched else 1.0,
            ratio(self.clock - changed[-1], DAY) if changed else 1.0,
            ratio(self.clock - version.published, DAY) if version else 0.0,
            ratio(novel / (visits + 1), 5),
        ]

    def is_beside(self, url: int, other: int) -> bool:
        """Say whether two URLs are in the same directory."""
        one, two = (self.trace.urls[i].rpartition("/")[0] for i in (url, other))
        return one == two

    def topic_row(self, forager: ReferenceForager, url: int) -> list[float]:
        memory = forager.memory[url]
        site, ending = self.trace.url_site, self.trace.url_ending
        done = [(at, past) for at, past in forager.memory.items() if past.values]
        values = [value for _, past in done for value in past.values]
        mean = sum(values) / len(values) if values else 0.0

        def rate(alike: Callable[[int, Memory], bool]) -> float:
            found = [
                value
                for other, past in done
                for value in past.values
                if alike(other, past)
            ]
            return (sum(found) + mean) / (len(found) + 1)

        source, path = memory.source, memory.tag_path
        sources = memory.source_values
        url_words = self.url_tokens[url]
        links, bodies = forager.paid_links, forager.paid_bodies
        beside = [past for other, past in done if self.is_beside(url, other)]
        return [
            memory.best_anchor,
            memory.best_near,
            self.about(url_words),
            self.likeness(links, memory.anchor),
            self.likeness(links, memory.near),
            self.likeness(links, url_words),
            self.likeness(bodies, memory.anchor),
            self.likeness(bodies, memory.near),
            self.likeness(bodies, url_words),
            max(sources, default=0.0),
            sum(sources) / len(sources) if sources else 0.0,
            rate(lambda _, past: source is not None and past.source == source),
            rate(lambda other, _: self.is_beside(url, other)),
            rate(lambda _, past: path >= 0 and past.tag_path == path),
            rate(lambda other, _: ending[other] == ending[url]),
            rate(lambda other, _: site[other] == site[url]),
            ratio(memory.depth, 5),
            ratio(forager.steps - memory.found_at, 100),
            ratio(memory.in_links, 5),
            memory.new_words,
            1 / (1 + sum(len(past.values) for past in beside)),
        ]

    def about(self, tokens: list[int]) -> float:
        """Return the cosine of a list of tokens with the topic, at most 1."""
        if not tokens:
            return 0.0
        length = sqrt(sum(self.idf[token] ** 2 for token in tokens))
        total = sum(self.idf[token] * self.weights[token] for token in tokens)
        return min(1.0, total / length)

    def likeness(self, profile: dict[int, float], tokens: list[int]) -> float:
        """Return the cosine of tokens with half of a profile, at most 1."""
        if not tokens or not profile:
            return 0.0
        length = sqrt(sum(self.idf[token] ** 2 for token in tokens))
        profile_length = sqrt(sum(weight**2 for weight in profile.values()))
        total = sum(self.idf[token] * profile.get(token, 0.0) for token in tokens)
        return min(1.0, total / length / profile_length)

    def context(self, forager: ReferenceForager) -> list[float]:
        left = []
        if self.time_limit >= 0:
            left.append(max(0.0, 1 - (self.clock - self.start) / self.time_limit))
        if self.fetch_limit >= 0:
            left.append(max(0.0, 1 - self.fetches / self.fetch_limit))
        angle = 2 * pi * (self.clock % DAY) / DAY
        scale = (abs(self.rules.reward) or 1.0) if self.is_news else 1.0
        last = forager.last_reward / scale
        mean = forager.total_reward / self.fetches / scale if self.fetches else 0.0
        return [
            min(left),
            sin(angle),
            cos(angle),
            1.0 if forager.at_start else 0.0,
            forager.path_visits / self.rules.path_length if self.is_news else 0.0,
            ratio(len(forager.action_set()), 100),
            last / (1 + abs(last)),
            mean / (1 + abs(mean)),
        ]


def z_scores(rows: list[list[float]], among: list[list[float]]) -> list[list[float]]:
    """Return rows less the means, over the standard deviations, of others."""
    columns = []
    for column, others in zip(
        zip(*rows, strict=True), zip(*among, strict=True), strict=True
    ):
        mean = sum(others) / len(others)
        width = sqrt(sum((value - mean) ** 2 for value in others) / len(others))
        is_flat = max(others) - min(others) <= 1e-6
        columns.append([0.0 if is_flat else (value - mean) / width for value in column])
    return [list(row) for row in zip(*columns, strict=True)]


def ratio(number: float, half: float) -> float:
    return number / (number + half)


def ragged(start: Any, entries: Any) -> list[list[int]]:
    return [
        [int(entry) for entry in entries[start[row] : start[row + 1]]]
        for row in range(len(start) - 1)
    ]


def read_versions(trace: Trace) -> list[list[Version]]:
    """Return the versions of every URL."""
    anchors = ragged(trace.anchor_start, trace.anchor_token)
    nears = ragged(trace.near_start, trace.near_token)
    tokens = ragged(trace.body_start, trace.body_token)
    counts = ragged(trace.body_start, trace.body_count)
    targets = ragged(trace.link_start, trace.link_target)
    link_texts = ragged(trace.link_start, trace.link_text)
    found = []
    for number, (target_row, text_row) in enumerate(
        zip(targets, link_texts, strict=True)
    ):
        text = int(trace.version_text[number])
        version = Version(
            number=number,
            seen=int(trace.version_seen[number]),
            published=int(trace.version_published[number]),
            status=int(trace.version_status[number]),
            size=int(trace.version_bytes[number]),
            state=[float(value) for value in trace.version_state[number]],
            body=[] if text < 0 else list(zip(tokens[text], counts[text], strict=True)),
            norm=0.0 if text < 0 else float(trace.text_norm[text]),
            links=[
                Link(
                    target,
                    anchors[link_text] if link_text >= 0 else [],
                    nears[link_text] if link_text >= 0 else [],
                    int(trace.tag_path[link_text]) if link_text >= 0 else -1,
                )
                for target, link_text in zip(target_row, text_row, strict=True)
            ],
        )
        found.append(version)
    start = trace.version_start
    return [found[start[url] : start[url + 1]] for url in range(len(trace.urls))]
