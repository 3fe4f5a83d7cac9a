"""URLs that wait to be visited, by value: what crawlers that rank links share."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np


class Frontier:
    """A heap of URLs by value, the earlier discovered first among equals."""

    def __init__(self) -> None:
        self.heap: list[tuple[float, int, int]] = []
        self.value: dict[int, float] = {}  # of the URLs that wait
        self.number: dict[int, int] = {}  # of all that were ever added, for ties

    def add(self, url: int, value: float) -> bool:
        """Add a URL, or raise its value; say whether the value counts."""
        if url not in self.number:
            self.number[url] = len(self.number)
        elif value <= self.value[url]:
            return False
        self.value[url] = value
        heappush(self.heap, (-value, self.number[url], url))
        return True

    def is_done(self, url: int) -> bool:
        """Say whether a URL was taken."""
        return url in self.number and url not in self.value

    def best(self) -> float:
        """Return the value of the URL that `take` would return."""
        while self.value.get(self.heap[0][2]) != -self.heap[0][0]:
            heappop(self.heap)  # it was taken, or has risen since
        return -self.heap[0][0]

    def take_with(self, new: np.ndarray) -> int:
        """Take the best URL; new ones without a value yet, as roots, are worth 0."""
        for url in new.tolist():
            self.add(url, 0.0)
        return self.take()

    def take(self) -> int:
        """Return and remove the best URL."""
        self.best()  # what is stale goes
        *_, url = heappop(self.heap)
        del self.value[url]
        return url

    def drop(self, url: int) -> None:
        """Take a URL that was visited for other reasons than its value."""
        self.number.setdefault(url, len(self.number))
        self.value.pop(url, None)

    def replace(self, value: dict[int, float]) -> None:
        """Give every waiting URL a new value, 0 if none is named."""
        self.value = {url: value.get(url, 0.0) for url in self.value}
        self._heap_up()

    def save(self) -> dict[str, np.ndarray]:
        """Return it as plain arrays, the URLs in the order they were added."""
        urls = list(self.number)
        return {
            "urls": np.array(urls, np.int64),
            "waits": np.array([url in self.value for url in urls], np.bool_),
            "values": np.array([self.value.get(url, 0.0) for url in urls]),
        }

    def load(self, state: dict[str, np.ndarray]) -> None:
        """Put back what `save` returned."""
        urls, waits = state["urls"].tolist(), state["waits"].tolist()
        self.number = {url: number for number, url in enumerate(urls)}
        values = zip(urls, waits, state["values"].tolist(), strict=True)
        self.value = {url: value for url, waiting, value in values if waiting}
        self._heap_up()

    def _heap_up(self) -> None:
        self.heap = [(-v, self.number[url], url) for url, v in self.value.items()]
        heapify(self.heap)
