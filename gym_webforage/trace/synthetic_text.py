"""The words of a generated site: names, URLs, page texts and link texts.

The words are made up of syllables. Every class, section and site has words of its own
beside the common ones; all sites share the words for documents and dossiers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gym_webforage.trace.strings import Strings
from gym_webforage.trace.synthetic_pages import (
    ARTICLE,
    DEAD,
    DOCUMENT,
    LIST,
    SECTION,
    SECTIONS,
    TAG,
    Array,
    Pages,
)

if TYPE_CHECKING:
    from gym_webforage.trace.synthetic import Recipe

GENERIC_WORDS = ("more", "here", "read", "next", "full", "continue")
DOCUMENT_WORDS = ("report", "dataset", "annex", "download", "tables", "paper")
DOSSIER_WORDS = ("dossier", "background", "resources", "series", "collection", "focus")
ENDING = "pdf"

VOCABULARY = 5_000
CLASS_WORDS = 2_500  # of all classes together
SECTION_WORDS = 600
SITE_WORDS = 40  # of each site
LEAST_COMMON_WORDS = 200

TITLE = 5
BODY_DRAWS = 42  # gives about 40 distinct tokens
NEAR = 6
VARIANTS = 3  # of the text of links to one URL; the last one is generic
HABIT = 0.7  # how often a link to a document or dossier says so
DECOY = 0.03  # how often another link says it

_COLUMNS = 4096  # resolution of the word frequencies
_ONSETS = "b d f g h j k l m n p r s t v z br dr kr pl st tr".split()
_VOWELS = "a e i o u ai ea io ou".split()


@dataclass(frozen=True)
class Lexicon:
    """All words, and pools of them: common, then by section, class and site."""

    words: list[str]
    pools: Array  # (pools, columns): a random column is a word by its frequency
    first: dict[str, int]  # the first pool, or the first word, of each sort

    def draw(self, pool: Array, rng: np.random.Generator) -> Array:
        """Draw a word of each pool."""
        return self.pools[pool, rng.integers(_COLUMNS, size=np.shape(pool))]

    def name(self, sort: str, number: Array) -> Array:
        """Return the name of a section, class or site: the first word of its pool."""
        return self.pools[self.first[sort] + number, 0]


def make_lexicon(recipe: Recipe, rng: np.random.Generator) -> Lexicon:
    """Make up the words."""
    sections = min(SECTIONS, recipe.states)
    special = [ENDING, *GENERIC_WORDS, *DOCUMENT_WORDS, *DOSSIER_WORDS]
    sizes = {
        "section": [max(4, SECTION_WORDS // sections)] * sections,
        "class": [max(8, CLASS_WORDS // recipe.states)] * recipe.states,
        "site": [SITE_WORDS] * recipe.sites,
    }
    used = len(special) + sum(sum(counts) for counts in sizes.values())
    pools = [max(LEAST_COMMON_WORDS, VOCABULARY - used)]
    first = {}
    for sort, counts in sizes.items():
        first[sort] = len(pools)
        pools += counts
    made = _made_up(sum(pools), set(special), rng)
    number = len(special)
    rows = []
    for row, size in enumerate(pools):
        steepness = 1.0 if row == 0 else 0.6  # Zipf's law for the common words
        passed = np.cumsum(np.arange(1, size + 1, dtype=float) ** -steepness)
        columns = (np.arange(_COLUMNS) + 0.5) / _COLUMNS * passed[-1]
        rows.append(number + np.searchsorted(passed, columns))
        number += size
    first["ending"] = 0
    first["generic"] = 1
    first["document"] = first["generic"] + len(GENERIC_WORDS)
    first["dossier"] = first["document"] + len(DOCUMENT_WORDS)
    return Lexicon(special + made, np.array(rows, np.int32), first)


def _made_up(count: int, taken: set[str], rng: np.random.Generator) -> list[str]:
    """Return different words of two to four syllables."""
    syllables = np.array([onset + vowel for onset in _ONSETS for vowel in _VOWELS])
    words: dict[str, None] = {}
    while len(words) < count:
        parts = syllables[rng.integers(len(syllables), size=(count, 4))].tolist()
        for part, length in zip(parts, rng.integers(2, 5, count).tolist(), strict=True):
            word = "".join(part[:length])
            if word not in taken:
                words[word] = None
    return list(words)[:count]


@dataclass(frozen=True)
class Names:
    """What the pages are called."""

    title: Array  # (URLs, TITLE), as tokens
    number: Array  # makes the URL unique; unlike the id it tells nothing of the page
    ending: Array  # whether the URL ends in .pdf


def make_names(
    recipe: Recipe, pages: Pages, lexicon: Lexicon, rng: np.random.Generator
) -> Names:
    """Give every URL a title of class, section and common words."""
    pool = _pools(recipe, pages, lexicon, TITLE, (0.25, 0.2, 0.5, 0.05), rng)
    title = lexicon.draw(pool, rng)
    hubs = np.arange(pages.first[ARTICLE])
    title[hubs, 0] = lexicon.name("site", pages.site[hubs])
    in_part = hubs[pages.part[hubs] >= 0]
    section = pages.part_section[pages.part[in_part]]
    title[in_part, 0] = lexicon.name("section", section)
    in_group = hubs[pages.group[hubs] >= 0]
    title[in_group, 1] = title[in_group, 0]
    classes = pages.group_class[pages.group[in_group]]
    title[in_group, 0] = lexicon.name("class", classes)
    kind = pages.kind
    chance = rng.random(len(kind))
    ending = (kind == DOCUMENT) & (chance < 0.5)
    ending |= (kind == DEAD) & (chance < 0.1)  # the ending alone proves nothing
    return Names(title, rng.permutation(len(kind)), ending)


def _pools(
    recipe: Recipe,
    pages: Pages,
    lexicon: Lexicon,
    columns: int,
    shares: tuple[float, float, float, float],
    rng: np.random.Generator,
    rows: Array | None = None,
) -> Array:
    """Draw for each token the pool that it comes from.

    ``shares`` are those of common, section, class and site words; the rest comes from
    other classes.
    """
    rows = np.arange(len(pages.site)) if rows is None else rows
    group, part = pages.group[rows], pages.part[rows]
    section = pages.part_section[part] + lexicon.first["section"]
    own = pages.group_class[group] + lexicon.first["class"]
    site = pages.site[rows] + lexicon.first["site"]
    # Pages of no class or section use the words of all of them.
    wide, homeless = group < 0, part < 0
    common = np.zeros(len(rows), np.int64)
    choices = np.stack([common, section, own, site], axis=1)
    passed = np.cumsum(shares)
    which = np.searchsorted(passed, rng.random((len(rows), columns)), "right")
    pool = np.take_along_axis(choices, np.minimum(which, 3), axis=1)
    other = which == 4
    other |= (which == 2) & wide[:, None]
    other |= (which == 1) & homeless[:, None]
    classes = rng.integers(recipe.states, size=int(other.sum()))
    pool[other] = classes + lexicon.first["class"]
    return pool


def make_urls(pages: Pages, lexicon: Lexicon, names: Names) -> tuple[Strings, Strings]:
    """Write all URLs and the names of the sites."""
    words = lexicon.words
    sites = [f"news-{number + 1}.example" for number in range(pages.first[SECTION])]
    part_path = [
        f"https://{sites[site]}/{words[name]}"
        for site, name in zip(
            pages.part_site.tolist(),
            lexicon.name("section", pages.part_section).tolist(),
            strict=True,
        )
    ]
    group_path = [
        f"{part_path[part]}/{words[name]}"
        for part, name in zip(
            pages.group_part.tolist(),
            lexicon.name("class", pages.group_class).tolist(),
            strict=True,
        )
    ]
    urls = [f"https://{site}/" for site in sites]
    urls += [f"{path}/" for path in part_path]
    urls += [f"{path}/archive" for path in part_path]
    urls += [f"{path}/" for path in group_path]
    lists = pages.ids(LIST)
    group = pages.group[lists]
    chunk = lists - pages.first[LIST] - pages.group_lists[group] + 1
    urls += [
        f"{group_path[group]}/page/{number}"
        for group, number in zip(group.tolist(), chunk.tolist(), strict=True)
    ]
    tags = pages.ids(TAG)
    urls += [
        f"{part_path[part]}/tag/{words[word]}-{number}"
        for part, word, number in zip(
            pages.part[tags].tolist(),
            names.title[tags, 1].tolist(),
            names.number[tags].tolist(),
            strict=True,
        )
    ]
    rest = np.arange(pages.first[ARTICLE], pages.first[DEAD])
    day = pages.born[rest].astype("datetime64[ms]").astype("datetime64[D]")
    days, which = np.unique(day, return_inverse=True)
    dates = [str(date).replace("-", "/") for date in days]
    urls += [
        f"{group_path[group]}/{dates[date]}/"
        f"{words[one]}-{words[two]}-{words[three]}-{number}{'.pdf' if ending else ''}"
        for group, date, (one, two, three), number, ending in zip(
            pages.group[rest].tolist(),
            which.tolist(),
            names.title[rest, :3].tolist(),
            names.number[rest].tolist(),
            names.ending[rest].tolist(),
            strict=True,
        )
    ]
    dead = pages.ids(DEAD)
    urls += [
        f"https://{sites[site]}/{words[one]}/{words[two]}-{number}"
        f"{'.pdf' if ending else ''}"
        for site, (one, two), number, ending in zip(
            pages.site[dead].tolist(),
            names.title[dead, :2].tolist(),
            names.number[dead].tolist(),
            names.ending[dead].tolist(),
            strict=True,
        )
    ]
    return Strings.of(urls), Strings.of(sites)


def make_labels(
    recipe: Recipe, pages: Pages, lexicon: Lexicon
) -> dict[str, Strings | Array]:
    """Label each page with its class, or its section where it has none."""
    sections = min(SECTIONS, recipe.states)
    numbers = np.concatenate(
        [
            lexicon.name("class", np.arange(recipe.states)),
            lexicon.name("section", np.arange(sections)),
        ]
    )
    in_section = recipe.states + pages.part_section[pages.part]
    label = np.where(pages.group >= 0, pages.group_class[pages.group], in_section)
    labelled = pages.part >= 0
    return {
        "labels": Strings.of(lexicon.words[number] for number in numbers.tolist()),
        "url_label": label[labelled],
        "url_label_start": np.concatenate([[0], np.cumsum(labelled)]),
    }


def make_texts(
    recipe: Recipe,
    pages: Pages,
    lexicon: Lexicon,
    names: Names,
    rng: np.random.Generator,
) -> dict[str, Array]:
    """Write what pages, links and URLs say, as the arrays of a trace."""
    return {
        **_page_texts(recipe, pages, lexicon, names, rng),
        **_link_texts(recipe, pages, lexicon, names, rng),
        **_url_tokens(pages, lexicon, names),
    }


def text_pages(pages: Pages) -> int:
    """Return how many URLs have a page text; their ids come first."""
    return int(pages.first[DOCUMENT])


def link_text(source: Array, target: Array) -> Array:
    """Choose a text for each link: always the same one from source to target.

    Two in five each have one of the texts from the title, one in five is generic.
    """
    mixed = (source.astype(np.int64) * 40_503 + target * 30_011) >> 4
    return target * VARIANTS + np.minimum(mixed % 5 // 2, VARIANTS - 1)


def _page_texts(
    recipe: Recipe,
    pages: Pages,
    lexicon: Lexicon,
    names: Names,
    rng: np.random.Generator,
) -> dict[str, Array]:
    rows = np.arange(text_pages(pages))
    shares = (0.42, 0.12, 0.3, 0.04)
    pool = _pools(recipe, pages, lexicon, BODY_DRAWS, shares, rng, rows)
    drawn = lexicon.draw(pool, rng)
    tokens = np.sort(np.concatenate([drawn, names.title[rows]], axis=1), axis=1)
    first = np.ones(tokens.shape, bool)
    first[:, 1:] = tokens[:, 1:] != tokens[:, :-1]
    places = np.flatnonzero(first)
    return {
        "title_start": np.arange(len(rows) + 1) * TITLE,
        "title_token": names.title[rows].reshape(-1),
        "body_start": np.concatenate([[0], np.cumsum(first.sum(axis=1))]),
        "body_token": tokens.reshape(-1)[places],
        "body_count": np.diff(places, append=tokens.size),
    }


def _link_texts(
    recipe: Recipe,
    pages: Pages,
    lexicon: Lexicon,
    names: Names,
    rng: np.random.Generator,
) -> dict[str, Array]:
    count = len(pages.site)
    anchor = np.full((count, VARIANTS, 3), -1, np.int32)
    anchor[:, 0] = names.title[:, :3]
    anchor[:, 1] = names.title[:, 2:5]
    noise = rng.random((count, 2, 3)) < 0.12
    anchor[:, :2][noise] = lexicon.draw(np.zeros(int(noise.sum()), int), rng)
    generic = rng.integers(len(GENERIC_WORDS), size=count)
    anchor[:, 2, 0] = lexicon.first["generic"] + generic
    specific = rng.random(count) < 0.3
    anchor[specific, 2, 1] = names.title[specific, 0]

    dossiers = np.zeros(count, bool)
    dossiers[pages.ids(ARTICLE)[pages.dossier]] = True
    for sort, words, pointing in (
        ("document", DOCUMENT_WORDS, pages.kind == DOCUMENT),
        ("dossier", DOSSIER_WORDS, dossiers),
    ):
        chance = np.where(pointing, HABIT, DECOY)[:, None]
        said = rng.random((count, VARIANTS)) < chance
        said[:, 2] &= rng.random(count) < 0.5
        word = rng.integers(len(words), size=int(said.sum()))
        anchor[:, :, 2][said] = lexicon.first[sort] + word

    shares = (0.3, 0.2, 0.4, 0.05)
    pool = _pools(recipe, pages, lexicon, VARIANTS * NEAR, shares, rng)
    there = anchor >= 0
    texts = count * VARIANTS
    return {
        "anchor_start": np.concatenate([[0], np.cumsum(there.sum(axis=2))]),
        "anchor_token": anchor[there],
        "near_start": np.arange(texts + 1) * NEAR,
        "near_token": lexicon.draw(pool, rng).reshape(-1),
    }


def _url_tokens(pages: Pages, lexicon: Lexicon, names: Names) -> dict[str, Array]:
    """Split the URLs into the words that stand in them."""
    kind = pages.kind
    section = lexicon.name("section", pages.part_section[pages.part])
    own = lexicon.name("class", pages.group_class[pages.group])
    page = kind >= ARTICLE
    columns = [
        np.where(pages.part >= 0, section, -1),
        np.where(pages.group >= 0, own, -1),
        np.where(page, names.title[:, 0], -1),
        np.where(page | (kind == TAG), names.title[:, 1], -1),
        np.where(page & (kind != DEAD), names.title[:, 2], -1),
        np.where(names.ending, lexicon.first["ending"], -1),
    ]
    tokens = np.stack(columns, axis=1)
    there = tokens >= 0
    return {
        "url_token_start": np.concatenate([[0], np.cumsum(there.sum(axis=1))]),
        "url_token": tokens[there],
    }
