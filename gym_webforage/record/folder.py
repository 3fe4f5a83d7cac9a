"""A directory of HTML files as the site that it is or becomes."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from gym_webforage.record.builder import Builder
from gym_webforage.record.capture import Capture, looks_like_html
from gym_webforage.record.notes import RecordError
from gym_webforage.record.urls import normalise
from gym_webforage.trace.trace import from_iso

DEFAULT_DATE = "2000-01-01"
PARTS = frozenset(
    ".css .js .mjs .map .woff .woff2 .ttf .otf .eot .ico .inv .buildinfo".split()
)
"""Endings of what pages are made with, which no link leads to."""
HTML_ENDINGS = (".html", ".htm", ".xhtml", ".shtml")


def record_folder(
    folder: str | Path, base_url: str, builder: Builder, date: str = DEFAULT_DATE
) -> None:
    """Give the files of a directory to ``builder``, all seen at one moment.

    Files that are not HTML become pages without content. The files' own times say
    when they were copied, not when they were written, so they are not used. Hidden
    files, symbolic links, style sheets, scripts and fonts are left out.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise RecordError(f"{folder} is no directory")
    base = normalise(base_url)
    if base is None:
        raise RecordError(f"the base URL {base_url!r} is no web address")
    if not base.endswith("/"):
        base += "/"
    try:
        seen = from_iso(date)
    except ValueError as error:
        raise RecordError(f"the date {date!r} is no ISO 8601 time") from error
    found = False
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(parent, name)
            if name.startswith(".") or file.suffix.lower() in PARTS:
                continue
            if file.is_symlink() or not file.is_file():
                continue
            path = file.relative_to(folder).as_posix()
            capture = _capture(file, base + quote(os.fsencode(path)), seen, builder)
            if capture is not None:
                found = True
                builder.add(capture)
    if not found:
        raise RecordError(f"{folder} holds no readable file")


def _capture(file: Path, url: str, seen: int, builder: Builder) -> Capture | None:
    most = builder.options.page_bytes + 1
    try:
        size = file.stat().st_size
        with file.open("rb") as stream:
            body = stream.read(most)
    except OSError as error:
        builder.notes.add("bad file", f"{file.name}: {error.strerror}")
        return None
    is_html = file.suffix.lower() in HTML_ENDINGS or (
        not file.suffix and looks_like_html(body)
    )
    media = "text/html" if is_html else "application/octet-stream"
    return Capture(url, seen, 200, body, media, size=size)
