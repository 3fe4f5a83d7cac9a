"""One round of a live recording: a Scrapy crawl that writes one WARC file.

Runs as a process of its own (``python -m gym_webforage.record.live_round STATE N``),
because Twisted's reactor runs once in a process and what a round needs should be gone
after it. Tells its parent what is saved in lines of JSON and ends when the parent
does.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import zlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from scrapy import Request, Spider, signals
from scrapy.crawler import CrawlerProcess
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK

from gym_webforage.record.live_frontier import REDIRECTS, Waiting, links
from gym_webforage.record.live_guard import Guard, bare, resolver_class
from gym_webforage.record.live_robots import Polite, wait_longer
from gym_webforage.record.live_state import LiveOptions, State
from gym_webforage.record.live_warc import Outcome
from gym_webforage.record.live_work import Round

FAILED = 3  # the exit code of a round that could not go on, such as on a full disk
ROBOTS_BYTES = 500 << 10  # as much of a robots.txt as RFC 9309 asks to be read
CODINGS = {"gzip": (31,), "x-gzip": (31,), "deflate": (15, -15)}  # zlib's windows
BUSY = (429, 503)  # statuses of a server that wants to be asked less
LONGEST_WAIT = 60.0  # seconds between requests because of them
AT_ONCE = 32  # requests, each to a host of its own


class RoundSpider(Spider):
    """Turns what Scrapy downloads into captures."""

    name = "round"

    def __init__(self, work: Round, guard: Guard, **rest: Any) -> None:
        super().__init__(**rest)
        self.work = work
        self.guard = guard
        self.options = work.options
        self.headers = {
            "User-Agent": work.options.user_agent,
            "Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.5",
            "Accept-Encoding": "gzip, deflate",
        }

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> RoundSpider:
        """Make the spider and let it watch downloads."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.cut, signals.bytes_received)
        return spider

    async def start(self) -> AsyncIterator[Request]:
        """Yield nothing: the frontier knows where to begin."""
        for request in ():
            yield request

    def request_robots(self, url: str) -> Request:
        """Return a request for a robots.txt."""
        return self._request(url, {"robots": True}, NO_CALLBACK, None)

    def request(self, item: Waiting) -> Request:
        """Return a request for a page."""
        return self._request(item.url, {"item": item}, self.captured, self.failed)

    def _request(self, url: str, meta: dict[str, Any], good: Any, bad: Any) -> Request:
        slot = bare(urlsplit(url).hostname or "")
        meta |= {"download_slot": slot, "download_timeout": self.options.timeout}
        return Request(
            url, good, headers=self.headers, meta=meta, errback=bad, dont_filter=True
        )

    def cut(self, data: bytes, request: Request, **_: Any) -> None:
        """End a download that has become too long."""
        received = request.meta.get("received", 0) + len(data)
        request.meta["received"] = received
        if request.meta.get("robots"):
            if received >= ROBOTS_BYTES:
                raise StopDownload(fail=False)
            return
        # Within the total the length is checked once more when the page is saved.
        room = self.options.max_bytes - self.work.bytes
        if received > min(self.options.page_bytes, room):
            raise StopDownload(fail=False)

    def captured(self, response: Response) -> None:
        """Take in a response, whatever its status."""
        item: Waiting = response.meta["item"]
        self._guarded(item, lambda: self._take_in(item, response))

    def _take_in(self, item: Waiting, response: Response) -> None:
        coding = (response.headers.get("Content-Encoding") or b"").decode("latin-1")
        body, whole = unpacked(response.body, coding, self.options.page_bytes)
        truncated = ""
        if "download_stopped" in response.flags or not whole:
            truncated = "length"
        elif "dataloss" in response.flags:
            truncated = "disconnect"
        headers = [
            (name.decode("latin-1"), " ".join(value.decode("latin-1").split()))
            for name, values in response.headers.items()
            for value in values
        ]
        headers = as_stored(headers, len(body))
        outcome = Outcome(
            item.url,
            response.status,
            headers,
            body,
            truncated=truncated,
            address=str(response.ip_address or ""),
            elapsed=self.work.elapsed,
        )
        self.work.save(item, outcome, *self._notes(item, outcome))
        if response.status in BUSY:
            after = (response.headers.get("Retry-After") or b"").decode("latin-1")
            seconds = float(after) if after.strip().isdecimal() else 0.0
            wait_longer(self.crawler, item.url, min(seconds, LONGEST_WAIT))

    def _notes(self, item: Waiting, outcome: Outcome) -> Iterator[Outcome]:
        """Say of redirects that never get to the frontier why they do not."""
        if outcome.status not in REDIRECTS:
            return
        for url in links(outcome)[0]:
            host = bare(urlsplit(url).hostname or "")
            if host in self.work.frontier.hosts:
                continue
            reason = self.guard.objection(url)
            if not reason and not item.depth:
                reason = f"refused: {host} is not among the hosts to crawl"
            if reason:
                error = f"{reason} (redirect from {item.url})"
                yield Outcome(url, error=error, elapsed=self.work.elapsed)

    def failed(self, failure: Any) -> None:
        """Take in that there was no response."""
        item: Waiting = failure.request.meta["item"]
        self._guarded(item, lambda: self._fail(item, failure.value))

    def _fail(self, item: Waiting, error: BaseException) -> None:
        reason = reason_of(error)
        if not isinstance(error, IgnoreRequest):
            reason = self.guard.verdict(urlsplit(item.url).hostname or "") or reason
        outcome = Outcome(item.url, error=reason, elapsed=self.work.elapsed)
        if item.tries < self.options.retries and not outcome.forbidden:
            self.work.frontier.retry(item)
        else:
            self.work.save(item, outcome)

    def _guarded(self, item: Waiting, work: Any) -> None:
        """End the round, rather than lose a page, when something goes wrong here."""
        try:
            work()
        except Exception as error:
            self.work.broken = f"{item.url}: {error or type(error).__name__}"
            logging.getLogger(__name__).exception("cannot go on")
            self.work.frontier.under_way.clear()


class FrontierScheduler:
    """Scrapy's view of the frontier."""

    def open(self, spider: RoundSpider) -> None:
        """Learn whose frontier it is."""
        self.spider = spider

    def has_pending_requests(self) -> bool:
        """Say whether there is more to ask for."""
        work = self.spider.work
        return not work.over() and work.frontier.size > 0

    def enqueue_request(self, request: Request) -> bool:
        """Refuse: requests come from the frontier alone."""
        return False

    def next_request(self) -> Request | None:
        """Hand out the next request."""
        item = self.spider.work.take()
        return None if item is None else self.spider.request(item)


def reason_of(error: BaseException) -> str:
    """Say in a few words why a request failed."""
    kind = type(error).__name__.removesuffix("Error").removesuffix("Exception")
    text = " ".join(str(error).split())
    return text if isinstance(error, IgnoreRequest) else f"{kind}: {text[:200]}"


def unpacked(body: bytes, coding: str, limit: int) -> tuple[bytes, bool]:
    """Undo gzip or deflate up to ``limit`` bytes; say whether that is the whole."""
    for window in CODINGS.get(coding.strip().lower(), ()):
        unpack = zlib.decompressobj(wbits=window)
        try:
            found = unpack.decompress(body, limit)
        except zlib.error:
            continue
        return found, unpack.eof
    return body[:limit], len(body) <= limit


def as_stored(headers: list[tuple[str, str]], length: int) -> list[tuple[str, str]]:
    """Set aside the headers that are no longer true of a body that was unpacked."""
    stored = []
    for name, value in headers:
        word = name.lower()
        undone = word == "content-encoding" and value.lower() in (*CODINGS, "identity")
        if undone or word in ("transfer-encoding", "content-length"):
            name = f"X-Archive-Orig-{name}"
        stored.append((name, value))
    return [*stored, ("Content-Length", str(length))]


def settings(guard: Guard, options: LiveOptions) -> dict[str, Any]:
    """Return Scrapy's settings: nothing but what a round needs."""
    return {
        "SCHEDULER": FrontierScheduler,
        "DOWNLOADER_MIDDLEWARES_BASE": {},
        "DOWNLOADER_MIDDLEWARES": {Polite: 1},
        "SPIDER_MIDDLEWARES_BASE": {},
        "EXTENSIONS_BASE": {},  # among them a console that listens on a port
        "DOWNLOAD_HANDLERS": dict.fromkeys(("data", "file", "ftp", "s3")),
        "TWISTED_DNS_RESOLVER": resolver_class(guard),
        "CONCURRENT_REQUESTS": AT_ONCE,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "DOWNLOAD_DELAY": options.delay,
        "DOWNLOAD_DELAY_JITTER": 0,
        "DOWNLOAD_MAXSIZE": 0,  # the spider cuts what is too long
        "DOWNLOAD_WARNSIZE": 0,
        "DOWNLOAD_FAIL_ON_DATALOSS": False,
        "USER_AGENT": options.user_agent,
        "LOG_LEVEL": "ERROR",
    }


def run(folder: Path, number: int) -> int:
    """Crawl one round, or the rest of one; return the exit code."""
    state = State(folder)
    options, _ = state.read()
    guard = Guard.of(options.allow_private, options.allow_private_hosts)
    try:
        work = Round(state, number, options)
    except OSError as error:
        print(json.dumps({"broken": str(error)}), flush=True)
        return FAILED
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: setattr(work, "stopped", True))
    work.tell()
    process = CrawlerProcess(settings(guard, options))
    process.crawl(RoundSpider, work=work, guard=guard)
    process.start(install_signal_handlers=False)
    work.file.close()
    if work.broken:
        work.tell(broken=work.broken)
        return FAILED
    ended = work.limit() or ("stopped" if work.stopped else "finished")
    if work.stopped and work.frontier.size == 0:
        ended = "finished"
    if ended != "stopped":
        state.finish(number, {**work.summary(), "ended": ended})
    work.tell(ended=ended)
    return 0


def _follow_parent() -> None:
    """End at once when the parent is gone, which closes our standard input."""
    while os.read(0, 1024):
        pass
    os._exit(FAILED)


def main() -> None:
    """Run the round that the command line names."""
    threading.Thread(target=_follow_parent, daemon=True).start()
    sys.exit(run(Path(sys.argv[1]), int(sys.argv[2])))


if __name__ == "__main__":
    main()
