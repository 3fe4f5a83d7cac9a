"""The articles of a generated site: when they change, vanish, and what they link to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gym_webforage.trace.synthetic_links import Choice, Links, any_group
from gym_webforage.trace.synthetic_pages import (
    ARTICLE,
    BEGIN,
    DEAD,
    DOCUMENT,
    SUBSECTION,
    Array,
    Pages,
    ragged,
)
from gym_webforage.trace.trace import MILLISECONDS_A_DAY

if TYPE_CHECKING:
    from gym_webforage.trace.synthetic import Recipe

HOUR = 3_600_000

UPDATE_HOURS = 3.0  # median time until an update
UPDATED_AGAIN = 0.4  # of the updated articles
REDRAWN = 0.15  # of an article's links when it is updated
DEAD_LINKS = 3  # to each URL that was never recorded
DOSSIER_LINKS = 0.2  # more links than an article has, as a share of the most


@dataclass(frozen=True)
class ArticleVersions:
    """All versions of the articles, sorted by article and time."""

    article: Array  # counted from 0
    seen: Array
    gone: Array

    @property
    def first(self) -> Array:
        """Whether a version is its article's first one."""
        return np.diff(self.article, prepend=-1) != 0


def make_articles(
    recipe: Recipe, pages: Pages, before: int, choice: Choice, links: Links
) -> ArticleVersions:
    """Return the versions of all articles, and link them.

    ``before`` versions of other pages precede them.
    """
    versions = _versions(recipe, pages, choice.rng)
    _link_articles(recipe, pages, versions, before, choice, links)
    _link_documents(recipe, pages, versions, before, choice.rng, links)
    return versions


def _versions(
    recipe: Recipe, pages: Pages, rng: np.random.Generator
) -> ArticleVersions:
    articles = pages.ids(ARTICLE)
    first_seen, count = pages.seen[articles], len(articles)
    everyone = np.arange(count)
    versions = [(everyone, first_seen)]

    changing = everyone[(rng.random(count) < recipe.updated) & (first_seen > BEGIN)]
    time = first_seen[changing]
    while len(changing):
        wait = rng.lognormal(np.log(UPDATE_HOURS * HOUR), 1.2, len(time))
        time = time + 1 + wait.astype(np.int64)
        versions.append((changing, time))
        again = rng.random(len(changing)) < UPDATED_AGAIN
        changing, time = changing[again], time[again]

    # A dossier is brought up to date when the last of its documents is there.
    newest = np.zeros(count, np.int64)
    np.maximum.at(newest, pages.document_dossier, pages.seen[pages.ids(DOCUMENT)])
    added = everyone[newest > first_seen]
    versions.append((added, newest[added]))

    vanishing = everyone[(rng.random(count) < recipe.vanished) & ~pages.dossier]
    earliest = first_seen[vanishing] + MILLISECONDS_A_DAY
    span = np.maximum(pages.end - earliest, 0)
    moment = earliest + (rng.random(len(span)) * span).astype(np.int64)
    vanishing, moment = vanishing[moment <= pages.end], moment[moment <= pages.end]
    last = np.full(count, pages.end + 1)
    last[vanishing] = moment

    article = np.concatenate([which for which, _ in versions])
    seen = np.concatenate([time for _, time in versions])
    in_time = seen < last[article]
    article = np.concatenate([article[in_time], vanishing])
    seen = np.concatenate([seen[in_time], moment])
    gone = np.arange(len(article)) >= len(article) - len(vanishing)
    order = np.lexsort((seen, article))
    article, seen, gone = article[order], seen[order], gone[order]
    kept = (np.diff(article, prepend=-1) != 0) | (np.diff(seen, prepend=-1) != 0)
    return ArticleVersions(article[kept], seen[kept], gone[kept])


def _link_articles(
    recipe: Recipe,
    pages: Pages,
    versions: ArticleVersions,
    before: int,
    choice: Choice,
    links: Links,
) -> None:
    """Link each article to earlier ones; an update exchanges some of the links."""
    rng, articles = choice.rng, pages.ids(ARTICLE)
    degree = _degrees(recipe, len(articles), rng)
    degree[pages.dossier] += round(DOSSIER_LINKS * recipe.most_links)
    start = np.cumsum(degree) - degree
    source = np.repeat(articles, degree)
    target = _chosen(recipe, pages, source, choice)

    hub = pages.first[SUBSECTION] + pages.group[source]
    up = start[rng.random(len(articles)) < recipe.hub_link]
    target[up] = hub[up]
    # Who finds nothing earlier to link to links to the hub.
    target = np.where(target < 0, hub, target)
    dead = np.repeat(pages.ids(DEAD), DEAD_LINKS)
    target[rng.integers(len(target), size=len(dead))] = dead

    first = versions.first
    links.add(before + np.repeat(np.flatnonzero(first), degree), target)

    later = np.flatnonzero(~first & ~versions.gone)
    article = versions.article[later]
    owner, index = ragged(start[article], degree[article])
    version, source, target = later[owner], source[index], target[index]
    redrawn = np.flatnonzero(rng.random(len(target)) < REDRAWN)
    seen = versions.seen[version[redrawn]]
    found = choice.draw(pages.group[source[redrawn]], seen)
    target[redrawn] = np.where(found == source[redrawn], -1, found)
    links.add(before + version, target)


def _degrees(recipe: Recipe, count: int, rng: np.random.Generator) -> Array:
    """Draw numbers of links from a power law that ends at ``most_links``."""
    chance = np.arange(1, recipe.most_links + 1, dtype=float) ** -recipe.out_exponent
    passed = np.cumsum(chance)
    return np.searchsorted(passed, rng.random(count) * passed[-1], "right") + 1


def _chosen(recipe: Recipe, pages: Pages, source: Array, choice: Choice) -> Array:
    """Choose an earlier article for each link: own class, own section or any."""
    rng = choice.rng
    scope = rng.random(len(source))
    near, far = scope < recipe.same_class, scope >= recipe.same_class
    target = np.empty(len(source), np.int64)
    group_start = pages.group_start[pages.group[source[near]]]
    target[near] = choice.draw_before(source[near], group_start)

    own, scope = pages.group[source[far]], scope[far]
    in_section = scope < recipe.same_class + recipe.same_section
    abroad = scope >= 1 - recipe.other_site
    group = any_group(pages.group_site, pages.group_site[own], rng)
    part = pages.group_part[own[in_section]]
    group[in_section] = any_group(pages.group_part, part, rng)
    group[abroad] = rng.integers(len(pages.group_site), size=int(abroad.sum()))
    target[far] = choice.draw(group, pages.born[source[far]])
    return target


def _link_documents(
    recipe: Recipe,
    pages: Pages,
    versions: ArticleVersions,
    before: int,
    rng: np.random.Generator,
    links: Links,
) -> None:
    """Link dossiers to the documents that are there: their own and a neighbour's."""
    documents, dossiers = pages.ids(DOCUMENT), np.flatnonzero(pages.dossier)
    twice = rng.random(len(documents)) < recipe.second_dossier
    number = np.searchsorted(dossiers, pages.document_dossier[twice])
    # The next dossier is of the same class or one beside it, hardly ever abroad.
    neighbour = dossiers[np.minimum(number + 1, len(dossiers) - 1)]
    presenter = np.concatenate([pages.document_dossier, neighbour])
    presented = np.concatenate([documents, documents[twice]])
    order = np.argsort(presenter, kind="stable")
    presenter, presented = presenter[order], presented[order]

    here = np.flatnonzero(pages.dossier[versions.article])
    article = versions.article[here]
    low = np.searchsorted(presenter, article)
    owner, index = ragged(low, np.searchsorted(presenter, article, "right") - low)
    found = presented[index]
    there = pages.seen[found] <= versions.seen[here[owner]]
    links.add(before + here[owner], np.where(there, found, -1))
