from __future__ import annotations

import pytest

pytest.importorskip("resiliparse", reason="needs the extra `record`")

from gym_webforage.record.html import NEAR, Page, parse_page
from gym_webforage.record.notes import Notes
from gym_webforage.record.render import render
from gym_webforage.record.tag_paths import DEEPEST, LONGEST

URL = "http://a.example/x/y.html"


def parsed(html: str | bytes, **options: object) -> Page:
    body = html if isinstance(html, bytes) else html.encode()
    return parse_page(body, URL, **options)  # type: ignore[arg-type]


def urls(page: Page) -> list[str]:
    return [link.url.removeprefix("http://a.example") for link in page.links]


def test_the_four_fields_of_a_link() -> None:
    page = parsed(
        "<title>The Title</title><h1>Big head</h1><p>before words "
        "<a href=z>link text</a> after words<h3>small</h3>"
    )
    assert page.title == ["the", "title", "big", "head", "small"]
    (link,) = page.links
    assert link.url == "http://a.example/x/z"
    assert link.anchor == ["link", "text"]
    assert link.near == ["big", "head", "before", "words", "after", "words", "small"]
    assert page.body == "big head before words link text after words small".split()


def tag_paths(page: Page) -> list[str]:
    return [link.tag_path for link in page.links]


def test_tag_paths_name_tags_classes_and_ids() -> None:
    page = parsed(
        "<div id=nav-12 ><ul class='menu x y'><li><a class=Hot href=a>1</a></ul></div>"
        "<section id='some-words'><h2 id=other><a href=b>2</a></h2><p><a href=c>3</a>"
        "</section><map><area href=d></map>"
    )
    assert tag_paths(page) == [
        "body div#nav-0 ul.menu.x li a.hot",
        "body section h2 a",
        "body section p a",
        "body map area",
    ]


def test_a_repeated_link_has_the_tag_path_of_the_first() -> None:
    page = parsed("<p><a href=a>1</a></p><div><a href=a>2</a></div>")
    assert tag_paths(page) == ["body p a"]


def test_links_that_stand_nowhere_have_no_tag_path() -> None:
    assert tag_paths(parsed("<meta http-equiv=refresh content='0; url=a'>")) == [""]


@pytest.mark.parametrize(
    "html",
    [
        "<div class=inner>" * 900 + "<a href=a>x</a>",
        f"<div class='{'long ' * 9999}' id={'i' * 99999}><a href=a>x</a></div>",
        f"<div class='{'c' * 99999}'>" * 20 + "<a href=a>x</a>",
        f"<{'t' * 99999}><a href=a>x</a></{'t' * 99999}>",
        "<div class='\U0001f600 < &lt; \n . # '><a href=a>x</a></div>",
    ],
)
def test_tag_paths_are_short_whatever_the_markup(html: str) -> None:
    (path,) = tag_paths(parsed(html))
    assert 0 < len(path) <= LONGEST
    assert len(path.split(" ")) <= DEEPEST and path.endswith("a")


def test_near_text_is_a_window() -> None:
    words = " ".join(f"w{i}" for i in range(40))
    (link,) = parsed(f"{words} <a href=z>x</a> {words}").links
    expected = [f"w{i}" for i in range(40 - NEAR, 40)] + [f"w{i}" for i in range(NEAR)]
    assert link.near == expected


def test_words_of_neighbouring_elements_stay_apart() -> None:
    html = "<table><tr><td>aa</td><td>bb</td></tr></table><p>cc</p><p>dd</p>ee<br>ff"
    assert parsed(html).body == ["aa", "bb", "cc", "dd", "ee", "ff"]


def test_script_style_and_comments_are_no_words() -> None:
    html = (
        "<script>var x = '<a href=no>no</a>'</script><style>p{}</style><!-- no -->yes"
    )
    page = parsed(html)
    assert page.body == ["yes"]
    assert not page.links


def test_image_text_is_anchor_text() -> None:
    (link,) = parsed('<a href=z><img src=i alt="a picture"></a>').links
    assert link.anchor == ["picture"]


def test_all_kinds_of_links_in_page_order() -> None:
    html = (
        "<a href=one>1</a><map><area href=two alt='second place'></map>"
        "<iframe src=three></iframe><a name=x>no</a><a href=four>4</a>"
    )
    page = parsed(html)
    assert urls(page) == ["/x/one", "/x/two", "/x/three", "/x/four"]
    assert page.links[1].anchor == ["second", "place"]


def test_frames_are_links() -> None:
    html = "<frameset><frame src=a><frame src=b></frameset>"
    assert urls(parsed(html)) == ["/x/a", "/x/b"]


def test_a_refresh_is_a_link() -> None:
    html = '<meta http-equiv="Refresh" content="3; URL=\'/new\'"><a href=z>z</a>'
    assert urls(parsed(html)) == ["/new", "/x/z"]


def test_base() -> None:
    assert urls(parsed("<base href='/other/'><a href=z>z</a>")) == ["/other/z"]
    assert urls(parsed("<base href='http://['><a href=z>z</a>")) == ["/x/z"]


def test_repeated_links_are_one_and_own_links_none() -> None:
    html = "<a href=z>first</a> <a href='y.html#part'>self</a> <a href=z#b>second</a>"
    (link,) = parsed(html).links
    assert link.anchor == ["first", "second"]


def test_links_that_are_no_pages() -> None:
    notes = Notes()
    html = (
        "<a href=mailto:x@y>m</a><a href='javascript:x()'>j</a><a href='http://['>b</a>"
    )
    assert not parsed(html, notes=notes).links
    assert notes.counts == {"bad link": 1}


def test_drop_css_removes_text_and_links_even_nested() -> None:
    html = "<div class=x>aa<div class=x>bb<a href=q>cc</a></div></div><p>dd"
    page = parsed(html, drop_css=".x")
    assert page.body == ["dd"]
    assert not page.links


@pytest.mark.parametrize(
    ("body", "charset"),
    [
        ("Zürich".encode(), None),
        ("Zürich".encode(), "utf-8"),
        ("Zürich".encode("latin-1"), "iso-8859-1"),
        ("<meta charset=iso-8859-1>Zürich".encode("latin-1"), None),
        (
            "<META HTTP-EQUIV=Content-Type CONTENT='text/html; charset=windows-1252'>"
            "Zürich".encode("latin-1"),
            None,
        ),
        ("Zürich".encode("latin-1"), "utf-8"),  # the header is wrong
        ("Zürich".encode("latin-1"), "no-such-charset"),
        ("\ufeffZürich".encode("utf-16-le"), None),
        ("\ufeffZürich".encode(), "iso-8859-1"),  # the mark is right
        (("In Zürich geht es über die Brücke. " * 9).encode("latin-1"), None),
    ],
)
def test_charsets(body: bytes, charset: str | None) -> None:
    assert "zürich" in parsed(body, charset=charset).body


def test_a_few_wrong_bytes_do_not_change_the_charset() -> None:
    notes = Notes()
    body = ("Zürich und " * 50).encode() + b"\xff"
    assert set(parsed(body, charset="utf-8", notes=notes).body) == {"zürich", "und"}
    assert notes.counts == {"mixed charset": 1}


def test_nul_bytes_are_dropped() -> None:
    notes = Notes()
    page = parsed("some\0thing <a href='z\0z'>x</a>", notes=notes)
    assert page.body == ["something"]
    assert urls(page) == ["/x/zz"]
    assert notes.counts == {"nul": 1}


def test_links_after_the_limit_are_dropped() -> None:
    notes = Notes()
    html = "".join(f"<a href=p{i}>w</a>" for i in range(50))
    assert len(parsed(html, most_links=10, notes=notes).links) == 10
    assert notes.counts == {"cut links": 1}


@pytest.mark.parametrize(
    "piece",
    ["<a href=x><div>", "<p><b a=%d></p>", "<table><tr><td>", "<font>", "<b><i>"],
)
def test_markup_that_would_never_end(piece: str) -> None:
    notes = Notes()
    many = "".join(piece.replace("%d", str(i)) for i in range(20_000))
    page = parsed(f"word {many} <a href=z>end</a>", most_links=50_000, notes=notes)
    assert page.body[0] == "word"
    assert "/x/z" in urls(page)
    assert notes.counts == {"tangled": 1}


def test_long_pages_without_end_tags_are_not_tangled() -> None:
    notes = Notes()
    html = "<ul>" + "<li>item<br><p>text" * 5000 + "</ul>" + "<b>x</b>" * 5000
    assert len(parsed(html, notes=notes).body) == 10_000
    assert not notes.counts


def test_marks_of_ours_in_a_page_do_no_harm() -> None:
    page = parsed("aa \ue0000\ue002 bb \ue001 <a href=z>cc \ue001 dd</a>")
    assert page.body == ["aa", "bb", "cc", "dd"]
    assert page.links[0].anchor == ["cc", "dd"]


def test_markdown() -> None:
    text = "---\ntitle: The title\n---\n# Head\nSee [that](other.md#x) | <b>bold</b>\n"
    page = parsed(render(text.encode(), "markdown"))
    assert page.title == ["the", "title", "head"]
    assert urls(page) == ["/x/other.md"]
    assert page.body == ["head", "see", "that", "bold"]


def test_restructured_text() -> None:
    text = (
        "Head\n====\n\nSee `that <other.html>`_, :doc:`guide/first`, :func:`run`.\n\n"
        ".. toctree::\n   :maxdepth: 1\n\n   intro\n   The API <api>\n\n"
        ".. versionadded:: 3\n   news\n\n.. include:: /etc/passwd\n\n"
        ".. raw:: html\n\n   <a href=raw>raw</a>\n"
    )
    page = parsed(render(text.encode(), "rst"))
    assert urls(page) == [
        "/x/other.html", "/x/guide/first.rst", "/x/intro.rst", "/x/api.rst",
    ]  # fmt: skip
    assert {"run", "news"} <= set(page.body)
    assert not {"root", "raw"} & set(page.body)
