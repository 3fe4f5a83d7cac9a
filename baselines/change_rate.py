"""Revisit pages as often as they change: an estimated rate for every page.

A visit fetches a page and all that it links to. Each of these is expected to be new
with a probability: a page that was fetched before if it has changed since, by its
estimated rate of change; one that was never fetched as often as such links paid so far,
given the age of the page that they stand on. The agent visits the page with the most
expected finds a fetch.

Paper: J. Cho, H. Garcia-Molina, "Estimating frequency of change" (2003), for the rate:
-log((n - X + 0.5) / (n + 0.5)) over the mean interval, of n intervals between fetches
in X of which the page changed; "Effective page refresh policies for web crawlers"
(2003), for how often to come back.

**Differs from the paper in**: intervals differ, where the estimator has equal ones;
their mean is taken. A page's rate is averaged with that of all pages of its age when it
was fetched last, which counts as one more interval: a page that was fetched once has
only this one. The papers refresh single pages; here a visit refreshes all that a page
links to, so their policies become values of a page, summed over a visit.
``policy="novelty"`` (ours, and the default): the probability that it has changed, since
only its newest version can be found. ``"proportional"``: rate times time since the
fetch. ``"optimal"``: the gain in freshness at which the optimal policy comes back,
(1 - (1 + x) exp(-x)) over the rate, where x is rate times time. A changed page also
brings as many new links as its changes brought so far.

Cost per step: the pages fetched, and the links of pages in the action set, compiled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

import numba
import numpy as np

from baselines.agent import Agent, Info, Observation, State, Transition, world_of
from gym_webforage.envs import Known
from gym_webforage.world.rules import parse_duration

KINDS = ("news",)

Policy = Literal["novelty", "proportional", "optimal"]
POLICIES: tuple[Policy, ...] = get_args(Policy)

HOUR = 3_600_000.0
# Ages of pages, in hours, that are told apart where nothing else is known.
AGES = np.array([0.5, 1, 2, 4, 8, 16, 24, 72, 240], np.float64) * HOUR

# A URL's facts.
FETCHED, PUBLISHED, VERSION, LINKS_AT, LINKS, TRIED = range(6)
INTERVALS, CHANGES, WATCHED, NEW_LINKS = range(4)
# What ages have in common: intervals, changes and time watched; links that were never
# fetched before, and how many of them paid.
SHARED = 5
FIRST_TRIES, FIRST_FINDS = 3, 4

compiled = numba.njit(nogil=True)


@compiled
def rate(intervals, changes, watched):
    """Return the changes a millisecond, by the estimator of Cho and Garcia-Molina."""
    if intervals <= 0 or watched <= 0:
        return 0.0
    share = (intervals - changes + 0.5) / (intervals + 0.5)
    return -np.log(share) * intervals / watched


@compiled
def age_class(age):
    """Return the number of an age's class."""
    return np.searchsorted(AGES, age)


@compiled
def page_rate(facts, counts, shared, url):
    """Return the rate of a page, averaged with that of pages of its age."""
    at = age_class(facts[url, FETCHED] - facts[url, PUBLISHED])
    common = rate(shared[at, 0], shared[at, 1], shared[at, 2])
    own = rate(counts[url, INTERVALS], counts[url, CHANGES], counts[url, WATCHED])
    n = counts[url, INTERVALS]
    return (n * own + common) / (n + 1)


@compiled
def worth(policy, rate, waited):
    """Return what a fetch is worth after a page has waited."""
    x = rate * waited
    if policy == 0:
        return 1.0 - np.exp(-x)
    if policy == 1:
        return x
    return (1.0 - (1.0 + x) * np.exp(-x)) / (rate * 24 * HOUR) if x > 0 else 0.0


@compiled
def note(urls, versions, published, clock, facts, counts, shared, is_new):
    """Take in what was fetched; mark in ``is_new`` what shows another version.

    A version of -1 stands for a page that is gone: no change was seen.
    """
    for i in range(len(urls)):
        url = urls[i]
        is_new[i] = versions[i] >= 0 and versions[i] != facts[url, VERSION]
        if facts[url, FETCHED] == clock:
            continue  # a second link to it
        if facts[url, TRIED]:
            waited = clock - facts[url, FETCHED]
            at = age_class(facts[url, FETCHED] - facts[url, PUBLISHED])
            shared[at, 0] += 1
            shared[at, 1] += is_new[i]
            shared[at, 2] += waited
            counts[url, INTERVALS] += 1
            counts[url, CHANGES] += is_new[i]
            counts[url, WATCHED] += waited
        facts[url, TRIED] = 1
        facts[url, FETCHED] = clock
        if is_new[i]:
            facts[url, VERSION] = versions[i]
            facts[url, PUBLISHED] = published[i]


@compiled
def choose(choices, clock, policy, facts, counts, shared, links, value, looked, look):
    """Return which of the choices promises most a fetch, the first if equal.

    ``value`` keeps what each URL is worth at this ``look``.
    """
    best = 0
    most = -1.0
    for i in range(len(choices)):
        url = choices[i]
        age = clock - facts[url, PUBLISHED]
        at = age_class(age) if facts[url, VERSION] >= 0 else 0
        first = (shared[at, FIRST_FINDS] + 0.5) / (shared[at, FIRST_TRIES] + 1.0)
        freshest = (shared[0, FIRST_FINDS] + 0.5) / (shared[0, FIRST_TRIES] + 1.0)
        total = 0.0
        for j in range(-1, facts[url, LINKS]):
            other = url if j < 0 else links[facts[url, LINKS_AT] + j]
            if facts[other, TRIED] == 0:
                total += first
                continue
            if looked[other] != look:
                looked[other] = look
                speed = page_rate(facts, counts, shared, other)
                value[other] = worth(policy, speed, clock - facts[other, FETCHED])
            total += value[other]
        if counts[url, CHANGES] > 0:
            more = counts[url, NEW_LINKS] / counts[url, CHANGES]
            total += min(1.0, value[url]) * more * freshest
        total /= 1.0 + facts[url, LINKS]
        if total > most:
            best, most = i, total
    return best


@dataclass
class ChangeRate(Agent):
    """Visits where most is expected to be new; see the module."""

    urls: int  # URL ids are below this
    max_age: int = 86_400_000  # milliseconds
    policy: Policy = "novelty"

    def __post_init__(self) -> None:
        """Prepare for a crawl."""
        if self.policy not in POLICIES:
            raise ValueError(
                f"policy is {self.policy!r}, expected {', '.join(POLICIES)}"
            )
        self.reset()

    def reset(self, seed: int | None = None) -> None:
        """Forget everything: pages may have changed since."""
        self._facts = np.zeros((self.urls, 6), np.int64)
        self._facts[:, VERSION] = -1
        self._counts = np.zeros((self.urls, 4))
        self._shared = np.zeros((len(AGES) + 1, SHARED))
        self._links = np.zeros(1024, np.int32)
        self._used = 0
        self._value = np.zeros(self.urls)
        self._looked = np.zeros(self.urls, np.int64)
        self._look = 0

    def act(self, observation: Observation, info: Info) -> int:
        """Take the page whose visit promises most a fetch."""
        choices = info["action_set"]
        self._look += 1
        best = choose(
            choices,
            info["clock"],
            POLICIES.index(self.policy),
            self._facts,
            self._counts,
            self._shared,
            self._links,
            self._value,
            self._looked,
            self._look,
        )
        return int(choices[best])

    def learn(self, transition: Transition) -> None:
        """See which of the fetched pages have changed, and what they link to now."""
        info = transition.info
        known: Known = info["known"]
        clock = info["clock"]
        page = int(info["url"])
        numbers = known.learnt
        urls, published = known.urls_of(numbers), known.published_of(numbers)
        if not len(urls):  # the page is gone
            self._note(np.array([page]), None, published, clock)
            return
        was_held = self._facts[page, VERSION] >= 0
        is_first = self._facts[urls, TRIED] == 0
        is_new = self._note(urls, known.versions_of(numbers), published, clock)
        for url in urls[is_new].tolist():
            self._keep_links(url, known.targets(url))
        # What was fetched in vain is not among the learnt.
        targets = known.targets(page)
        missing = targets[self._facts[targets, FETCHED] != clock]
        untried = np.count_nonzero(self._facts[missing, TRIED] == 0)
        if len(missing):
            self._note(missing, None, published, clock)
        if was_held and is_new[0]:
            self._counts[page, NEW_LINKS] += np.count_nonzero(is_first)
        at = age_class(float(clock - published[0]))
        is_young = clock - published[1:] <= self.max_age
        self._shared[at, FIRST_TRIES] += np.count_nonzero(is_first[1:]) + untried
        self._shared[at, FIRST_FINDS] += np.count_nonzero(is_first[1:] & is_young)

    def _note(
        self,
        urls: np.ndarray,
        versions: np.ndarray | None,
        published: np.ndarray,
        clock: int,
    ) -> np.ndarray:
        is_new = np.zeros(len(urls), np.bool_)
        if versions is None:
            versions = np.full(len(urls), -1, np.int32)
        note(
            urls.astype(np.int32),
            versions,
            published,
            clock,
            self._facts,
            self._counts,
            self._shared,
            is_new,
        )
        return is_new

    def _keep_links(self, url: int, targets: np.ndarray) -> None:
        targets = np.unique(targets[targets != url])
        end = self._used + len(targets)
        if end > len(self._links):
            self._links = np.concatenate(
                [self._links, np.zeros(max(1024, end), np.int32)]
            )
        self._links[self._used : end] = targets
        self._facts[url, LINKS_AT] = self._used
        self._facts[url, LINKS] = len(targets)
        self._used = end

    def divide(self, rng: np.random.Generator) -> Self:
        """Return a child that knows the same of pages."""
        child = replace(self)
        child.load(self.save())
        return child

    def save(self) -> State:
        """Return all that is known of pages."""
        return {
            "facts": self._facts.copy(),
            "counts": self._counts.copy(),
            "shared": self._shared.copy(),
            "links": self._links[: self._used].copy(),
        }

    def load(self, state: State) -> None:
        """Go on from what `save` returned."""
        self.reset()
        self._facts = np.array(state["facts"], np.int64)
        self._counts = np.array(state["counts"], np.float64)
        self._shared = np.array(state["shared"], np.float64)
        self._links = np.array(state["links"], np.int32)
        self._used = len(self._links)


def describe(env: Any) -> dict[str, Any]:
    """Return what the agent must know of its environment, single or fleet."""
    world = world_of(env)
    max_age = parse_duration(world.rules.max_age)
    return {"urls": len(world.trace.urls), "max_age": max_age}


def make(env: Any, seed: int, policy: Policy = "novelty") -> Agent:
    """Make the agent."""
    return ChangeRate(**describe(env), policy=policy)
