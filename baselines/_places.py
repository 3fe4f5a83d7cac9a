"""What temporal differences teach of places: the pages links stand on, and directories.

Sites have places: what one page of a directory is worth, the others tend to be, and so
are the links of one page. Corrections of both start from 0 in every crawl.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gym_webforage.envs import Known


@dataclass
class Places:
    """Where links stand and lead to, and how much more they are worth for it."""

    page_rate: float
    directory_rate: float

    numbers: dict[str, int] = field(default_factory=dict)  # of places, by name
    correction: np.ndarray = field(default_factory=lambda: np.zeros(1024))
    rows: np.ndarray = field(default_factory=lambda: np.zeros((1024, 2), np.int64))

    def add(self, row: int, url: int, page: int, known: Known) -> None:
        """Take in a link: its row, the URL that it leads to, its page."""
        if row >= len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros((row, 2), np.int64)])
        directory = known.address(url).rpartition("/")[0]
        self.rows[row] = self._number(f"page {page}"), self._number(directory)

    def _number(self, name: str) -> int:
        number = self.numbers.setdefault(name, len(self.numbers))
        if number >= len(self.correction):
            self.correction = np.concatenate([self.correction, np.zeros(number)])
        return number

    def extra(self, rows: int) -> np.ndarray:
        """Return what the places of the first links add to their values."""
        return self.correction[self.rows[:rows]].sum(axis=1)

    def of(self, row: int) -> float:
        """Return what the places of one link add to its value."""
        return float(self.correction[self.rows[row]].sum())

    def correct(self, row: int, error: float) -> None:
        """Learn that a link was worth more than thought."""
        page, directory = self.rows[row]
        self.correction[page] += self.page_rate * error
        self.correction[directory] += self.directory_rate * error
