"""Everything that the kernels rely on, checked once, before they may see a trace.

The kernels index these arrays without bounds checks, so a value that slips through
here could crash the process. Each rule names the table, the row and the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gym_webforage.trace.errors import TraceError

if TYPE_CHECKING:
    from gym_webforage.trace.trace import Trace

MOST_ROWS = 2**31 - 1  # ids are 32-bit
MOST_BYTES = 2**40
MOST_COUNT = 2**24
LONGEST_NAME = 150  # bytes: it becomes part of file names

# The columns that hold lists: an error names the row of the list.
LIST_OFFSETS = {
    "url_label": "url_label_start",
    "url_token": "url_token_start",
    "anchor_token": "anchor_start",
    "near_token": "near_start",
    "title_token": "title_start",
    "body_token": "body_start",
    "body_count": "body_start",
}


def validate(trace: Trace) -> None:
    """Raise TraceError at the first value that the kernels could not stand."""
    from gym_webforage.trace.trace import COLUMNS, STRING_COLUMNS

    urls, versions = len(trace.urls), len(trace.version_seen)
    links = len(trace.link_target)
    link_texts, page_texts = len(trace.anchor_start) - 1, len(trace.body_start) - 1
    tokens = len(trace.vocabulary)

    for name, column in COLUMNS.items():
        array = getattr(trace, name)
        dimensions = 2 if name == "version_state" else 1
        if array.dtype != column["dtype"] or array.ndim != dimensions:
            raise TraceError(
                column["table"],
                f"{name} is {array.dtype} in {array.ndim} dimensions, "
                f"expected {column['dtype']} in {dimensions}",
            )
        if not (array.flags.c_contiguous and array.flags.aligned):
            raise TraceError(column["table"], f"{name} is not contiguous and aligned")
        if array.size and len(array) > MOST_ROWS and array.dtype == np.int32:
            raise TraceError(column["table"], f"{name} has more than 2^31 entries")

    for name in STRING_COLUMNS:
        _strings(trace, name)
    if urls == 0:
        raise TraceError("urls", "there is no URL")
    if urls > MOST_ROWS or versions > MOST_ROWS:
        raise TraceError("urls", "more than 2^31 rows")

    rows = {"urls": urls, "versions": versions, "links": links}
    for name in (
        "url_site url_target version_published version_status version_bytes "
        "version_hash version_text version_state link_text"
    ).split():
        table = COLUMNS[name]["table"]
        if len(getattr(trace, name)) != rows[table]:
            raise TraceError(
                table, f"{name} has {len(getattr(trace, name))} of {rows[table]} rows"
            )

    for name, count, entries in (
        ("url_label_start", urls, len(trace.url_label)),
        ("url_token_start", urls, len(trace.url_token)),
        ("version_start", urls, versions),
        ("link_start", versions, links),
        ("anchor_start", link_texts, len(trace.anchor_token)),
        ("near_start", link_texts, len(trace.near_token)),
        ("title_start", page_texts, len(trace.title_token)),
        ("body_start", page_texts, len(trace.body_token)),
    ):
        _offsets(COLUMNS[name]["table"], name, getattr(trace, name), count, entries)
    if len(trace.tag_path) != link_texts:
        raise TraceError(
            "link_texts", f"tag_path has {len(trace.tag_path)} of {link_texts} rows"
        )
    if len(trace.body_count) != len(trace.body_token):
        raise TraceError("page_texts", "body and counts differ in length")

    for name, low, high in (
        ("roots", 0, urls),
        ("url_site", 0, len(trace.sites)),
        ("url_label", 0, len(trace.labels)),
        ("url_token", 0, tokens),
        ("version_text", -1, page_texts),
        ("link_target", 0, urls),
        ("link_text", -1, link_texts),
        ("anchor_token", 0, tokens),
        ("near_token", 0, tokens),
        ("tag_path", -1, len(trace.tag_paths)),
        ("title_token", 0, tokens),
        ("body_token", 0, tokens),
        ("body_count", 1, MOST_COUNT),
        ("version_status", 0, 1000),
        ("version_bytes", 0, MOST_BYTES),
    ):
        start = getattr(trace, LIST_OFFSETS[name]) if name in LIST_OFFSETS else None
        table = COLUMNS[name]["table"]
        check_range(table, name, getattr(trace, name), low, high, start)

    _times(trace)
    state = trace.version_state
    # Without a copy of what may be most of the trace: NaN makes both of them NaN.
    if state.size and not (np.isfinite(state.min()) and np.isfinite(state.max())):
        row = int(np.argmin(np.isfinite(state).all(axis=1)))
        raise TraceError("versions", "the state is not finite", row)
    _distinct_tokens(trace)
    check_meta(trace.meta)


def check_meta(meta: Mapping[str, Any]) -> None:
    """Check the fields of ``meta.json`` that the software reads."""
    name = meta.get("name")
    if not isinstance(name, str) or not _is_plain(name):
        raise TraceError("meta.json", f"name {name!r} is not a plain name")
    roots = meta.get("roots")
    if not isinstance(roots, list | tuple) or not roots:
        raise TraceError("meta.json", "roots must list at least one URL")
    if not all(isinstance(root, str) for root in roots):
        raise TraceError("meta.json", "roots must be URLs")
    if len(set(roots)) != len(roots):
        raise TraceError("meta.json", "roots names a URL twice")
    topics = meta.get("topics", {})
    if not isinstance(topics, dict) or not all(
        isinstance(words, list) and all(isinstance(word, str) for word in words)
        for words in topics.values()
    ):
        raise TraceError("meta.json", "topics must map a name to a list of words")
    test = meta.get("test", {})
    if not isinstance(test, dict) or not all(
        isinstance(names, list) and all(isinstance(name, str) for name in names)
        for names in test.values()
    ):
        raise TraceError(
            "meta.json", "test must map sites or topics to a list of names"
        )


def _is_plain(name: str) -> bool:
    """Say whether a name can be part of a file name, and be seen there."""
    if not name.isprintable() or name.startswith(".") or "/" in name or "\\" in name:
        return False
    return 0 < len(name.encode()) <= LONGEST_NAME


def _strings(trace: Trace, name: str) -> None:
    strings = getattr(trace, name)
    if strings.data.dtype != np.uint8 or strings.start.dtype != np.int64:
        raise TraceError(name, "strings are not stored as bytes and offsets")
    _offsets(name, "text", strings.start, len(strings.start) - 1, len(strings.data))
    try:
        whole = strings.data.tobytes().decode()
    except UnicodeDecodeError as error:
        row = int(np.searchsorted(strings.start, error.start, "right")) - 1
        raise TraceError(name, "the text is not UTF-8", row) from error
    # Each offset must fall on a character's first byte (10xxxxxx continues one).
    inner = strings.start[1:-1]
    inner = inner[inner < len(strings.data)]
    broken = (strings.data[inner] & 0xC0) == 0x80
    if len(whole) != len(strings.data) and broken.any():
        raise TraceError(name, "the text is not UTF-8", int(np.argmax(broken)))
    if name == "urls":
        empty = np.diff(strings.start) == 0
        if empty.any():
            raise TraceError(name, "the URL is empty", int(np.argmax(empty)))
    column = strings.to_arrow()
    if len(column.unique()) != len(column):
        seen: set[str] = set()
        for row, text in enumerate(strings):
            if text in seen:
                raise TraceError(name, f"{text!r} stands there twice", row)
            seen.add(text)


def _offsets(table: str, name: str, start: np.ndarray, rows: int, entries: int) -> None:
    if len(start) != rows + 1 or not len(start):
        raise TraceError(table, f"{name} has {len(start)} offsets for {rows} rows")
    if start[0] != 0 or start[-1] != entries:
        raise TraceError(
            table, f"{name} runs from {start[0]} to {start[-1]}, not 0 to {entries}"
        )
    # Compared directly: a difference could overflow and look harmless.
    falling = start[1:] < start[:-1]
    if falling.any():
        raise TraceError(table, f"{name} falls", int(np.argmax(falling)))


def check_range(
    table: str,
    name: str,
    array: np.ndarray,
    low: int,
    high: int,
    start: np.ndarray | None = None,
) -> None:
    """Raise TraceError unless all of ``array`` is at least ``low`` and below ``high``.

    ``start`` has the offsets of a column of lists, to name the right row.
    """
    if not array.size or (array.min() >= low and array.max() < high):
        return
    at = int(np.argmax(((array < low) | (array >= high)).reshape(-1)))
    value = array.reshape(-1)[at]
    row = at if start is None else int(np.searchsorted(start, at, "right")) - 1
    raise TraceError(table, f"{name} is {value}, expected {low} to {high - 1}", row)


def _rising(values: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Say for each value but the first whether it is larger than the one before it.

    The first value of a row (``start`` has the rows' offsets) counts as larger.
    """
    rising = values[1:] > values[:-1]
    first = start[1:-1]
    rising[first[(first > 0) & (first < len(values))] - 1] = True
    return rising


def _distinct_tokens(trace: Trace) -> None:
    """A page text must count each token once, or its similarity could exceed 1."""
    token, start = trace.body_token, trace.body_start
    if _rising(token, start).all():
        return
    row = np.repeat(np.arange(len(start) - 1), np.diff(start))
    order = np.lexsort((token, row))
    row, token = row[order], token[order]
    twice = (row[1:] == row[:-1]) & (token[1:] == token[:-1])
    if twice.any():
        at = int(np.argmax(twice))
        raise TraceError("page_texts", f"body has {token[at]} twice", int(row[at]))


def _times(trace: Trace) -> None:
    from gym_webforage.trace.trace import LATEST_TIME

    for name in ("version_seen", "version_published"):
        check_range("versions", name, getattr(trace, name), 0, LATEST_TIME + 1)
    seen = trace.version_seen
    late = trace.version_published > seen
    if late.any():
        raise TraceError(
            "versions", "published after it was seen", int(np.argmax(late))
        )
    rising = _rising(seen, trace.version_start)
    if not rising.all():
        row = int(np.argmin(rising)) + 1
        raise TraceError("versions", "not later than the version before it", row)
    if not 0 <= trace.begin <= trace.end <= LATEST_TIME:
        raise TraceError("meta.json", "begin and end are not a period")
