"""What went wrong on the way: counted, explained, and an error where asked for."""

from __future__ import annotations

from collections import Counter

KINDS = {
    # kind: what happened, and what was done about it
    "damaged": "damaged stretches of a WARC file: skipped up to the next record",
    "truncated": "records that end before their Content-Length: kept as far as they go",
    "bad record": "WARC records without a usable address, date or status: skipped",
    "undecodable": "bodies whose Content-Encoding is broken or unknown: "
    "kept without content",
    "cut page": "bodies above the size limit: cut there",
    "cut links": "pages above the limit of links: the links after it dropped",
    "bad link": "links that are no web address: dropped",
    "mixed charset": "pages with bytes outside their charset: those bytes replaced",
    "nul": "pages with NUL bytes: the bytes dropped",
    "tangled": "pages with more than 1,000 elements open inside each other: "
    "read for words and links only",
    "unparsed": "pages that could not be parsed: kept without content",
    "same moment": "captures of a URL at the very time of another: dropped",
    "lost original": "revisit records without the capture they repeat: skipped",
    "bad date": "Last-Modified dates before 1990 or after the capture: "
    "the capture's own date taken",
    "more pages": "captures of pages beyond --max-pages: skipped",
    "more tag paths": "batches of pages after the first 65,536 tag paths: "
    "further paths left out",
    "odd label": "label rows for URLs that are not in the recording: ignored",
    "bad file": "files that could not be read: skipped",
}
ALLOWED = frozenset(
    (
        "bad link",
        "bad date",
        "more pages",
        "more tag paths",
        "odd label",
        "same moment",
    )
)
"""Kinds that are ordinary on the web, so that ``strict`` lets them pass."""


class RecordError(ValueError):
    """Something that cannot be recorded: what, where and what to do."""


class Notes:
    """Counts what was skipped or cut, with the first place of each kind.

    Args:
        strict: Whether a note is an error (`RecordError`), except of the kinds
            in ``ALLOWED``.
    """

    def __init__(self, strict: bool = False) -> None:
        self.strict = strict
        self.counts: Counter[str] = Counter()
        self.first: dict[str, str] = {}

    def add(self, kind: str, where: str = "", count: int = 1) -> None:
        """Count something that went wrong at ``where``."""
        if not count:
            return
        if self.strict and kind not in ALLOWED:
            raise RecordError(f"{where}: one of the {KINDS[kind]} (without --strict)")
        self.counts[kind] += count
        self.first.setdefault(kind, where)

    def merge(self, other: Notes) -> None:
        """Add the counts of other notes."""
        for kind, count in other.counts.items():
            self.add(kind, other.first[kind], count)

    def lines(self) -> list[str]:
        """Return one line for each kind, in a fixed order."""
        return [
            f"{self.counts[kind]:,} {meaning}"
            + (f" (first: {self.first[kind]})" if self.first[kind] else "")
            for kind, meaning in KINDS.items()
            if self.counts[kind]
        ]
