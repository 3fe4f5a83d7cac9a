"""The recorded traces that the repository ships: complete, small, and usable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gym_webforage  # noqa: F401  (registers the environments)
from gym_webforage.trace import load_trace, trace_names
from gym_webforage.trace.tables import META, TABLES
from gym_webforage.trace.tokens import tokenise

TRACES = Path(__file__).parents[1] / "traces"
FOLDERS = sorted(entry for entry in TRACES.iterdir() if entry.name[-3:-1] == "-v")
LARGEST = 5_000_000  # bytes of a trace, so that a checkout stays small
STEPS = 50
# A site that changes every year or two is news to a crawler that fetches a page a day.
SLOW = {"fetch_seconds": 86_400, "max_age": "365d", "budget": "1500d"}
EXPECTED = {
    "python-docs-v0": {"topic", "spider"},
    "sqlalchemy-docs-v0": {"topic", "news"},
}

each = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def read_meta(folder: Path) -> dict[str, Any]:
    return json.loads((folder / META).read_text(encoding="utf-8"))


def kinds(folder: Path) -> set[str]:
    """What can be played on a trace, by what it holds."""
    counts = load_trace(folder).counts
    found = set()
    if counts["labels"]:
        found.add("topic")
    if counts["targets"]:
        found.add("spider")
    if counts["states"] and counts["versions"] > counts["urls"]:
        found.add("news")
    return found


def playable(kind: str) -> list[str]:
    return [name for name, kinds in EXPECTED.items() if kind in kinds]


def play(
    kind: str, steps: int = STEPS, start: str | None = None, **given: Any
) -> float:
    env = gym.make(f"WebForage/{kind}-v0", slots=None, **given)
    options = {} if start is None else {"start": start}
    _, info = env.reset(seed=0, options=options)
    rng = np.random.default_rng(0)
    total = 0.0
    for _ in range(steps):
        action = int(rng.choice(info["action_set"]))
        _, reward, is_over, is_cut, info = env.step(action)
        assert np.isfinite(float(reward))
        total += float(reward)
        if is_over or is_cut:
            _, info = env.reset(options=options)
    env.close()
    return total


def test_the_expected_ones_are_there() -> None:
    assert {folder.name: kinds(folder) for folder in FOLDERS} == EXPECTED
    assert EXPECTED.keys() <= set(trace_names())


def test_every_folder_is_a_trace() -> None:
    entries = [entry for entry in TRACES.iterdir() if entry.is_dir()]
    assert {e for e in entries if e.name != "__pycache__"} == set(FOLDERS)


@each
def test_it_holds_its_tables_and_no_more(folder: Path) -> None:
    names = {file.name for file in folder.iterdir()}
    assert names == {META, *(f"{name}.parquet" for name in TABLES)}
    assert sum(file.stat().st_size for file in folder.iterdir()) < LARGEST


@each
def test_it_loads_and_is_what_its_card_says(folder: Path) -> None:
    trace, meta = load_trace(folder), read_meta(folder)
    assert trace.name == folder.name
    assert trace.counts == meta["counts"]
    assert meta["warnings"] == {}
    for key in ("title", "description", "source", "recorder", "licence"):
        assert meta[key].strip(), key
    assert meta["recorder"].startswith("webforage record ")
    assert "facts" in meta["licence"]
    assert [trace.urls[int(root)] for root in trace.roots] == meta["roots"]
    assert meta["structure"]["measured"]["nodes"] == len(trace.urls)


@each
def test_its_card_names_no_folder_of_a_machine(folder: Path) -> None:
    text = (folder / META).read_text(encoding="utf-8")
    assert not any(place in text for place in ("/tmp", "/home", "/root", "/work"))


@each
def test_the_readme_tells_of_it(folder: Path) -> None:
    text = (TRACES / "README.md").read_text(encoding="utf-8")
    counts = read_meta(folder)["counts"]
    assert folder.name in text
    assert load_trace(folder).digest in text
    for key in ("urls", "versions", "links"):
        assert f"{counts[key]:,}" in text, key


@each
def test_no_sentence_is_in_it(folder: Path) -> None:
    words = pq.read_table(folder / "vocabulary.parquet")["token"].to_pylist()
    assert words and all(tokenise(word) == [word] for word in words)
    # Other than these, addresses, sites and labels, nothing in the tables is text.
    texts = {
        f"{name}.{field.name}"
        for name in TABLES
        for field in pq.read_schema(folder / f"{name}.parquet")
        if holds_text(field.type)
    }
    assert texts <= {
        *("vocabulary.token", "urls.url", "urls.site", "urls.labels"),
        *("sites.site", "labels.label"),
    }
    urls = pq.read_table(folder / "urls.parquet")["url"].to_pylist()
    assert not any(len(url.split()) > 1 or len(url) > 200 for url in urls)
    labels = pq.read_table(folder / "labels.parquet")["label"].to_pylist()
    assert all(len(label) < 60 for label in labels)


def holds_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind) or pa.types.is_list(kind):
        return holds_text(kind.value_type)
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


@pytest.mark.parametrize("name", playable("topic"))
def test_topic_runs_on_it(name: str) -> None:
    assert play("Topic", trace=TRACES / name) > 0
    play("Topic", trace=TRACES / name, relevance="label", split="test")


@pytest.mark.parametrize("name", playable("spider"))
def test_spider_runs_on_it(name: str) -> None:
    assert play("Spider", trace=TRACES / name) > 0


@pytest.mark.parametrize("name", playable("news"))
@pytest.mark.parametrize("split", ["train", "test", "all"])
def test_news_runs_on_it(name: str, split: str) -> None:
    assert play("News", trace=TRACES / name, split=split, **SLOW) > 0


def test_the_day_of_a_release_is_a_day_of_news() -> None:
    start = "2015-04-16T20:00:00Z"
    trace = TRACES / "sqlalchemy-docs-v0"
    assert play("News", trace=trace, split="all", start=start) > 0


def test_pages_of_the_changing_site_vanish() -> None:
    trace = load_trace(TRACES / "sqlalchemy-docs-v0")
    assert len(np.unique(trace.version_seen)) == 12
    assert np.count_nonzero(trace.version_status == 410) > 0
    assert np.isfinite(trace.version_state).all()


def test_the_targets_are_not_given_away_by_their_urls() -> None:
    trace = load_trace(TRACES / "python-docs-v0")
    targets = np.flatnonzero(trace.url_target)
    folders = {trace.urls[int(url)].rsplit("/", 1)[0] for url in targets}
    assert folders == {"https://docs.python.org/3.11/library"}
    beside = [url for url in trace.urls if "/library/" in url]
    assert (len(targets), len(beside)) == (67, 317)
