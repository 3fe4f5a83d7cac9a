"""How alike a topic and the pages of a trace are: which threshold would part them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gym_webforage.trace import Trace
    from gym_webforage.world.topic import Topic

PAPERS = (0.75, 0.8)  # thresholds of the learning automata paper
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
BINS = 10
BAR = 16  # characters of the longest bar


def find_topic(trace: Trace, text: str | None, pages: Sequence[str]) -> Topic:
    """Return the topic of a label, of words or of example pages."""
    from gym_webforage.world.topic import (
        topic_from_pages,
        topic_from_words,
        topic_of_label,
    )

    if pages:
        return topic_from_pages(trace, pages)
    assert text is not None
    if trace.labels.find(text) >= 0:
        return topic_of_label(trace, text)
    return topic_from_words(trace, text.replace(",", " ").split())


def describe_topic(trace: Trace, topic: Topic, threshold: float) -> dict[str, Any]:
    """Return how similar the pages of a trace are to a topic, by both similarities.

    Pages are those that a crawl of Topic would find: what the URLs show at the end of
    the recording.
    """
    from gym_webforage.metrics import shown_versions
    from gym_webforage.world.topic import SIMILARITIES, text_similarities

    urls = np.arange(len(trace.urls))
    version = shown_versions(trace, urls, trace.end)
    urls, version = urls[version >= 0], version[version >= 0]
    status = trace.version_status[version]
    is_page = (status >= 200) & (status < 300)
    urls, text = urls[is_page], trace.version_text[version[is_page]]
    found: dict[str, Any] = {
        "name": topic.name,
        "words": [trace.vocabulary[int(word)] for word in topic.words[:12]],
        "word_count": len(topic.words),
        "pages": len(urls),
        "threshold": threshold,
    }
    if topic.label >= 0:
        labelled = np.isin(urls, trace.labelled(topic.label))
        found["labelled_pages"] = int(np.count_nonzero(labelled))
    for similarity in SIMILARITIES:
        values = np.zeros(len(urls))
        by_text = text_similarities(trace, topic, similarity)
        values[text >= 0] = by_text[text[text >= 0]]
        found[similarity] = _distribution(values, threshold)
    return found


def _distribution(values: np.ndarray, threshold: float) -> dict[str, Any]:
    """Return quantiles, a histogram and the shares of pages that thresholds leave."""
    positive = values[values > 0]
    edges = np.linspace(0, 1, BINS + 1)
    bins = np.minimum((positive * BINS).astype(int), BINS - 1)
    some = len(values) > 0
    return {
        "zero": int(np.count_nonzero(values <= 0)),
        "distinct": len(np.unique(values)),
        "quantiles": {
            f"{q:g}": float(np.quantile(values, q)) if some else None for q in QUANTILES
        },
        "histogram": {
            f"{low:.1f}": int(count)
            for low, count in zip(
                edges, np.bincount(bins, minlength=BINS).tolist(), strict=False
            )
        },
        "at_or_above": {
            f"{level:g}": int(np.count_nonzero(positive >= level))
            for level in sorted({threshold, *PAPERS})
        },
    }


# --- on a terminal


def show_topic(facts: dict[str, Any]) -> None:
    """Print both distributions side by side."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from gym_webforage.world.topic import SIMILARITIES

    console = Console()
    words = ", ".join(facts["words"])
    words += ", ..." if facts["word_count"] > len(facts["words"]) else ""
    console.print(f"Topic [bold]{escape(facts['name'])}[/bold]: {escape(words)}")
    if "labelled_pages" in facts:
        console.print(f"  {facts['labelled_pages']:,} pages carry the label")
    table = Table(title=f"Similarity of {facts['pages']:,} pages", box=None)
    table.add_column("", style="bold")
    for similarity in SIMILARITIES:
        table.add_column(similarity)
    kinds = [facts[similarity] for similarity in SIMILARITIES]
    table.add_row("not at all alike", *(f"{k['zero']:,}" for k in kinds))
    table.add_row("distinct values", *(f"{k['distinct']:,}" for k in kinds))
    for quantile in kinds[0]["quantiles"]:
        name = "highest" if quantile == "1" else f"quantile {quantile}"
        table.add_row(name, *(_number(k["quantiles"][quantile]) for k in kinds))
    for level in kinds[0]["at_or_above"]:
        mark = "  (threshold)" if float(level) == facts["threshold"] else ""
        shares = (_share(k["at_or_above"][level], facts["pages"]) for k in kinds)
        table.add_row(f"at least {level}{mark}", *shares)
    table.add_section()
    for low in kinds[0]["histogram"]:
        table.add_row(f"from {low}", *(_bar(k["histogram"], low) for k in kinds))
    console.print(table)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _share(count: int, pages: int) -> str:
    return f"{count:,}" + (f" ({count / pages:.2%})" if pages else "")


def _bar(histogram: dict[str, int], low: str) -> str:
    count, most = histogram[low], max(histogram.values())
    return f"{'█' * (-(-BAR * count // most) if count else 0)} {count:,}"
