"""A crawl over a trace: Python's side of the kernels' arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal, NamedTuple

import numpy as np

from gym_webforage.trace.trace import ENDINGS, Trace
from gym_webforage.world import kernels, observe
from gym_webforage.world import layout as L
from gym_webforage.world.ledger import (
    action_set_size,
    allow_any_known,
    list_action_set,
    rehash,
)
from gym_webforage.world.rules import KINDS, Rules, parse_budget, parse_duration
from gym_webforage.world.topic import Topic

Snapshot = dict[str, Any]
Features = Literal["state", "transfer"]
Shortlist = Literal["newest", "oldest"]

FIRST_LEDGER = 1024
FIRST_LOG = 4096


class Step(NamedTuple):
    """What came of a step."""

    reward: float
    terminated: bool
    truncated: bool
    illegal: bool


def _step(answer: int, reward: float) -> Step:
    return Step(
        reward,
        bool(answer & L.ENDED),
        bool(answer & L.TRUNCATED),
        bool(answer & L.WAS_ILLEGAL),
    )


def trace_addresses(trace: Trace) -> np.ndarray:
    """Return the trace as kernels see it; made once, since a trace never changes."""
    made = trace.__dict__.get("_addresses")
    if made is None:
        names = L.TRACE_ARRAYS.split()
        arrays = [getattr(trace, name) for name in names]
        made = np.append(L.addresses(arrays), trace.states)
        trace.__dict__["_addresses"] = made
    return made


class _Arrays:
    """Named arrays and the row of addresses under which kernels find them."""

    fields: tuple[tuple[int, str], ...]

    def __init__(self, address: np.ndarray) -> None:
        self.address = address

    def bind(self) -> None:
        """Tell the kernels where the arrays are; needed whenever one was replaced."""
        for field, name in self.fields:
            self.address[field] = getattr(self, name).ctypes.data

    def snapshot(self) -> Snapshot:
        return {name: getattr(self, name).copy() for _, name in self.fields}

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        for _, name in self.fields:
            setattr(self, name, snapshot[name].copy())
        self.bind()


class Forager(_Arrays):
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
        (L.PROFILE, "profile"),
    )

    def __init__(
        self,
        trace: Trace,
        kind: str,
        number: int,
        slots: int,
        shortlist: Shortlist,
        features: Features,
        address: np.ndarray,
    ) -> None:
        """Allocate the arrays; `clear` makes them ready for a crawl."""
        super().__init__(address)
        is_news = kind == "news"
        documents = max(len(trace.urls), len(trace.version_seen)) if is_news else 0
        vocabulary = 0 if is_news else len(trace.vocabulary)
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
        self.profile = np.zeros(vocabulary)
        self.ints[L.SLOTS] = slots
        self.ints[L.SHORTLIST_OLDEST] = shortlist == "oldest"
        self.ints[L.FORAGER_NUMBER] = number
        self.ints[L.STATE_COLUMNS] = trace.states if features == "state" else 0
        self.ints[L.HAS_LEDGER_FLOATS] = not is_news
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
            L.SHORTLIST_OLDEST,
            L.STAMP,
            L.FORAGER_NUMBER,
            L.STATE_COLUMNS,
            L.HAS_LEDGER_FLOATS,
        )
        values = self.ints[list(kept)]
        self.ints[:] = 0
        self.ints[list(kept)] = values
        self.ints[L.STAMP] += 1
        self.ints[L.LAST_URL] = -1
        for name in ("floats", "marks", "ending_stats", "site_stats", "profile"):
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
        self.ledger, self.ledger_floats = ledger, floats
        self._size_hash()
        self.bind()
        rehash(self.address)

    def release(self) -> None:
        """Give back the memory of a forager that is out; its totals stay."""
        for _, name in self.fields:
            if name not in ("ints", "floats"):
                setattr(self, name, getattr(self, name)[:0].copy())
        for count in (L.KNOWN, L.FRONTIER, L.KNOWN_BEFORE, L.OUTBOX_COUNT, L.SLOTS):
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
        return int(kernels.find(self.address, url)) if 0 <= url < 2**31 else -1

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


class World(_Arrays):
    """Clock, judge, budget and log of a crawl by one or several foragers."""

    fields = (
        (L.WORLD_INTS, "ints"),
        (L.WORLD_FLOATS, "floats"),
        (L.PAID_BITS, "paid"),
        (L.LOG_TIME, "log_time"),
        (L.LOG_ROWS, "log_rows"),
        (L.LOG_VALUE, "log_value"),
        (L.SITE_READY, "site_ready"),
        (L.TOPIC, "topic_weights"),
    )

    def __init__(
        self,
        trace: Trace,
        rules: Rules,
        *,
        foragers: int = 1,
        slots: int = 0,
        shortlist: Shortlist = "newest",
        features: Features = "transfer",
        log: bool = True,
        addresses: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """Prepare a world over ``trace``; `reset` starts a crawl.

        A batch hands in ``addresses``, the rows of its tables for this world and its
        foragers, so that one kernel call can step many worlds.
        """
        if addresses is None:
            addresses = (
                np.zeros(L.WORLD_FIELDS, np.int64),
                np.zeros((foragers, L.FORAGER_FIELDS), np.int64),
            )
        super().__init__(addresses[0])
        self.trace = trace
        self.rules = rules
        self.trace_address = trace_addresses(trace)
        self.topic: Topic | None = None
        is_news = rules.kind == "news"
        documents = len(trace.urls)
        if is_news:
            documents = max(documents, len(trace.version_seen))
        time, fetches = parse_budget(rules.default_budget)
        self.ints = np.zeros(L.WORLD_INT_COUNT, np.int64)
        self.floats = np.zeros(L.WORLD_FLOAT_COUNT)
        self.paid = np.zeros((documents + 7) // 8, np.uint8)
        self.log_time = np.zeros(0, np.int64)
        self.log_rows = np.zeros((0, L.LOG_COLUMNS), np.int32)
        self.log_value = np.zeros(0, np.float32)
        self.site_ready = np.zeros(len(trace.sites), np.int64)
        self.topic_weights = np.zeros(0 if is_news else len(trace.vocabulary))
        self.ints[L.BUDGET_TIME] = time
        self.ints[L.BUDGET_FETCHES] = fetches
        self.ints[L.RULES] = KINDS.index(rules.kind)
        self.ints[L.FETCH_TIME] = max(1, round(rules.fetch_seconds * 1000))
        self.ints[L.MAX_AGE] = parse_duration(rules.max_age, "max_age")
        self.ints[L.PATH_LENGTH] = rules.path_length
        self.ints[L.REFETCH_VISITED] = rules.refetch_visited
        self.ints[L.DOCUMENT_IS_URL] = rules.document == "url"
        self.ints[L.COST_IS_BYTES] = rules.cost == "bytes"
        self.ints[L.HOST_DELAY] = round(rules.host_delay * 1000)
        self.ints[L.EVOLUTION] = rules.judge == "evolution"
        self.ints[L.MAKES_LOG] = log
        self.floats[L.REWARD] = rules.reward
        self.floats[L.PENALTY] = rules.penalty
        self.floats[L.THRESHOLD] = rules.threshold
        self.floats[L.MEAN_BYTES] = trace.mean_bytes
        if log:
            self._grow_log(FIRST_LOG)
        self.bind()
        self._view = (slots, shortlist, features)
        self.foragers = [
            self._new_forager(i, row) for i, row in enumerate(addresses[1])
        ]
        states = trace.states if features == "state" else 0
        self.columns = (
            states + observe.NEWS_COLUMNS if is_news else observe.TRANSFER_COLUMNS
        )

    def _new_forager(self, number: int, address: np.ndarray | None = None) -> Forager:
        if address is None:
            address = np.zeros(L.FORAGER_FIELDS, np.int64)
        return Forager(self.trace, self.rules.kind, number, *self._view, address)

    def resize(self, foragers: int) -> None:
        """Have this many foragers, before a reset."""
        del self.foragers[foragers:]
        for number in range(len(self.foragers), foragers):
            self.foragers.append(self._new_forager(number))
        for number, forager in enumerate(self.foragers):
            if not len(forager.ledger):  # it was released
                self.foragers[number] = self._new_forager(number)

    def add_child(self, parent: int) -> int:
        """Add a forager that knows what its parent knows, and return its number."""
        number = len(self.foragers)
        child = self._new_forager(number)
        child.restore(self.foragers[parent].snapshot())
        ints = child.ints
        ints[L.FORAGER_NUMBER] = number
        for count in (
            L.STEP,
            L.LAST_FETCHES,
            L.LAST_SENT,
            L.LAST_NOVEL,
            L.SENT_TOTAL,
            L.NOVEL_TOTAL,
            L.OUTBOX_COUNT,
        ):
            ints[count] = 0
        ints[L.LAST_URL] = -1
        ints[L.KNOWN_BEFORE] = ints[L.KNOWN]
        child.marks[:] = 0
        child.floats[[L.REWARD_TOTAL, L.LAST_REWARD]] = 0
        # Its steps count from 1 again, so no row may seem touched or younger than it.
        child.ledger[:, L.TOUCHED] = 0
        child.ledger[:, L.FOUND_AT] = 0
        if self.rules.kind == "news":
            allow_any_known(child.address)
        self.foragers.append(child)
        return number

    def reset(
        self,
        *,
        start: int,
        roots: np.ndarray,
        topic: Topic | None = None,
        site: int = -1,
    ) -> None:
        """Start a crawl: nothing is fetched, and all foragers know the roots."""
        self.topic = topic
        ints = self.ints
        ints[L.CLOCK] = ints[L.START] = start
        ints[L.FETCHES] = ints[L.LOG_COUNT] = 0
        ints[L.SITE] = site
        by_label = topic is not None and self.rules.relevance == "label"
        ints[L.TOPIC_LABEL] = topic.label if by_label and topic else -1
        self.paid[:] = 0
        self.site_ready[:] = 0
        if topic is not None and len(self.topic_weights):
            self.topic_weights[:] = topic.weights
        else:
            self.topic_weights[:] = 0
        roots = np.ascontiguousarray(roots, np.int32)
        for forager in self.foragers:
            if len(roots) > len(forager.ledger):
                forager.ints[L.KNOWN] = 0
                forager.grow(len(roots))
            forager.clear()
            kernels.begin(self.trace_address, self.address, forager.address, roots)

    # --- steps

    def step(self, url: int, forager: int = 0) -> Step:
        """Visit a URL."""
        return self._step(kernels.step_url, url, forager)

    def step_slot(self, slot: int, forager: int = 0) -> Step:
        """Visit the URL in a slot."""
        return self._step(kernels.step_slot, slot, forager)

    def _step(self, kernel: Any, action: int, forager: int) -> Step:
        who = self.foragers[forager]
        while True:
            answer, reward = kernel(
                self.trace_address, self.address, who.address, action
            )
            if answer < L.GROW_LEDGER:
                break
            self.grow(answer, who)
        return _step(answer, reward)

    def step_together(
        self,
        actions: Mapping[int, int],
        random: np.random.Generator,
        by_slot: bool = False,
    ) -> dict[int, Step]:
        """Let several foragers take a step at the same time, each on its own machine.

        All begin now; the clock then stands at the last one's end. What they send
        reaches the judge in the order of their ends, ties drawn by lot.
        """
        T, W = self.trace_address, self.address
        begin = self.clock
        lots = random.permutation(len(actions))
        opened: list[tuple[int, int, int]] = []  # forager, its URL's number, answer
        ends = {}
        for forager, action in actions.items():
            who = self.foragers[forager]
            if by_slot:
                number = int(kernels.number_of_slot(who.address, action))
            else:
                number = who.number(action)
            while (answer := kernels.open_step(T, W, who.address, number)) >= (
                L.GROW_LEDGER
            ):
                self.grow(answer, who)
            if answer == L.WAS_ILLEGAL:
                ends[forager] = int(kernels.visit_nothing(W, who.address, begin))
            elif self.rules.kind == "news":
                ends[forager] = int(
                    kernels.visit_news(T, W, who.address, number, begin)
                )
            else:
                url = int(who.ledger[number, L.URL])
                ends[forager] = begin + int(kernels.fetch_time(T, W, url, begin))
            opened.append((forager, number, answer))
        lot = dict(zip(actions, lots.tolist(), strict=True))
        opened.sort(key=lambda one: (ends[one[0]], lot[one[0]]))
        rewards = {}
        for forager, number, answer in opened:
            address = self.foragers[forager].address
            if answer == L.WAS_ILLEGAL:
                reward = -1.0
            elif self.rules.kind == "news":
                reward = kernels.send(T, W, address, number, ends[forager])
            else:
                end, reward = kernels.visit_page(T, W, address, number, begin)
                ends[forager] = int(end)
            kernels.close_step(address, reward)
            rewards[forager] = float(reward), answer
        self.ints[L.CLOCK] = max(ends.values(), default=begin)
        steps = {}
        for forager in actions:
            reward, answer = rewards[forager]
            answer |= kernels.standing(W, self.foragers[forager].address)
            steps[forager] = _step(answer, reward)
        return steps

    def grow(self, answer: int, forager: Forager) -> None:
        """Enlarge what a kernel found too small."""
        room = self.trace.most_links + 1
        if answer & L.GROW_LEDGER:
            known = int(forager.ints[L.KNOWN])
            forager.grow(max(2 * len(forager.ledger), known + room))
        if answer & L.GROW_LOG:
            count = int(self.ints[L.LOG_COUNT])
            self._grow_log(max(2 * len(self.log_time), count + room))
            self.bind()

    def _grow_log(self, rows: int) -> None:
        count = int(self.ints[L.LOG_COUNT])
        for name in ("log_time", "log_rows", "log_value"):
            old = getattr(self, name)
            new = np.zeros((rows, *old.shape[1:]), old.dtype)
            new[:count] = old[:count]
            setattr(self, name, new)
        self.ints[L.LOG_CAPACITY] = rows

    # --- looking at it

    @property
    def clock(self) -> int:
        """The time, in milliseconds."""
        return int(self.ints[L.CLOCK])

    @property
    def start(self) -> int:
        """When the crawl began."""
        return int(self.ints[L.START])

    @property
    def fetches(self) -> int:
        """How many fetches there were."""
        return int(self.ints[L.FETCHES])

    def observe(self, forager: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return candidates, mask and context as fresh arrays."""
        who = self.foragers[forager]
        slots = len(who.slot)
        candidates = np.empty((slots, self.columns), np.float32)
        mask = np.empty(slots, np.int8)
        context = np.empty(observe.CONTEXT_COLUMNS, np.float32)
        since = np.full(1, -1, np.int64)
        observe.observe(
            self.trace_address,
            self.address,
            who.address,
            since,
            candidates,
            mask,
            context,
        )
        return candidates, mask, context

    def events(self) -> dict[str, np.ndarray]:
        """Return the log: one row for each fetch, in order, as columns.

        ``time`` (end of the fetch), ``url``, ``version`` (-1: none), ``step`` and
        ``forager``, ``flags`` (see `gym_webforage.metrics`), ``value`` (what it paid).
        """
        count = int(self.ints[L.LOG_COUNT])
        rows = self.log_rows[:count]
        return {
            "time": self.log_time[:count].copy(),
            "url": rows[:, L.LOG_URL].copy(),
            "version": rows[:, L.LOG_VERSION].copy(),
            "step": rows[:, L.LOG_STEP].copy(),
            "forager": rows[:, L.LOG_FORAGER].copy(),
            "flags": rows[:, L.LOG_FLAGS].copy(),
            "value": self.log_value[:count].copy(),
        }

    # --- keeping and copying

    def snapshot(self) -> Snapshot:
        """Return the whole state as plain arrays."""
        return {
            **super().snapshot(),
            "topic": asdict(self.topic) if self.topic else None,
            "foragers": [forager.snapshot() for forager in self.foragers],
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Put back a state that `snapshot` took, of this world or one like it."""
        foragers = snapshot["foragers"]
        slots = self._view[0]
        same = len(snapshot["paid"]) == len(self.paid) and all(
            len(forager["slot"]) == slots
            for forager in foragers
            if len(forager["hash"])
        )
        if not same:
            raise ValueError("the snapshot is of another trace, kind or view")
        super().restore(snapshot)
        self.topic = Topic(**snapshot["topic"]) if snapshot["topic"] else None
        del self.foragers[len(foragers) :]
        for number in range(len(self.foragers), len(foragers)):
            self.foragers.append(self._new_forager(number))
        for forager, state in zip(self.foragers, foragers, strict=True):
            stamp = forager.ints[L.STAMP]
            forager.restore(state)
            # Buffers written before must not pass for up to date.
            forager.ints[L.STAMP] = max(stamp, forager.ints[L.STAMP]) + 1
            forager.slot_changed[:] = forager.ints[L.STAMP]

    def __getstate__(self) -> dict[str, Any]:
        """Leave the addresses behind: they mean nothing in another process."""
        state = self.__dict__.copy()
        del state["trace_address"], state["address"]
        state["foragers"] = [
            {k: v for k, v in forager.__dict__.items() if k != "address"}
            for forager in self.foragers
        ]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Bind the arrays anew."""
        foragers = state.pop("foragers")
        self.__dict__.update(state)
        self.trace_address = trace_addresses(self.trace)
        self.address = np.zeros(L.WORLD_FIELDS, np.int64)
        self.bind()
        self.foragers = []
        table = np.zeros((len(foragers), L.FORAGER_FIELDS), np.int64)
        for row, arrays in zip(table, foragers, strict=True):
            forager = Forager.__new__(Forager)
            forager.__dict__.update(arrays)
            forager.address = row
            forager.bind()
            self.foragers.append(forager)
