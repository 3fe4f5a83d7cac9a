"""What a round of a live recording has done and has still to do, within its limits."""

from __future__ import annotations

import json
import time
from typing import Any
from urllib.parse import urlsplit

from gym_webforage import __version__
from gym_webforage.record.live_frontier import Frontier, Hosts, Waiting, tidy
from gym_webforage.record.live_state import LiveOptions, State
from gym_webforage.record.live_warc import Outcome, RoundFile, mend, outcomes


class Round:
    """What has been captured in a round, and what is still to come."""

    def __init__(self, state: State, number: int, options: LiveOptions) -> None:
        self.options = options
        roots = [tidy(url) for url in options.urls]
        names = options.hosts or [urlsplit(url).hostname or "" for url in roots]
        self.frontier = Frontier(Hosts(names), options.depth)
        for url in roots:
            self.frontier.add(url, 0)
        self.pages = self.failed = self.forbidden = self.bytes = 0
        self.before = 0.0  # seconds of crawling before this process
        self.started = time.monotonic()
        self.full = ""  # the limit that was reached
        self.stopped = False
        self.broken = ""  # what makes going on impossible
        path = state.warc(number)
        mend(path)
        if path.exists():
            for outcome in outcomes(path):
                self._count(outcome)
                self.frontier.replay(outcome)
                self.before = outcome.elapsed
        about = {
            "software": f"webforage/{__version__}",
            "format": "WARC File Format 1.1",
            "robots": "classic",
            "http-header-user-agent": options.user_agent,
        }
        self.file = RoundFile(path, about)

    @property
    def elapsed(self) -> float:
        """Seconds of crawling, breaks left out."""
        return self.before + time.monotonic() - self.started

    def limit(self) -> str:
        """Return the limit that ends the round now; nothing if it may go on."""
        options = self.options
        if not self.full:
            if self.pages + self.failed >= options.max_pages:
                self.full = "pages"
            elif self.bytes >= options.max_bytes:
                self.full = "bytes"
            elif self.elapsed >= options.max_time:
                self.full = "time"
        return self.full

    def take(self) -> Waiting | None:
        """Hand out the next URL if the limits allow one more."""
        if self.over():
            return None
        under_way = len(self.frontier.under_way)
        if self.pages + self.failed + under_way >= self.options.max_pages:
            return None
        return self.frontier.take()

    def over(self) -> bool:
        """Say whether nothing more is to be asked for."""
        return bool(self.stopped or self.broken or self.limit())

    def save(self, item: Waiting, outcome: Outcome, *notes: Outcome) -> None:
        """Store what a URL brought, with notes on URLs that are not asked for."""
        if self.bytes + len(outcome.body) > self.options.max_bytes:
            self.full = "bytes"
            self.frontier.give_back(item)
            return
        self.file.append(outcome, *notes)
        for stored in (outcome, *notes):
            self._count(stored)
        self.frontier.done(item, outcome)
        self.tell()

    def _count(self, outcome: Outcome) -> None:
        self.bytes += len(outcome.body)
        if outcome.status:
            self.pages += 1
        elif outcome.forbidden:
            self.forbidden += 1
        else:
            self.failed += 1

    def summary(self) -> dict[str, Any]:
        """Return the figures that the parent shows and keeps."""
        return {
            "pages": self.pages,
            "failed": self.failed,
            "forbidden": self.forbidden,
            "bytes": self.bytes,
            "queue": self.frontier.size,
            "dropped": self.frontier.dropped,
            "elapsed": round(self.elapsed, 3),
        }

    def tell(self, **more: Any) -> None:
        """Tell the parent what is saved."""
        print(json.dumps({**self.summary(), **more}), flush=True)
