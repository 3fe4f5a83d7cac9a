"""The hubs of a generated site: when they change and what they list.

Home page, sections and subsections list the newest of the articles that they show, so
an article fades from them as newer ones push it out; list pages keep it for good.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gym_webforage.trace.synthetic_links import Choice, Links, any_group, groups_of
from gym_webforage.trace.synthetic_pages import (
    ARTICLE,
    BEGIN,
    HOME,
    INDEX,
    LIST,
    LIST_LENGTH,
    LIST_STEP,
    REFERENCE_URLS,
    SECTION,
    SUBSECTION,
    TAG,
    Array,
    Pages,
    Shelf,
    ragged,
)
from gym_webforage.trace.trace import MILLISECONDS_A_DAY

if TYPE_CHECKING:
    from gym_webforage.trace.synthetic import Recipe

MINUTE = 60_000

# Few articles are on several hubs: those that are close many triangles of links.
HOME_SHOWS = 0.15  # of the articles, the fittest
SECTION_SHOWS = 0.2
SUBSECTION_SHOWS = 0.15  # others than the section; the rest are on list pages only

NEWEST = {HOME: 25, SECTION: 25, SUBSECTION: 20}  # articles listed by a hub
POPULAR = {HOME: 8, SECTION: 5, SUBSECTION: 3}  # articles kept for a day
SHOWN_DOSSIERS = 4
SHOWN_TAGS = 4
TAG_LENGTH = 30
TAG_VERSIONS = 3
INDEX_MINUTES = 24 * 60.0  # between versions of the index of a section
SKIP = 30  # list pages link one page back, this many, and so on

# The hub above each hub, to which it links.
ABOVE = {SECTION: HOME, INDEX: SECTION, SUBSECTION: SECTION, LIST: INDEX, TAG: SECTION}


def make_hubs(
    recipe: Recipe, pages: Pages, choice: Choice, links: Links
) -> tuple[Array, Array]:
    """Return URL and time of the versions of all hubs, sorted, and link them."""
    url, seen = _versions(recipe, pages, choice.rng)
    hubs = _Hubs(pages, url, seen, choice, links)
    hubs.link_hierarchy()
    for kind in (HOME, SECTION, SUBSECTION):
        hubs.link_news(kind)
        hubs.link_popular(kind)
    hubs.link_dossiers()
    hubs.link_tags()
    hubs.link_archive()
    return url, seen


def _versions(
    recipe: Recipe, pages: Pages, rng: np.random.Generator
) -> tuple[Array, Array]:
    """A hub changes at its own pace, and only if there is news for it."""
    # A smaller site is edited less often.
    stretch = max(1.0, (REFERENCE_URLS * recipe.sites / recipe.urls) ** 0.5)
    articles = pages.ids(ARTICLE)
    news = articles[pages.born[articles] > BEGIN]
    found = [_list_versions(pages)]
    for kind, minutes in (
        (HOME, recipe.home_minutes),
        (SECTION, recipe.section_minutes),
        (SUBSECTION, recipe.subsection_minutes),
        (INDEX, INDEX_MINUTES),
    ):
        hubs = pages.ids(kind)
        shown = news[_shown(pages, kind)[news - articles[0]]]
        hub = _scope(pages, kind)[shown]
        interval = round(minutes * MINUTE * stretch)
        phase = rng.integers(1, interval, len(hubs))[hub]
        tick = -(-(pages.born[shown] - BEGIN - phase) // interval)
        found.append((hubs, np.full(len(hubs), BEGIN)))
        found.append((hubs[hub], BEGIN + phase + tick * interval))
    tags = pages.ids(TAG)
    for turn in range(TAG_VERSIONS):
        time = BEGIN + (pages.end - BEGIN) * turn // TAG_VERSIONS
        found.append((tags, np.full(len(tags), time)))
    url = np.concatenate([hub for hub, _ in found])
    seen = np.concatenate([time for _, time in found])
    order = np.lexsort((seen, url))
    url, seen = url[order], seen[order]
    kept = (np.diff(url, prepend=-1) != 0) | (np.diff(seen, prepend=-1) != 0)
    kept &= seen <= pages.end
    return url[kept], seen[kept]


def _list_versions(pages: Pages) -> tuple[Array, Array]:
    """A list page changes when a step of it is full, or its group has no more."""
    articles = pages.ids(ARTICLE)
    group = pages.group[articles]
    number = np.arange(len(articles))
    place = number - pages.group_start[group]
    last = number + 1 == pages.group_start[group + 1]
    full = ((place + 1) % LIST_STEP == 0) | last
    full &= pages.born[articles] > BEGIN
    page = pages.first[LIST] + pages.group_lists[group] + place // LIST_LENGTH
    lists = pages.ids(LIST)
    old = lists[pages.born[lists] == BEGIN]
    return (
        np.concatenate([old, page[full]]),
        np.concatenate([np.full(len(old), BEGIN), pages.born[articles[full]]]),
    )


def _scope(pages: Pages, kind: int) -> Array:
    """Return for each URL the number of the hub of a kind that it is below."""
    if kind == HOME:
        return pages.site
    return pages.group if kind == SUBSECTION else pages.part


def _shown(pages: Pages, kind: int) -> Array:
    """Return which articles the hubs of a kind show while they are new."""
    if kind == HOME:
        return pages.fitness >= np.quantile(pages.fitness, 1 - HOME_SHOWS)
    if kind == SECTION:
        return pages.prominence < SECTION_SHOWS
    if kind == SUBSECTION:
        return pages.prominence > 1 - SUBSECTION_SHOWS
    return np.ones(len(pages.fitness), bool)


@dataclass(frozen=True)
class _Hubs:
    """The versions of all hubs, to be linked part by part, in page order."""

    pages: Pages
    url: Array
    seen: Array
    choice: Choice
    links: Links

    @cached_property
    def _kind(self) -> Array:
        return self.pages.kind[self.url]

    def _of(self, kind: int) -> tuple[Array, Array, Array]:
        """Return the versions of hubs of a kind with their URLs and times."""
        version = np.flatnonzero(self._kind == kind)
        return version, self.url[version], self.seen[version]

    def link_hierarchy(self) -> None:
        """Link every hub to the one above it and to those below it."""
        pages = self.pages
        for kind, above in ABOVE.items():
            version, url, _ = self._of(kind)
            self.links.add(version, pages.first[above] + _scope(pages, above)[url])
        for kind, below, scope_of_lower in (
            (HOME, SECTION, pages.part_site),
            (SECTION, SUBSECTION, pages.group_part),
        ):
            version, url, _ = self._of(kind)
            start, count = groups_of(scope_of_lower, _scope(pages, kind)[url])
            owner, found = ragged(pages.first[below] + start, count)
            self.links.add(version[owner], found)
        version, url, _ = self._of(SECTION)
        self.links.add(version, pages.first[INDEX] + pages.part[url])

    def link_news(self, kind: int) -> None:
        """Link to the newest of the articles that a hub shows."""
        shown = self.pages.ids(ARTICLE)[_shown(self.pages, kind)]
        self._link_newest(kind, kind, shown, NEWEST[kind])

    def link_dossiers(self) -> None:
        """Link subsections to their newest dossiers."""
        dossiers = self.pages.ids(ARTICLE)[self.pages.dossier]
        self._link_newest(SUBSECTION, SUBSECTION, dossiers, SHOWN_DOSSIERS)

    def link_tags(self) -> None:
        """Link sections and subsections to tag pages, and those to fit articles."""
        pages, tags = self.pages, self.pages.ids(TAG)
        for kind in (SECTION, SUBSECTION):
            self._link_newest(kind, SECTION, tags, SHOWN_TAGS)
        version, url, seen = (np.repeat(of, TAG_LENGTH) for of in self._of(TAG))
        group = any_group(pages.group_part, pages.part[url], self.choice.rng)
        self.links.add(version, self.choice.draw(group, seen))

    def _link_newest(self, kind: int, below: int, ids: Array, count: int) -> None:
        """Link hubs of a kind to the newest of ``ids`` below their ``below`` hub."""
        pages = self.pages
        scope, hubs = _scope(pages, below), len(pages.ids(below))
        version, url, seen = self._of(kind)
        shelf = Shelf(scope[ids], pages.born[ids], ids, hubs)
        owner, found = shelf.newest(scope[url], seen, count)
        self.links.add(version[owner], found)

    def link_popular(self, kind: int) -> None:
        """Link to some fit articles, the same ones for a whole day."""
        pages, count, rng = self.pages, POPULAR[kind], self.choice.rng
        hubs = pages.ids(kind)
        days = int((pages.end - BEGIN) // MILLISECONDS_A_DAY) + 1
        hub = np.repeat(hubs, days * count)
        day = np.tile(np.repeat(np.arange(days), count), len(hubs))
        if kind == SUBSECTION:
            group = pages.group[hub]
        else:
            of_group = pages.group_site if kind == HOME else pages.group_part
            group = any_group(of_group, _scope(pages, kind)[hub], rng)
        chosen = self.choice.draw(group, BEGIN + day * MILLISECONDS_A_DAY)
        version, url, seen = self._of(kind)
        row = (url - hubs[0]) * days + (seen - BEGIN) // MILLISECONDS_A_DAY
        owner, index = ragged(row * count, np.full(len(version), count))
        self.links.add(version[owner], chosen[index])

    def link_archive(self) -> None:
        """Link the indices to list pages, and those backwards and to articles."""
        pages = self.pages
        lists, articles = pages.ids(LIST), pages.ids(ARTICLE)
        version, url, seen = self._of(INDEX)
        owner, group = ragged(*groups_of(pages.group_part, pages.part[url]))
        shelf = Shelf(
            pages.group[lists], pages.born[lists], lists, len(pages.group_site)
        )
        listed, found = shelf.newest(group, seen[owner], 1)
        self.links.add(version[owner[listed]], found)

        version, url, seen = self._of(LIST)
        group = pages.group[url]
        number = url - lists[0] - pages.group_lists[group]
        step = 1
        while (number >= step).any():
            self.links.add(version, np.where(number >= step, url - step, -1))
            step *= SKIP
        opening = pages.group_start[group] + number * LIST_LENGTH
        most = np.minimum(LIST_LENGTH, pages.group_start[group + 1] - opening)
        owner, found = ragged(opening, most)
        there = pages.born[articles[found]] <= seen[owner]
        self.links.add(version[owner[there]], articles[found[there]])
