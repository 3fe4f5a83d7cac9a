"""A bandit over groups of links that stand at like places of their pages.

Links that stand in the same tags of a page (a list of publications, a menu) tend to
lead to the same kind of page. Each such group is an arm; it sleeps while it has no link
left to follow. A classifier of link text tells which links lead straight to what
counts: these are followed at once. Otherwise an arm is chosen by upper confidence
bound, and one of its links by lot; it is paid by how much of what counts the page
brings: itself, and what is found later through its links.

Paper: A. Gauquier, I. Manolescu, P. Senellart, "Efficient crawling for scalable web
data acquisition" (2025), SB-CLASSIFIER; R. Kleinberg, A. Niculescu-Mizil, Y. Sharma,
"Regret bounds for sleeping experts and bandits" (2010), AUER.

**Differs from the paper in**: tag paths are equal or not, where theirs are clustered by
likeness; a trace without tag paths groups links by the top directory they lead to. The
classifier reads anchor, near text and title beside the URL, in words in place of pairs
of letters. In Topic a page that counts is a relevant one.

Cost per step: the links of the frontier (for the classifier), compiled.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from baselines._link_text import describe
from baselines.agent import Info, Observation, Transition
from baselines.online_logistic import OnlineLogistic
from gym_webforage.envs import Known

KINDS = ("topic", "spider")


@dataclass
class SleepingBandit(OnlineLogistic):
    """Chooses among groups of links; see the module."""

    exploration: float = 2 * math.sqrt(2)  # alpha of the paper
    certain: float = 0.5  # from this probability on a link is followed at once

    def reset(self, seed: int | None = None) -> None:
        """Forget everything."""
        super().reset(seed)
        # The environment draws from the seed alone: this is another stream.
        self.random = np.random.default_rng(None if seed is None else [seed, 1])
        self._waiting: dict[int, list[int]] = defaultdict(list)  # rows by arm
        self._paid: dict[int, float] = defaultdict(float)
        self._pulls: dict[int, int] = defaultdict(int)
        self._arm_of: dict[int, int] = {}  # row -> arm
        self._page_of: dict[int, int] = {}  # row -> page that it stands on
        self._pulled: dict[int, int] = {}  # page -> arm that brought it
        self._tops: dict[str, int] = {}  # sites with first part of the path
        self._arm: int | None = None

    def _added(self, row: int, url: int, page: int, known: Known, link: int) -> None:
        path = known.tag_path(link)
        # Below 0 is the place of what stands in for tag paths.
        top = "/".join(known.address(url).split("/", 4)[:4])
        arm = path if path >= 0 else -1 - self._tops.setdefault(top, len(self._tops))
        self._waiting[arm].append(row)
        self._arm_of[row] = arm
        self._page_of[row] = page

    def act(self, observation: Observation, info: Info) -> int:
        """Follow a link that is certain enough, else one of the best arm."""
        url = super().act(observation, info)
        self._arm = None
        if self._probability(self._row) > self.certain:
            return url
        arm = self._best_arm()
        if arm is None:  # only roots
            return url
        self._arm = arm
        rows = self._waiting[arm]
        at = int(self.random.integers(len(rows)))
        self._row = rows[at]
        return int(info["known"].urls_of(self._of[self._row : self._row + 1])[0])

    def _best_arm(self) -> int | None:
        """Return the arm of highest upper bound that has links left."""
        steps = math.log(1 + sum(self._pulls.values()))
        best, most = None, -math.inf
        for arm in list(self._waiting):
            rows = self._waiting[arm]
            rows[:] = [row for row in rows if self._is_open[self._of[row]]]
            if not rows:
                continue
            pulls = self._pulls[arm]
            bound = math.inf
            if pulls:
                mean = self._paid[arm] / pulls
                bound = mean + self.exploration * math.sqrt(steps / pulls)
            if bound > most:
                best, most = arm, bound
        return best

    def learn(self, transition: Transition) -> None:
        """Pay the arms that led to the page."""
        row, page = self._row, int(transition.info["url"])
        if self._arm is not None:
            self._pulls[self._arm] += 1
            self._pulled[page] = self._arm
        if transition.info["novel"] > 0:
            if self._arm is not None:
                self._paid[self._arm] += 1
            before = self._pulled.get(self._page_of.get(row, -1))
            if before is not None:
                self._paid[before] += 1
        super().learn(transition)


def make(env: Any, seed: int, **settings: Any) -> SleepingBandit:
    """Make the agent; settings are its fields."""
    agent = SleepingBandit(**describe(env), **settings)
    agent.reset(seed)
    return agent
