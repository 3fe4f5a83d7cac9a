"""To which site a URL belongs, which URL a link means, and where a crawl starts."""

from __future__ import annotations

from collections import Counter

import numpy as np

from gym_webforage.record.notes import RecordError
from gym_webforage.record.options import Options
from gym_webforage.record.urls import depth_of, normalise, site_of


def places(linked: list[str], captured: dict[str, int]) -> np.ndarray:
    """Return the numbers of the captured URLs that links mean, -1 for none.

    A link to ``/a`` means ``/a/`` where only the latter was captured, and the other
    way round: servers redirect from one to the other.
    """
    found = np.full(len(linked), -1, np.int32)
    for i, url in enumerate(linked):
        place = captured.get(url)
        if place is None and "?" not in url:
            place = captured.get(url[:-1] if url.endswith("/") else f"{url}/")
        if place is not None:
            found[i] = place
    return found


def on_recorded(linked: list[str], captured: dict[str, int]) -> np.ndarray:
    """Say of each linked URL whether its host is that of a captured one."""
    hosts = {site_of(url) for url in captured}
    return np.array([site_of(url) in hosts for url in linked], np.bool_)


def site_names(urls: list[str], options: Options) -> list[str]:
    """Return the site of each captured URL."""
    if options.site is not None:
        return [options.site] * len(urls)
    if options.site_from == "host":
        return [site_of(url) for url in urls]
    column = options.labels.others[options.site_from]
    by_host = _by_host(column)
    return [
        column.get(url) or by_host.get(site_of(url)) or site_of(url) for url in urls
    ]


def _by_host(column: dict[str, str]) -> dict[str, str]:
    """Return the site that most labelled URLs of each host belong to."""
    votes: dict[str, Counter[str]] = {}
    for url, site in column.items():
        votes.setdefault(site_of(url), Counter())[site] += 1
    return {
        host: min(count, key=lambda site: (-count[site], site))
        for host, count in votes.items()
    }


def sites_of_linked(
    urls: list[str],
    captured: int,
    first_source: np.ndarray,
    names: list[str],
    options: Options,
) -> list[str]:
    """Return the sites of the URLs after the captured ones.

    That is the site of most captured URLs on the same host; a target elsewhere
    belongs to the site of the first page that links to it, whose crawl it serves.
    """
    if options.site is not None:
        return [options.site] * (len(urls) - captured)
    by_host = _by_host(dict(zip(urls[:captured], names, strict=True)))
    column = {}
    if options.site_from != "host":
        column = options.labels.others[options.site_from]
    return [
        column.get(url) or by_host.get(site_of(url)) or names[source]
        for url, source in zip(urls[captured:], first_source.tolist(), strict=True)
    ]


def roots(
    urls: list[str],
    captured: int,
    url_site: np.ndarray,
    versions: dict[str, np.ndarray],
    targets: np.ndarray,
    options: Options,
) -> list[int]:
    """Return the start pages: those given, else one of each site.

    Of a site's pages that could be parsed, that is one with the shortest path, of
    these the one most linked to, of these the first. ``targets`` are those of all
    links.
    """
    if options.roots:
        return _given_roots(urls, options)
    pages = np.zeros(len(urls), np.bool_)
    parsed = (versions["content"] >= 0) & (versions["status"] // 100 == 2)
    pages[versions["url"][parsed]] = True
    if not pages.any():
        pages[versions["url"]] = True
    popular = np.bincount(targets, minlength=len(urls))
    best: dict[int, tuple[int, int, int]] = {}
    for url in np.flatnonzero(pages).tolist():
        rank = depth_of(urls[url]), -int(popular[url]), url
        site = int(url_site[url])
        best[site] = min(best.get(site, rank), rank)
    return [best[site][2] for site in sorted(best)]


def _given_roots(urls: list[str], options: Options) -> list[int]:
    number = {url: i for i, url in enumerate(urls)}
    found: list[int] = []
    for root in options.roots:
        place = number.get(normalise(root) or "")
        if place is None:
            raise RecordError(
                f"the root {root!r} is not among the recorded URLs, such as "
                f"{', '.join(urls[:3])}"
            )
        if place not in found:
            found.append(place)
    return found
