from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytest.importorskip("resiliparse", reason="needs the extra `record`")

from gym_webforage.record.urls import (
    LONGEST_URL,
    depth_of,
    normalise,
    site_of,
    url_words,
)

BASE = "http://example.com/a/b/c.html"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("HTTP://Example.COM", "http://example.com/"),
        ("http://example.com:80/", "http://example.com/"),
        ("https://example.com:443/x", "https://example.com/x"),
        ("https://example.com:80/x", "https://example.com:80/x"),
        ("http://example.com./", "http://example.com/"),
        ("http://example.com/x#part", "http://example.com/x"),
        ("http://example.com/x?", "http://example.com/x"),
        ("http://example.com/x?b=2&a=1", "http://example.com/x?b=2&a=1"),
        ("http://example.com/a/./b/../c", "http://example.com/a/c"),
        ("http://example.com/../../c/..", "http://example.com/"),
        ("http://example.com/%7Eann/%c3%a9", "http://example.com/~ann/%C3%A9"),
        ("http://example.com/é b", "http://example.com/%C3%A9%20b"),
        ("http://example.com/100%", "http://example.com/100%25"),
        ("http://example.com/a%2Fb", "http://example.com/a%2Fb"),
        ("http://example.com/a/%2e%2e/b", "http://example.com/b"),
        ("http://example.com/a/index.html", "http://example.com/a/"),
        ("http://example.com/a/INDEX.HTM", "http://example.com/a/"),
        ("http://example.com/index.php?id=3", "http://example.com/index.php?id=3"),
        ("http://example.com/default.htm", "http://example.com/"),
        ("http://example.com/myindex.html", "http://example.com/myindex.html"),
        ("http://user:secret@example.com/", "http://example.com/"),
        ("http://Zürich.example/", "http://xn--zrich-kva.example/"),
        ("http://[2001:DB8::1]:8080/", "http://[2001:db8::1]:8080/"),
        ("  http://example.com/\n x\t", "http://example.com/%20x"),
        ("http:\\\\example.com\\x", "http://example.com/x"),
        ("ftp://ftp.example.com/pub/x.ps", "ftp://ftp.example.com/pub/x.ps"),
        ("file://ftp.example.com/pub", "file://ftp.example.com/pub"),
    ],
)
def test_rules(given: str, expected: str) -> None:
    assert normalise(given) == expected


@pytest.mark.parametrize(
    "given",
    [
        "",
        "x.html",
        "mailto:me@example.com",
        "javascript:void(0)",
        "file:///etc/passwd",
        "http://",
        "http:///x",
        "http://exa mple.com/",
        "http://[::1/",
        "http://example.com:port/",
        "http://example.com:99999/",
        "http://..../",
        "http://example.com/" + "x" * LONGEST_URL,
        "http://example.com/" + "é" * (LONGEST_URL // 2),
    ],
)
def test_no_page(given: str) -> None:
    assert normalise(given) is None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("d.html", "http://example.com/a/b/d.html"),
        ("../d.html#x", "http://example.com/a/d.html"),
        ("/d%7e", "http://example.com/d~"),
        ("//other.example/x", "http://other.example/x"),
        ("?q=1", "http://example.com/a/b/c.html?q=1"),
        ("", "http://example.com/a/b/c.html"),
        ("#x", "http://example.com/a/b/c.html"),
        (".", "http://example.com/a/b/"),
        ("..", "http://example.com/a/"),
        ("index.html", "http://example.com/a/b/"),
        ("http://Other.example", "http://other.example/"),
        ("d e.html", "http://example.com/a/b/d%20e.html"),
    ],
)
def test_relative(given: str, expected: str) -> None:
    assert normalise(given, BASE) == expected


PIECES = (
    "http https ftp file :// : / // . .. ./ ../ %2e %41 %zz % %25 # ? & = @ [ ] a B é "
    "ß example.com EXAMPLE.COM. :80 :443 index.html Default.htm \\ \t \0 \ud800 ; ,"
)
pieces = st.sampled_from(PIECES.split(" "))
addresses = st.one_of(
    st.lists(pieces, max_size=12).map("".join),
    st.lists(pieces, max_size=12).map(lambda rest: "http://a.com/" + "".join(rest)),
    st.text(max_size=40).map(lambda rest: "http://a.com/" + rest),
    st.text(max_size=40),
)


@given(addresses, st.sampled_from([None, BASE, "http://a.com/?q"]))
@example("http://a/%%34%31", None)
@example("/..//index.html", BASE)
def test_normal_form_is_its_own_normal_form(url: str, base: str | None) -> None:
    once = normalise(url, base)
    if once is not None:
        assert normalise(once) == once
        assert normalise(once, BASE) == once
        assert once.isascii() and once.isprintable() and "#" not in once
        assert site_of(once) and depth_of(once) >= 0
        url_words(once)


@given(st.text("ab./~%2e4_-1index.html", max_size=30))
def test_the_short_way_is_the_long_way(path: str) -> None:
    """A link that is a plain path takes a shortcut, which must not show."""
    from gym_webforage.record.urls import _normalised

    assert normalise(path, BASE) == _normalised(path, BASE)
