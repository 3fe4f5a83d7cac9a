"""Real recordings, which may not be shared: set WEBFORAGE_DATA to their folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("fastwarc", reason="needs the extra `record`")

from gym_webforage.record import Builder, Options
from gym_webforage.record.labels import read_labels
from gym_webforage.record.warc import record_warc
from gym_webforage.trace import Trace
from gym_webforage.trace.trace import from_iso

FOLDER = os.environ.get("WEBFORAGE_DATA")
PAPERS = r"\.(ps|pdf|dvi)(\.gz|\.Z)?$"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FOLDER, reason="WEBFORAGE_DATA is not set"),
]


def recorded(*names: str, labels: str | None = None, **options: Any) -> Trace:
    data = Path(FOLDER or "")
    if labels is not None:
        options["labels"] = read_labels(data / labels)
    builder = Builder(Options("data-v0", **options))
    record_warc([data / f"{name}.warc.gz" for name in names], builder)
    return builder.finish()


def crawl(env: gym.Env[Any, Any], seed: int = 0) -> tuple[float, int]:
    """Crawl at random; return the reward and the number of steps."""
    random = np.random.default_rng(seed)
    _, info = env.reset(seed=seed)
    total, steps, ended = 0.0, 0, False
    while not ended:
        _, reward, terminated, truncated, info = env.step(
            int(random.choice(info["action_set"]))
        )
        total, steps, ended = total + float(reward), steps + 1, terminated or truncated
    return total, steps


def near(expected: int, share: float = 0.03) -> Any:
    return pytest.approx(expected, rel=share)


@pytest.mark.parametrize(
    ("university", "pages", "links", "papers"),
    [
        ("cornell", 867, 1827, 1400),
        ("texas", 827, 2028, 854),
        ("washington", 1205, 2732, None),
        ("wisconsin", 1263, 3660, None),
    ],
)
def test_webkb(university: str, pages: int, links: int, papers: int | None) -> None:
    trace = recorded(f"webkb-{university}", world="closed", targets=PAPERS)
    is_page = ~trace.url_target
    assert int(is_page.sum()) == near(pages)
    among_pages = is_page[trace.link_target]
    assert int(among_pages.sum()) == near(links)
    if papers is not None:
        assert int(trace.url_target.sum()) == near(papers)
    else:
        assert 854 <= trace.url_target.sum() <= 1404


def test_spider_on_webkb() -> None:
    names = [f"webkb-{n}" for n in ("cornell", "texas", "washington", "wisconsin")]
    trace = recorded(
        *names, labels="webkb-labels.tsv", targets=PAPERS, site_from="site"
    )
    assert list(trace.sites) == ["cornell", "texas", "washington", "wisconsin"]
    assert len(trace.labels) == 7
    total, steps = crawl(gym.make("WebForage/Spider-v0", trace=trace, slots=None))
    assert steps == 1000
    assert total > 50


def test_topic_on_wikispeedia() -> None:
    trace = recorded(
        "wikispeedia",
        labels="wikispeedia-categories.tsv",
        drop_css="#siteSub",
        world="closed",
    )
    assert trace.counts["urls"] == near(4598)
    assert trace.counts["links"] == near(119_769)
    assert len(trace.labels) == 129
    env = gym.make("WebForage/Topic-v0", trace=trace, slots=None, relevance="label")
    total, steps = crawl(env)
    assert steps == 1000
    assert total > 0


@pytest.mark.parametrize(
    ("station", "pages", "versions"), [("ard", 564, 10_321), ("sr", 452, 5482)]
)
def test_news_on_teletext(station: str, pages: int, versions: int) -> None:
    trace = recorded(f"teletext-{station}", states="svd", world="closed")
    assert trace.counts["urls"] == near(pages)
    assert trace.counts["versions"] == near(versions)
    # The 24-hour rule has something to pay for on every full day of the 18; what
    # stands before them is what the stations showed when the recording began.
    day = (trace.version_published - from_iso("2022-03-01")) // 86_400_000
    assert np.bincount(day[day >= 0])[:17].min() > 20
    env = gym.make("WebForage/News-v0", trace=trace, slots=None, split="test")
    assert crawl(env)[0] > 0
