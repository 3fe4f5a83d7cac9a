"""A learning automaton with a variable set of actions: one page over its links.

Equations are those of J. Akbari Torkestani, "An adaptive focused Web crawling algorithm
based on learning automata" (2012).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Array = np.ndarray


class Automaton:
    """Chances of a page's links, and the best similarity that one has led to.

    ``enabled`` are places in ``links``, in order: those that may be chosen now.
    """

    __slots__ = ("chances", "links", "tau")

    def __init__(
        self, links: Array, chances: Array | None = None, tau: float = 0.0
    ) -> None:
        self.links = np.array(links, np.int64)
        count = len(self.links)
        if chances is None:
            chances = np.full(count, 1 / max(1, count))
        self.chances = np.array(chances, np.float64)
        self.tau = tau

    def scaled(self, enabled: Array) -> tuple[Array, float]:
        """Return the chances of the enabled links scaled to 1, and their sum (eq. 3).

        Where learning has left them no chance at all, all are alike.
        """
        chances = self.chances[enabled]
        total = float(chances.sum())
        if total > 0:
            return chances / total, total
        return np.full(len(enabled), 1 / len(enabled)), 0.0

    def choose(self, enabled: Array, random: np.random.Generator) -> int:
        """Draw an enabled link by the scaled chances; return its place."""
        reached = self.scaled(enabled)[0].cumsum()
        drawn = int(np.searchsorted(reached, random.random() * reached[-1], "right"))
        return int(enabled[min(drawn, len(enabled) - 1)])

    def reward(self, chosen: int, enabled: Array, a: float) -> None:
        """Raise the chance of the chosen link, lower the others' (eq. 1)."""
        chances, total = self.scaled(enabled)
        chances *= 1 - a
        chances[enabled == chosen] += a
        self._rescale(enabled, chances, total)

    def penalise(self, chosen: int, enabled: Array, b: float) -> None:
        """Lower the chance of the chosen link, raise the others' (eq. 2).

        A single link has nobody to give its chance to.
        """
        if len(enabled) < 2 or b == 0:
            return
        chances, total = self.scaled(enabled)
        chances *= 1 - b
        chances[enabled != chosen] += b / (len(enabled) - 1)
        self._rescale(enabled, chances, total)

    def _rescale(self, enabled: Array, chances: Array, total: float) -> None:
        self.chances[enabled] = np.minimum(chances * total, 1.0)

    # --- when the page has changed

    def add(self, link: int) -> None:
        """Give a new link an equal share, the others the rest (eq. 7)."""
        count = len(self.links) + 1
        self.chances = np.append(self.chances * ((count - 1) / count), 1 / count)
        self.links = np.append(self.links, link)

    def remove(self, link: int) -> None:
        """Share out the chance of a link that is gone, in proportion (eq. 8).

        The equation's factor 1 + p / (1 - p) is 1 / (1 - p), and 1 - p is the sum of
        the others, which is more exact where p is close to 1. Where the others have
        no chance at all, all become alike.
        """
        stays = self.links != link
        if stays.all():
            raise KeyError(f"link {link} is not among the actions")
        self.links = self.links[stays]
        self.chances = self.chances[stays]
        total = float(self.chances.sum())
        if total > 0:
            self.chances = np.minimum(self.chances / total, 1.0)
        elif len(self.links):
            self.chances = np.full(len(self.links), 1 / len(self.links))

    def update(self, links: Sequence[int]) -> None:
        """Follow the page's links as they are now: removals first, then additions."""
        now = set(links)
        for link in self.links.tolist():
            if link not in now:
                self.remove(link)
        known = set(self.links.tolist())
        for link in links:
            if link not in known:
                known.add(link)
                self.add(link)
