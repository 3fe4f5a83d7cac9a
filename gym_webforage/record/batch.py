"""Pages parsed many at a time, into flat arrays of numbers: what a worker does."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import numpy as np

from gym_webforage.record.html import Link, Page, parse_page, parse_text
from gym_webforage.record.notes import Notes, RecordError
from gym_webforage.record.urls import normalise


class Job(NamedTuple):
    """A content to be parsed."""

    url: str  # normalised
    kind: str  # html, markdown, rst or redirect
    body: bytes
    charset: str | None


class Settings(NamedTuple):
    """What parsing depends on besides the job."""

    drop_css: str | None
    page_links: int
    strict: bool


@dataclass
class Ragged:
    """Rows of numbers: their lengths and all of them in one array."""

    lengths: np.ndarray  # int32
    values: np.ndarray  # int32


@dataclass
class Parsed:
    """What was found on a batch of pages. Words and URLs are numbers of its lists."""

    words: list[str]
    urls: list[str]
    tag_paths: list[str]
    has_text: np.ndarray  # bool, by page
    title: Ragged
    body: Ragged  # distinct words
    counts: np.ndarray  # of each word in body
    links: Ragged  # URLs, by page
    anchor: Ragged  # by link
    near: Ragged
    tag_path: np.ndarray  # by link
    notes: Notes


def parse_batch(jobs: list[Job], settings: Settings) -> Parsed:
    """Parse a batch of contents."""
    words: defaultdict[str, int] = defaultdict(count().__next__)
    urls: defaultdict[str, int] = defaultdict(count().__next__)
    tag_paths: defaultdict[str, int] = defaultdict(count().__next__)
    notes = Notes(settings.strict)
    word, address = words.__getitem__, urls.__getitem__
    has_text = np.zeros(len(jobs), np.bool_)
    titles: list[list[int]] = []
    bodies: list[np.ndarray] = []
    counts: list[np.ndarray] = []
    links: list[list[int]] = []
    anchors: list[list[int]] = []
    nears: list[list[int]] = []
    paths: list[int] = []
    for number, job in enumerate(jobs):
        page, has_text[number] = _parsed(job, settings, notes)
        titles.append(list(map(word, page.title)))
        often = Counter(page.body)
        bodies.append(np.fromiter(map(word, often), np.int32, len(often)))
        counts.append(np.fromiter(often.values(), np.int32, len(often)))
        links.append([address(link.url) for link in page.links])
        anchors.extend(list(map(word, link.anchor)) for link in page.links)
        nears.extend(list(map(word, link.near)) for link in page.links)
        paths.extend(tag_paths[link.tag_path] for link in page.links)
    return Parsed(
        words=list(words),
        urls=list(urls),
        tag_paths=list(tag_paths),
        has_text=has_text,
        title=_ragged(titles),
        body=Ragged(_lengths(bodies), _joined(bodies)),
        counts=_joined(counts),
        links=_ragged(links),
        anchor=_ragged(anchors),
        near=_ragged(nears),
        tag_path=np.array(paths, np.int32),
        notes=notes,
    )


def _parsed(job: Job, settings: Settings, notes: Notes) -> tuple[Page, bool]:
    """Return the page and whether it has text."""
    if job.kind == "redirect":
        target = normalise(job.body.decode(errors="replace"), job.url)
        if target is None:
            notes.add("bad link", job.url)
        elif target != job.url:
            return Page(links=[Link(target)]), False
        return Page(), False
    try:
        if job.kind == "html":
            page = parse_page(
                job.body,
                job.url,
                charset=job.charset,
                drop_css=settings.drop_css,
                most_links=settings.page_links,
                notes=notes,
            )
        else:
            from gym_webforage.record.render import render

            page = parse_text(
                render(job.body, job.kind),
                job.url,
                drop_css=settings.drop_css,
                most_links=settings.page_links,
                notes=notes,
            )
    except RecordError:
        raise
    except Exception as error:  # whatever a page does to its parser, others follow
        notes.add("unparsed", f"{job.url}: {type(error).__name__}: {error}")
        return Page(), False
    return page, True


def _lengths(rows: list[np.ndarray] | list[list[int]]) -> np.ndarray:
    return np.fromiter(map(len, rows), np.int32, len(rows))


def _joined(rows: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(rows) if rows else np.zeros(0, np.int32)


def _ragged(rows: list[list[int]]) -> Ragged:
    flat = [value for row in rows for value in row]
    return Ragged(_lengths(rows), np.array(flat, np.int32))
