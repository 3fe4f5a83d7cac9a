"""Observation buffers that are used again once nobody holds them.

A returned observation never changes. But writing 128 rows anew in each step costs more
than the step: so a buffer that only this pool still refers to is taken again, and just
the rows that changed since it was last written are written.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np

MOST_BUFFERS = 4  # a training loop holds two or three observations at a time


class Buffer(NamedTuple):
    """An array for candidates, and the stamps of when each world last wrote to it."""

    candidates: np.ndarray
    since: np.ndarray


class BufferPool:
    """Hands out buffers of one shape."""

    def __init__(self, shape: tuple[int, ...], worlds: int = 1) -> None:
        self._shape = shape
        self._worlds = worlds
        self._buffers: list[Buffer] = []
        # How many references an idle buffer shows depends on the interpreter: look.
        probe = [self._make()]
        self._idle = min(sys.getrefcount(buffer[0]) for buffer in probe)
        gil = getattr(sys, "_is_gil_enabled", lambda: True)()
        self._reuse = gil  # reference counts tell the truth only then

    def _make(self) -> Buffer:
        return Buffer(
            np.zeros(self._shape, np.float32), np.full(self._worlds, -1, np.int64)
        )

    def take(self) -> Buffer:
        """Return a buffer that nobody else holds."""
        idle = self._idle
        count = sys.getrefcount
        for buffer in self._buffers:
            if count(buffer[0]) == idle:
                return buffer
        buffer = self._make()
        if self._reuse:
            if len(self._buffers) >= MOST_BUFFERS:
                self._buffers.pop(0)
            self._buffers.append(buffer)
        return buffer
