from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("resiliparse", reason="needs the extra `record`")

from gym_webforage.record import Builder, Capture, Options, RecordError
from gym_webforage.record.labels import Labels, read_labels
from gym_webforage.trace import Trace, load_trace, save_trace
from tests.record_samples import DAY, SITE, build, captured, shown


def links(*names: str) -> str:
    return "".join(f"<a href='{name}'>to {name}</a> " for name in names)


def words(trace: Trace, numbers: np.ndarray) -> list[str]:
    return [trace.vocabulary[int(number)] for number in numbers]


# --- versions


def test_versions_in_time_whatever_the_order() -> None:
    trace = build(
        captured("", links("c"), day=3),
        captured("", links("b"), day=1),
        captured("", links("b"), day=2),
    )
    assert shown(trace)[""] == [(1, 200, ["b"]), (3, 200, ["c"])]


def test_a_page_that_comes_back_is_a_version_again() -> None:
    bodies = [links("bb"), links("cc"), links("bb")]
    trace = build(*(captured("", body, day) for day, body in enumerate(bodies)))
    assert [row[2] for row in shown(trace)[""]] == [["bb"], ["cc"], ["bb"]]
    assert trace.version_text[0] == trace.version_text[2]
    assert len(trace.body_start) - 1 == 2  # stored once


def test_at_one_moment_the_answer_that_succeeded_counts() -> None:
    trace, notes = build(
        captured("index.html", status=404),
        captured("", links("b")),
        captured("", links("c")),
        notes=True,
    )
    assert shown(trace)[""] == [(0, 200, ["b"])]
    assert notes.counts == {"same moment": 2}


def test_published() -> None:
    year = 365 * DAY
    now = 40 * year
    times = [None, now - DAY, now + 1, DAY, now]
    trace, notes = build(
        *(Capture(f"{SITE}{i}", now, modified=m) for i, m in enumerate(times)),
        notes=True,
    )
    assert trace.version_published.tolist() == [now, now - DAY, now, now, now]
    assert notes.counts == {"bad date": 2}


def test_redirects_are_versions_with_one_link() -> None:
    trace = build(
        captured("", links("old")),
        captured("old", status=301, location="/new"),
        captured("new", "words"),
        captured("self", status=302, location="/self"),
        captured("bad", status=302, location="http://["),
    )
    found = shown(trace)
    assert found["old"] == [(0, 301, ["new"])]
    assert found["self"] == [(0, 302, [])]
    assert found["bad"] == [(0, 302, [])]
    assert trace.version_text[trace.version_start[1]] == -1


def test_what_is_no_page_has_no_content() -> None:
    trace = build(
        captured("", links("b")),
        captured("p.pdf", "<a href=z>z</a>", media="application/pdf", size=12_345),
        captured("gone", "<a href=z>z</a>", status=404),
        captured("unknown", "<html><a href=b>z</a>", media=""),
    )
    found = shown(trace)
    assert found["p.pdf"] == [(0, 200, [])]
    assert found["gone"] == [(0, 404, [])]
    assert found["unknown"] == [(0, 200, ["b"])]
    assert trace.version_bytes[1] == 12_345
    assert trace.version_text.tolist()[1:3] == [-1, -1]


def test_a_long_page_is_cut() -> None:
    trace, notes = build(
        captured("", "word " * 10 + links("b")), notes=True, page_bytes=20
    )
    assert trace.counts["links"] == 0
    assert trace.version_bytes[0] > 20
    assert notes.counts == {"cut page": 1}


def test_bad_addresses_and_times_are_skipped() -> None:
    trace, notes = build(
        captured(""), Capture("mailto:x", 0), Capture(SITE, -1), notes=True
    )
    assert len(trace.urls) == 1
    assert notes.counts == {"bad record": 2}


# --- the world


PAGES = (
    captured("", links("b", "dead", "http://else.example/", "x.PS", "b/")),
    captured("b", links("http://ftp.example/y.ps.gz")),
)
TARGETS = r"\.(ps|pdf)(\.gz)?$"


def test_open_world_keeps_dead_links_on_recorded_hosts() -> None:
    assert shown(build(*PAGES)) == {
        "": [(0, 200, ["b", "dead", "x.PS", "b"])],
        "b": [(0, 200, [])],
        "dead": [],
        "x.PS": [],
    }


def test_closed_world_drops_them() -> None:
    found = shown(build(*PAGES, world="closed"))
    assert list(found) == ["", "b"]


@pytest.mark.parametrize("world", ["open", "closed"])
def test_targets_pay_though_they_were_not_captured(world: str) -> None:
    trace = build(*PAGES, world=world, targets=TARGETS)
    found = shown(trace)
    assert found["x.PS"] == [(0, 200, [])]
    assert found["http://ftp.example/y.ps.gz"] == [(0, 200, [])]
    assert trace.url_target.sum() == 2
    assert list(trace.sites) == ["a.example"]  # the target's crawl is that of a.example
    env = gym.make(
        "WebForage/Spider-v0",
        trace=trace,
        slots=None,
        split="all",
        disable_env_checker=True,
    )
    _, info = env.reset(seed=0)
    total = 0.0
    while len(info["action_set"]):
        *rest, info = env.step(int(info["action_set"][0]))
        total += float(rest[1])
    assert total == 2


def test_a_target_is_there_from_its_first_link_on() -> None:
    trace = build(
        captured("", "", day=1),
        captured("", links("x.ps"), day=5),
        captured("b", links("x.ps"), day=7),
        targets=TARGETS,
    )
    assert shown(trace)["x.ps"] == [(5, 200, [])]


def test_links_mean_the_form_that_was_captured() -> None:
    trace = build(captured("", links("b", "c/")), captured("b/"), captured("c"))
    assert shown(trace)[""] == [(0, 200, ["b/", "c"])]


# --- labels, sites, roots


def test_labels(tmp_path: Path) -> None:
    table = tmp_path / "labels.tsv"
    table.write_text(
        f"url\tsite\tlabel\n{SITE}index.html\tone\tred\n{SITE}\tone\tblue\n"
        f"{SITE}b\ttwo\tred\n{SITE}none\ttwo\tgreen\n"
    )
    labels = read_labels(table)
    assert labels.columns == ["site", "label"]
    trace, notes = build(
        captured("", links("b", "c")),
        captured("b"),
        notes=True,
        labels=labels,
        site_from="site",
        target_labels=("red",),
    )
    assert list(trace.labels) == ["blue", "red"]
    assert trace.labelled("red").tolist() == [0, 1]
    assert trace.url_target.tolist() == [True, True, False]
    assert list(trace.sites) == ["one", "two"]
    assert trace.url_site.tolist() == [0, 1, 0]
    assert notes.counts == {"odd label": 1}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{SITE}\tred\textra\n", {SITE: ["red"]}),
        (f"url\tcategory\n{SITE}\tred\n\n", {SITE: ["red"]}),
        (f"\ufeffURL\tx\tLabel\n{SITE}\t1\tred\n{SITE}\t1\tred\n", {SITE: ["red"]}),
    ],
)
def test_label_tables(tmp_path: Path, text: str, expected: object) -> None:
    (tmp_path / "labels.tsv").write_text(text, encoding="utf-8")
    assert read_labels(tmp_path / "labels.tsv").labels == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "are empty"),
        (f"{SITE}\n", "line 1: 1 columns"),
        (f"url\tlabel\n{SITE}\tx\nnonsense\tx\n", "line 3: 'nonsense' is no URL"),
    ],
)
def test_broken_label_tables(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "labels.tsv").write_text(text)
    with pytest.raises(RecordError, match=message):
        read_labels(tmp_path / "labels.tsv")


def test_topics_become_labels_of_the_pages_with_their_words() -> None:
    trace = build(
        captured("", "robots learning " + links("b")),
        captured("b", "learning only"),
        topics=("Learning robots", "nowhere"),
    )
    assert trace.meta["topics"]["Learning robots"] == ["learning", "robots"]
    assert trace.labelled("Learning robots").tolist() == [0]
    assert trace.labelled("nowhere").tolist() == []


def test_roots_are_short_and_popular() -> None:
    other = "http://b.example/x/"
    trace = build(
        captured("d/e", links("d/f")),
        captured("d", links("c", f"{other}1", f"{other}2")),
        captured("c", links(f"{other}2")),
        Capture(f"{other}1", 0, body=links("2").encode()),
        Capture(f"{other}2", 0, body=b"words"),
    )
    assert trace.meta["roots"] == [f"{SITE}c", f"{other}2"]


def test_given_roots() -> None:
    trace = build(*PAGES, roots=(f"{SITE}b", f"{SITE}b#x", f"{SITE}index.html"))
    assert trace.meta["roots"] == [f"{SITE}b", SITE]
    with pytest.raises(RecordError, match=r"root 'http://no\.example/' is not among"):
        build(*PAGES, roots=("http://no.example/",))


def test_one_site_for_all() -> None:
    trace = build(*PAGES, site="papers", targets=TARGETS)
    assert list(trace.sites) == ["papers"]


def test_max_pages_still_takes_versions() -> None:
    trace, notes = build(
        captured("", "one"),
        captured("b"),
        captured("c"),
        captured("", "two", day=1),
        notes=True,
        max_pages=2,
        world="closed",
    )
    assert [len(rows) for rows in shown(trace).values()] == [2, 1]
    assert notes.counts == {"more pages": 1}


def test_template_links() -> None:
    menu = ["home", "about", "news"]
    pages = [captured(name, links(*menu)) for name in ["", *menu]]
    pages += [captured(f"p{i}", links(*menu, f"p{(i + 1) % 16}")) for i in range(16)]
    kept = build(*pages)
    found = shown(build(*pages, drop_template_links=0.5))
    assert found["p3"] == [(0, 200, ["p4"])]
    assert found[""] == [(0, 200, menu)]  # the root keeps them, or all were lost
    assert shown(kept)["p3"] == [(0, 200, [*menu, "p4"])]


# --- text


def test_text_of_pages_links_and_urls() -> None:
    trace = build(
        captured("", "<title>Hello</title><p>old old words <a href=b-c.html>go</a> on")
    )
    text = int(trace.version_text[0])
    at = slice(*trace.body_start[text : text + 2].tolist())
    counted = dict(
        zip(
            words(trace, trace.body_token[at]),
            trace.body_count[at].tolist(),
            strict=True,
        )
    )
    assert counted == {"old": 2, "words": 1, "go": 1, "on": 1}
    assert words(trace, trace.title_token) == ["hello"]
    assert words(trace, trace.anchor_token) == ["go"]
    assert words(trace, trace.near_token) == ["old", "old", "words", "on"]
    at = slice(*trace.url_token_start[1:3].tolist())
    assert words(trace, trace.url_token[at]) == ["example", "html"]


def test_url_endings_can_be_left_out() -> None:
    trace = build(captured("", links("paper.ps.gz")), url_endings=False)
    assert words(trace, trace.url_token) == ["example", "example", "paper"]


def test_vocabulary_by_document_frequency() -> None:
    bodies = ["common rare common", "common often", "often common zebra"]
    pages = [captured(f"{i}", body) for i, body in enumerate(bodies)]
    trace = build(*pages, vocabulary=3)
    # "example" is in each URL; it ties with "common" and goes after it by alphabet.
    assert list(trace.vocabulary) == ["common", "example", "often"]
    assert trace.body_token.max() < 3


def test_equal_link_texts_are_stored_once() -> None:
    pages = [captured("", f"{links('b')} v{day}v", day) for day in range(5)]
    trace = build(*pages, vocabulary=2)
    assert trace.counts["links"] == 5
    assert trace.counts["link texts"] == 1


def test_tag_paths_are_kept_with_link_texts() -> None:
    menu = f"<ul class=menu><li>{links('b')}</ul><p>{links('c', 'b')}"
    image = "<div><a href=d><img src=e></a></div>"
    trace = build(captured("", menu + image), captured("b", f"<p>{links('c')}"))
    found = {
        trace.urls[int(target)]: trace.tag_paths[int(trace.tag_path[text])]
        for target, text in zip(trace.link_target, trace.link_text, strict=True)
    }
    assert found == {
        SITE + "b": "body ul.menu li a",
        SITE + "c": "body p a",
        SITE + "d": "body div a",  # though it has no words
    }
    assert len(trace.tag_paths) == 3


def test_tag_paths_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gym_webforage.record.builder.MOST_PATHS", 5)
    classes = "abcdefghij"
    body = "".join(f"<p class={name}>{links(name)}</p>" for name in classes)
    trace = build(captured("", body))
    assert len(trace.tag_paths) == 5
    assert (trace.tag_path >= 0).sum() == 5
    assert trace.meta["warnings"]["more tag paths"] == 1


# --- the whole


def many(count: int) -> list[Capture]:
    return [
        captured(
            f"p{i}", f"word{i} w{i % 7} " * 3 + links(f"p{i + 1}", f"q{i * i % 99}")
        )
        for i in range(count)
    ]


def same(one: Trace, other: Trace) -> bool:
    theirs = other.arrays()
    return one.meta == other.meta and all(
        np.array_equal(array, theirs[name]) for name, array in one.arrays().items()
    )


def test_same_input_same_trace_with_any_number_of_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gym_webforage.record.pool.BATCH_JOBS", 30)
    one = build(*many(200))
    assert same(one, build(*many(200)))
    assert same(one, build(*many(200), workers=2))


def test_batches_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    one = build(*many(60))
    monkeypatch.setattr("gym_webforage.record.pool.BATCH_JOBS", 7)
    assert same(one, build(*many(60)))


def test_saved_and_loaded(tmp_path: Path, cache: Path) -> None:
    trace = build(*PAGES, targets=TARGETS, title="T", source="S", licence="L")
    save_trace(trace, tmp_path / "test-v0")
    loaded = load_trace(tmp_path / "test-v0")
    assert loaded.counts == trace.counts
    assert loaded.meta["options"]["targets"] == TARGETS
    assert [loaded.meta[key] for key in ("title", "source", "licence")] == list("TSL")


def test_states() -> None:
    pages = [captured(f"p{i}", f"word{i % 5} other{i % 3}", day=i) for i in range(40)]
    assert build(*pages, states="svd", state_length=3).states == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"world": "half"}, "world is 'half'"),
        ({"targets": "("}, "no regular expression"),
        ({"drop_css": "p["}, "no CSS selector"),
        ({"drop_template_links": 1.5}, "expected 0 to 1"),
        ({"vocabulary": 0}, "vocabulary is 0"),
        ({"site_from": "column"}, "expected host or a column"),
        ({"target_labels": ("x",)}, "no page has the target label x"),
        ({"topics": ("12",)}, "has no words"),
        ({"states": "magic"}, "states is 'magic'"),
    ],
)
def test_wrong_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        Options("test-v0", **{"labels": Labels(), **options})  # type: ignore[arg-type]


def test_a_page_that_breaks_its_parser_is_kept_without_content(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("gym_webforage.record.batch.parse_page", broken)
    trace, notes = build(captured("", "words"), notes=True)
    assert trace.version_text.tolist() == [-1]
    assert notes.counts == {"unparsed": 1}
    assert "RuntimeError: boom" in notes.lines()[0]


def test_progress() -> None:
    told: list[tuple[int, int]] = []
    builder = Builder(Options("test-v0"), progress=lambda *n: told.append(n))
    for capture in PAGES:
        builder.add(capture)
    builder.finish()
    assert told[0][0] == 1
    assert told[-1][0] == 2 and told[-1][1] > 0
