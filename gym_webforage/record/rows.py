"""Rows of different lengths in flat arrays: taking, filtering and comparing them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Rows = tuple[np.ndarray, np.ndarray]
"""Offsets, one more than there are rows, and the values of all rows."""

BLOCK = 2048
"""Rows worked on at a time, so that what is needed meanwhile stays small."""


def taken(start: np.ndarray, rows: np.ndarray) -> Rows:
    """Return the offsets of the given rows one after another, and their values' places.

    A negative row is an empty one.

    >>> taken(np.array([0, 2, 5]), np.array([1, -1, 0]))
    (array([0, 3, 3, 5]), array([2, 3, 4, 0, 1]))
    """
    there = np.maximum(rows, 0)
    if len(start) > 1:
        first = start[there]
        lengths = np.where(rows >= 0, start[there + 1] - first, 0)
    else:
        first = lengths = np.zeros(len(rows), np.int64)
    begin = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=begin[1:])
    return begin, np.repeat(first - begin[:-1], lengths) + np.arange(begin[-1])


def filtered(start: np.ndarray, keep: np.ndarray) -> Rows:
    """Return the offsets of rows without the values not kept, and the others' places.

    >>> filtered(np.array([0, 2, 5]), np.array([True, False, True, True, False]))
    (array([0, 1, 3]), array([0, 2, 3]))
    """
    before = np.zeros(len(keep) + 1, np.int64)
    np.cumsum(keep, out=before[1:])
    return before[start], np.flatnonzero(keep)


def distinct_rows(
    columns: Sequence[Rows], rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first of each kind of ``rows``, and each row's place among them.

    Rows are alike if they are so in every column. They are compared by 64-bit
    fingerprints, which no two of a billion rows are likely to share.
    """
    mark = np.zeros(len(rows), np.uint64)
    for low in range(0, len(rows), BLOCK):
        mark[low : low + BLOCK] = _fingerprints(columns, rows[low : low + BLOCK])
    _, first, same_as = np.unique(mark, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")  # in the order of their first row
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return rows[first[order]], place[same_as]


def _fingerprints(columns: Sequence[Rows], rows: np.ndarray) -> np.ndarray:
    mark = np.zeros(len(rows), np.uint64)
    for number, (start, values) in enumerate(columns):
        begin, which = taken(start, rows)
        position = np.arange(len(which)) - np.repeat(begin[:-1], np.diff(begin))
        each = _mixed(values[which].astype(np.uint64) + np.uint64(1))
        each = _mixed(each + position.astype(np.uint64))
        sums = np.zeros(len(which) + 1, np.uint64)
        np.cumsum(each, out=sums[1:])  # wraps around, as differences of it do
        mark = _mixed(mark + np.uint64(number) + sums[begin[1:]] - sums[begin[:-1]])
    return mark


def _mixed(values: np.ndarray) -> np.ndarray:
    """Scramble 64-bit numbers (the finaliser of SplitMix64)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
