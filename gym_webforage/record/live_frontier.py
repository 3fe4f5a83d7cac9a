"""What a round of a live recording has found and not yet asked for.

Pages come breadth first, and one host has one request at a time. Nothing of this is
stored: a frontier that is told again what was captured, in the same order, is the
same frontier.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import SplitResult, urljoin, urlsplit, urlunsplit

from w3lib.html import get_meta_refresh
from w3lib.url import safe_url_string

from gym_webforage.record.capture import HTML_TYPES
from gym_webforage.record.live_guard import bare
from gym_webforage.record.live_warc import Outcome
from gym_webforage.record.urls import LONGEST_URL, normalise

REDIRECTS = (301, 302, 303, 307, 308)
DEFAULT_PORTS = {"http": 80, "https": 443}
LINKS_A_PAGE = 10_000
WAITING = 1_000_000  # URLs, some 300 MB
HOPS = 10  # redirects after one another, as browsers and search engines allow


def tidy(url: str, base: str = "") -> str:
    """Return a URL as it is asked for: absolute, escaped, without fragment.

    Only what cannot change the meaning is changed.

    >>> tidy("../b c?x#top", "HTTP://Example.org:80/a/d/e")
    'http://example.org/a/b%20c?x'

    Raises:
        ValueError: It is no URL that can be asked for.
    """
    url = urljoin(base, url.strip()) if base else url.strip()
    parts = urlsplit(safe_url_string(url))
    host = bare(parts.hostname or "")
    if ":" in host:
        host = f"[{host}]"
    scheme = parts.scheme.lower()
    if parts.port is not None and parts.port != DEFAULT_PORTS.get(scheme):
        host = f"{host}:{parts.port}"
    path = parts.path or "/"
    if "/." in path and not path.startswith("//"):
        path = urlsplit(urljoin("http://host/", path)).path
    # A name and password in a link are no business of a recording.
    return urlunsplit(SplitResult(scheme, host, path, parts.query, ""))


def links(outcome: Outcome) -> tuple[list[str], bool]:
    """Return the URLs that an outcome leads to, and whether it is a redirect."""
    if outcome.status in REDIRECTS:
        raw = outcome.header("location").encode("latin-1")
        found = [raw.decode("utf-8", "replace")] if raw else []
        return _tidied(found, outcome.url), True
    kind = outcome.header("content-type").partition(";")[0].strip().lower()
    if not outcome.status or kind not in HTML_TYPES or not outcome.body:
        return [], False
    if outcome.header("content-encoding"):  # one that could not be undone
        return [], False
    from scrapy.http import HtmlResponse
    from scrapy.utils.response import get_base_url

    page = HtmlResponse(
        outcome.url,
        headers={"Content-Type": outcome.header("content-type")},
        body=outcome.body,
    )
    try:
        base = get_base_url(page)
        found = page.xpath(
            "//a/@href | //area/@href | //frame/@src | //iframe/@src"
        ).getall()
        _, refresh = get_meta_refresh(page.text[:4096], base, page.encoding)
    except (ValueError, LookupError, RecursionError):  # nothing that can be read
        return [], False
    if refresh:
        found.insert(0, refresh)
    return _tidied(found, base), False


def _tidied(found: Iterable[str], base: str) -> list[str]:
    kept: dict[str, None] = {}
    for link in found:
        try:
            url = tidy(link, base)
        except ValueError:
            continue
        if len(url) <= LONGEST_URL:
            kept[url] = None
        if len(kept) == LINKS_A_PAGE:
            break
    return list(kept)


class Hosts:
    """The hosts that may be crawled: by name, or with all below it as ``*.name``."""

    def __init__(self, names: Iterable[str]) -> None:
        names = [bare(name) for name in names]
        self.exact = {name.removeprefix("*.") for name in names}
        self.above = tuple(name[1:] for name in names if name.startswith("*."))

    def __contains__(self, host: str) -> bool:
        return host in self.exact or host.endswith(self.above or ("\0",))


class Waiting(NamedTuple):
    """A URL in the frontier; sorts breadth first, then by discovery."""

    depth: int
    order: int
    url: str
    hops: int = 0
    tries: int = 0


@dataclass
class Frontier:
    """The URLs found in one round; asked for, under way and waiting."""

    hosts: Hosts
    depth: int
    seen: set[str] = field(default_factory=set)
    waiting: dict[str, list[Waiting]] = field(default_factory=dict)
    under_way: dict[str, Waiting] = field(default_factory=dict)  # by host
    size: int = 0
    found: int = 0
    dropped: int = 0

    def add(self, url: str, depth: int, hops: int = 0) -> bool:
        """Remember a URL unless it is known, foreign or too deep."""
        host = bare(urlsplit(url).hostname or "")
        if depth > self.depth or hops > HOPS or host not in self.hosts:
            return False
        key = normalise(url)
        if key is None or key in self.seen:
            return False
        if self.size >= WAITING:
            self.dropped += 1
            return False
        self.seen.add(key)
        self._push(host, Waiting(depth, self.found, url, hops))
        self.found += 1
        return True

    def take(self) -> Waiting | None:
        """Hand out the next URL of a host that is not busy."""
        free = [host for host in self.waiting if host not in self.under_way]
        if not free:
            return None
        host = min(free, key=lambda name: self.waiting[name][0])
        item = heapq.heappop(self.waiting[host])
        if not self.waiting[host]:
            del self.waiting[host]
        self.size -= 1
        self.under_way[host] = item
        return item

    def give_back(self, item: Waiting) -> None:
        """Put a URL that was handed out back in its place."""
        host = bare(urlsplit(item.url).hostname or "")
        self.under_way.pop(host, None)
        self._push(host, item)

    def retry(self, item: Waiting) -> None:
        """Have a URL tried again when the others of its depth are done."""
        self.give_back(item._replace(order=self.found, tries=item.tries + 1))
        self.found += 1

    def done(self, item: Waiting, outcome: Outcome) -> None:
        """Add what a page leads to."""
        self.under_way.pop(bare(urlsplit(item.url).hostname or ""), None)
        found, redirect = links(outcome)
        for url in found:
            if redirect:
                self.add(url, item.depth, item.hops + 1)
            else:
                self.add(url, item.depth + 1)

    def replay(self, outcome: Outcome) -> None:
        """Take in a page that was captured before a break."""
        host = bare(urlsplit(outcome.url).hostname or "")
        queue = self.waiting.get(host, [])
        # Pages were handed out from the front, so the first it is, unless a retry
        # let others pass.
        if queue and queue[0].url == outcome.url:
            item = heapq.heappop(queue)
        else:
            item = next((w for w in queue if w.url == outcome.url), None)
            if item is None:  # a redirect that was refused
                return
            queue.remove(item)
            heapq.heapify(queue)
        if not queue:
            del self.waiting[host]
        self.size -= 1
        self.done(item, outcome)

    def _push(self, host: str, item: Waiting) -> None:
        heapq.heappush(self.waiting.setdefault(host, []), item)
        self.size += 1
