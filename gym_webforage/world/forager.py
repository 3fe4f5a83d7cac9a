"""A forager: Python's side of what the kernels know of one crawler."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from gym_webforage.trace.trace import ENDINGS, Trace
from gym_webforage.world import layout as L
from gym_webforage.world.ledger import (
    action_set_size,
    find,
    find_all,
    list_action_set,
    rehash,
)

Snapshot = dict[str, Any]
Features = Literal["state", "transfer", "all"]
Shortlist = Literal["newest", "oldest", "promising"]
SHORTLISTS: tuple[Shortlist, ...] = get_args(Shortlist)

FIRST_LEDGER = 1024
CLEARED = (
    "floats",
    "marks",
    "ending_stats",
    "site_stats",
    "directory_stats",
    "path_stats",
    "profile",
    "seen_words",
)


@dataclass(frozen=True)
class View:
    """What a forager shows of its action set: how many, which ones and what of them."""

    slots: int = 0
    shortlist: Shortlist = "newest"
    features: Features = "transfer"
    scaled: bool = False


class Arrays:
    """Named arrays, and the row of addresses under which kernels find them."""

    fields: tuple[tuple[int, str], ...]

    def __init__(self, address: np.ndarray) -> None:
        self.address = address

    def bind(self) -> None:
        """Tell the kernels where the arrays are; needed whenever one was replaced."""
        for field, name in self.fields:
            self.address[field] = getattr(self, name).ctypes.data

    def snapshot(self) -> Snapshot:
        """Return copies of all arrays."""
        return {name: getattr(self, name).copy() for _, name in self.fields}

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Put back copies of what `snapshot` returned."""
        for _, name in self.fields:
            setattr(self, name, snapshot[name].copy())
        self.bind()


class Forager(Arrays):
    """What one crawler knows and has done. Read it; only kernels write it."""

    fields = (
        (L.FORAGER_INTS, "ints"),
        (L.FORAGER_FLOATS, "floats"),
        (L.LEDGER, "ledger"),
        (L.LEDGER_FLOATS, "ledger_floats"),
        (L.HASH, "hash"),
        (L.MARKS, "marks"),
        (L.SLOT, "slot"),
        (L.SLOT_CHANGED, "slot_changed"),
        (L.OUTBOX, "outbox"),
        (L.ENDING_STATS, "ending_stats"),
        (L.SITE_STATS, "site_stats"),
        (L.DIRECTORY_STATS, "directory_stats"),
        (L.PATH_STATS, "path_stats"),
        (L.PROFILE, "profile"),
        (L.SEEN_WORDS, "seen_words"),
        (L.HISTORY, "history"),
        (L.CONTEST, "contest"),
    )

    def __init__(
        self,
        trace: Trace,
        kind: str,
        number: int,
        view: View,
        address: np.ndarray,
    ) -> None:
        """Allocate the arrays; `clear` makes them ready for a crawl."""
        super().__init__(address)
        is_news = kind == "news"
        documents = max(len(trace.urls), len(trace.version_seen)) if is_news else 0
        vocabulary = 0 if is_news else len(trace.vocabulary)
        slots = view.slots
        has_history = is_news and view.features != "state"
        has_directories = has_history or not is_news
        self.ints = np.zeros(L.FORAGER_INT_COUNT, np.int64)
        self.floats = np.zeros(L.FORAGER_FLOAT_COUNT)
        self.ledger = np.zeros((FIRST_LEDGER, L.LEDGER_COLUMNS), np.int32)
        rows = 0 if is_news else FIRST_LEDGER
        self.ledger_floats = np.zeros((rows, L.LEDGER_FLOAT_COLUMNS), np.float32)
        self.hash = np.zeros((2 * FIRST_LEDGER, 2), np.int32)
        self.marks = np.zeros((documents + 7) // 8, np.uint8)
        self.slot = np.full(slots, -1, np.int32)
        self.slot_changed = np.zeros(slots, np.int64)
        self.outbox = np.zeros(3 * (trace.most_links + 1) if is_news else 0, np.int32)
        self.ending_stats = np.zeros(0 if is_news else 2 * ENDINGS)
        self.site_stats = np.zeros(0 if is_news else 2 * len(trace.sites))
        directories = trace.directories if has_directories else 0
        self.directory_stats = np.zeros(2 * directories)
        self.path_stats = np.zeros(0 if is_news else 2 * len(trace.tag_paths))
        self.profile = np.zeros(2 * vocabulary)
        self.seen_words = np.zeros((vocabulary + 7) // 8, np.uint8)
        rows = FIRST_LEDGER if has_history else 0
        self.history = np.zeros((rows, L.HISTORY_FIELDS), np.int64)
        is_contest = view.shortlist == "promising"
        self.contest = np.zeros(slots + L.SCANNED if is_contest else 0, np.int64)
        self.ints[L.SLOTS] = slots
        self.ints[L.WINDOW] = 0 if is_contest else slots
        self.ints[L.SHORTLIST_OLDEST] = view.shortlist == "oldest"
        self.ints[L.FORAGER_NUMBER] = number
        self.ints[L.STATE_COLUMNS] = trace.states if view.features != "transfer" else 0
        self.ints[L.HAS_LEDGER_FLOATS] = not is_news
        self.ints[L.HAS_HISTORY] = has_history
        self.ints[L.IS_SCALED] = view.scaled
        self.ints[L.KEEPS_ROWS] = is_news and not (has_history or view.scaled)
        self._size_hash()
        self.bind()

    def _size_hash(self) -> None:
        capacity = len(self.ledger)
        self.ints[L.LEDGER_CAPACITY] = capacity
        self.ints[L.HASH_SHIFT] = 64 - int(math.log2(2 * capacity))
        self.hash = np.full((2 * capacity, 2), -1, np.int32)

    def clear(self) -> None:
        """Forget everything."""
        kept = (
            L.LEDGER_CAPACITY,
            L.HASH_SHIFT,
            L.SLOTS,
            L.WINDOW,
            L.SHORTLIST_OLDEST,
            L.STAMP,
            L.FORAGER_NUMBER,
            L.STATE_COLUMNS,
            L.HAS_LEDGER_FLOATS,
            L.HAS_HISTORY,
            L.IS_SCALED,
            L.KEEPS_ROWS,
        )
        values = self.ints[list(kept)]
        self.ints[:] = 0
        self.ints[list(kept)] = values
        self.ints[L.STAMP] += 1
        self.ints[L.LAST_URL] = self.ints[L.HERE] = -1
        for name in CLEARED:
            getattr(self, name)[:] = 0
        self.hash[:] = -1
        self.slot[:] = -1
        self.slot_changed[:] = self.ints[L.STAMP]

    def grow(self, rows: int) -> None:
        """Make room for ``rows`` known URLs."""
        capacity = 1 << (rows - 1).bit_length()
        known = int(self.ints[L.KNOWN])
        ledger = np.zeros((capacity, L.LEDGER_COLUMNS), np.int32)
        rows = capacity if self.ints[L.HAS_LEDGER_FLOATS] else 0
        floats = np.zeros((rows, L.LEDGER_FLOAT_COLUMNS), np.float32)
        ledger[:known] = self.ledger[:known]
        if rows:
            floats[:known] = self.ledger_floats[:known]
        rows = capacity if self.ints[L.HAS_HISTORY] else 0
        history = np.zeros((rows, L.HISTORY_FIELDS), np.int64)
        if rows:
            history[:known] = self.history[:known]
        self.ledger, self.ledger_floats, self.history = ledger, floats, history
        self._size_hash()
        self.bind()
        rehash(self.address)

    def release(self) -> None:
        """Give back the memory of a forager that is out; its totals stay."""
        for _, name in self.fields:
            if name not in ("ints", "floats"):
                setattr(self, name, getattr(self, name)[:0].copy())
        for count in (
            L.KNOWN,
            L.FRONTIER,
            L.KNOWN_BEFORE,
            L.OUTBOX_COUNT,
            L.SLOTS,
            L.WINDOW,
        ):
            self.ints[count] = 0
        self.ints[L.AT_START] = 0
        self.bind()

    # --- what it knows

    @property
    def known(self) -> np.ndarray:
        """The URLs it knows, in order of discovery."""
        return self.ledger[: self.ints[L.KNOWN], L.URL].copy()

    @property
    def new(self) -> np.ndarray:
        """The URLs that the last step discovered."""
        return self.ledger[self.ints[L.KNOWN_BEFORE] : self.ints[L.KNOWN], L.URL].copy()

    def number(self, url: int) -> int:
        """Return the discovery number of a URL, -1 if it is not known."""
        return int(find(self.address, url)) if 0 <= url < 2**31 else -1

    def numbers(self, urls: Any) -> np.ndarray:
        """Return the discovery numbers of URLs; one that is not known: KeyError."""
        urls = np.asarray(urls)
        if urls.ndim != 1 or (len(urls) and urls.dtype.kind not in "iu"):
            raise TypeError("expected an array of URL ids")
        urls = np.ascontiguousarray(urls, np.int64)
        numbers = np.empty(len(urls), np.int64)
        find_all(self.address, urls, numbers)
        if (numbers < 0).any():
            raise KeyError(f"URL {urls[np.argmin(numbers)]} has not been seen")
        return numbers

    def action_set_size(self) -> int:
        """Return how many URLs may be visited now."""
        return int(action_set_size(self.address))

    def choices(self) -> np.ndarray:
        """Return the discovery numbers of what may be visited, in frontier order."""
        numbers = np.empty(self.action_set_size(), np.int64)
        list_action_set(self.address, numbers)
        return numbers

    def action_set(self) -> np.ndarray:
        """Return the URLs that may be visited now, in order of discovery."""
        numbers = self.choices()
        numbers.sort()
        return self.ledger[numbers, L.URL]

    def learnt(self) -> np.ndarray:
        """Return the discovery numbers of the pages that the last step fetched."""
        if self.ints[L.HAS_LEDGER_FLOATS]:  # Topic, Spider: the visited page alone
            number = self.number(int(self.ints[L.LAST_URL]))
            alive = number >= 0 and self.ledger[number, L.VERSION] >= 0
            return np.array([number] if alive else [], np.int64)
        count = int(self.ints[L.OUTBOX_COUNT])
        return self.outbox[: 3 * count : 3].astype(np.int64)

    def slot_urls(self) -> np.ndarray:
        """Return the URL in each slot, -1 where it is empty."""
        return np.where(self.slot >= 0, self.ledger[self.slot, L.URL], -1)

    def mask(self) -> np.ndarray:
        """Return which slots hold a URL, as int8."""
        return (self.slot >= 0).astype(np.int8)
