"""Small webs drawn by hand, one difficulty each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gym_webforage.envs import ForageEnv, NewsEnv, SpiderEnv, TopicEnv
from gym_webforage.trace import Trace

NOW = 1_600_000_000_000
DAY = 86_400_000


@dataclass
class Page:
    links: Sequence[str | tuple[str, str]] = ()  # the URL, or it and the anchor
    text: str = ""
    is_target: bool = False
    is_old: bool = False
    status: int = 200


def web(pages: Mapping[str, Page], roots: Sequence[str] = ("home",)) -> Trace:
    """Draw a web of pages by name; linked names without a page were not recorded."""
    links = [
        [link if isinstance(link, tuple) else (link, "") for link in page.links]
        for page in pages.values()
    ]
    linked = [name for row in links for name, _ in row]
    names = list(dict.fromkeys([*pages, *linked]))
    bodies = [page.text.split() for page in pages.values()]
    anchors = [anchor.split() for row in links for _, anchor in row]
    words = sorted({word for text in [*bodies, *anchors] for word in text})
    counts = [{words.index(w): body.count(w) for w in body} for body in bodies]

    def offsets(rows: Sequence[Any]) -> list[int]:
        return np.cumsum([0, *map(len, rows)]).tolist()

    return Trace.build(
        {"name": "drawn", "roots": list(roots)},
        urls=names,
        vocabulary=words,
        url_target=[name in pages and pages[name].is_target for name in names],
        version_start=np.minimum(np.arange(len(names) + 1), len(pages)),
        version_seen=[NOW - 10 * DAY] * len(pages),
        version_published=[
            NOW - (20 * DAY if page.is_old else 10 * DAY) for page in pages.values()
        ],
        version_status=[page.status for page in pages.values()],
        version_text=np.arange(len(pages)),
        link_start=offsets(links),
        link_target=[names.index(name) for row in links for name, _ in row],
        link_text=np.arange(len(anchors)),
        anchor_start=offsets(anchors),
        anchor_token=[words.index(word) for anchor in anchors for word in anchor],
        near_start=[0] * (len(anchors) + 1),
        body_start=offsets(counts),
        body_token=[token for body in counts for token in body],
        body_count=[count for body in counts for count in body.values()],
    )


# --- the webs


def deep_chain() -> ForageEnv:
    """The only target is at the end of a chain; each page has a dead alley too."""
    pages = {"home": Page(links=[("alley 0", "other"), ("chain 1", "onward")])}
    for i in range(1, 6):
        pages[f"chain {i}"] = Page(
            links=[(f"alley {i}", "other"), (f"chain {i + 1}", "onward")]
        )
    pages["chain 6"] = Page(is_target=True)
    pages |= {f"alley {i}": Page() for i in range(6)}
    return SpiderEnv(web(pages), slots=None, split="all", on_illegal="raise")


def trap() -> ForageEnv:
    """Many links promise papers and lead into a maze; the papers hang on one page."""
    pages = {
        "home": Page(links=[("maze 0", "papers"), ("people", "people")]),
        "people": Page(links=[("ann", "ann"), ("bob", "bob")]),
        "ann": Page(links=[("ann 1", "paper pdf"), ("ann 2", "paper pdf")]),
        "bob": Page(links=[("bob 1", "paper pdf")]),
        "ann 1": Page(is_target=True),
        "ann 2": Page(is_target=True),
        "bob 1": Page(is_target=True),
    }
    for i in range(6):
        near = [(f"maze {(i + j) % 6}", "papers") for j in (1, 2)]
        pages[f"maze {i}"] = Page(links=near)
    return SpiderEnv(web(pages), slots=None, split="all", on_illegal="raise")


def communities() -> ForageEnv:
    """Two subjects that hardly link to each other; one is the topic."""
    pages = {
        "home": Page(links=[("tax 0", "tax news"), ("ball 0", "ball news")]),
    }
    for subject, extra in (("tax", "money"), ("ball", "goal")):
        for i in range(4):
            links = [(f"{subject} {j}", f"{subject} {extra}") for j in range(4)]
            if i == 3:
                links.append(("home", "home"))
            pages[f"{subject} {i}"] = Page(
                links=links, text=f"{subject} {subject} {extra} day"
            )
    return TopicEnv(
        web(pages), topic=["ball", "goal"], slots=None, split="all", on_illegal="raise"
    )


def hub() -> ForageEnv:
    """A hub with young pages beside old ones; the old ones lead to more old ones."""
    pages = {
        "home": Page(links=["archive", "today"], is_old=True),
        "archive": Page(links=[f"old {i}" for i in range(4)], is_old=True),
        "today": Page(links=[f"young {i}" for i in range(4)]),
    }
    pages |= {f"old {i}": Page(links=["archive"], is_old=True) for i in range(4)}
    pages |= {f"young {i}": Page(links=["today", "extra"]) for i in range(4)}
    pages["extra"] = Page()
    return NewsEnv(
        web(pages),
        slots=None,
        split="all",
        on_illegal="raise",
        budget=40,
        path_length=4,
    )


TOYS = {toy.__name__: toy for toy in (deep_chain, trap, communities, hub)}
