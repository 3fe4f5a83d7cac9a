"""How the links of generated pages are chosen and collected."""

from __future__ import annotations

import numpy as np

from gym_webforage.trace.synthetic_pages import ARTICLE, Array, Pages, Shelf

# Recency makes no difference among this share of the earlier articles of a class, and
# never among more than so many.
NEAR = 0.6
MOST_NEAR = 300


class Links:
    """Collects links as (version, target) and sorts them by version in the end."""

    def __init__(self) -> None:
        self._version: list[Array] = []
        self._target: list[Array] = []

    def add(self, version: Array, target: Array) -> None:
        """Put links behind those that the versions have already; -1 is no link."""
        there = target >= 0
        self._version.append(version[there])
        self._target.append(target[there])

    def in_order(self) -> tuple[Array, Array]:
        """Return version and target of all links in page order, without repetition."""
        version, target = np.concatenate(self._version), np.concatenate(self._target)
        key = (version.astype(np.int64) << 32) | target
        order = np.argsort(key, kind="stable")
        key = key[order]
        kept = np.sort(order[np.diff(key, prepend=-1) != 0])
        version, target = version[kept], target[kept]
        order = np.argsort(version, kind="stable")
        return version[order], target[order]


class Choice:
    """Chooses articles by group, time and fitness, rather the recent ones."""

    def __init__(self, pages: Pages, rng: np.random.Generator) -> None:
        self.rng = rng
        articles = pages.ids(ARTICLE)
        groups = len(pages.group_site)
        self._first = int(articles[0])
        self._shelf = Shelf(
            pages.group[articles], pages.born[articles], articles, groups
        )
        self._passed = np.concatenate([[0], np.cumsum(pages.fitness)])

    def draw(self, group: Array, time: Array) -> Array:
        """Return an article of each group from before each time, or -1.

        The horizon, counted in articles, is log-uniform, and within it the chance of
        an article is its fitness: the recent are preferred without a typical age.
        """
        end = self._shelf.end(group, time - 1)
        return self._draw(end, end - self._shelf.start[group])

    def draw_before(self, article: Array, group_start: Array) -> Array:
        """Return an article between the groups' first and each article, or -1.

        Does the same as ``draw`` for the own group and time, without a search.
        """
        return self._draw(article - self._first, article - self._first - group_start)

    def _draw(self, end: Array, available: Array) -> Array:
        near = np.clip(NEAR * available, np.minimum(available, 1), MOST_NEAR)
        reach = available / np.maximum(near, 1)
        horizon = near * reach ** self.rng.random(len(end))
        begin = end - np.ceil(horizon).astype(np.int64)
        low, high = self._passed[begin], self._passed[end]
        wanted = low + self.rng.random(len(end)) * (high - low)
        found = np.searchsorted(self._passed, wanted, "right") - 1
        found = np.clip(found, begin, end - 1) + self._first
        return np.where(available > 0, found, -1)


def any_group(scope_of_group: Array, scope: Array, rng: np.random.Generator) -> Array:
    """Draw one of the groups of each scope, which are consecutive."""
    start, count = groups_of(scope_of_group, scope)
    return start + (rng.random(len(scope)) * count).astype(np.int64)


def groups_of(scope_of_group: Array, scope: Array) -> tuple[Array, Array]:
    """Return the first group of each scope and their number."""
    start = np.searchsorted(scope_of_group, np.arange(int(scope_of_group[-1]) + 2))
    return start[scope], np.diff(start)[scope]
