"""A crawl over a trace: Python's side of the kernels' arrays."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from gym_webforage.trace.trace import LATEST_TIME, Trace
from gym_webforage.world import kernels, observe
from gym_webforage.world import layout as L
from gym_webforage.world.focused import visit_page
from gym_webforage.world.forager import (
    Arrays,
    Features,
    Forager,
    Shortlist,
    Snapshot,
    View,
)
from gym_webforage.world.ledger import allow_any_known, clear_frontier
from gym_webforage.world.news import send, visit_news
from gym_webforage.world.pages import fetch_time
from gym_webforage.world.rules import KINDS, Rules, parse_budget, parse_duration
from gym_webforage.world.topic import Topic

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


class World(Arrays):
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
        (L.TOPIC_FREQUENCY, "topic_frequencies"),
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
        scaled: bool = False,
        log: bool = True,
        addresses: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """Prepare a world over ``trace``; `reset` starts a crawl.

        A batch hands in ``addresses``, the rows of its tables for this world and its
        foragers, so that one kernel call can step many worlds.
        """
        if shortlist == "promising" and (
            rules.kind == "news" or rules.reach == "links"
        ):
            raise ValueError(
                "shortlist='promising' is for the frontier of Topic and Spider; News "
                "and reach='links' have newest and oldest"
            )
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
        self.roots = np.zeros(0, np.int32)
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
        by_frequency = rules.kind == "topic" and rules.similarity == "frequency"
        self.topic_frequencies = np.zeros(len(trace.vocabulary) if by_frequency else 0)
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
        self.ints[L.REACH_LINKS] = rules.reach == "links"
        self.ints[L.REVISIT] = ("free", "pays", "costs").index(rules.revisit)
        self.floats[L.REWARD] = rules.reward
        self.floats[L.PENALTY] = rules.penalty
        self.floats[L.THRESHOLD] = rules.threshold
        self.floats[L.MEAN_BYTES] = trace.mean_bytes
        if log:
            self._grow_log(FIRST_LOG)
        self.bind()
        self.view = View(slots, shortlist, features, scaled)
        self.foragers = [
            self._new_forager(i, row) for i, row in enumerate(addresses[1])
        ]
        self.columns = len(self.feature_names)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of a candidate's columns; `observe` says what they mean."""
        if self.rules.kind != "news":
            return L.TRANSFER_COLUMNS
        features = self.view.features
        states = self.trace.states if features != "transfer" else 0
        history = L.HISTORY_COLUMNS if features != "state" else ()
        return (*(f"state_{i}" for i in range(states)), *L.NEWS_COLUMNS, *history)

    def _new_forager(self, number: int, address: np.ndarray | None = None) -> Forager:
        if address is None:
            address = np.zeros(L.FORAGER_FIELDS, np.int64)
        return Forager(self.trace, self.rules.kind, number, self.view, address)

    def resize(self, foragers: int) -> None:
        """Have this many foragers, before a reset."""
        del self.foragers[foragers:]
        for number in range(len(self.foragers), foragers):
            self.foragers.append(self._new_forager(number))
        for number, forager in enumerate(self.foragers):
            if not len(forager.ledger):  # it was released
                self.foragers[number] = self._new_forager(number)

    def add_child(self, parent: int) -> int:
        """Add a forager that knows what its parent knows, and return its number.

        Where foragers stand on pages, that is the page and its links: many are born,
        and die soon.
        """
        number = len(self.foragers)
        child = self._new_forager(number)
        self.foragers.append(child)
        here = int(self.foragers[parent].ints[L.HERE])
        if self.rules.reach == "links" and here >= 0:
            # Not cleared: what nobody has written to takes up no memory yet.
            child.ints[[L.LAST_URL, L.HERE]] = -1
            self._stand(child, self.foragers[parent], here)
            child.ints[L.KNOWN_BEFORE] = child.ints[L.KNOWN]
            return number
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
        return number

    # --- where foragers stand (reach="links")

    def _stand(self, who: Forager, other: Forager, here: int) -> None:
        """Put a forager where another one stands."""
        url, version = (int(other.ledger[here, at]) for at in (L.URL, L.VERSION))
        value = float(other.ledger_floats[here, L.VALUE])
        self._make_room(who, self.trace.most_links + 1)
        kernels.stand(
            self.trace_address, self.address, who.address, url, version, value
        )

    def _make_room(self, who: Forager, rows: int) -> None:
        needed = int(who.ints[L.KNOWN]) + rows
        if needed > len(who.ledger):
            who.grow(needed)

    def admit(self, url: int, forager: int = 0) -> bool:
        """Put a URL into an action set, as if it were linked; say if it was not."""
        who = self.foragers[forager]
        self._make_room(who, 1)
        return bool(kernels.admit(self.trace_address, self.address, who.address, url))

    def send_to(self, urls: np.ndarray, forager: int = 0) -> None:
        """Make these URLs the whole action set of a forager."""
        who = self.foragers[forager]
        self._make_room(who, len(urls))
        who.ints[L.STAMP] += 1
        clear_frontier(who.address)
        for url in urls:
            kernels.admit(self.trace_address, self.address, who.address, url)

    def send_back(self, forager: int = 0) -> None:
        """Give a forager its old action set again: where it stands, or the roots."""
        who = self.foragers[forager]
        here = int(who.ints[L.HERE])
        if here >= 0:
            self._stand(who, who, here)
        else:
            self.send_to(self.roots, forager)

    def reset(
        self,
        *,
        start: int,
        roots: np.ndarray,
        topic: Topic | None = None,
        site: int = -1,
    ) -> None:
        """Start a crawl: nothing is fetched, and all foragers know the roots."""
        roots = self._checked(start, roots, topic, site)
        self.topic = topic
        self.roots = roots
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
        self.floats[L.TOPIC_SQUARE] = -1.0
        if topic is not None and len(self.topic_frequencies):
            self.topic_frequencies[:] = topic.frequencies
            self.floats[L.TOPIC_SQUARE] = topic.frequency_square
        for forager in self.foragers:
            if len(roots) > len(forager.ledger):
                forager.ints[L.KNOWN] = 0
                forager.grow(len(roots))
            forager.clear()
            kernels.begin(self.trace_address, self.address, forager.address, roots)

    def _checked(
        self, start: int, roots: np.ndarray, topic: Topic | None, site: int
    ) -> np.ndarray:
        """Refuse what the kernels could not stand; return the roots."""
        trace = self.trace
        given = np.asarray(roots)
        urls = len(trace.urls)
        if given.ndim != 1 or given.dtype.kind not in "iu" or not len(given):
            raise ValueError("roots: expected a list of URL ids, at least one")
        if given.min() < 0 or given.max() >= urls:
            raise ValueError(f"roots: expected URL ids from 0 to {urls - 1}")
        if not 0 <= start <= LATEST_TIME:
            raise ValueError(f"start is {start}, expected 0 to {LATEST_TIME} ms")
        if not -1 <= site < len(trace.sites):
            raise ValueError(f"site is {site}, expected -1 to {len(trace.sites) - 1}")
        if topic is not None and (
            topic.weights.shape != (len(trace.vocabulary),)
            or topic.frequencies.shape != (len(trace.vocabulary),)
            or not -1 <= topic.label < len(trace.labels)
        ):
            raise ValueError("the topic is of another trace")
        return np.ascontiguousarray(given, np.int32)

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
                ends[forager] = int(visit_news(T, W, who.address, number, begin))
            else:
                url = int(who.ledger[number, L.URL])
                ends[forager] = begin + int(fetch_time(T, W, url, begin))
            opened.append((forager, number, answer))
        lot = dict(zip(actions, lots.tolist(), strict=True))
        opened.sort(key=lambda one: (ends[one[0]], lot[one[0]]))
        rewards = {}
        for forager, number, answer in opened:
            address = self.foragers[forager].address
            if answer == L.WAS_ILLEGAL:
                reward = -1.0
            elif self.rules.kind == "news":
                reward = send(T, W, address, number, ends[forager])
            else:
                end, reward = visit_page(T, W, address, number, begin)
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

    def features(
        self, urls: Any = None, *, scaled: bool = False, forager: int = 0
    ) -> np.ndarray:
        """Return the candidates' columns of known URLs, one row each.

        Without ``urls`` these are the action set, in order of discovery. ``scaled``
        gives z-scores over the action set.
        """
        who = self.foragers[forager]
        if urls is None or scaled:
            numbers = who.choices()
            numbers.sort()
            rows = self._rows(who, numbers)
            if not scaled:
                return rows
            mask = np.ones(len(rows), np.int8)
            middle, width = np.zeros(self.columns), np.zeros(self.columns)
            observe.measure(rows, mask, middle, width)
            if urls is not None:
                rows = self._rows(who, who.numbers(urls))
                mask = np.ones(len(rows), np.int8)
            observe.rescale(rows, mask, middle, width)
            return rows
        return self._rows(who, who.numbers(urls))

    def _rows(self, who: Forager, numbers: np.ndarray) -> np.ndarray:
        rows = np.empty((len(numbers), self.columns), np.float32)
        observe.write_rows(self.trace_address, self.address, who.address, numbers, rows)
        return rows

    def events(self) -> dict[str, np.ndarray]:
        """Return the log: one row for each fetch, in order, as columns.

        ``time`` (end of the fetch), ``url``, ``version`` (-1: none), ``step`` and
        ``forager``, ``flags`` (see `gym_webforage.metrics`), ``value`` (what it paid).
        """
        if not self.ints[L.MAKES_LOG]:
            raise RuntimeError("this world keeps no log; make it with log=True")
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

    def _identity(self) -> dict[str, Any]:
        """Return what a snapshot must share with the world that it is put into."""
        view = asdict(self.view)
        return {"trace": self.trace.digest, **asdict(self.rules), **view}

    def snapshot(self) -> Snapshot:
        """Return the whole state as plain arrays and values."""
        return {
            **super().snapshot(),
            "identity": self._identity(),
            "topic": asdict(self.topic) if self.topic else None,
            "roots": self.roots.copy(),
            "foragers": [
                forager.snapshot() for forager in self.foragers if len(forager.ledger)
            ],
            "released": self._released(),
        }

    def _released(self) -> Snapshot:
        """Return the totals of those that are out, who can be many, in few arrays."""
        numbers = [i for i, one in enumerate(self.foragers) if not len(one.ledger)]
        out = [self.foragers[i] for i in numbers]
        return {
            "number": np.array(numbers, np.int64),
            "ints": np.array([one.ints for one in out]).reshape(
                -1, L.FORAGER_INT_COUNT
            ),
            "floats": np.array([one.floats for one in out]).reshape(
                -1, L.FORAGER_FLOAT_COUNT
            ),
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Put back a state that `snapshot` took, of this world or one like it."""
        foragers = snapshot["foragers"]
        mine, given = self._identity(), snapshot["identity"]
        other = [name for name in mine if mine[name] != given.get(name)]
        if other:
            raise ValueError(
                f"the snapshot was taken with another {', '.join(other)}, "
                "so it does not fit this world"
            )
        super().restore(snapshot)
        self.topic = Topic(**snapshot["topic"]) if snapshot["topic"] else None
        self.roots = np.array(snapshot["roots"], np.int32)
        released = snapshot["released"]
        out = {int(number): i for i, number in enumerate(released["number"])}
        del self.foragers[len(foragers) + len(out) :]
        for number in range(len(self.foragers), len(foragers) + len(out)):
            self.foragers.append(self._new_forager(number))
        states = iter(foragers)
        for number, forager in enumerate(self.foragers):
            stamp = forager.ints[L.STAMP]
            if number in out:
                forager.release()
                forager.ints[:] = released["ints"][out[number]]
                forager.floats[:] = released["floats"][out[number]]
                continue
            forager.restore(next(states))
            # Buffers written before must not pass for up to date.
            forager.ints[L.STAMP] = max(stamp, forager.ints[L.STAMP]) + 1
            forager.slot_changed[:] = forager.ints[L.STAMP]

    def __copy__(self) -> World:
        """Copy everything: two worlds must not write to the same arrays."""
        return deepcopy(self)

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
