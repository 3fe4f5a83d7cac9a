"""One answer of a server at one moment: what every way of recording hands over."""

from __future__ import annotations

from dataclasses import dataclass

HTML_TYPES = frozenset(("text/html", "application/xhtml+xml", "application/html"))


@dataclass(slots=True)
class Capture:
    """What a URL answered at one moment."""

    url: str
    """The address as it was asked for; the builder normalises it."""
    seen: int
    """When, in milliseconds since 1970."""
    status: int = 200
    """The HTTP status; 410 says that a page is gone."""
    body: bytes = b""
    """The content, decoded from any transfer or content encoding."""
    media: str = "text/html"
    """The media type, without parameters; "" where none was given."""
    charset: str | None = None
    """The charset that the server gave."""
    size: int | None = None
    """Bytes of the whole content, where ``body`` is only a part of it."""
    modified: int | None = None
    """The server's Last-Modified, in milliseconds."""
    location: str | None = None
    """Where a redirect leads to."""
    digest: str | None = None
    """The recording's own name for this content, to which a revisit may refer."""
    revisit: bool = False
    """Whether the content was left out because it is that of an earlier capture."""
    refers_to: str | None = None
    """The URL of that earlier capture."""
    markup: str = "html"
    """In which language the body is written: html, markdown or rst."""

    @property
    def is_page(self) -> bool:
        """Whether the content is a page with text and links."""
        if not 200 <= self.status < 300:
            return False
        if self.markup != "html" or self.media in HTML_TYPES:
            return True
        return not self.media and looks_like_html(self.body)


def looks_like_html(body: bytes) -> bool:
    """Guess from the beginning of a body whether it is HTML."""
    head = body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if not head.startswith(b"<"):
        return False
    return any(
        tag in head
        for tag in (b"<html", b"<!doctype html", b"<head", b"<body", b"<title")
    )
