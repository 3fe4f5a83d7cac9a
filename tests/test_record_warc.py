from __future__ import annotations

import gzip
import io
import sys
import zlib
from pathlib import Path

import pytest

pytest.importorskip("fastwarc", reason="needs the extra `record`")

from gym_webforage.record import Builder, Options, RecordError
from gym_webforage.record.warc import record_warc
from tests.record_samples import DAY, SITE, answer, page, read, record, shown, zipped

PAGES = [page(str(i)) for i in range(4)]
NAMES = ["0", "1", "2", "3"]


def names(data: bytes, **options: int) -> tuple[list[str], dict[str, int]]:
    captures, notes = read(data, **options)
    return [one.url.removeprefix(SITE) for one in captures], dict(notes.counts)


@pytest.mark.parametrize(
    "data",
    [
        b"".join(PAGES),
        zipped(*PAGES),
        gzip.compress(b"".join(PAGES)),
        b"".join(page(name, version="1.1") for name in NAMES),
        b"\r\n\r\n".join(PAGES),
    ],
    ids=["plain", "gzip per record", "gzip as a whole", "version 1.1", "blank lines"],
)
def test_forms(data: bytes) -> None:
    assert names(data) == (NAMES, {})


def test_what_a_response_says() -> None:
    body = b"<p>hello"
    block = answer(
        body,
        Content_Type="Text/HTML; charset=ISO-8859-1",
        Last_Modified="Tue, 31 Dec 2019 00:00:00 GMT",
    )
    (capture,), _ = read(record(SITE, block, date="2020-01-01T00:00:00.250Z"))
    assert capture.seen == 1_577_836_800_250
    assert capture.modified == 1_577_836_800_000 - DAY
    assert (capture.media, capture.charset) == ("text/html", "ISO-8859-1")
    assert (capture.body, capture.size, capture.status) == (body, len(body), 200)


HTML = b"<p>" + b"hello world " * 20


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (gzip.compress(HTML), {"Content_Encoding": "gzip"}),
        (zlib.compress(HTML), {"Content_Encoding": "deflate"}),
        (zlib.compress(HTML)[2:-4], {"Content_Encoding": "deflate"}),
        (HTML, {"Content_Encoding": "gzip"}),  # stored decoded, as some do
        (HTML, {"Content_Encoding": "br"}),
        (b"5\r\n" + HTML[:5] + b"\r\nFFF;x=y\r\n" + HTML[5:], {"chunks": "x"}),
        (HTML, {"Transfer_Encoding": "chunked"}),
        (
            b"%x\r\n%s\r\n0\r\n\r\n"
            % (len(gzip.compress(HTML, mtime=0)), gzip.compress(HTML, mtime=0)),
            {"Transfer_Encoding": "chunked", "Content_Encoding": "gzip"},
        ),
    ],
)
def test_encodings(body: bytes, headers: dict[str, str]) -> None:
    if headers.pop("chunks", None):
        headers["Transfer_Encoding"] = "chunked"
    (capture,), notes = read(record(SITE, answer(body, **headers)))
    assert capture.body == HTML
    assert not notes.counts


def test_broken_encoding_leaves_a_page_without_content() -> None:
    block = answer(b"\x1f\x8bgarbage", Content_Encoding="gzip")
    (capture,), notes = read(record(SITE, block))
    assert not capture.is_page
    assert notes.counts == {"undecodable": 1}


def test_resources_and_others() -> None:
    data = (
        record("http://a.example/r", b"<p>x", kind="resource", Content_Type="text/html")
        + record("dns:a.example", b"1.2.3.4", kind="resource", Content_Type="text/dns")
        + record(SITE, b"GET / HTTP/1.1\r\n\r\n", kind="request")
        + record(SITE, b"software: x", kind="warcinfo")
    )
    (capture,), notes = read(data)
    assert (capture.body, capture.media) == (b"<p>x", "text/html")
    assert not notes.counts


WRONG = page("x", b"q" * 500, length=100)
DAMAGED = bytearray(zipped(PAGES[1]))
DAMAGED[30] ^= 255
DAMAGED[60] ^= 255


@pytest.mark.parametrize(
    ("data", "found", "noted"),
    [
        (PAGES[0] + b"GARBAGE\r\n\r\n" * 3 + PAGES[1], ["0", "1"], "damaged"),
        (PAGES[0] + bytes(range(256)) * 9 + PAGES[1], ["0", "1"], "damaged"),
        (b"garbage" + PAGES[0] + PAGES[1], ["0", "1"], "damaged"),
        (zipped(PAGES[0]) + b"XYZ" * 9 + zipped(PAGES[1]), ["0", "1"], "damaged"),
        (
            zipped(PAGES[0]) + bytes(DAMAGED) + zipped(PAGES[2], PAGES[3]),
            ["0", "2", "3"],
            "damaged",
        ),
        (zipped(*PAGES)[:-40], ["0", "1", "2"], "truncated"),
        (b"".join(PAGES)[:-10], NAMES, "truncated"),
        (PAGES[0] + WRONG + PAGES[1], ["0", "x", "1"], "damaged"),
        (
            PAGES[0] + page("x", b"q" * 500, length=700) + PAGES[1] + PAGES[2],
            ["0", "x", "1", "2"],
            "damaged",
        ),
        (
            PAGES[0] + page("x", length=10**18) + PAGES[1] + PAGES[2],
            ["0", "x", "1", "2"],
            "truncated",
        ),
        (PAGES[0] + page("x", length=-5) + PAGES[1], ["0", "1"], "bad record"),
        (PAGES[0] + page("x", length="abc") + PAGES[1], ["0", "1"], "bad record"),
        (page("x", date="yesterday") + PAGES[1], ["1"], "bad record"),
        (record(SITE, b"not http") + PAGES[1], ["1"], "bad record"),
        (b"\0" * 1000, [], "damaged"),
        (b"<html>" * 100, [], "damaged"),
    ],
)
def test_damage(data: bytes, found: list[str], noted: str) -> None:
    urls, notes = names(data)
    assert urls == found
    assert notes[noted] >= 1


def test_an_empty_file_is_empty() -> None:
    assert names(b"") == ([], {})


def test_bombs_are_read_to_the_limit() -> None:
    outer = gzip.compress(page("outer", b"\0" * 30_000_000))
    inner = answer(gzip.compress(b"<p>" * 10_000_000), Content_Encoding="gzip")
    data = outer + zipped(record(SITE + "inner", inner), PAGES[0])
    captures, _ = read(data, limit=1000)
    assert [one.url.removeprefix(SITE) for one in captures] == ["outer", "inner", "0"]
    assert len(captures[0].body) == 1001
    assert len(captures[1].body) == 1001
    assert captures[0].size == 30_000_000


def recorded(tmp_path: Path, *files: bytes, **options: object) -> Builder:
    builder = Builder(Options("test-v0", **options))  # type: ignore[arg-type]
    paths = []
    for number, data in enumerate(files):
        paths.append(tmp_path / f"{number}.warc.gz")
        paths[-1].write_bytes(data)
    record_warc(paths, builder)
    return builder


def test_versions_from_several_files(tmp_path: Path) -> None:
    one = page("", b"<a href=b>b</a>", date="1970-01-02T00:00:00Z")
    two = page("index.html", b"<a href=c>c</a>", date="1970-01-04T00:00:00Z")
    same = page("", b"<a href=b>b</a>", date="1970-01-03T00:00:00Z")
    trace = recorded(tmp_path, two, zipped(one, same)).finish()
    assert shown(trace) == {
        "": [(1, 200, ["b"]), (3, 200, ["c"])],
        "c": [],
        "b": [],
    }


def test_revisits(tmp_path: Path) -> None:
    digest = {"WARC_Payload_Digest": "sha1:ONE"}
    data = b"".join(
        [
            page("", b"<a href=b>b</a>", date="1970-01-02T00:00:00Z", **digest),
            page("", b"other", date="1970-01-03T00:00:00Z"),
            record(SITE, b"", "1970-01-04T00:00:00Z", "revisit", **digest),
            record(
                SITE + "copy", b"", "1970-01-05T00:00:00Z", "revisit",
                WARC_Refers_To_Target_URI=SITE,
            ),
            record(SITE + "lost", b"", "1970-01-05T00:00:00Z", "revisit"),
        ]
    )  # fmt: skip
    builder = recorded(tmp_path, data)
    found = shown(builder.finish())
    assert found[""] == [(1, 200, ["b"]), (2, 200, []), (3, 200, ["b"])]
    assert found["copy"][0][:2] == (4, 200)
    assert found["lost"] == []
    assert builder.notes.counts == {"lost original": 1}


def test_strict_makes_damage_an_error(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"0\.warc\.gz, after byte .*damaged"):
        recorded(tmp_path, PAGES[0] + b"garbage" + PAGES[1], strict=True)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"no\.warc cannot be read"):
        record_warc([tmp_path / "no.warc"], Builder(Options("test-v0")))


def test_nothing_recorded(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="not a single capture"):
        recorded(tmp_path, b"").finish()


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(zipped(*PAGES))

    monkeypatch.setattr(sys, "stdin", Stdin)
    builder = Builder(Options("test-v0"))
    record_warc(["-"], builder)
    assert len(builder.finish().urls) == 4
