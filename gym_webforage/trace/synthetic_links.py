"""The versions of the generated pages over time, and the links of each version.

A page never links to another one that is not there yet. Articles choose their links by
class, by recency and by the other article's fitness; hubs list the newest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gym_webforage.trace.synthetic_pages import (
    ARTICLE,
    BEGIN,
    DEAD,
    DOCUMENT,
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

# The hub above each hub, to which it links.
UP = {SECTION: HOME, INDEX: SECTION, SUBSECTION: SECTION, LIST: INDEX, TAG: SECTION}

MINUTE = 60_000
HOUR = 60 * MINUTE

FRONT_PAGE = 0.25  # of the articles, the fittest, are shown on the home page as well
SECTION_PAGE = 0.2  # are shown on their section's page,
SUBSECTION_PAGE = 0.2  # on their subsection's, and the others on list pages only
SKIP = 30  # list pages link one page back, this many, and so on
INDEX_HOURS = 24.0  # between versions of the index of a section
NEWEST = {HOME: 25, SECTION: 25, SUBSECTION: 20}  # articles listed by a hub
POPULAR = {HOME: 8, SECTION: 5, SUBSECTION: 3}  # articles kept for a day
SHOWN_DOSSIERS = 4
SHOWN_TAGS = 4
TAG_LENGTH = 30
TAG_VERSIONS = 3
RECENT = 300  # articles among which recency makes no difference
DEAD_LINKS = 3  # to each URL that was never recorded
REDRAWN = 0.15  # of an article's links when it is updated


@dataclass(frozen=True)
class Versions:
    """The rows of the tables of versions and links, in their order."""

    url: Array
    seen: Array
    published: Array
    gone: Array
    link_start: Array
    link_target: Array


class _Links:
    """Collects links as (version, target) and sorts them by version in the end."""

    def __init__(self) -> None:
        self.version: list[Array] = []
        self.target: list[Array] = []

    def add(self, version: Array, target: Array) -> None:
        """Put links behind those that the versions have already."""
        self.version.append(version)
        self.target.append(target)

    def sorted(self) -> tuple[Array, Array]:
        """Return all links in page order, each target once a version."""
        version, target = np.concatenate(self.version), np.concatenate(self.target)
        key = (version.astype(np.int64) << 32) | target
        order = np.argsort(key, kind="stable")
        key = key[order]
        first = np.ones(len(key), bool)
        first[1:] = key[1:] != key[:-1]
        kept = np.sort(order[first])  # back in the order in which they were added
        version, target = version[kept], target[kept]
        order = np.argsort(version, kind="stable")
        return version[order], target[order]


class _Choice:
    """Chooses articles by group, time and fitness, the recent ones rather."""

    def __init__(self, pages: Pages, rng: np.random.Generator) -> None:
        self.rng = rng
        born = pages.born[pages.ids(ARTICLE)]
        group = pages.group[pages.ids(ARTICLE)]
        groups = len(pages.group_site)
        self.shelf = Shelf(group, born, np.arange(len(born)), groups)
        self.passed = np.concatenate([[0], np.cumsum(pages.fitness)])

    def draw(self, group: Array, time: Array) -> Array:
        """Return an article of each group from before each time, or -1.

        The horizon, counted in articles, is log-uniform, and within it the chance of
        an article is its fitness: the recent are preferred without a typical age.
        """
        end = self.shelf.end(group, time - 1)
        return self.draw_before(end, end - self.shelf.start[group])

    def draw_before(self, end: Array, available: Array) -> Array:
        """Return one of the ``available`` articles before position ``end``, or -1."""
        near = np.minimum(available, RECENT)
        horizon = near * (available / np.maximum(near, 1)) ** self.rng.random(len(end))
        begin = end - np.ceil(horizon).astype(np.int64)
        low, high = self.passed[begin], self.passed[end]
        wanted = low + self.rng.random(len(end)) * (high - low)
        found = np.searchsorted(self.passed, wanted, "right") - 1
        return np.where(available > 0, np.clip(found, begin, end - 1), -1)


def make_versions(recipe: Recipe, pages: Pages, rng: np.random.Generator) -> Versions:
    """Decide when each page changes and what it links to."""
    choice = _Choice(pages, rng)
    links = _Links()
    hub_url, hub_seen = _hub_versions(recipe, pages, rng)
    _link_hubs(pages, hub_url, hub_seen, choice, links)
    article, seen, gone = _article_versions(recipe, pages, rng)
    _link_articles(recipe, pages, article, seen, gone, len(hub_url), choice, links)

    documents = pages.ids(DOCUMENT)
    url = np.concatenate([hub_url, pages.first[ARTICLE] + article, documents])
    seen = np.concatenate([hub_seen, seen, pages.seen[documents]])
    gone = np.concatenate(
        [np.zeros(len(hub_url), bool), gone, np.zeros(len(documents), bool)]
    )
    version, target = links.sorted()
    link_start = np.searchsorted(version, np.arange(len(url) + 1))
    # An archived page keeps the date from before the recording.
    published = np.where(seen == BEGIN, pages.born[url], seen)
    return Versions(url, seen, published, gone, link_start, target)


# --- hubs


def _hub_versions(
    recipe: Recipe, pages: Pages, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return URL and time of the versions of all hubs, sorted."""
    stretch = max(1.0, (REFERENCE_URLS * recipe.sites / recipe.urls) ** 0.5)
    articles = pages.ids(ARTICLE)
    news = articles[pages.born[articles] > BEGIN]
    found = []
    for kind, minutes in (
        (HOME, recipe.home_minutes),
        (SECTION, recipe.section_minutes),
        (SUBSECTION, recipe.subsection_minutes),
        (INDEX, INDEX_HOURS * 60),
    ):
        hubs = pages.ids(kind)
        scope = _scope(pages, kind)
        shown = news[_shown(pages, kind)[news - articles[0]]]
        interval = round(minutes * MINUTE * stretch)
        phase = rng.integers(1, interval, len(hubs))[scope[shown]]
        tick = -(-(pages.born[shown] - BEGIN - phase) // interval)
        time = BEGIN + phase + tick * interval
        found.append((hubs, np.full(len(hubs), BEGIN)))
        found.append((hubs[scope[shown]], time))
    tags = pages.ids(TAG)
    for turn in range(TAG_VERSIONS):
        time = BEGIN + (pages.end - BEGIN) * turn // TAG_VERSIONS
        found.append((tags, np.full(len(tags), time)))
    found.append(_list_versions(pages))
    url = np.concatenate([hub for hub, _ in found])
    seen = np.concatenate([time for _, time in found])
    order = np.lexsort((seen, url))
    url, seen = url[order], seen[order]
    fresh = np.ones(len(url), bool)
    fresh[1:] = (url[1:] != url[:-1]) | (seen[1:] != seen[:-1])
    fresh &= seen <= pages.end
    return url[fresh], seen[fresh]


def _scope(pages: Pages, kind: int) -> Array:
    """Return for each URL the number of the hub of a kind that is above it."""
    if kind == HOME:
        return pages.site
    return pages.group if kind == SUBSECTION else pages.part


def _shown(pages: Pages, kind: int) -> Array:
    """Return which articles the hubs of a kind show while they are new."""
    count = len(pages.fitness)
    if kind == HOME:
        return pages.fitness >= np.quantile(pages.fitness, 1 - FRONT_PAGE)
    if kind == INDEX:
        return np.ones(count, bool)
    if kind == SECTION:
        return pages.prominence < SECTION_PAGE
    return pages.prominence > 1 - SUBSECTION_PAGE


def _list_versions(pages: Pages) -> tuple[Array, Array]:
    """A list page changes when a step of it is full, or its group has no more."""
    articles = pages.ids(ARTICLE)
    group = pages.group[articles]
    place = np.arange(len(articles)) - pages.group_start[group]
    last = np.arange(len(articles)) + 1 == pages.group_start[group + 1]
    full = ((place + 1) % LIST_STEP == 0) | last
    full &= pages.born[articles] > BEGIN
    page = pages.first[LIST] + pages.group_lists[group] + place // LIST_LENGTH
    lists = pages.ids(LIST)
    old = lists[pages.born[lists] == BEGIN]
    return (
        np.concatenate([old, page[full]]),
        np.concatenate([np.full(len(old), BEGIN), pages.born[articles[full]]]),
    )


def _link_hubs(
    pages: Pages, url: Array, seen: Array, choice: _Choice, links: _Links
) -> None:
    articles = pages.ids(ARTICLE)
    dossiers = articles[pages.dossier]
    groups, parts = len(pages.group_site), len(pages.part_site)
    sites = int(pages.first[SECTION])
    version = np.arange(len(url))
    kind = np.searchsorted(pages.first, url, "right") - 1

    # Navigation: one step up, then down.
    for lower, upper in UP.items():
        here = version[kind == lower]
        above = _scope(pages, upper)[url[here]]
        links.add(here, pages.first[upper] + above)
    _link_range(pages, kind == HOME, url, pages.site, pages.part_site, SECTION, links)
    _link_range(
        pages, kind == SECTION, url, pages.part, pages.group_part, SUBSECTION, links
    )
    here = version[kind == SECTION]
    links.add(here, pages.first[INDEX] + pages.part[url[here]])

    for which, scopes in ((HOME, sites), (SECTION, parts), (SUBSECTION, groups)):
        here = version[kind == which]
        scope = _scope(pages, which)
        shown = articles[_shown(pages, which)]
        shelf = Shelf(scope[shown], pages.born[shown], shown, scopes)
        owner, found = shelf.newest(scope[url[here]], seen[here], NEWEST[which])
        links.add(here[owner], found)
        _link_popular(pages, here, which, url, seen, choice, links)

    here = version[kind == SUBSECTION]
    shelf = Shelf(pages.group[dossiers], pages.born[dossiers], dossiers, groups)
    owner, found = shelf.newest(pages.group[url[here]], seen[here], SHOWN_DOSSIERS)
    links.add(here[owner], found)
    # An index leads to the newest list page of each class of its section.
    here = version[kind == INDEX]
    part = pages.part[url[here]]
    low = np.searchsorted(pages.group_part, part)
    owner, group = ragged(low, np.searchsorted(pages.group_part, part, "right") - low)
    lists = pages.ids(LIST)
    shelf = Shelf(pages.group[lists], pages.born[lists], lists, groups)
    listed, found = shelf.newest(group, seen[here[owner]], 1)
    links.add(here[owner[listed]], found)
    tags = pages.ids(TAG)
    here = version[(kind == SECTION) | (kind == SUBSECTION)]
    shelf = Shelf(pages.part[tags], pages.born[tags], tags, parts)
    owner, found = shelf.newest(pages.part[url[here]], seen[here], SHOWN_TAGS)
    links.add(here[owner], found)

    _link_lists(pages, version[kind == LIST], url, seen, links)
    here = np.repeat(version[kind == TAG], TAG_LENGTH)
    group = _any_group(pages.group_part, pages.part[url[here]], choice.rng)
    found = choice.draw(group, seen[here])
    links.add(here[found >= 0], articles[found[found >= 0]])


def _link_range(
    pages: Pages,
    here: Array,
    url: Array,
    scope: Array,
    scope_of_lower: Array,
    lower: int,
    links: _Links,
) -> None:
    """Link hubs to all hubs below them, which have consecutive ids."""
    version = np.flatnonzero(here)
    wanted = scope[url[version]]
    low = np.searchsorted(scope_of_lower, wanted)
    high = np.searchsorted(scope_of_lower, wanted, "right")
    owner, found = ragged(pages.first[lower] + low, high - low)
    links.add(version[owner], found)


def _link_popular(
    pages: Pages,
    here: Array,
    kind: int,
    url: Array,
    seen: Array,
    choice: _Choice,
    links: _Links,
) -> None:
    """Link to some fit articles, the same ones for a whole day."""
    hubs = pages.ids(kind)
    days = int((pages.end - BEGIN) // MILLISECONDS_A_DAY) + 1
    hub = np.repeat(hubs, days * POPULAR[kind])
    day = np.tile(np.repeat(np.arange(days), POPULAR[kind]), len(hubs))
    if kind == HOME:
        group = _any_group(pages.group_site, pages.site[hub], choice.rng)
    elif kind == SECTION:
        group = _any_group(pages.group_part, pages.part[hub], choice.rng)
    else:
        group = pages.group[hub]
    found = choice.draw(group, BEGIN + day * MILLISECONDS_A_DAY)
    of_day = (url[here] - hubs[0]) * days + (seen[here] - BEGIN) // MILLISECONDS_A_DAY
    count = np.full(len(here), POPULAR[kind])
    owner, index = ragged(of_day * POPULAR[kind], count)
    version, found = here[owner], found[index]
    links.add(version[found >= 0], pages.first[ARTICLE] + found[found >= 0])


def _any_group(scope_of_group: Array, scope: Array, rng: np.random.Generator) -> Array:
    """Draw one of the groups of each scope, which are consecutive."""
    scopes = np.arange(int(scope_of_group[-1]) + 2)
    start = np.searchsorted(scope_of_group, scopes)
    count = np.diff(start)
    return start[scope] + (rng.random(len(scope)) * count[scope]).astype(np.int64)


def _link_lists(
    pages: Pages, here: Array, url: Array, seen: Array, links: _Links
) -> None:
    """List pages lead one page back, then farther, then to their own articles."""
    group = pages.group[url[here]]
    chunk = url[here] - pages.first[LIST] - pages.group_lists[group]
    step = 1
    while (chunk >= step).any():
        back = chunk >= step
        links.add(here[back], url[here[back]] - step)
        step *= SKIP
    opening = pages.group_start[group] + chunk * LIST_LENGTH
    most = np.minimum(LIST_LENGTH, pages.group_start[group + 1] - opening)
    articles = pages.ids(ARTICLE)
    owner, found = ragged(opening, most)
    there = pages.born[articles[found]] <= seen[here[owner]]
    links.add(here[owner[there]], articles[found[there]])


# --- articles


def _article_versions(
    recipe: Recipe, pages: Pages, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Return article, time and whether it is gone, sorted by article and time."""
    articles = pages.ids(ARTICLE)
    born, count = pages.born[articles], len(articles)
    everyone = np.arange(count)
    later = []
    changing = everyone[(rng.random(count) < recipe.updated) & (born > BEGIN)]
    time = born[changing]
    while len(changing):
        # Hours at first: half of the updates come within three.
        time = time + 1 + rng.lognormal(np.log(3 * HOUR), 1.2, len(time)).astype(int)
        later.append((changing, time))
        again = rng.random(len(changing)) < 0.4
        changing, time = changing[again], time[again]
    # A dossier is brought up to date when its last document is there.
    document = pages.seen[pages.ids(DOCUMENT)]
    newest = np.zeros(count, np.int64)
    np.maximum.at(newest, pages.document_dossier, document)
    added = everyone[newest > pages.seen[articles]]
    later.append((added, newest[added]))

    vanishing = everyone[(rng.random(count) < recipe.vanished) & ~pages.dossier]
    earliest = pages.seen[articles[vanishing]] + MILLISECONDS_A_DAY
    span = np.maximum(pages.end - earliest, 0)
    last = np.full(count, pages.end + 1)
    moment = earliest + (rng.random(len(span)) * span).astype(np.int64)
    in_time = moment <= pages.end
    vanishing = vanishing[in_time]
    last[vanishing] = moment[in_time]

    article = np.concatenate([everyone, *(which for which, _ in later)])
    seen = np.concatenate([pages.seen[articles], *(time for _, time in later)])
    kept = seen < last[article]
    gone = np.zeros(int(kept.sum()) + len(vanishing), bool)
    gone[len(gone) - len(vanishing) :] = True
    article = np.concatenate([article[kept], vanishing])
    seen = np.concatenate([seen[kept], last[vanishing]])
    order = np.lexsort((seen, article))
    article, seen, gone = article[order], seen[order], gone[order]
    fresh = np.ones(len(article), bool)
    fresh[1:] = (article[1:] != article[:-1]) | (seen[1:] != seen[:-1])
    return article[fresh], seen[fresh], gone[fresh]


def _link_articles(
    recipe: Recipe,
    pages: Pages,
    article: Array,
    seen: Array,
    gone: Array,
    before: int,
    choice: _Choice,
    links: _Links,
) -> None:
    """Link all versions of the articles; ``before`` other versions precede them."""
    rng = choice.rng
    articles = pages.ids(ARTICLE)
    degree = _degrees(recipe, len(articles), rng)
    degree[pages.dossier] += recipe.most_links // 5
    start = np.concatenate([[0], np.cumsum(degree)])
    source = np.repeat(np.arange(len(articles)), degree)
    target = _chosen(recipe, pages, source, choice)
    target = np.where(target >= 0, target + articles[0], -1)
    _navigate(recipe, pages, source, start, target, rng)

    first = np.ones(len(article), bool)
    first[1:] = article[1:] != article[:-1]
    links.add(before + np.flatnonzero(first)[source[target >= 0]], target[target >= 0])

    later = np.flatnonzero(~first & ~gone)
    owner, index = ragged(start[article[later]], degree[article[later]])
    version, target = later[owner], target[index]
    redrawn = np.flatnonzero(rng.random(len(target)) < REDRAWN)
    group = pages.group[articles[article[version[redrawn]]]]
    found = choice.draw(group, seen[version[redrawn]])
    itself = found == article[version[redrawn]]
    target[redrawn] = np.where((found < 0) | itself, -1, found + articles[0])
    links.add(before + version[target >= 0], target[target >= 0])

    # Dossiers, and sometimes another article, link to documents that are there.
    documents = pages.ids(DOCUMENT)
    extra = rng.random(len(documents)) < recipe.second_dossier
    others = np.flatnonzero(pages.dossier)
    presenter = np.concatenate(
        [pages.document_dossier, rng.choice(others, int(extra.sum()))]
    )
    presented = np.concatenate([documents, documents[extra]])
    order = np.argsort(presenter, kind="stable")
    presenter, presented = presenter[order], presented[order]
    here = np.flatnonzero(pages.dossier[article] & ~gone)
    low = np.searchsorted(presenter, article[here])
    high = np.searchsorted(presenter, article[here], "right")
    owner, index = ragged(low, high - low)
    there = pages.seen[presented[index]] <= seen[here[owner]]
    links.add(before + here[owner[there]], presented[index[there]])


def _degrees(recipe: Recipe, count: int, rng: np.random.Generator) -> Array:
    """Draw numbers of links from a power law that ends at ``most_links``."""
    chance = np.arange(1, recipe.most_links + 1, dtype=float) ** -recipe.out_exponent
    passed = np.cumsum(chance)
    return np.searchsorted(passed, rng.random(count) * passed[-1], "right") + 1


def _chosen(recipe: Recipe, pages: Pages, source: Array, choice: _Choice) -> Array:
    """Choose an earlier article for each link: own class, own section or any."""
    rng = choice.rng
    articles = pages.ids(ARTICLE)
    own = pages.group[articles][source]
    scope = rng.random(len(source))
    near = scope < recipe.same_class
    target = np.empty(len(source), np.int64)
    place = source[near]
    target[near] = choice.draw_before(place, place - pages.group_start[own[near]])

    far = np.flatnonzero(~near)
    in_section = scope[far] < recipe.same_class + recipe.same_section
    abroad = scope[far] >= 1 - recipe.other_site
    own = own[far]
    group = _any_group(pages.group_site, pages.group_site[own], rng)
    sections = pages.group_part[own[in_section]]
    group[in_section] = _any_group(pages.group_part, sections, rng)
    anywhere = rng.integers(len(pages.group_site), size=int(abroad.sum()))
    group[abroad] = anywhere
    target[far] = choice.draw(group, pages.born[articles[source[far]]])
    return target


def _navigate(
    recipe: Recipe,
    pages: Pages,
    source: Array,
    start: Array,
    target: Array,
    rng: np.random.Generator,
) -> None:
    """Turn some links into links to hubs, tags and URLs that were never recorded."""
    articles = pages.ids(ARTICLE)
    count = len(articles)
    up = (rng.random(count) < recipe.hub_link) & (np.diff(start) > 0)
    first = start[:-1][up]
    target[first] = pages.first[SUBSECTION] + pages.group[articles[up]]
    # Who finds nothing earlier to link to links to the hub.
    lost = np.flatnonzero(target < 0)
    target[lost] = pages.first[SUBSECTION] + pages.group[articles[source[lost]]]
    dead = np.repeat(pages.ids(DEAD), DEAD_LINKS)
    target[rng.integers(len(target), size=len(dead))] = dead
