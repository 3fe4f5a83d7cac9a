"""A column of strings in two flat arrays, so that a million URLs can stay on disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import overload

import numpy as np
import pyarrow as pa

LARGE = 100_000


class Strings(Sequence[str]):
    """An immutable sequence of strings over UTF-8 bytes and their offsets.

    >>> names = Strings.of(["home", "sport"])
    >>> names[1], len(names), names.index("home")
    ('sport', 2, 0)
    """

    def __init__(self, data: np.ndarray, start: np.ndarray) -> None:
        """Wrap ``data`` (uint8) and ``start`` (int64, one longer than the column)."""
        if start.ndim != 1 or data.ndim != 1 or not len(start):
            raise ValueError(
                "a column of strings needs flat bytes and offsets from 0 on"
            )
        self.data = data
        self.start = start
        self._index: dict[str, int] | None = None

    @classmethod
    def of(cls, strings: Iterable[str]) -> Strings:
        """Pack ``strings``."""
        encoded = [text.encode() for text in strings]
        start = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(text) for text in encoded], out=start[1:])
        start.flags.writeable = False
        return cls(np.frombuffer(b"".join(encoded), np.uint8), start)

    def to_arrow(self) -> pa.LargeStringArray:
        """Return the column for Arrow, which trusts the offsets: check them first."""
        buffers = (np.ascontiguousarray(array) for array in (self.start, self.data))
        return pa.LargeStringArray.from_buffers(len(self), *map(pa.py_buffer, buffers))

    def __len__(self) -> int:
        """Return how many strings there are."""
        return len(self.start) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        """Return one string, or a list of them for a slice."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"{index} is outside a column of {len(self)} strings")
        if index < 0:
            index += len(self)
        piece = self.data[self.start[index] : self.start[index + 1]]
        return piece.tobytes().decode()

    def __iter__(self) -> Iterator[str]:
        """Yield all strings, decoding the column in one go."""
        whole = self.data.tobytes()
        start = self.start.tolist()
        for low, high in pairwise(start):
            yield whole[low:high].decode()

    def find(self, text: str) -> int:
        """Return the position of ``text``, or -1."""
        if len(self) > LARGE:  # an index of Python strings would fill the memory
            return self.find_all([text]).get(text, -1)
        if self._index is None:
            self._index = {string: i for i, string in enumerate(self)}
        return self._index.get(text, -1)

    def find_all(self, texts: Iterable[str]) -> dict[str, int]:
        """Return the positions of those of ``texts`` that are there."""
        wanted = {text.encode(errors="surrogatepass"): text for text in texts}
        fitting = np.isin(np.diff(self.start), [len(text) for text in wanted])
        found = {}
        for row in np.flatnonzero(fitting).tolist():
            piece = self.data[self.start[row] : self.start[row + 1]].tobytes()
            if piece in wanted:
                found[wanted[piece]] = row
        return found

    def index(self, value: str, start: int = 0, stop: int | None = None) -> int:
        """Return the position of ``value`` or raise ValueError."""
        found = self.find(value)
        if found < start or (stop is not None and found >= stop):
            raise ValueError(f"{value!r} is not in the column")
        return found

    def __contains__(self, value: object) -> bool:
        """Say whether ``value`` is one of the strings."""
        return isinstance(value, str) and self.find(value) >= 0

    def __eq__(self, other: object) -> bool:
        """Compare with any sequence of strings."""
        if isinstance(other, Strings):
            return np.array_equal(self.start, other.start) and np.array_equal(
                self.data, other.data
            )
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Show the first few strings."""
        shown = ", ".join(repr(self[i]) for i in range(min(3, len(self))))
        more = ", ..." if len(self) > 3 else ""
        return f"Strings([{shown}{more}], {len(self)} in all)"
