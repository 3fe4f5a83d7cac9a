"""The compiled world against the plain one, on the same random crawls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gym_webforage.trace.trace import Trace
from gym_webforage.world import Rules, World
from gym_webforage.world.layout import DEAD
from gym_webforage.world.rules import KINDS, Kind
from gym_webforage.world.topic import Topic
from tests.reference import (
    Link,
    ReferenceForager,
    ReferenceWorld,
    Version,
    z_scores,
)
from tests.strategies import START, Case, Episode, cases

SETTINGS = settings(
    derandomize=True,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

MOST_COMPARED = 50  # known URLs up to which all features are compared


class DisagreementError(AssertionError):
    """The two worlds differ."""


def worlds(
    case: Case, reference: type[ReferenceWorld] = ReferenceWorld
) -> tuple[World, ReferenceWorld]:
    options: dict[str, Any] = {
        "foragers": case.foragers,
        "slots": case.slots,
        "shortlist": case.shortlist,
        "features": case.features,
        "scaled": case.scaled,
    }
    world = World(case.trace, case.rules, log=True, **options)
    return world, reference(case.trace, case.rules, **options)


def reset(world: World | ReferenceWorld, episode: Episode) -> None:
    world.reset(
        start=episode.start,
        roots=np.array(episode.roots, np.int32),
        topic=episode.topic,
        site=episode.site,
    )


def same(what: str, compiled: Any, plain: Any) -> None:
    if np.shape(compiled) != np.shape(plain) or not np.array_equal(compiled, plain):
        raise DisagreementError(f"{what}: compiled {compiled}, by the rules {plain}")


def close(what: str, compiled: Any, plain: Any, within: float = 1e-5) -> None:
    plain = np.asarray(plain, np.float64).reshape(np.shape(compiled))
    if not np.allclose(compiled, plain, rtol=within, atol=within):
        raise DisagreementError(f"{what}: compiled {compiled}, by the rules {plain}")


def compare(world: World, plain: ReferenceWorld) -> None:
    same("clock", world.clock, plain.clock)
    same("fetches", world.fetches, plain.fetches)
    for number, expected in enumerate(plain.foragers):
        forager = world.foragers[number]
        same("known", forager.known, expected.known)
        same("action set", forager.action_set(), expected.action_set())
        same("slots", forager.slot_urls(), expected.slot_urls())
        candidates, mask, context = world.observe(number)
        rows, expected_mask, expected_context = plain.observe(number)
        same("mask", mask, expected_mask)
        assert len(candidates) == len(rows)
        for row, expected_row in zip(candidates, rows, strict=True):
            same("columns", len(row), len(expected_row))
            close("candidate", row, expected_row, 0.02 if plain.scaled else 1e-5)
        close("context", context, expected_context)
        if len(expected.known) <= MOST_COMPARED and expected.steps % 5 == 0:
            compare_features(world, plain, number)


def compare_features(world: World, plain: ReferenceWorld, number: int) -> None:
    expected = plain.foragers[number]
    rows = plain.feature_rows(expected, expected.action_set())
    close("features", world.features(forager=number), rows)
    known = plain.feature_rows(expected, expected.known)
    found = world.features(expected.known, forager=number)
    close("features", found, known)
    if rows:
        # From the compiled rows: a z-score can make any rounding large.
        among = world.features(forager=number)
        scaled = world.features(expected.known, scaled=True, forager=number)
        close("z-scores", scaled, z_scores(found.tolist(), among.tolist()), 1e-3)


def compare_events(world: World, plain: ReferenceWorld) -> None:
    events, expected = world.events(), plain.events()
    same("columns of the events", sorted(events), sorted(expected))
    for name, column in events.items():
        same(f"events' {name}", column, np.array(expected[name], column.dtype))


def choose(plain: ReferenceWorld, action: tuple[str, int, int]) -> tuple[str, int]:
    """Return "step" or "step_slot" and its argument."""
    how, which, number = action
    forager = plain.foragers[number]
    legal = forager.action_set()
    full = [slot for slot, url in enumerate(forager.slots) if url >= 0]
    if how == "slot" and full:
        return "step_slot", full[which % len(full)]
    if how == "any slot" and plain.slots:
        return "step_slot", which % (plain.slots + 2) - 1
    if how == "url" or not legal:
        return "step", which % (len(plain.trace.urls) + 2) - 1
    return "step", legal[which % len(legal)]


def advance(
    world: World, plain: ReferenceWorld, actions: Iterable[tuple[str, int, int]]
) -> None:
    """Take the same actions in both worlds until the crawl is over."""
    compare(world, plain)
    for action in actions:
        method, argument = choose(plain, action)
        result = getattr(world, method)(argument, forager=action[2])
        expected = getattr(plain, method)(argument, forager=action[2])
        for name in ("reward", "terminated", "truncated", "illegal"):
            same(name, getattr(result, name), getattr(expected, name))
        compare(world, plain)
        # A forager that has no action left may still try, while others go on.
        over = not any(forager.action_set() for forager in plain.foragers)
        if expected.truncated or over:
            break
    compare_events(world, plain)


def play(case: Case, reference: type[ReferenceWorld] = ReferenceWorld) -> None:
    world, plain = worlds(case, reference)
    for episode in case.episodes:
        reset(world, episode)
        reset(plain, episode)
        advance(world, plain, episode.actions)


@pytest.mark.parametrize("kind", KINDS)
@settings(SETTINGS, max_examples=300)
@given(data=st.data())
def test_same_crawl(kind: Kind, data: st.DataObject) -> None:
    play(data.draw(cases(kind)))


@pytest.mark.parametrize("kind", KINDS)
@settings(SETTINGS, max_examples=100)
@given(data=st.data())
def test_a_restored_world_goes_on_alike(kind: Kind, data: st.DataObject) -> None:
    case = data.draw(cases(kind))
    world, plain = worlds(case)
    episode = case.episodes[0]
    middle = len(episode.actions) // 2
    reset(world, episode)
    reset(plain, episode)
    advance(world, plain, episode.actions[:middle])
    snapshot, plain_snapshot = world.snapshot(), plain.snapshot()
    later = episode.actions[middle:]
    advance(world, plain, later)
    # Back and on again, by another way too, after a reset, and in another world.
    for there, actions in (
        (world, later[::-1]),
        (world, later),
        (worlds(case)[0], later),
    ):
        reset(there, case.episodes[-1])
        there.restore(snapshot)
        plain.restore(plain_snapshot)
        advance(there, plain, actions)


def wide_trace(links: int) -> Trace:
    """One page with many links, each to a page that links back, on and to itself."""
    urls = [f"http://a.org/{url}.html" for url in range(2 * links + 1)]
    pages = [list(range(1, links + 1))]
    pages += [[0, url + links, url] for url in range(1, links + 1)]
    pages += [[] for _ in range(links)]
    third = [url % 3 == 0 for url in range(len(urls))]
    return Trace.build(
        {"name": "wide", "roots": [urls[0]]},
        urls=urls,
        labels=["third"],
        url_target=third,
        url_label_start=[0, *np.cumsum(third)],
        url_label=np.zeros(sum(third), np.int32),
        version_start=np.arange(len(urls) + 1),
        version_seen=np.full(len(urls), START),
        link_start=np.cumsum([0] + [len(page) for page in pages]),
        link_target=[target for page in pages for target in page],
    )


def wide_case(kind: Kind, shortlist: str, links: int) -> Case:
    how = ("slot", "legal", "slot", "url")
    actions = tuple((how[step % 4], 37 * step, step % 2) for step in range(60))
    topic = Topic("third", np.zeros(0), 0) if kind == "topic" else None
    return Case(
        trace=wide_trace(links),
        rules=Rules(kind=kind, budget="1000d", path_length=9, relevance="label"),
        foragers=2,
        slots=8,
        shortlist=shortlist,
        features="state" if kind == "news" else "transfer",
        scaled=False,
        episodes=(Episode(START, (0,), topic, -1, actions),),
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shortlist", ["newest", "oldest"])
def test_growth(kind: Kind, shortlist: str) -> None:
    play(wide_case(kind, shortlist, 5_000))


@pytest.mark.parametrize("kind", ["topic", "spider"])
def test_turns_on_a_long_frontier(kind: Kind) -> None:
    class AlwaysFromTheStart(ReferenceWorld):
        def scanned(self, forager: ReferenceForager, others: set[int]) -> list[int]:
            forager.next_scanned = None
            return super().scanned(forager, others)

    play(wide_case(kind, "promising", 200))
    with pytest.raises(DisagreementError):
        play(wide_case(kind, "promising", 200), AlwaysFromTheStart)


# --- that the comparison would notice a rule that is kept wrongly


class SpentLater(ReferenceWorld):
    def is_spent(self) -> bool:
        return 0 <= self.fetch_limit < self.fetches


class ShownLater(ReferenceWorld):
    def shown(self, url: int, time: int) -> Version | None:
        return super().shown(url, time - 1)


class LongerPath(ReferenceWorld):
    def start_path(self, forager: ReferenceForager) -> None:
        if not forager.frontier or forager.path_visits > self.rules.path_length:
            super().start_path(forager)


class YoungerPages(ReferenceWorld):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.max_age -= 1


class NoDelay(ReferenceWorld):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.host_delay = 0


class LinksToItself(ReferenceWorld):
    def links_seen(self, url: int, version: Version | None) -> list[Link]:
        return super().links_seen(-1, version)


class LastLinkCounts(ReferenceWorld):
    def links_seen(self, url: int, version: Version | None) -> list[Link]:
        found = super().links_seen(url, version)
        last = {link.target: link for link in version.links} if version else {}
        return [last[link.target] for link in found]


class RejoinsAtTheEnd(ReferenceWorld):
    def join(self, forager: ReferenceForager, url: int) -> None:
        forager.frontier.pop(url, None)
        super().join(forager, url)


class HighestSlot(ReferenceWorld):
    def join(self, forager: ReferenceForager, url: int) -> None:
        before = forager.slots
        super().join(forager, url)
        if -1 in before and url not in before and url in forager.slots:
            place, last = forager.slots.index(url), self.slots - 1
            if before[last] == -1:
                forager.slots[place], forager.slots[last] = -1, url


class ForgetfulJudge(ReferenceWorld):
    def judge(self, document: int) -> float:
        paid = super().judge(document)
        self.judged.discard(document)
        return paid


class IllegalIsFree(ReferenceWorld):
    def illegal(self, forager: ReferenceForager) -> float:
        paid = super().illegal(forager)
        self.clock -= self.fetch_time
        return paid


class PaysAgain(ReferenceWorld):
    def visit_topic(self, forager: ReferenceForager, url: int) -> float:
        self.paid.discard(url)
        return super().visit_topic(forager, url)


class FreeAgain(ReferenceWorld):
    def paid_again(self, value: float) -> float:
        return 0.0


class LeavesDeadEnds(ReferenceWorld):
    def links_seen(self, url: int, version: Version | None) -> list[Link]:
        found = super().links_seen(url, version)
        if self.rules.reach == "links" and not found:
            self.leave_all(self.foragers[0])
        return found


class KeepsOldLinks(ReferenceWorld):
    def leave_all(self, forager: ReferenceForager) -> None:
        pass


class OverAllWords(ReferenceWorld):
    def frequency_cosine(self, body: list[tuple[int, int]]) -> float:
        value = super().frequency_cosine(body)
        everything = sum(count * count for _, count in body)
        own = sum(count * count for word, count in body if self.frequencies[word])
        return value * sqrt(own / everything) if value else 0.0


class ForgetsAge(ReferenceWorld):
    def news_row(self, forager: ReferenceForager, url: int) -> list[float]:
        row = super().news_row(forager, url)
        row[-6] = 0.0
        return row


class ForgetsNear(ReferenceWorld):
    def topic_row(self, forager: ReferenceForager, url: int) -> list[float]:
        row = super().topic_row(forager, url)
        row[1] = 0.0
        return row


class ForgetsChanges(ReferenceWorld):
    def history(self, forager: ReferenceForager, url: int) -> list[float]:
        row = super().history(forager, url)
        row[1] = 0.0
        return row


class ForgetsTagPaths(ReferenceWorld):
    def meet(self, forager: ReferenceForager, url: int, link: Link, *rest: Any) -> None:
        super().meet(forager, url, replace(link, tag_path=-1), *rest)


class LeastPromising(ReferenceWorld):
    def promise(self, forager: ReferenceForager, url: int) -> int:
        return -super().promise(forager, url)


class WrongFlag(ReferenceWorld):
    def fetch(self, *args: Any) -> dict[str, Any]:
        row = super().fetch(*args)
        row["flags"] &= ~DEAD
        return row


@pytest.mark.parametrize("wrong", ReferenceWorld.__subclasses__())
def test_a_wrong_rule_is_noticed(wrong: type[ReferenceWorld]) -> None:
    @settings(SETTINGS, max_examples=300, phases=[Phase.generate])
    @given(data=st.data())
    def check(kind: Kind, data: st.DataObject) -> None:
        play(data.draw(cases(kind)), wrong)

    with pytest.raises(DisagreementError):
        for kind in KINDS:
            check(kind)
