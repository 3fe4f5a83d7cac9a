"""Where the pages of a crawl stand on a map that never moves what it has placed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

MOST_DRAWN = 600  # pages on the map; more than that, and nobody sees anything
MOST_KEPT = 200  # of them, those that paid and would otherwise have to go
TURN = math.pi * (3 - math.sqrt(5))  # golden angle: a spiral that leaves no gaps


class Territory:
    """A map of the pages last found, visited or paid for, which grows step by step.

    Roots stand in the middle; the pages that a visit discovers are laid out together,
    in the emptiest place near the visited one. A page keeps its place, also when it was
    taken off the map and comes back; then another may stand close by. The map depends
    on the crawl alone, not on how often it is looked at.
    """

    def __init__(self) -> None:
        self.steps = 0  # that were taken in
        self.rows = 0  # of the log
        self.place: dict[int, tuple[float, float]] = {}
        self.left: dict[int, tuple[float, float]] = {}  # places of those taken off
        self.parent: dict[int, int] = {}  # the page that it was found on
        self.touched: dict[int, int] = {}  # the step of the last find, visit or pay
        self.paid: dict[int, float] = {}

    def start(self, roots: Sequence[int]) -> None:
        """Put the roots in the middle."""
        radius = 0.0 if len(roots) == 1 else 0.6 + 0.35 * len(roots)
        for i, root in enumerate(roots[:MOST_DRAWN]):
            turn = 2 * math.pi * i / len(roots)
            self.place[root] = (radius * math.cos(turn), radius * math.sin(turn))
            self.touched[root] = 0

    def visit(self, step: int, url: int, found: Sequence[int]) -> None:
        """Take in a visit of ``url`` that discovered the pages ``found``."""
        if url not in self.place:
            self._put_back(url, self.parent.get(url, -1))
        self.touched[url] = step
        self._lay_out(found, url)
        for page in found:
            self.parent[page] = url
            self.touched[page] = step

    def pay(self, step: int, url: int, value: float, near: int) -> None:
        """Take in that a page paid."""
        if url not in self.place:
            self._put_back(url, near)
        self.paid[url] = self.paid.get(url, 0.0) + value
        self.touched[url] = step

    def forget(self, roots: Sequence[int]) -> None:
        """Take the oldest pages off the map if there are too many on it."""
        excess = len(self.place) - MOST_DRAWN
        if excess <= 0:
            return
        best = sorted(self.paid, key=lambda url: (-self.paid[url], -self.touched[url]))
        kept = {*roots[: MOST_DRAWN // 2], *best[:MOST_KEPT]}
        candidates = [url for url in self.place if url not in kept]
        candidates.sort(key=lambda url: self.touched[url])
        for url in candidates[:excess]:
            self.left[url] = self.place.pop(url)

    def _put_back(self, url: int, near: int) -> None:
        """Place a page where it was or, if it is new, near another one."""
        if url in self.left:
            self.place[url] = self.left.pop(url)
        else:
            self._lay_out([url], near)

    def _lay_out(self, pages: Sequence[int], near: int) -> None:
        """Give ``pages`` free places close together, near the page ``near``."""
        pages = [page for page in pages if page not in self.place]
        if not pages:
            return
        taken = np.array(list(self.place.values())).reshape(-1, 2)
        home = np.array(self.place.get(near, (0.0, 0.0)))
        size = 0.62 * math.sqrt(len(pages))
        # Look around for the emptiest disc, rather outwards, close by and central.
        turn = np.arange(24) * (2 * math.pi / 24)
        outwards = math.atan2(home[1], home[0]) if home.any() else 0.0
        reach = np.repeat([0.0, 1.0, 1.7, 2.6, 4.0], len(turn)) * (size + 1.2)
        turn = np.tile(turn, 5)
        centre = home + reach[:, None] * np.c_[np.cos(turn), np.sin(turn)]
        crowd = _near(centre, taken, size + 0.8)
        cost = crowd * 3.0 / len(pages) ** 0.5 + 0.5 * reach
        cost += 0.8 * (1 - np.cos(turn - outwards))
        # The picture is wider than high.
        cost += 0.12 * np.hypot(centre[:, 0], 1.4 * centre[:, 1])
        best = centre[int(np.argmin(cost))]
        count = 4 * len(pages) + 32
        while True:
            i = np.arange(count)
            spiral = (
                0.58 * np.sqrt(i)[:, None] * np.c_[np.cos(i * TURN), np.sin(i * TURN)]
            )
            free = (best + spiral)[_near(best + spiral, taken, 0.8) == 0]
            if len(free) >= len(pages):
                break
            count *= 2
        for page, (x, y) in zip(pages, free.tolist(), strict=False):
            self.place[page] = (x, y)


def _near(points: np.ndarray, others: np.ndarray, radius: float) -> np.ndarray:
    """Count for each point how many of the others are within a radius."""
    distance = np.hypot(points[:, :1] - others[:, 0], points[:, 1:] - others[:, 1])
    return np.count_nonzero(distance < radius, axis=1)
