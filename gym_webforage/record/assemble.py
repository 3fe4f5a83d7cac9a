"""The tables of a trace, put together from what the builder has collected."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from gym_webforage.record import sites
from gym_webforage.record.builder import NO_CONTENT, offsets
from gym_webforage.record.rows import filtered, taken
from gym_webforage.record.texts import Texts
from gym_webforage.record.urls import url_words
from gym_webforage.trace import Trace
from gym_webforage.trace.tokens import tokenise

if TYPE_CHECKING:
    from gym_webforage.record.builder import Builder

FEWEST_FOR_TEMPLATE = 10  # pages of a site below which no link counts as navigation


def assemble(builder: Builder) -> Trace:
    """Make the trace. The builder's contents are used up."""
    options = builder.options
    versions = _versions(builder)
    captured = len(builder.urls)
    link_start, link_url = builder.contents.links.joined()
    texts = Texts(builder.contents)

    # URLs: the captured ones, then those kept of the linked ones.
    linked = list(builder.contents.urls)
    place = sites.places(linked, builder.urls)  # of linked URLs, -1: not captured
    is_target = _matching(linked, options.targets)
    names = sites.site_names(list(builder.urls), options)
    content_url = np.full(len(link_start) - 1, -1, np.int32)
    with_content = versions["content"] >= 0
    content_url[versions["content"][with_content]] = versions["url"][with_content]
    link_source = np.repeat(content_url, np.diff(link_start))
    used = np.zeros(len(linked), np.bool_)
    used[link_url[link_source >= 0]] = True
    if options.world == "open":
        recorded = sites.on_recorded(linked, builder.urls)
        kept = (recorded | is_target) & (place < 0) & used
    else:
        kept = is_target & (place < 0) & used
    extra = np.flatnonzero(kept)
    place[extra] = captured + np.arange(len(extra), dtype=np.int32)
    urls = [*builder.urls, *(linked[i] for i in extra)]
    url_target = np.concatenate(
        [_matching(list(builder.urls), options.targets), is_target[extra]]
    )
    first_source = _first_source(link_url, link_source, len(linked))[extra]
    names += sites.sites_of_linked(urls, captured, first_source, names, options)
    site_list = list(dict.fromkeys(names))
    number = {name: i for i, name in enumerate(site_list)}
    url_site = np.array([number[name] for name in names], np.int32)

    # Links of each content, then of each version.
    target = place[link_url]
    keep = (target >= 0) & (target != link_source)
    roots = sites.roots(urls, captured, url_site, versions, target[keep], options)
    if options.drop_template_links is not None:
        rooted = np.zeros(len(urls), np.bool_)
        rooted[roots] = True
        template = _template(
            link_source, target, keep, url_site, options.drop_template_links
        )
        keep &= ~(template & ~rooted[link_source])
    link_start, chosen = filtered(link_start, keep)
    versions = _with_targets(
        versions, captured, len(urls), url_target, link_start, target[chosen]
    )
    content = versions["content"]
    version_link_start, which = taken(link_start, content)
    version_links = chosen[which]

    about = {
        topic: np.unique(content_url[texts.has_words(tokenise(topic))]).tolist()
        for topic in options.topics
    }
    labels, label_start, label = _labels(builder, urls, about)
    for name in (name for name in options.target_labels if name in labels):
        owners = np.repeat(np.arange(len(urls)), np.diff(label_start))
        url_target[owners[label == labels.index(name)]] = True
    words = [url_words(url, ending=options.url_endings) for url in urls]
    vocabulary = texts.choose_words(words, options.vocabulary)
    link_texts = texts.link_texts(np.unique(version_links))
    return Trace.build(
        _meta(builder, [urls[root] for root in roots]),
        urls=urls,
        sites=site_list,
        labels=labels,
        vocabulary=vocabulary,
        tag_paths=texts.tag_paths,
        url_site=url_site,
        url_target=url_target,
        url_label_start=label_start,
        url_label=label,
        **texts.url_tokens(words),
        version_start=np.searchsorted(versions["url"], np.arange(len(urls) + 1)),
        version_seen=versions["seen"],
        version_published=versions["published"],
        version_status=versions["status"],
        version_bytes=versions["bytes"],
        version_hash=versions["hash"],
        link_start=version_link_start,
        link_target=target[version_links],
        link_text=link_texts.pop("of_link")[version_links],
        **link_texts,
        **texts.page_texts(content),
    )


def _versions(builder: Builder) -> dict[str, np.ndarray]:
    """Return the captures as versions: in order of URL and time, repeats merged."""
    columns = {
        name: np.array(getattr(builder.captures, name))
        for name in ("url", "seen", "published", "status", "bytes", "hash", "content")
    }
    url, seen, status = columns["url"], columns["seen"], columns["status"]
    # At one moment, an answer that succeeded goes before one that failed or moved.
    order = np.lexsort((status // 100 != 2, seen, url))
    url, seen = url[order], seen[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (url[1:] != url[:-1]) | (seen[1:] != seen[:-1])
    twice = np.flatnonzero(~first)
    if len(twice):
        where = list(builder.urls)[int(url[twice[0]])]
        builder.notes.add("same moment", where, len(twice))
    order = order[first]
    columns = {name: column[order] for name, column in columns.items()}
    changed = np.ones(len(order), np.bool_)
    same = [columns[n][1:] == columns[n][:-1] for n in ("url", "status", "hash")]
    changed[1:] = ~(same[0] & same[1] & same[2])
    return {name: column[changed] for name, column in columns.items()}


def _with_targets(
    versions: dict[str, np.ndarray],
    captured: int,
    urls: int,
    url_target: np.ndarray,
    link_start: np.ndarray,
    link_target: np.ndarray,
) -> dict[str, np.ndarray]:
    """Add a version without content for each target that was only linked to.

    It is there from the first moment at which a link to it was seen.
    """
    start, which = taken(link_start, versions["content"])
    seen = np.full(urls, np.iinfo(np.int64).max)
    of_link = np.repeat(versions["seen"], np.diff(start))
    np.minimum.at(seen, link_target[which], of_link)
    added = np.flatnonzero(url_target[captured:]) + captured
    added = added[seen[added] < np.iinfo(np.int64).max]
    rows = {
        "url": added,
        "seen": seen[added],
        "published": seen[added],
        "status": np.full(len(added), 200),
        "bytes": np.zeros(len(added)),
        "hash": np.zeros(len(added)),
        "content": np.full(len(added), NO_CONTENT),
    }
    return {
        name: np.concatenate([column, rows[name].astype(column.dtype)])
        for name, column in versions.items()
    }


def _matching(urls: list[str], targets: str | None) -> np.ndarray:
    if targets is None:
        return np.zeros(len(urls), np.bool_)
    pattern = re.compile(targets, re.IGNORECASE)
    return np.array([bool(pattern.search(url)) for url in urls], np.bool_)


def _first_source(
    link_url: np.ndarray, link_source: np.ndarray, linked: int
) -> np.ndarray:
    """Return for each linked URL the captured URL that links to it first, or -1."""
    source = np.full(linked, -1, np.int32)
    seen = link_source >= 0
    source[link_url[seen][::-1]] = link_source[seen][::-1]
    return source


def _template(
    source: np.ndarray,
    target: np.ndarray,
    keep: np.ndarray,
    url_site: np.ndarray,
    share: float,
) -> np.ndarray:
    """Say of each link whether more than ``share`` of the site's pages have it."""
    pairs = np.unique(np.stack([source[keep], target[keep]]), axis=1)
    linking = np.bincount(url_site[np.unique(pairs[0])], minlength=url_site.max() + 1)
    targets = url_site.size
    key = url_site[pairs[0]].astype(np.int64) * targets + pairs[1]
    keys, counts = np.unique(key, return_counts=True)
    pages = linking[keys // targets]
    common = keys[(counts > share * pages) & (pages >= FEWEST_FOR_TEMPLATE)]
    own = url_site[np.maximum(source, 0)].astype(np.int64) * targets + target
    return np.isin(own, common) & keep


def _labels(
    builder: Builder, urls: list[str], about: dict[str, list[int]]
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return the names of labels, and each URL's: those given, and its topics."""
    table = builder.options.labels
    known = set(urls)
    odd = [url for url in table.labels if url not in known]
    if odd:
        builder.notes.add("odd label", odd[0], len(odd))
    rows = [list(table.labels.get(url, [])) for url in urls]
    for topic, pages in about.items():
        for page in pages:
            if page >= 0 and topic not in rows[page]:
                rows[page].append(topic)
    names = sorted({name for row in rows for name in row} | about.keys())
    number = {name: i for i, name in enumerate(names)}
    start = offsets(np.fromiter(map(len, rows), np.int64, len(rows)))
    flat = [number[name] for row in rows for name in row]
    return names, start, np.array(flat, np.int32)


def _meta(builder: Builder, roots: list[str]) -> dict[str, Any]:
    options = builder.options
    meta: dict[str, Any] = {"name": options.name}
    for key in ("title", "source", "licence"):
        if getattr(options, key) is not None:
            meta[key] = getattr(options, key)
    topics = {topic: tokenise(topic) for topic in options.topics}
    if topics:
        meta["topics"] = topics
    return {
        **meta,
        "recorder": builder.recorder,
        "options": options.described(),
        "warnings": dict(sorted(builder.notes.counts.items())),
        "roots": roots,
    }
