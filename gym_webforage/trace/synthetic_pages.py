"""The pages of a generated news site: what exists, where it belongs and since when.

URL ids run by kind, in the order of ``KINDS``; articles are sorted by group (a class of
a site) and time, so that the articles of a list page have consecutive ids.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gym_webforage.trace.trace import MILLISECONDS_A_DAY, from_iso

if TYPE_CHECKING:
    from gym_webforage.trace.synthetic import Recipe

Array = np.ndarray

BEGIN = from_iso("2026-03-02T00:00:00Z")  # a Monday
ARCHIVE_DAYS = 365
SECTIONS = 10
LIST_LENGTH = 40  # articles of a full list page
LIST_STEP = 10  # a list page shows new articles this many at a time
LEAST_ARTICLES = 40  # of a class: a smaller site covers fewer classes
TAGS = 0.005  # tag pages, as a share of all URLs
REFERENCE_URLS = 40_000  # the size of a site whose hubs change at the full pace

HOME, SECTION, INDEX, SUBSECTION, LIST, TAG, ARTICLE, DOCUMENT, DEAD = range(9)
KINDS = (
    "home",
    "section",
    "index",  # of a section: leads to the list pages of its classes
    "subsection",
    "list",  # of all articles of a class, forty a page
    "tag",
    "article",
    "document",
    "dead",  # linked, but never recorded
)

_TIME_BITS = 40  # more than ten years of milliseconds
_ORIGIN = BEGIN - (ARCHIVE_DAYS + 1) * MILLISECONDS_A_DAY


def ragged(start: Array, count: Array) -> tuple[Array, Array]:
    """Expand ranges: return each entry's range and its value.

    >>> owner, value = ragged(np.array([5, 9]), np.array([2, 1]))
    >>> owner.tolist(), value.tolist()
    ([0, 0, 1], [5, 6, 9])
    """
    owner = np.repeat(np.arange(len(count)), count)
    offset = np.repeat(start - (np.cumsum(count) - count), count)
    return owner, offset + np.arange(len(owner))


class Shelf:
    """Pages sorted by scope and time, for asking what is there at a time."""

    def __init__(self, scope: Array, time: Array, ids: Array, scopes: int) -> None:
        key = _key(scope, time)
        order = np.argsort(key, kind="stable")
        self.key = key[order]
        self.ids = ids[order]
        self.start = np.searchsorted(
            self.key, np.arange(scopes + 1, dtype=np.int64) << _TIME_BITS
        )

    def end(self, scope: Array, time: Array) -> Array:
        """Return the position behind the last page of ``scope`` until ``time``."""
        return np.searchsorted(self.key, _key(scope, time), "right")

    def newest(self, scope: Array, time: Array, count: int) -> tuple[Array, Array]:
        """Return the ``count`` newest pages at each time, newest first.

        The first array says to which of the times a page belongs.
        """
        end = self.end(scope, time)
        found = np.minimum(end - self.start[scope], count)
        owner, position = ragged(1 - end, found)
        return owner, self.ids[-position]


def _key(scope: Array, time: Array) -> Array:
    return (np.asarray(scope, np.int64) << _TIME_BITS) | (time - _ORIGIN)


@dataclass(frozen=True)
class Pages:
    """All URLs. A *group* is a class of a site, a *part* a section of a site."""

    first: Array  # the first id of each kind, and the number of URLs at the end
    site: Array  # of each URL, as the next three
    group: Array  # -1 where the page belongs to no single class
    part: Array  # -1 for home pages and dead URLs
    born: Array  # when it was published, in milliseconds

    group_site: Array
    group_class: Array
    group_part: Array
    part_site: Array
    part_section: Array
    group_start: Array  # the first article of each group, counted from 0
    group_lists: Array  # the first list page of each group, counted from 0

    fitness: Array  # of each article: how often it is chosen when a page links
    prominence: Array  # of each article, from 0 to 1: decides which hubs show it
    dossier: Array  # of each article: whether it is one
    document_dossier: Array  # of each document: the article that presents it

    end: int

    def ids(self, kind: int) -> Array:
        """Return the ids of all pages of a kind."""
        return np.arange(self.first[kind], self.first[kind + 1])

    @property
    def kind(self) -> Array:
        """The kind of every URL."""
        return np.repeat(np.arange(len(KINDS), dtype=np.int8), np.diff(self.first))

    @property
    def seen(self) -> Array:
        """When each URL's first version is seen; the recording begins at ``BEGIN``."""
        return np.maximum(self.born, BEGIN)


def section_of(classes: Array, states: int) -> Array:
    """Return the section of each class: the classes are divided evenly."""
    return classes * min(SECTIONS, states) // states


def make_pages(recipe: Recipe, rng: np.random.Generator) -> Pages:
    """Decide which pages there are and when they appear."""
    end = BEGIN + round(recipe.days * MILLISECONDS_A_DAY)
    group_site, group_class = _groups(recipe, rng)
    group_section = section_of(group_class, recipe.states)
    parts, group_part = np.unique(
        group_site * SECTIONS + group_section, return_inverse=True
    )
    groups = len(group_site)

    weight = rng.gamma(4.0, size=groups)
    sizes, lists, tags, documents = _sizes(recipe, weight / weight.sum(), len(parts))
    articles = int(sizes.sum())
    group_start = np.concatenate([[0], np.cumsum(sizes)])
    group_lists = np.concatenate([[0], np.cumsum(lists)])
    group = np.repeat(np.arange(groups), sizes)

    new = min(round(recipe.daily * recipe.days * recipe.urls), round(0.7 * articles))
    times = np.concatenate(
        [_rhythm(rng, new, recipe.days), _archive(rng, articles - new)]
    )
    born = np.sort(_key(group, rng.permutation(times))) - _key(group, np.array(_ORIGIN))
    born = born + _ORIGIN

    # A Pareto fitness gives the in-degree its power-law tail.
    fitness = rng.pareto(recipe.in_exponent - 1, articles) + 1
    dossier = np.zeros(articles, bool)
    chosen = max(min(1, documents), round(recipe.dossiers * articles))
    dossier[rng.choice(articles, chosen, replace=False)] = True
    fitness[dossier] *= 3
    presented_by = _documents(rng, documents, dossier, group, groups)
    document_born = _document_times(rng, born[presented_by], end)

    list_group, chunk = ragged(np.zeros(groups, np.int64), lists)
    opening = group_start[list_group] + chunk * LIST_LENGTH
    shown = np.minimum(LIST_STEP, group_start[list_group + 1] - opening)
    # Of the archive whatever is there is shown, of the news a full step.
    list_born = np.where(born[opening] <= BEGIN, BEGIN, born[opening + shown - 1])

    tag_part = np.arange(tags) % len(parts)
    counts = [recipe.sites, len(parts), len(parts), groups, len(list_group), tags]
    counts += [articles, documents]
    counts.append(recipe.urls - sum(counts))
    hubs = recipe.sites + 2 * len(parts) + groups
    none = np.full(counts[-1], -1)
    all_groups = np.arange(groups)
    return Pages(
        first=np.concatenate([[0], np.cumsum(counts)]),
        site=np.concatenate(
            [
                np.arange(recipe.sites),
                np.tile(parts // SECTIONS, 2),
                group_site,
                group_site[list_group],
                parts[tag_part] // SECTIONS,
                group_site[group],
                group_site[group[presented_by]],
                rng.integers(recipe.sites, size=counts[-1]),
            ]
        ),
        group=np.concatenate(
            [
                np.full(recipe.sites + 2 * len(parts), -1),
                all_groups,
                list_group,
                np.full(tags, -1),
                group,
                group[presented_by],
                none,
            ]
        ),
        part=np.concatenate(
            [
                np.full(recipe.sites, -1),
                np.tile(np.arange(len(parts)), 2),
                group_part,
                group_part[list_group],
                tag_part,
                group_part[group],
                group_part[group[presented_by]],
                none,
            ]
        ),
        born=np.concatenate(
            [
                np.full(hubs, BEGIN),
                list_born,
                np.full(tags, BEGIN),
                born,
                document_born,
                np.full(counts[-1], BEGIN),
            ]
        ),
        group_site=group_site,
        group_class=group_class,
        group_part=group_part,
        part_site=parts // SECTIONS,
        part_section=parts % SECTIONS,
        group_start=group_start,
        group_lists=group_lists,
        fitness=fitness,
        prominence=rng.random(articles),
        dossier=dossier,
        document_dossier=presented_by,
        end=end,
    )


def _groups(recipe: Recipe, rng: np.random.Generator) -> tuple[Array, Array]:
    """Choose the classes that each site covers: all of them if it is large enough."""
    per_site = recipe.urls // recipe.sites
    covered = int(np.clip(per_site // LEAST_ARTICLES, 2, recipe.states))
    chosen = [
        np.sort(rng.choice(recipe.states, covered, replace=False))
        for _ in range(recipe.sites)
    ]
    return np.repeat(np.arange(recipe.sites), covered), np.concatenate(chosen)


def _sizes(recipe: Recipe, share: Array, parts: int) -> tuple[Array, Array, int, int]:
    """Divide the URLs: articles and list pages a group, tags and documents in all."""
    tags = round(TAGS * recipe.urls)
    documents = round(recipe.targets * recipe.urls)
    dead = round(recipe.dead * recipe.urls)
    left = recipe.urls - recipe.sites - 2 * parts - len(share) - tags
    left -= documents + dead
    ahead = np.concatenate([[0], np.cumsum(share)])
    ahead[-1] = 1
    # Articles need list pages, which take their place: the most that fit.
    articles = left
    while True:
        sizes = np.diff(np.floor(ahead * articles)).astype(np.int64)
        lists = -(-sizes // LIST_LENGTH)
        excess = articles + int(lists.sum()) - left
        if excess <= 0:
            return sizes, lists, tags, documents
        articles -= max(1, excess // 2)


def _rhythm(rng: np.random.Generator, count: int, days: float) -> Array:
    """Draw times of the period: few at night, fewer at weekends."""
    hours = np.arange(int(np.ceil(days * 24)))
    of_day = 1 - 0.9 * np.cos((hours % 24 - 2) / 24 * 2 * np.pi)  # least at 2 o'clock
    weekend = np.where(hours // 24 % 7 >= 5, 0.5, 1.0)
    passed = np.concatenate([[0], np.cumsum(of_day * weekend)])
    edges = np.append(hours, days * 24)
    moment = np.interp(rng.random(count) * passed[-1], passed, edges)
    return BEGIN + 1 + (moment * (MILLISECONDS_A_DAY / 24 - 1)).astype(np.int64)


def _archive(rng: np.random.Generator, count: int) -> Array:
    """Draw times of the year before: density falls with age as 1 / (age + 5 days)."""
    near = 5.0
    age = near * ((1 + ARCHIVE_DAYS / near) ** rng.random(count) - 1)
    return BEGIN - (age * MILLISECONDS_A_DAY).astype(np.int64)


def _documents(
    rng: np.random.Generator, count: int, dossier: Array, group: Array, groups: int
) -> Array:
    """Choose the dossier of each document: few groups have most of them."""
    if not count:
        return np.zeros(0, np.int64)
    candidates = np.flatnonzero(dossier)
    richness = rng.lognormal(0, 1.2, groups)
    weight = richness[group[candidates]] * rng.gamma(1.0, size=len(candidates))
    return np.sort(rng.choice(candidates, count, p=weight / weight.sum()))


def _document_times(rng: np.random.Generator, presented: Array, end: int) -> Array:
    """Most documents are there before their dossier, some are added to it later."""
    day = MILLISECONDS_A_DAY
    before = presented - (rng.exponential(3, len(presented)) * day).astype(np.int64)
    after = presented + (rng.exponential(2, len(presented)) * day).astype(np.int64)
    later = (rng.random(len(presented)) < 0.3) & (after < end) & (after > BEGIN)
    return np.maximum(np.where(later, after, before), _ORIGIN)
