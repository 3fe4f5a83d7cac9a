"""Mutated WARC files and pages: whatever comes, it is skipped, cut or read."""

from __future__ import annotations

import gzip
import random

import pytest

pytest.importorskip("fastwarc", reason="needs the extra `record`")

from gym_webforage.record import Notes
from gym_webforage.record.html import parse_page
from gym_webforage.record.render import render
from tests.record_samples import answer, build, page, read, record, zipped

SPLICES = [
    b"\0", b"\xff\xfe", b"\x1f\x8b\x08", b"WARC/1.0\r\n", b"\r\n\r\n", b"<", b">",
    b"</", b"<a href=", b"<base href='//['>", b"<frame src=x>", b"<!--", b"]]>",
    b"&#x0;", b"&#xD800;", b"<table><tr><a href=y>", b"<template>", b"<svg><a href=z>",
    b"%00",
    b"Content-Length: -1\r\n", b"Content-Length: 99999999999\r\n", b"\xed\xa0\x80",
    b"Transfer-Encoding: chunked\r\n", b"Content-Encoding: gzip\r\n", b"\xc3", b"'",
    b'"', b"<meta charset=utf-16>", b"<meta charset=hex>", b"<select><option>",
    b"\xee\x80\x80",
    b"<meta http-equiv=refresh content='0;url=http://[x'>", b"<frameset>", b"</body>",
    b"HTTP/1.1 302 Found\r\nLocation: //\r\n", b"<plaintext>", b"<h1><h2><a href=q>",
]  # fmt: skip

PAGES = [
    b"<html><head><title>A title</title><base href='/x/'></head><body><h1>Head</h1>"
    b"<p>Some <a href='one.html'>words</a> and <a href=two><img alt='a picture'></a>"
    b"<table><tr><td>c<td><a href='#x'>d</a></table><script>x<y</script></body></html>",
    b"<frameset><frame src=a.html><frame src=b.html><noframes>hi</noframes></frameset>",
    "<meta charset=iso-8859-1><p>Grüße aus Zürich <a href='ü'>ü</a>".encode("latin-1"),
    "\ufeff<ul><li><a href=http://ü.example/>é</a><li>ß</ul>".encode(),
    b"<div>" * 50 + b"deep<iframe src=//b.example></iframe>" + b"</p></span>" * 20,
]
RECORDS = [
    page("", PAGES[0]),
    page("b", PAGES[2], version="1.1", date="2020-01-01T00:00:00.123456Z"),
    record("http://a.example/c", answer(b"", "301 Moved", Location="/d")),
    record(
        "http://a.example/e", answer(gzip.compress(PAGES[0]), Content_Encoding="gzip")
    ),
    record(
        "http://a.example/f",
        answer(b"5\r\nhello\r\n0\r\n\r\n", Transfer_Encoding="chunked"),
    ),
    record("http://a.example/", b"", kind="revisit", WARC_Payload_Digest="sha1:X"),
    record("http://a.example/g", PAGES[0], kind="resource", Content_Type="text/html"),
]
TEXTS = [
    b"# Title\n\nSome [link](x.md) and ![alt](y.png)\n\n| a | b |\n|---|---|\n| c | d",
    b"Title\n=====\n\nA `link <x.rst>`_ and :doc:`y`\n\n.. toctree::\n\n   z\n\n"
    b".. note:: q\n",
]


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Return ``data`` with a few random damages."""
    made = bytearray(data)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(made) + 1)
        end = min(len(made), at + chance.choice((1, 1, 4, 30, 300)))
        match chance.randrange(6):
            case 0:
                made[at:at] = chance.choice(SPLICES)
            case 1:
                made[at:end] = b""
            case 2:
                made[at:at] = chance.randbytes(chance.choice((1, 3, 50)))
            case 3:
                made[at:at] = made[at:end] * chance.randint(1, 20)
            case 4 if at < len(made):
                made[at] ^= 1 << chance.randrange(8)
            case 5:
                del made[chance.randrange(len(made) // 2, len(made) + 1) :]
    return bytes(made)


@pytest.mark.parametrize("seed", range(4))
def test_mutated_pages(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(1000):
        body = mutated(chance.choice(PAGES), chance)
        charset = chance.choice((None, "utf-8", "latin-1", "utf-16", "hex", "\0", "x"))
        notes = Notes()
        parsed = parse_page(
            body,
            "http://a.example/x/",
            charset=charset,
            drop_css=chance.choice((None, "p, h1", "body")),
            most_links=chance.choice((1, 100)),
            notes=notes,
        )
        for link in parsed.links:
            assert link.url.isascii()
        assert not set("\ue000\ue001\ue002") & set("".join(parsed.body))


@pytest.mark.parametrize("seed", range(4))
def test_mutated_warc_files(seed: int) -> None:
    chance = random.Random(100 + seed)
    for _ in range(500):
        records = chance.choices(RECORDS, k=chance.randint(1, 5))
        if chance.random() < 0.5:
            data = mutated(b"".join(records), chance)
            if chance.random() < 0.2:
                data = gzip.compress(data)
        else:  # damage within the members, or to their compressed form
            if chance.random() < 0.5:
                data = zipped(*(mutated(one, chance) for one in records))
            else:
                data = mutated(zipped(*records), chance)
        captures, _ = read(data, limit=chance.choice((100, 100_000)))
        usable = [one for one in captures if not one.revisit]
        if usable and chance.random() < 0.3:
            try:
                build(*captures, page_bytes=chance.choice((50, 100_000)))
            except ValueError as error:  # of all captures, none was of a page
                assert "not a single capture" in str(error)


def test_mutated_markdown_and_rst() -> None:
    chance = random.Random(7)
    for _ in range(150):
        for markup, text in zip(("markdown", "rst"), TEXTS, strict=True):
            try:
                parse_page(render(mutated(text, chance), markup).encode(), "http://a/")
            except Exception as error:
                # docutils has bugs of its own; the batch parser counts such pages.
                assert markup == "rst", error
