"""Topics of words, pages and labels, and how similar pages are to them."""

from __future__ import annotations

import json
from math import sqrt
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from gym_webforage.cli import app
from gym_webforage.envs import TopicEnv
from gym_webforage.trace import Trace, load_trace
from gym_webforage.world.topic import (
    SIMILARITIES,
    Topic,
    text_similarities,
    topic_from_pages,
    topic_from_words,
    topic_of_label,
)
from tests.toys import Page, web

SMALL = "synthetic-small-v0"


def library() -> Trace:
    return web(
        {
            "home": Page(
                links=["linux", "kernel", "double", "cooking", "none"], text="home"
            ),
            "linux": Page(text="linux linux linux kernel home home home home"),
            "kernel": Page(text="kernel kernel"),
            "double": Page(text="linux " * 6 + "kernel " * 2 + "pot"),
            "cooking": Page(text="pot pot home"),
            "none": Page(links=["garden"]),
            "garden": Page(text="rose home"),
            "orchard": Page(text="apple home"),
        }
    )


def crawl(trace: Trace, topic: Any, **rules: Any) -> dict[str, float]:
    """Return what each page pays in a whole crawl."""
    env = TopicEnv(trace, topic=topic, slots=None, split="all", **rules)
    _, info = env.reset(seed=0)
    paid, over = {}, False
    while not over:
        url = int(info["action_set"][0])
        _, reward, terminated, truncated, info = env.step(url)
        paid[trace.urls[url]] = float(reward)
        over = terminated or truncated
    return paid


# --- equations 4 and 5


def test_term_frequencies_by_hand() -> None:
    paid = crawl(library(), ["linux", "kernel"], similarity="frequency")
    # linux.html: frequencies 3/3 and 1/3 of the topic's words, the topic 1 and 1.
    both = (1 + 1 / 3) / sqrt(2 * (1 + 1 / 9))
    assert paid["linux"] == pytest.approx(both)
    assert paid["double"] == paid["linux"]  # proportions count, to the last bit
    assert paid["kernel"] == pytest.approx(1 / sqrt(2))
    assert paid["cooking"] == paid["none"] == paid["garden"] == 0.0


def test_a_word_given_twice_counts_twice() -> None:
    paid = crawl(library(), ["linux", "kernel", "linux"], similarity="frequency")
    # The topic is 2/2 and 1/2 now.
    assert paid["kernel"] == pytest.approx(0.5 / sqrt(1.25))
    assert paid["linux"] == pytest.approx((1 + 1 / 6) / sqrt(1.25 * (1 + 1 / 9)))


def test_one_keyword_has_two_values_only() -> None:
    paid = crawl(library(), ["linux"], similarity="frequency", threshold=1.0)
    assert {paid["linux"], paid["double"]} == {1.0}
    assert sorted(set(paid.values())) == [0.0, 1.0]


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_the_world_and_the_whole_trace_agree(similarity: Any) -> None:
    trace = load_trace(SMALL)
    topic = topic_of_label(trace, trace.labels[0])
    env = TopicEnv(trace, topic=topic, slots=None, similarity=similarity, budget=200)
    _, info = env.reset(seed=0)
    values = text_similarities(trace, topic, similarity)
    assert 0 <= values.min() < values.max() <= 1 + 1e-12
    paid = 0
    for _ in range(199):
        _, reward, *_, info = env.step(int(info["action_set"][-1]))
        known, page = info["known"], info["url"]
        text = trace.version_text[known.version(page)] if known.is_fetched(page) else -1
        assert reward == (values[text] if text >= 0 else 0.0)
        paid += reward > 0
    assert paid > 5


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_metrics_count_with_the_same_similarity(similarity: Any) -> None:
    rules = {"similarity": similarity, "threshold": 0.7}
    env = TopicEnv(library(), topic=["linux", "kernel"], slots=None, **rules)
    _, info = env.reset(seed=0)
    over = False
    while not over:
        *_, terminated, truncated, info = env.step(int(info["action_set"][0]))
        over = terminated or truncated
    from gym_webforage.envs.run import summarize

    summary = summarize(env.world, env.events())
    paid = crawl(library(), ["linux", "kernel"], similarity=similarity)
    assert summary["recall"] == 1.0
    assert summary["relevant"] == sum(value >= 0.7 for value in paid.values()) > 0


# --- topics from pages and labels


def test_pages_make_a_topic_of_what_tells_them_from_others() -> None:
    trace = library()
    pages = ["linux", "kernel", trace.urls.find("double")]
    topic = topic_from_pages(trace, pages, words=2)
    words = {trace.vocabulary[int(word)] for word in topic.words}
    assert words == {"linux", "kernel"}
    assert np.linalg.norm(topic.weights) == pytest.approx(1)
    # Over each page's most frequent word: 3/4 and 1/4; 0 and 1; 1 and 1/3.
    linux, kernel = 3 / 4 + 1, 1 / 4 + 1 + 1 / 3
    often = {word: topic.frequencies[trace.vocabulary.find(word)] for word in words}
    assert often == {"linux": 1.0, "kernel": pytest.approx(kernel / linux)}
    paid = crawl(trace, {"pages": ["linux", "double"]})
    assert paid["linux"] > paid["cooking"]
    env = TopicEnv(trace, topic=["pot"], slots=None)
    _, info = env.reset(seed=0, options={"topic": {"pages": ["linux"]}})
    assert info["topic"].name == "pages like linux"


def test_labels_have_words_that_part_their_pages_from_others() -> None:
    trace = load_trace(SMALL)
    topic = topic_of_label(trace, trace.labels[3])
    values = text_similarities(trace, topic)
    own = np.zeros(len(values), bool)
    for url in trace.labelled(3):
        text = trace.version_text[trace.version_start[url + 1] - 1]
        own[text] |= text >= 0
    assert np.median(values[own]) > np.quantile(values[~own], 0.99)


def test_a_topic_of_all_pages_is_their_centroid() -> None:
    trace = web({"home": Page(text="one two two")})
    topic = topic_from_pages(trace, ["home"])
    assert [trace.vocabulary[int(word)] for word in topic.words] == ["two", "one"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda t: topic_from_words(t, []), r"topic is \[\], expected a list of words"),
        (lambda t: topic_from_words(t, "pot qqq"), "topic: the vocabulary .* no qqq;"),
        (lambda t: topic_from_pages(t, []), r"topic pages are \[\], expected a list"),
        (lambda t: topic_from_pages(t, "home"), "expected a list of URLs"),
        (lambda t: topic_from_pages(t, ["x"]), "topic page 'x' is not in drawn"),
        (lambda t: topic_from_pages(t, [99]), "topic page 99 is not in drawn"),
        (lambda t: topic_from_pages(t, ["none"]), "none of the 1 has text"),
        (lambda t: topic_from_pages(t, ["home"], words=0), "words is 0, expected a"),
    ],
)
def test_bad_topics(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(library())


def test_bad_rules() -> None:
    for bad in (-0.1, 1.01, float("nan"), "high"):
        with pytest.raises(ValueError, match=r"threshold is .*, expected 0 to 1"):
            TopicEnv(SMALL, threshold=bad)
    with pytest.raises(ValueError, match="similarity is 'bm25', expected one of tfidf"):
        TopicEnv(SMALL, similarity="bm25")
    other = Topic("x", np.zeros(3), frequencies=np.ones(2))
    with pytest.raises(ValueError, match="another vocabulary"):
        TopicEnv(SMALL, topic=other)


# --- webforage info --topic


def info(*words: str) -> Any:
    return CliRunner().invoke(app, ["info", SMALL, *words])


def test_info_shows_the_distribution() -> None:
    trace = load_trace(SMALL)
    label = trace.labels[0]
    words = info("--topic", label, "--json", "--threshold", "0.3")
    facts = json.loads(words.stdout)["topic"]
    assert facts["name"] == label
    assert facts["labelled_pages"] <= len(trace.labelled(0))
    for similarity in SIMILARITIES:
        kind = facts[similarity]
        assert kind["zero"] + sum(kind["histogram"].values()) == facts["pages"]
        assert 2 <= kind["distinct"] <= facts["pages"]
        assert list(kind["at_or_above"]) == ["0.3", "0.75", "0.8"]
        counts = list(kind["at_or_above"].values())
        assert counts == sorted(counts, reverse=True)
        quantiles = list(kind["quantiles"].values())
        assert quantiles == sorted(quantiles)
    shown = info("--topic", label).stdout
    assert "at least 0.2  (threshold)" in shown
    assert "at least 0.75" in shown
    assert "█" in shown
    page = trace.urls[int(trace.roots[0])]
    assert "pages like" in info("--topic-pages", page).stdout
    assert info("--topic", trace.vocabulary[9]).exit_code == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--topic", "qqq"), "topic: the vocabulary of synthetic-small-v0 has no qqq"),
        (("--topic", ""), "topic is [], expected"),
        (("--topic", "qqq", "--threshold", "2"), "threshold is 2.0, expected 0 to 1"),
        (("--threshold", "0.5"), "without --topic"),
        (("--topic-pages", "h://no"), "topic page 'h://no' is not in"),
        (("--topic", "a", "--topic-pages", "b"), "expected one of them"),
    ],
)
def test_info_refuses(words: tuple[str, ...], says: str) -> None:
    result = info(*words)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert says in result.stderr
