"""Captures collected one by one, and the trace made of them at the end.

Bodies are parsed as they come and forgotten: what stays in memory are numbers, about
as many as the finished trace has, and the distinct words and URLs. Together that is
at most about five times the trace in memory, however large the input was, plus the
few batches that are being parsed.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from gym_webforage.record.batch import Job, Parsed, Ragged, Settings
from gym_webforage.record.capture import Capture
from gym_webforage.record.notes import Notes, RecordError
from gym_webforage.record.options import Options
from gym_webforage.record.pool import Parsers
from gym_webforage.record.tag_paths import MOST_PATHS
from gym_webforage.record.urls import normalise
from gym_webforage.trace import Trace
from gym_webforage.trace.text import fit_states
from gym_webforage.trace.trace import LATEST_TIME
from gym_webforage.trace.validate import MOST_BYTES

EARLIEST_MODIFIED = 631_152_000_000  # 1990: no web page is older
NO_CONTENT = -1

Progress = Callable[[int, int], None]
"""Told of the numbers of captures and links so far."""


@dataclass
class Rows:
    """Rows of numbers that grow batch by batch."""

    lengths: list[np.ndarray] = field(default_factory=list)
    values: list[np.ndarray] = field(default_factory=list)

    def add(self, rows: Ragged, numbers: np.ndarray) -> None:
        """Add a batch, its values given as positions in ``numbers``."""
        self.lengths.append(rows.lengths)
        self.values.append(numbers[rows.values])

    def joined(self) -> tuple[np.ndarray, np.ndarray]:
        """Return offsets and values, and forget the batches."""
        start = offsets(joined(self.lengths))
        values = joined(self.values)
        self.lengths, self.values = [], []
        return start, values


@dataclass
class Contents:
    """What was found on all pages: rows by content, words and URLs as numbers."""

    words: dict[str, int] = field(default_factory=lambda: defaultdict(count().__next__))
    urls: dict[str, int] = field(default_factory=lambda: defaultdict(count().__next__))
    has_text: list[np.ndarray] = field(default_factory=list)
    title: Rows = field(default_factory=Rows)
    body: Rows = field(default_factory=Rows)
    counts: list[np.ndarray] = field(default_factory=list)
    links: Rows = field(default_factory=Rows)
    anchor: Rows = field(default_factory=Rows)
    near: Rows = field(default_factory=Rows)
    tag_paths: dict[str, int] = field(default_factory=dict)
    tag_path: list[np.ndarray] = field(default_factory=list)

    def add(self, parsed: Parsed) -> None:
        """Add a batch."""
        words = np.array([self.words[word] for word in parsed.words], np.int32)
        urls = np.array([self.urls[url] for url in parsed.urls], np.int32)
        self.has_text.append(parsed.has_text)
        self.title.add(parsed.title, words)
        self.body.add(parsed.body, words)
        self.counts.append(parsed.counts)
        self.links.add(parsed.links, urls)
        self.anchor.add(parsed.anchor, words)
        self.near.add(parsed.near, words)
        paths = np.array([self._path(path) for path in parsed.tag_paths], np.int32)
        self.tag_path.append(paths[parsed.tag_path])

    def _path(self, path: str) -> int:
        """Return the number of a tag path, -1 for none and for one too many."""
        if not path or (path not in self.tag_paths and self.is_full):
            return -1
        return self.tag_paths.setdefault(path, len(self.tag_paths))

    @property
    def is_full(self) -> bool:
        """Whether no more tag paths are told apart."""
        return len(self.tag_paths) >= MOST_PATHS


@dataclass
class Captures:
    """The columns of all captures, in the order of the input."""

    url: array[int] = field(default_factory=lambda: array("i"))
    seen: array[int] = field(default_factory=lambda: array("q"))
    published: array[int] = field(default_factory=lambda: array("q"))
    status: array[int] = field(default_factory=lambda: array("h"))
    bytes: array[int] = field(default_factory=lambda: array("q"))
    hash: array[int] = field(default_factory=lambda: array("Q"))
    content: array[int] = field(default_factory=lambda: array("i"))

    def add(self, *values: int) -> int:
        """Add a capture; return its number."""
        columns = (self.url, self.seen, self.published, self.status)
        for column, value in zip(
            (*columns, self.bytes, self.hash, self.content), values, strict=True
        ):
            column.append(value)
        return len(self.url) - 1


class Builder:
    """Takes captures in any order and makes a trace of them.

    >>> from gym_webforage.record import Capture, Options
    >>> builder = Builder(Options("example-v0"))
    >>> builder.add(Capture("http://a.example/", 0, body=b"<a href=b>next</a>"))
    >>> builder.finish()
    Trace('example-v0', 2 URLs, 1 versions, 1 links)

    Args:
        options: How the captures become a trace.
        recorder: What made the recording, for the trace's card.
        progress: Called with the numbers of captures and links now and then.
    """

    def __init__(
        self,
        options: Options,
        recorder: str = "gym_webforage.record",
        progress: Progress | None = None,
    ) -> None:
        self.options = options
        self.recorder = recorder
        self.notes = Notes(options.strict)
        self.urls: dict[str, int] = {}  # captured ones, in order
        self.captures = Captures()
        self.contents = Contents()
        self.links = 0
        self._progress = progress
        self._known: dict[tuple[int, int, str], int] = {}  # URL, hash, kind: content
        self._next_content = 0
        self._originals: dict[str, int] = {}  # digest: capture
        self._newest: dict[int, int] = {}  # URL: capture
        self._revisits: list[tuple[int, Capture]] = []
        self._parsers = Parsers(
            Settings(options.drop_css, options.page_links, options.strict),
            options.workers,
        )

    def add(self, capture: Capture) -> None:
        """Take a capture."""
        url = normalise(capture.url)
        if url is None or not 0 <= capture.seen <= LATEST_TIME:
            self.notes.add("bad record", f"{capture.url[:200]!r}")
            return
        most = self.options.max_pages
        if most is not None and url not in self.urls and len(self.urls) >= most:
            self.notes.add("more pages", url)
            return
        number = self.urls.setdefault(url, len(self.urls))
        if capture.revisit:
            # Its original may come later, in another file.
            self._revisits.append((number, capture))
            return
        body = capture.body
        if len(body) > self.options.page_bytes:
            if capture.is_page:
                self.notes.add("cut page", url)
            body = body[: self.options.page_bytes]
        job = None
        if 300 <= capture.status < 400 and capture.location:
            body = capture.location.encode(errors="replace")
            job = Job(url, "redirect", body, None)
        elif capture.is_page:
            job = Job(url, capture.markup, body, capture.charset)
        size = len(capture.body) if capture.size is None else capture.size
        mark = digest_of(body)
        content = NO_CONTENT if job is None else self._content(number, job, mark)
        added = self.captures.add(
            number,
            capture.seen,
            self._published(capture, url),
            min(max(capture.status, 0), 999),
            min(max(size, 0), MOST_BYTES - 1),
            mark,
            content,
        )
        self._newest[number] = added
        if capture.digest is not None:
            self._originals.setdefault(capture.digest, added)
        if self._progress is not None:
            self._progress(len(self.captures.url), self.links)

    def finish(self) -> Trace:
        """Parse what is left and make the trace."""
        from gym_webforage.record.assemble import assemble

        try:
            self._take(self._parsers.finish())
        finally:
            self.close()
        self._add_revisits()
        if not len(self.captures.url):
            raise RecordError("there is not a single capture of a page in the input")
        trace = assemble(self)
        options = self.options
        if options.states == "none":
            return trace
        return fit_states(
            trace,
            method=options.states,
            states=options.state_length,
            until=options.states_until,
        )

    def close(self) -> None:
        """End the parsing processes, of a recording that is given up."""
        self._parsers.close()

    def _content(self, url: int, job: Job, mark: int) -> int:
        """Have a content parsed, once; return its number."""
        key = url, mark, job.kind
        known = self._known.get(key)
        if known is not None:
            return known
        content = self._known[key] = self._next_content
        self._next_content += 1
        self._take(self._parsers.submit(job))
        return content

    def _take(self, batches: Iterable[Parsed]) -> None:
        for parsed in batches:
            self.notes.merge(parsed.notes)
            self.contents.add(parsed)
            if self.contents.is_full:
                self.notes.add("more tag paths")
            self.links += len(parsed.links.values)
            if self._progress is not None:
                self._progress(len(self.captures.url), self.links)

    def _published(self, capture: Capture, url: str) -> int:
        modified = capture.modified
        if modified is None:
            return capture.seen
        if not EARLIEST_MODIFIED <= modified <= capture.seen:
            self.notes.add("bad date", url)
            return capture.seen
        return modified

    def _add_revisits(self) -> None:
        """Add the captures that repeat others, now that all of these are there."""
        captures = self.captures
        for number, capture in self._revisits:
            original = None
            if capture.digest is not None:
                original = self._originals.get(capture.digest)
            if original is None and capture.refers_to is not None:
                referred = self.urls.get(normalise(capture.refers_to) or "")
                original = None if referred is None else self._newest.get(referred)
            if original is None:
                original = self._newest.get(number)
            if original is None:
                self.notes.add("lost original", capture.url)
                continue
            captures.add(
                number,
                capture.seen,
                min(captures.published[original], capture.seen),
                captures.status[original],
                captures.bytes[original],
                captures.hash[original],
                captures.content[original],
            )
        self._revisits = []


def digest_of(body: bytes) -> int:
    """Return a number that no other content is likely to have."""
    return int.from_bytes(hashlib.blake2b(body, digest_size=8).digest(), "little")


def joined(pieces: list[np.ndarray]) -> np.ndarray:
    """Return one array of many."""
    return np.concatenate(pieces) if pieces else np.zeros(0, np.int32)


def offsets(lengths: np.ndarray) -> np.ndarray:
    """Return where rows of these lengths begin, and the end of the last."""
    start = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=start[1:])
    return start
