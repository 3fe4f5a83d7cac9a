"""A stored HTTP answer taken apart: status, headers and the decoded body."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

_STATUS = re.compile(rb"HTTP/\d(?:\.\d)? +(\d{3})(?:\s|$)", re.IGNORECASE)
_END = re.compile(rb"\r?\n\r?\n")
_FOLDED = re.compile(rb"\r?\n[ \t]+")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
LONGEST_HEAD = 1 << 16


@dataclass(slots=True)
class Answer:
    """An HTTP answer, its body still encoded."""

    status: int
    headers: dict[str, str]
    body: bytes
    head_bytes: int


def split_answer(block: bytes) -> Answer | None:
    """Take an answer apart; None if it does not begin like one."""
    status = _STATUS.match(block)
    if status is None:
        return None
    end = _END.search(block, 0, LONGEST_HEAD)
    head, body_at = (block[: end.start()], end.end()) if end else (block, len(block))
    headers: dict[str, str] = {}
    for line in _FOLDED.sub(b" ", head[:LONGEST_HEAD]).splitlines()[1:]:
        name, colon, value = line.partition(b":")
        if colon:
            headers[name.strip().lower().decode("latin-1")] = value.strip().decode(
                "latin-1"
            )
    return Answer(int(status.group(1)), headers, block[body_at:], body_at)


def media_type(content_type: str | None) -> tuple[str, str | None]:
    """Return the media type in lower case, and the charset if it names one.

    >>> media_type("Text/HTML; charset=UTF-8")
    ('text/html', 'UTF-8')
    """
    if not content_type:
        return "", None
    media, _, rest = content_type.partition(";")
    charset = _CHARSET.search(rest)
    return media.strip().lower(), charset.group(1) if charset else None


def http_date(text: str | None) -> int | None:
    """Read an HTTP date as milliseconds since 1970; None if it is none."""
    if not text:
        return None
    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return int(moment.timestamp()) * 1000
    except (TypeError, ValueError, IndexError, OverflowError):
        return None


def decoded(answer: Answer, most: int) -> bytes | None:
    """Return the body as the page's author wrote it, cut after ``most`` bytes.

    Recorders often store a body decoded and leave the header that says otherwise;
    a body that does not look encoded is taken as it is. None: it cannot be decoded.
    """
    body = answer.body
    if "chunked" in answer.headers.get("transfer-encoding", "").lower():
        body = unchunked(body)
    codings = answer.headers.get("content-encoding", "").lower().replace(",", " ")
    for coding in reversed(codings.split()):
        if coding in ("identity", "none", "utf-8"):
            continue
        if coding in ("gzip", "x-gzip", "deflate"):
            made = inflated(body, most, coding)
        else:  # such as br and zstd; stored decoded more often than not
            made = body if body.lstrip()[:1] == b"<" else None
        if made is None:
            return None
        body = made
    return body[:most]


def unchunked(body: bytes) -> bytes:
    """Join the chunks of a body, as far as they are whole."""
    pieces: list[bytes] = []
    at = 0
    while True:
        end = body.find(b"\n", at, at + 1024)
        size = body[at:end].split(b";")[0].strip() if end >= 0 else b""
        if not size or len(size) > 8 or not re.fullmatch(rb"[0-9a-fA-F]+", size):
            # At the start it is no chunked body; later, the rest is lost.
            return b"".join(pieces) if at else body
        length = int(size, 16)
        if not length:
            return b"".join(pieces)
        pieces.append(body[end + 1 : end + 1 + length])
        at = end + 1 + length
        if body[at : at + 2] == b"\r\n":
            at += 2
        elif body[at : at + 1] == b"\n":
            at += 1


def inflated(body: bytes, most: int, coding: str) -> bytes | None:
    """Decompress at most ``most`` bytes, whatever the rest would become."""
    if coding != "deflate" and not body.startswith(b"\x1f\x8b"):
        return body
    # Deflate is sent with and without the zlib header; 47 finds header or gzip.
    for bits in (47, -15) if coding == "deflate" else (47,):
        try:
            return zlib.decompressobj(bits).decompress(body, most)
        except zlib.error:
            continue
    return body if body.lstrip()[:1] == b"<" else None
