"""The downloader middleware of a live recording: refuses, and obeys robots.txt.

Follows RFC 9309: redirects of robots.txt are followed, a missing one allows
everything, one that cannot be had allows nothing.
"""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlsplit

from protego import Protego
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from gym_webforage.record.live_frontier import REDIRECTS, tidy
from gym_webforage.record.live_guard import Guard, bare
from gym_webforage.record.live_state import AGENT

HOPS = 5
TRIES = 2
LONGEST_DELAY = 3600.0  # seconds; a host that asks for more gets this


class Forbidden(IgnoreRequest):
    """A request that must not be made; its text says why."""


class Polite:
    """Stops every request that the guard or a robots.txt objects to."""

    def __init__(self, crawler: Any) -> None:
        self.crawler = crawler
        self.rules: dict[str, asyncio.Future[Protego | str]] = {}

    @classmethod
    def from_crawler(cls, crawler: Any) -> Polite:
        """Make one, as Scrapy wants it."""
        return cls(crawler)

    @property
    def guard(self) -> Guard:
        """The recording's guard."""
        return self.crawler.spider.guard

    async def process_request(self, request: Request) -> None:
        """Raise ``Forbidden`` unless the request may be made."""
        objection = self.guard.objection(request.url)
        if objection:
            raise Forbidden(objection)
        if request.meta.get("robots"):
            return
        rules = await self._rules(request.url)
        host = urlsplit(request.url).hostname or ""
        if isinstance(rules, str):
            raise Forbidden(self.guard.verdict(host) or rules)
        if not rules.can_fetch(request.url, AGENT):
            raise Forbidden("forbidden by robots.txt")

    async def _rules(self, url: str) -> Protego | str:
        parts = urlsplit(url)
        site = f"{parts.scheme}://{parts.netloc}"
        if site not in self.rules:
            self.rules[site] = asyncio.ensure_future(self._fetch(f"{site}/robots.txt"))
        return await self.rules[site]

    async def _fetch(self, url: str) -> Protego | str:
        """Return the rules of a site, or why there are none to go by."""
        problem = ""
        for _ in range(TRIES):
            try:
                response = await self._follow(url)
            except Exception as error:
                problem = f"robots.txt cannot be had: {error or type(error).__name__}"
                if isinstance(error, Forbidden):
                    break
                continue
            if response.status >= 500 or response.status == 429:
                problem = f"robots.txt cannot be had: status {response.status}"
                continue
            body = response.body if response.status < 300 else b""
            rules = Protego.parse(body.decode("utf-8-sig", "ignore"))
            wait_longer(self.crawler, url, min(wanted_delay(rules), LONGEST_DELAY))
            return rules
        return problem

    async def _follow(self, url: str) -> Response:
        for _ in range(HOPS + 1):
            request = self.crawler.spider.request_robots(url)
            response = await self.crawler.engine.download_async(request)
            if response.status not in REDIRECTS:
                return response
            location = response.headers.get("Location", b"").decode("utf-8", "replace")
            url = tidy(location, url)
        return Response(url, status=404)  # as RFC 9309 treats too many redirects


def wanted_delay(rules: Protego) -> float:
    """Return the seconds between requests that a robots.txt asks for."""
    wanted = float(rules.crawl_delay(AGENT) or 0.0)
    rate = rules.request_rate(AGENT)
    if rate is not None and rate.requests:
        wanted = max(wanted, rate.seconds / rate.requests)
    return wanted


def wait_longer(crawler: Any, url: str, seconds: float) -> None:
    """Leave at least so many seconds between requests to the host of a URL."""
    downloader = crawler.engine.downloader
    host = bare(urlsplit(url).hostname or "")
    kept = downloader.per_slot_settings.setdefault(host, {"concurrency": 1})
    # The settings outlive the slot, which is dropped after a minute's rest.
    kept["delay"] = max(kept.get("delay", crawler.spider.options.delay), seconds)
    if host in downloader.slots:
        downloader.slots[host].delay = kept["delay"]
