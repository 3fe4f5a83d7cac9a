"""One page parsed: its words and its links, whatever state the markup is in.

The parser is resiliparse (lexbor): it reads broken markup as browsers do. The words
are taken out in one pass of its text extraction, into which each link's place has
been written beforehand as private-use characters; this is several times as fast as a
walk over the tree from Python.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from typing import Any

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5
from resiliparse.parse.html import HTMLTree

from gym_webforage.record.markup import is_tangled, untangled
from gym_webforage.record.notes import Notes
from gym_webforage.record.tag_paths import TagPaths
from gym_webforage.record.urls import normalise
from gym_webforage.trace.tokens import tokenise

NEAR = 10  # words before a link, and as many after it
LONGEST_ANCHOR = 50  # words
MOST_WRONG = 0.02  # share of replaced characters up to which a charset is believed

_OPEN, _CLOSE, _NUMBERED = "\ue000", "\ue001", "\ue002"
_MARKS = re.compile("[\ue000-\ue002]")
_LINKS = "a[href],area[href],frame[src],iframe[src]"
_CELLS = "td,th,option,br"  # the extraction runs the words of these together
_HEADERS = "h1,h2,h3,h4,h5,h6"
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{2,40})")
_REFRESH = re.compile(r"^\s*[\d.]*\s*[;,]?\s*(?:url\s*=\s*)?[\"']?([^\"'>]+)", re.I)


@dataclass(slots=True)
class Link:
    """A link to a URL, with the words in it and around it."""

    url: str
    anchor: list[str] = field(default_factory=list)
    near: list[str] = field(default_factory=list)
    tag_path: str = ""


@dataclass(slots=True)
class Page:
    """What a page says and where it leads to."""

    title: list[str] = field(default_factory=list)
    """Words of the title and the headers."""
    body: list[str] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    """In page order, each URL once; links to the page itself are left out."""


def parse_page(
    body: bytes,
    url: str,
    *,
    charset: str | None = None,
    drop_css: str | None = None,
    most_links: int = 10_000,
    notes: Notes | None = None,
) -> Page:
    """Parse the bytes of a page.

    Args:
        body: The HTML.
        url: The page's own URL, normalised.
        charset: What the server said of the charset.
        drop_css: A selector of the elements to remove first.
        most_links: Links after this many are dropped.
        notes: Where to count what is wrong with the page.
    """
    notes = Notes() if notes is None else notes
    text = decode(body, charset, url, notes)
    return parse_text(text, url, drop_css=drop_css, most_links=most_links, notes=notes)


def parse_text(
    text: str,
    url: str,
    *,
    drop_css: str | None = None,
    most_links: int = 10_000,
    notes: Notes | None = None,
) -> Page:
    """Parse a page that is text already; the rest is as in `parse_page`."""
    notes = Notes() if notes is None else notes
    if "\0" in text:
        notes.add("nul", url)
        text = text.replace("\0", "")
    if not text.isascii() and _MARKS.search(text):
        text = _MARKS.sub(" ", text)
    if is_tangled(text):
        if drop_css:  # what was to be removed could not be found any more
            notes.add("unparsed", f"{url}: too many elements open inside each other")
            return Page()
        notes.add("tangled", url)
        text = untangled(text)
    tree = HTMLTree.parse(text)
    document = tree.document
    if document is None:
        return Page()
    if drop_css:
        # Taken out of the tree, not destroyed: one match may hold another.
        for node in document.query_selector_all(drop_css):
            if node.parent is not None:
                node.parent.remove_child(node)
    base = _base(document, url)
    title = tokenise(tree.title or "")
    for header in document.query_selector_all(_HEADERS):
        title += tokenise(header.text or "")

    nodes = document.query_selector_all(_LINKS)
    if len(nodes) > most_links:
        notes.add("cut links", url)
    targets = [_target(node, base) for node in _first(nodes, most_links)]
    tag_paths = TagPaths()
    paths = {
        number: tag_paths.of(node)
        for number, node in enumerate(_first(nodes, most_links))
        if targets[number]
    }
    for number, node in enumerate(_first(nodes, most_links)):
        parent = node.parent
        if parent is None or targets[number] is None:
            continue
        alt = node.getattr("alt") if node.tag == "area" else None
        mark = f"{_OPEN}{number}{_NUMBERED}"
        if node.tag == "a":
            parent.insert_before(tree.create_text_node(mark), node)
            node.append_child(tree.create_text_node(_CLOSE))
        else:
            whole = f"{mark} {_MARKS.sub('', alt or '')} {_CLOSE}"
            parent.insert_before(tree.create_text_node(whole), node)
    for cell in document.query_selector_all(_CELLS):
        if cell.parent is not None:
            cell.parent.insert_before(tree.create_text_node(" "), cell)
    extracted = extract_plain_text(
        tree, main_content=False, alt_texts=True, list_bullets=False
    )
    words, places = _words(extracted)
    refresh = _refresh(document, base)
    wrong = sum(target is None for target in targets)
    notes.add("bad link", url, wrong)
    found = ((number, target) for number, target in enumerate(targets) if target)
    links = [(-1, refresh)] if refresh else []
    return Page(title, words, _merged([*links, *found], places, paths, words, url))


def _first(nodes: Any, most: int) -> Any:
    return nodes if len(nodes) <= most else nodes[:most]


def _target(node: Any, base: str) -> str | None:
    """Return where a link leads to, "" for nowhere else, None if it is broken."""
    address = node.getattr("href" if node.tag in ("a", "area") else "src") or ""
    address = address.strip()
    if not address or address.startswith("#"):
        return ""
    found = normalise(address, base)
    if found is None:
        scheme = address.partition(":")[0].lower()
        if scheme in ("mailto", "javascript", "news", "telnet", "gopher", "tel"):
            return ""
        if scheme in ("data", "about", "nntp", "wais", "irc", "blob", "callto"):
            return ""
    return found


def _words(text: str) -> tuple[list[str], dict[int, tuple[int, int]]]:
    """Return the words of a text with marks, and where the marked ones stand."""
    pieces = text.split(_OPEN)
    words = tokenise(pieces[0].replace(_CLOSE, " "))
    places: dict[int, tuple[int, int]] = {}
    for piece in pieces[1:]:
        number, _, rest = piece.partition(_NUMBERED)
        anchor, _, after = rest.partition(_CLOSE)
        begin = len(words)
        words += tokenise(anchor)
        if number.isdecimal():
            places[int(number)] = begin, len(words)
        words += tokenise(after.replace(_CLOSE, " "))
    return words, places


def _merged(
    links: list[tuple[int, str]],
    places: dict[int, tuple[int, int]],
    paths: dict[int, str],
    words: list[str],
    url: str,
) -> list[Link]:
    """Return each URL's link once: the words of all its links, near the first.

    The first one also gives the tag path.
    """
    merged: dict[str, Link] = {}
    for number, target in links:
        if target == url:
            continue
        begin, end = places.get(number, (0, 0))
        anchor = words[begin : min(end, begin + LONGEST_ANCHOR)]
        known = merged.get(target)
        if known is None:
            near = []
            if number in places:
                near = words[max(0, begin - NEAR) : begin] + words[end : end + NEAR]
            merged[target] = Link(target, anchor, near, paths.get(number, ""))
        elif anchor and anchor != known.anchor:
            have = set(known.anchor)
            room = LONGEST_ANCHOR - len(known.anchor)
            known.anchor += [word for word in anchor if word not in have][:room]
    return list(merged.values())


def _base(document: Any, url: str) -> str:
    node = document.query_selector("base[href]")
    if node is None:
        return url
    return normalise(node.getattr("href") or "", url) or url


def _refresh(document: Any, base: str) -> str | None:
    """Return where the page sends its reader after a moment, if it does."""
    for node in document.query_selector_all("meta[http-equiv][content]"):
        if (node.getattr("http-equiv") or "").lower() == "refresh":
            found = _REFRESH.match(node.getattr("content") or "")
            if found and not found.group(1).replace(".", "").strip().isdigit():
                return normalise(found.group(1), base)
    return None


# --- charset


def decode(body: bytes, charset: str | None, url: str, notes: Notes) -> str:
    """Make text of bytes: charset from mark, header, meta element or detection."""
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    found = _META_CHARSET.search(body[:4096].lower())
    meta = found.group(1).decode("ascii", "replace") if found else None
    said = [name for name in map(_known, (charset, meta)) if name]
    for name in (*said, "utf-8"):
        try:
            return body.decode(name)
        except UnicodeDecodeError:
            pass
    for name in said:
        text = body.decode(name, "replace")
        if text.count("\ufffd") <= MOST_WRONG * len(text):
            notes.add("mixed charset", url)
            return text
    guessed = _known(detect_encoding(body)) or "cp1252"
    text = body.decode(guessed, "replace")
    if said or "\ufffd" in text:
        notes.add("mixed charset", url)
    return text


def _known(charset: str | None) -> str | None:
    """Return the codec of a charset's name as browsers read it, None if unknown."""
    if not charset:
        return None
    try:
        name = map_encoding_to_html5(charset.strip(" \"'").lower())
        found = codecs.lookup(name or charset)
        return found.name if found._is_text_encoding else None
    except (LookupError, ValueError, AttributeError):
        return None
