"""WARC files read record by record, damaged ones as far as they can be.

fastwarc reads the records; after damage it is started anew at the next place that
looks like the beginning of one.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from fastwarc.warc import ArchiveIterator, WarcRecordType  # pyright: ignore[reportMissingModuleSource]

from gym_webforage.record.builder import Builder
from gym_webforage.record.capture import Capture
from gym_webforage.record.http import (
    LONGEST_HEAD,
    decoded,
    http_date,
    media_type,
    split_answer,
)
from gym_webforage.record.notes import Notes, RecordError
from gym_webforage.trace.trace import from_iso

STANDARD_INPUT = "-"
MOST_ATTEMPTS = 10_000  # to find a record in one stretch of garbage

_BEGIN = re.compile(rb"\x1f\x8b\x08|WARC/1\.[01]\r?\n")
_CHUNK = 1 << 20
_TYPES = WarcRecordType.response | WarcRecordType.resource | WarcRecordType.revisit


def record_warc(files: Iterable[str | Path], builder: Builder) -> None:
    """Give the captures of WARC files to ``builder``; ``-`` is standard input."""
    options = builder.options
    for file in files:
        with _opened(file) as stream:
            name = "standard input" if file == STANDARD_INPUT else Path(file).name
            for capture in read_warc(stream, name, builder.notes, options.page_bytes):
                builder.add(capture)


@contextmanager
def _opened(file: str | Path) -> Iterator[IO[bytes]]:
    if file != STANDARD_INPUT:
        try:
            stream = Path(file).open("rb")
        except OSError as error:
            raise RecordError(f"{file} cannot be read: {error.strerror}") from error
        with stream:
            yield stream
        return
    with tempfile.TemporaryFile() as spooled:
        # Damage needs a second look, which a pipe does not give.
        shutil.copyfileobj(sys.stdin.buffer, spooled)
        spooled.seek(0)
        yield spooled


def read_warc(
    stream: IO[bytes], name: str, notes: Notes, page_bytes: int
) -> Iterator[Capture]:
    """Yield the captures in a WARC file.

    Args:
        stream: The file, which must be able to seek.
        name: What to call it in warnings.
        notes: Where to count what is skipped.
        page_bytes: Bodies are read little further than this.
    """
    begin, attempts, found = 0, 0, 0
    while True:
        stream.seek(begin)
        at, damage = begin, None
        try:
            file: Any = stream  # fastwarc names the arguments of `read` otherwise
            for record in ArchiveIterator(file, record_types=_TYPES, parse_http=False):
                at = begin + record.stream_pos
                attempts = 0
                found += 1
                capture, whole = _capture(
                    record, f"{name}, byte {at}", notes, page_bytes
                )
                if capture is not None:
                    yield capture
                if not whole:
                    notes.add("truncated", f"{name}, byte {at}")
                    break
            else:
                break
        except (OSError, ValueError, RuntimeError) as error:
            if isinstance(error, RecordError):
                raise
            damage = error
        if damage is not None and not attempts:
            notes.add("damaged", f"{name}, after byte {at}: {damage}")
        attempts += 1
        next_begin = _next_begin(stream, at + 1)
        if next_begin is None or attempts > MOST_ATTEMPTS:
            break
        begin = next_begin
    if not found:
        stream.seek(0)
        if stream.read(1):
            notes.add("damaged", f"{name}: no WARC record in it")


def _next_begin(stream: IO[bytes], at: int) -> int | None:
    """Return where the next record may begin, from byte ``at`` on."""
    stream.seek(at)
    tail = b""
    while chunk := stream.read(_CHUNK):
        window = tail + chunk
        found = _BEGIN.search(window)
        if found:
            return at - len(tail) + found.start()
        at += len(chunk)
        tail = window[-16:]
    return None


def _capture(
    record: Any, where: str, notes: Notes, page_bytes: int
) -> tuple[Capture | None, bool]:
    """Return what a record holds, and whether all of the record was there."""
    headers = record.headers
    url = (headers.get("WARC-Target-URI") or "").strip().strip("<>")
    limit = page_bytes + LONGEST_HEAD + 1
    length = record.content_length
    block = record.reader.read(min(length, limit)) if length > 0 else b""
    whole = len(block) >= min(length, limit)
    if not whole:
        length = len(block)
    try:
        seen = from_iso((headers.get("WARC-Date") or "").strip())
    except ValueError:
        seen = -1
    if url[:4].lower() == "dns:":
        return None, whole
    if not url or seen < 0:
        notes.add("bad record", where)
        return None, whole
    digest = headers.get("WARC-Payload-Digest")
    kind = record.record_type
    if kind == WarcRecordType.revisit:
        refers_to = headers.get("WARC-Refers-To-Target-URI")
        capture = Capture(url, seen, digest=digest, revisit=True, refers_to=refers_to)
        return capture, whole
    content_type = headers.get("Content-Type") or ""
    if kind == WarcRecordType.resource or not content_type.startswith(
        "application/http"
    ):
        media, charset = media_type(content_type)
        capture = Capture(
            url, seen, 200, block, media, charset, size=length, digest=digest
        )
        return capture, whole
    answer = split_answer(block)
    if answer is None:
        notes.add("bad record", where)
        return None, whole
    media, charset = media_type(answer.headers.get("content-type"))
    body = decoded(answer, page_bytes + 1)
    if body is None:
        notes.add("undecodable", url)
        body, media = b"", "application/octet-stream"
    capture = Capture(
        url,
        seen,
        answer.status,
        body,
        media,
        charset,
        size=max(0, length - answer.head_bytes),
        modified=http_date(answer.headers.get("last-modified")),
        location=answer.headers.get("location"),
        digest=digest,
    )
    return capture, whole
