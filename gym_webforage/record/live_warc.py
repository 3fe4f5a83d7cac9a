"""The WARC file of one round of a live recording: append, read back, mend.

Every record is one gzip member and is on disk before anyone is told that its page is
saved, so a crash can at most leave a half-written member at the end of the file. The
file is also all that is needed to go on: what it names is done, and its pages hold
the links that led further.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import os
import uuid
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.client import responses
from pathlib import Path

ELAPSED = "WebForage-Elapsed"  # seconds this round has been crawling, breaks left out
CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one request brought: a response or, with status 0, an error.

    Headers are text in Latin-1, as HTTP has it, without line breaks.
    """

    url: str
    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    error: str = ""
    truncated: str = ""  # WARC's words for why: length, disconnect
    address: str = ""
    elapsed: float = 0.0

    def header(self, name: str) -> str:
        """Return the first value of an HTTP header, or nothing."""
        return next((v for key, v in self.headers if key.lower() == name), "")

    @property
    def forbidden(self) -> bool:
        """Whether the URL was never asked for."""
        reasons = ("refused", "forbidden", "robots.txt")
        return not self.status and self.error.startswith(reasons)


class RoundFile:
    """An append-only WARC file; every record is on disk when ``append`` returns."""

    def __init__(self, path: Path, about: dict[str, str]) -> None:
        created = not path.exists() or not path.stat().st_size
        self.handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        if created:
            self._write(_info(path.name, about))
            sync_folder(path.parent)

    def append(self, *outcomes: Outcome) -> None:
        """Write outcomes that belong together."""
        self._write(*map(to_record, outcomes))

    def close(self) -> None:
        """Close the file."""
        os.close(self.handle)

    def _write(self, *records: bytes) -> None:
        members = (gzip.compress(r, compresslevel=6, mtime=0) for r in records)
        data = memoryview(b"".join(members))
        while data:
            data = data[os.write(self.handle, data) :]
        os.fsync(self.handle)


def sync_folder(folder: Path) -> None:
    """Make the names of new files survive a power failure."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# --- one record


def to_record(outcome: Outcome) -> bytes:
    """Return an outcome as a WARC record: ``response``, or ``metadata`` of an error."""
    fields = {"WARC-Target-URI": outcome.url, ELAPSED: f"{outcome.elapsed:.3f}"}
    if outcome.truncated:
        fields["WARC-Truncated"] = outcome.truncated
    if outcome.address:
        fields["WARC-IP-Address"] = outcome.address
    if not outcome.status:
        content = f"fetch-error: {' '.join(outcome.error.split())}\r\n".encode()
        return _record("metadata", "application/warc-fields", fields, content)
    digest = base64.b32encode(hashlib.sha1(outcome.body).digest()).decode()
    fields["WARC-Payload-Digest"] = f"sha1:{digest}"
    kind = "application/http; msgtype=response"
    return _record("response", kind, fields, _http(outcome))


def _http(outcome: Outcome) -> bytes:
    reason = responses.get(outcome.status, "")
    lines = [f"HTTP/1.1 {outcome.status} {reason}"]
    lines += [f"{name}: {value}" for name, value in outcome.headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + outcome.body


def _info(name: str, about: dict[str, str]) -> bytes:
    content = "".join(f"{key}: {value}\r\n" for key, value in about.items()).encode()
    return _record(
        "warcinfo", "application/warc-fields", {"WARC-Filename": name}, content
    )


def _record(kind: str, content: str, fields: dict[str, str], block: bytes) -> bytes:
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    head = {
        "WARC-Type": kind,
        "WARC-Record-ID": f"<urn:uuid:{uuid.uuid4()}>",
        "WARC-Date": now,
        **fields,
        "Content-Type": content,
        "Content-Length": str(len(block)),
    }
    lines = "".join(f"{key}: {value}\r\n" for key, value in head.items())
    return b"WARC/1.1\r\n" + lines.encode() + b"\r\n" + block + b"\r\n\r\n"


def from_record(record: bytes) -> Outcome | None:
    """Read back what ``to_record`` wrote; None for a record that is no outcome."""
    head, _, block = record.partition(b"\r\n\r\n")
    fields = dict(_fields(head))
    if fields.get("WARC-Type") not in ("response", "metadata"):
        return None
    block = block[: int(fields["Content-Length"])]
    url, elapsed = fields["WARC-Target-URI"], float(fields[ELAPSED])
    if fields["WARC-Type"] == "metadata":
        error = block.decode().partition(": ")[2].strip()
        return Outcome(url, error=error, elapsed=elapsed)
    http, _, body = block.partition(b"\r\n\r\n")
    return Outcome(
        url,
        status=int(http.split(b" ", 2)[1]),
        headers=_fields(http, "latin-1"),
        body=body,
        truncated=fields.get("WARC-Truncated", ""),
        elapsed=elapsed,
    )


def _fields(head: bytes, encoding: str = "utf-8") -> list[tuple[str, str]]:
    lines = head.decode(encoding).split("\r\n")[1:]
    return [(name, value) for name, _, value in (s.partition(": ") for s in lines)]


# --- a whole file


def outcomes(path: Path) -> Iterator[Outcome]:
    """Read the captures of a file in order; a half-written end is left out."""
    for _, record in _members(path):
        outcome = from_record(record)
        if outcome is not None:
            yield outcome


def mend(path: Path) -> int:
    """Cut off what a crash left behind the last whole record; return its length.

    What is cut off is kept beside the file when it is more than an unfinished record.
    """
    if not path.exists():
        return 0
    end, damaged = 0, False
    try:
        for behind, record in _members(path):
            from_record(record)
            end = behind
    except (zlib.error, KeyError, ValueError, IndexError):
        damaged = True
    rest = path.stat().st_size - end
    if not rest:
        return 0
    with path.open("r+b") as file:
        if damaged:
            file.seek(end)
            aside = path.with_name(f"{path.name}.damaged-at-{end}")
            aside.write_bytes(file.read())
        file.truncate(end)
        os.fsync(file.fileno())
    return rest


def _members(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield each whole gzip member: where it ends, and what it holds."""
    with path.open("rb") as file:
        end, rest = 0, b""
        while True:
            unpack = zlib.decompressobj(wbits=31)
            parts, used = [], 0
            while not unpack.eof:
                rest = rest or file.read(CHUNK)
                if not rest:
                    return
                parts.append(unpack.decompress(rest))
                used += len(rest) - len(unpack.unused_data)
                rest = unpack.unused_data
            end += used
            yield end, b"".join(parts)
