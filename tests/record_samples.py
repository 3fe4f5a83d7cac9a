"""WARC records and captures made by hand, for the tests of the recorder."""

from __future__ import annotations

import gzip
import io
from typing import Any

from gym_webforage.record import Builder, Capture, Notes, Options
from gym_webforage.record.warc import read_warc
from gym_webforage.trace import Trace

DAY = 86_400_000
SITE = "http://a.example/"


def answer(
    body: bytes = b"", status: str = "200 OK", html: bool = True, **headers: str
) -> bytes:
    """Return an HTTP answer; underscores in the names of headers are hyphens."""
    if html:
        headers.setdefault("Content_Type", "text/html")
    lines = [f"HTTP/1.1 {status}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def record(
    url: str,
    block: bytes,
    date: str = "2020-01-01T00:00:00Z",
    kind: str = "response",
    length: int | str | None = None,
    version: str = "1.0",
    **headers: str,
) -> bytes:
    """Return a WARC record."""
    facts = {
        "WARC-Type": kind,
        "WARC-Target-URI": url,
        "WARC-Date": date,
        "WARC-Record-ID": "<urn:uuid:265c0d1d-43df-4b75-940d-889a5c5ebd1a>",
        "Content-Type": "application/http; msgtype=response",
        "Content-Length": str(len(block) if length is None else length),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in facts.items())
    return f"WARC/{version}\r\n{head}\r\n".encode() + block + b"\r\n\r\n"


def page(name: str, body: bytes = b"<p>some words</p>", **given: Any) -> bytes:
    """Return a WARC record of a page."""
    return record(SITE + name, answer(body), **given)


def zipped(*records: bytes) -> bytes:
    return b"".join(gzip.compress(one, mtime=0) for one in records)


def read(data: bytes, limit: int = 1 << 20) -> tuple[list[Capture], Notes]:
    notes = Notes()
    return list(read_warc(io.BytesIO(data), "test", notes, limit)), notes


def build(*captures: Capture, notes: bool = False, **options: Any) -> Any:
    """Return the trace of captures, on demand with what was noted."""
    builder = Builder(Options("test-v0", **options))
    for capture in captures:
        builder.add(capture)
    trace = builder.finish()
    return (trace, builder.notes) if notes else trace


def captured(path: str, body: str = "", day: float = 0, **given: Any) -> Capture:
    return Capture(SITE + path, int(day * DAY), body=body.encode(), **given)


def shown(trace: Trace) -> dict[str, list[tuple[int, int, list[str]]]]:
    """Return each URL's versions: day, status and the URLs linked to."""
    found: dict[str, list[tuple[int, int, list[str]]]] = {}
    for url, address in enumerate(trace.urls):
        low, high = trace.version_start[url : url + 2]
        found[address.removeprefix(SITE)] = [
            (
                int(trace.version_seen[v]) // DAY,
                int(trace.version_status[v]),
                [trace.urls[int(t)].removeprefix(SITE) for t in trace.links_of(v)],
            )
            for v in range(low, high)
        ]
    return found
