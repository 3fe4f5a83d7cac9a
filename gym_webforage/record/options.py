"""What a recording keeps, and what it says of itself: the options common to all."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

from gym_webforage.record.labels import Labels
from gym_webforage.record.notes import RecordError
from gym_webforage.trace.text import METHODS
from gym_webforage.trace.tokens import tokenise

World = Literal["open", "closed"]


@dataclass(frozen=True)
class Options:
    """How captures become a trace. Wrong values are a `RecordError`."""

    name: str
    """The trace's name, with its version: ``mysite-v0``."""
    title: str | None = None
    source: str | None = None
    licence: str | None = None

    world: World = "open"
    """What becomes of links to pages that were never captured: ``open`` keeps those
    on recorded sites, as URLs that answer nothing, ``closed`` drops them. Targets stay
    in both."""
    targets: str | None = None
    """Regular expression: URLs that it is found in (any letter case) are targets."""
    target_labels: tuple[str, ...] = ()
    """Pages with one of these labels are targets too."""
    labels: Labels = field(default_factory=Labels)
    topics: tuple[str, ...] = ()
    """Topics for the Topic environment, each as words. Pages that have all words of a
    topic carry it as a label."""
    roots: tuple[str, ...] = ()
    """Start pages; without any, one for each site is chosen."""
    site: str | None = None
    """One name for the site of all pages."""
    site_from: str = "host"
    """``host``, or the column of the labels file that names the site."""
    max_pages: int | None = None
    drop_template_links: float | None = None
    """Drop links to what more than this share of a site's pages link to."""
    vocabulary: int = 50_000
    """Words that are kept: those on most pages."""
    url_endings: bool = True
    """Whether a file ending is among the words of a URL."""

    states: str = "none"
    """How each version's text becomes a state vector: ``none`` or a method of
    `gym_webforage.trace.text.fit_states`."""
    state_length: int = 50
    states_until: str | None = None
    """Only what was seen before this time is learnt from."""

    drop_css: str | None = None
    page_bytes: int = 10_000_000
    page_links: int = 10_000
    workers: int = 1
    strict: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot work, before anything is read."""
        if self.world not in ("open", "closed"):
            raise RecordError(f"world is {self.world!r}, expected open or closed")
        share = self.drop_template_links
        if share is not None and not 0 < share <= 1:
            raise RecordError(f"drop_template_links is {share}, expected 0 to 1")
        if self.states != "none" and self.states not in METHODS:
            known = ", ".join(METHODS)
            raise RecordError(f"states is {self.states!r}, expected none, {known}")
        for name in ("vocabulary", "page_bytes", "page_links", "workers", "max_pages"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise RecordError(f"{name} is {value}, expected at least 1")
        if self.targets is not None:
            try:
                re.compile(self.targets)
            except re.error as error:
                raise RecordError(
                    f"targets {self.targets!r} is no regular expression: {error}"
                ) from error
        for topic in self.topics:
            if not tokenise(topic):
                raise RecordError(f"the topic {topic!r} has no words")
        if self.drop_css is not None:
            check_selector(self.drop_css)
        if self.site_from != "host" and self.site_from not in self.labels.columns:
            known = ", ".join(self.labels.columns) or "no named columns"
            raise RecordError(
                f"site_from is {self.site_from!r}, expected host or a column of the "
                f"labels file, which has {known}"
            )
        unknown = set(self.target_labels) - set(self.labels.names)
        if unknown:
            raise RecordError(
                f"no page has the target label {', '.join(sorted(unknown))}; "
                f"known: {', '.join(self.labels.names[:20])}"
            )

    def described(self) -> dict[str, Any]:
        """Return what shaped the trace, for its card."""
        plain = {
            name: getattr(self, name)
            for name in (
                "world targets target_labels topics site site_from max_pages "
                "drop_template_links vocabulary url_endings drop_css page_bytes "
                "page_links"
            ).split()
        }
        plain["labels"] = self.labels.file
        kept = {name: value for name, value in plain.items() if value not in (None, ())}
        return {n: list(v) if isinstance(v, tuple) else v for n, v in kept.items()}


def check_selector(selector: str) -> None:
    """Raise `RecordError` unless ``selector`` is one of CSS."""
    from resiliparse.parse.html import HTMLTree

    try:
        document = HTMLTree.parse("<p>").document
        assert document is not None
        document.query_selector_all(selector)
    except ValueError as error:
        raise RecordError(f"{selector!r} is no CSS selector: {error}") from error
