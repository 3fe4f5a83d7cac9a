"""The same recording under another question: closed to the unknown, other targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gym_webforage.trace.trace import Trace, frozen


def closed(trace: Trace) -> Trace:
    """Return the trace without links to URLs that were never recorded.

    In the open world, which a recorder makes, such a link costs a fetch and yields
    nothing; here it cannot be seen. Links to targets stay. URLs keep their ids.
    """
    kept = (np.diff(trace.version_start) > 0) | trace.url_target
    link = kept[trace.link_target]
    before = np.concatenate([[0], np.cumsum(link)])
    return replace(
        trace,
        meta=_meta(trace, "closed", "links to URLs that were never recorded left out"),
        link_start=frozen(before[trace.link_start]),
        link_target=frozen(trace.link_target[link]),
        link_text=frozen(trace.link_text[link]),
        path=None,
    )


def with_targets(trace: Trace, urls: Sequence[int] | np.ndarray, name: str) -> Trace:
    """Return the trace with these URLs as its targets, and no others."""
    numbers = np.asarray(urls, np.int64)
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < len(trace.urls):
        raise ValueError(f"targets of {trace.name} are URL ids below {len(trace.urls)}")
    target = np.zeros(len(trace.urls), np.bool_)
    target[numbers] = True
    meta = _meta(trace, name, f"{len(numbers)} other targets")
    return replace(trace, meta=meta, url_target=frozen(target), path=None)


def _meta(trace: Trace, suffix: str, change: str) -> dict[str, Any]:
    meta = {key: value for key, value in trace.meta.items() if key != "structure"}
    meta["name"] = f"{trace.name}-{suffix}"
    meta["recorder"] = f"{change}, from {trace.name}"
    return meta
