"""The recording in memory: immutable arrays, shared by every world over it.

A trace is a web graph in time. A *URL* shows a page in *versions*, each visible from
its ``seen`` time on until the next one; a version has *links* to URLs in page order.
Text is kept as token counts only, never as sentences. Ragged columns are in CSR form:
the entries of row ``i`` stand at ``start[i]:start[i + 1]``. Times are whole
milliseconds since 1970 (UTC), so that clocks add up exactly.
"""

# `_column` declares a field, as a dataclass wants it; the rule knows only `field`.
# ruff: noqa: RUF009

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cached_property
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gym_webforage.trace.errors import TraceError
from gym_webforage.trace.strings import Strings

if TYPE_CHECKING:
    import networkx as nx

FORMAT = 1  # of the folder on disk; a reader refuses a newer one

MILLISECONDS_A_DAY = 86_400_000
ENDINGS = 64  # file endings told apart; rarer ones count as none
LATEST_TIME = 253_402_300_799_999  # 9999-12-31, beyond which no clock can overflow

Array = np.ndarray


def _column(dtype: Any, table: str) -> Any:
    """Declare an array: its type, and the table that a reader knows it from."""
    return field(metadata={"dtype": np.dtype(dtype), "table": table})


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """A recorded piece of the web. Make one with ``load_trace`` or ``Trace.build``."""

    meta: Mapping[str, Any]
    """What ``meta.json`` says: name, title, source, licence, begin, end, roots, ..."""

    urls: Strings
    sites: Strings
    labels: Strings
    vocabulary: Strings
    tag_paths: Strings

    roots: Array = _column(np.int32, "meta.json")  # the start pages, as URL ids

    url_site: Array = _column(np.int32, "urls")
    url_target: Array = _column(np.bool_, "urls")
    url_label_start: Array = _column(np.int64, "urls")
    url_label: Array = _column(np.int32, "urls")
    url_token_start: Array = _column(np.int64, "urls")
    url_token: Array = _column(np.int32, "urls")

    version_start: Array = _column(np.int64, "versions")  # by URL
    version_seen: Array = _column(np.int64, "versions")
    version_published: Array = _column(np.int64, "versions")
    version_status: Array = _column(np.int16, "versions")
    version_bytes: Array = _column(np.int64, "versions")
    version_hash: Array = _column(np.uint64, "versions")
    version_text: Array = _column(np.int32, "versions")  # page text, -1 for none
    version_state: Array = _column(np.float32, "versions")  # (versions, k)

    link_start: Array = _column(np.int64, "links")  # by version
    link_target: Array = _column(np.int32, "links")
    link_text: Array = _column(np.int32, "links")  # link text, -1 for none

    anchor_start: Array = _column(np.int64, "link_texts")  # by link text
    anchor_token: Array = _column(np.int32, "link_texts")
    near_start: Array = _column(np.int64, "link_texts")
    near_token: Array = _column(np.int32, "link_texts")
    tag_path: Array = _column(np.int32, "link_texts")  # place in the markup, -1: none

    title_start: Array = _column(np.int64, "page_texts")  # by page text
    title_token: Array = _column(np.int32, "page_texts")
    body_start: Array = _column(np.int64, "page_texts")
    body_token: Array = _column(np.int32, "page_texts")
    body_count: Array = _column(np.int32, "page_texts")

    path: Path | None = None
    """The folder that it was loaded from."""

    @classmethod
    def build(
        cls,
        meta: Mapping[str, Any],
        *,
        urls: Strings | Sequence[str],
        sites: Strings | Sequence[str] = ("",),
        labels: Strings | Sequence[str] = (),
        vocabulary: Strings | Sequence[str] = (),
        tag_paths: Strings | Sequence[str] = (),
        **arrays: Any,
    ) -> Trace:
        """Make a trace from arrays; what is not given is empty. Validates everything.

        ``meta`` needs ``name`` and ``roots`` (URLs as strings); ``begin`` and ``end``
        default to the first and last ``seen``. Arrays are taken over, not copied, and
        become read-only; a number that does not fit its column is an error.
        """
        from gym_webforage.trace.validate import check_meta, validate

        unknown = arrays.keys() - COLUMNS.keys()
        if unknown:
            raise TypeError(f"a trace has no array {', '.join(sorted(unknown))}")
        check_meta(meta)
        given: dict[str, Any] = {
            name: _converted(name, array) for name, array in arrays.items()
        }
        columns = (urls, sites, labels, vocabulary, tag_paths)
        texts = zip(STRING_COLUMNS, columns, strict=True)
        given.update((name, _packed(name, column)) for name, column in texts)
        given["roots"] = find_roots(meta, given["urls"])

        count = len(given["urls"])
        empty: tuple[()] = ()
        versions = len(given.get("version_seen", empty))
        defaults: dict[str, Any] = {
            "url_site": np.zeros(count),
            "url_target": np.zeros(count),
            "url_label_start": np.zeros(count + 1),
            "url_token_start": np.zeros(count + 1),
            "version_start": np.zeros(count + 1),
            "version_published": given.get("version_seen", empty),
            "version_status": np.full(versions, 200),
            "version_bytes": np.zeros(versions),
            "version_hash": np.zeros(versions),
            "version_text": np.full(versions, -1),
            "version_state": np.zeros((versions, 0)),
            "link_start": np.zeros(versions + 1),
            "link_text": np.full(len(given.get("link_target", empty)), -1),
            "anchor_start": np.zeros(1),
            "near_start": np.zeros(max(1, len(given.get("anchor_start", (0,))))),
            "tag_path": np.full(max(0, len(given.get("anchor_start", (0,))) - 1), -1),
            "title_start": np.zeros(max(1, len(given.get("body_start", (0,))))),
            "body_start": np.zeros(1),
            "body_count": np.ones(len(given.get("body_token", empty))),
        }
        for name, column in COLUMNS.items():
            if name not in given:
                made = np.asarray(defaults.get(name, empty), column["dtype"])
                given[name] = frozen(made)
        # Times outside the calendar are for `validate` to refuse, with their row.
        seen = np.clip(given["version_seen"], 0, LATEST_TIME) if versions else [0]
        period = {"begin": to_iso(int(np.min(seen))), "end": to_iso(int(np.max(seen)))}
        trace = cls({**period, **meta}, **given)
        validate(trace)
        return trace

    # --- sizes and times

    @property
    def name(self) -> str:
        """The trace's name, with its version: ``synthetic-v0``."""
        return str(self.meta["name"])

    @property
    def states(self) -> int:
        """The length k of a page's state vector, 0 where there is none."""
        return self.version_state.shape[1]

    @cached_property
    def begin(self) -> int:
        """When the recording begins, in milliseconds."""
        return from_iso(self.meta["begin"])

    @cached_property
    def end(self) -> int:
        """When the recording ends, in milliseconds."""
        return from_iso(self.meta["end"])

    @cached_property
    def most_links(self) -> int:
        """The largest number of links on one page version."""
        counts = np.diff(self.link_start)
        return int(counts.max()) if len(counts) else 0

    @cached_property
    def mean_bytes(self) -> float:
        """The mean size of a page version, at least 1."""
        sizes = self.version_bytes
        return max(1.0, float(sizes.mean())) if len(sizes) else 1.0

    @property
    def counts(self) -> dict[str, int]:
        """How much of everything there is."""
        return {
            "urls": len(self.urls),
            "recorded urls": int(np.count_nonzero(np.diff(self.version_start))),
            "versions": len(self.version_seen),
            "links": len(self.link_target),
            "sites": len(self.sites),
            "labels": len(self.labels),
            "targets": int(self.url_target.sum()),
            "link texts": len(self.anchor_start) - 1,
            "page texts": len(self.body_start) - 1,
            "tokens": len(self.vocabulary),
            **({"tag paths": len(self.tag_paths)} if len(self.tag_paths) else {}),
            "states": self.states,
        }

    # --- looking things up

    def version_at(self, url: int, time: int) -> int:
        """Return the version of ``url`` that is visible at ``time``, or -1."""
        low, high = self.version_start[url], self.version_start[url + 1]
        seen = self.version_seen[low:high]
        behind = int(np.searchsorted(seen, time, "right"))
        return int(low) + behind - 1 if behind else -1

    def links_of(self, version: int) -> Array:
        """Return the URL ids that ``version`` links to, in page order."""
        return self.link_target[self.link_start[version] : self.link_start[version + 1]]

    def labelled(self, label: int | str) -> Array:
        """Return the URL ids that carry ``label``."""
        if isinstance(label, str):
            number = self.labels.find(label)
            if number < 0:
                raise KeyError(f"no label {label!r}; known: {', '.join(self.labels)}")
            label = number
        owners = np.repeat(np.arange(len(self.urls)), np.diff(self.url_label_start))
        return owners[self.url_label == label].astype(np.int32)

    @cached_property
    def version_url(self) -> Array:
        """The URL id of every version."""
        counts = np.diff(self.version_start)
        return frozen(np.repeat(np.arange(len(self.urls), dtype=np.int32), counts))

    @cached_property
    def url_ending(self) -> Array:
        """A number for each URL's file ending: 0 for none or a rare one."""
        endings = [_ending(url) for url in self.urls]
        common = Counter(ending for ending in endings if ending)
        ranked = sorted(common, key=lambda ending: (-common[ending], ending))
        number = {ending: i for i, ending in enumerate(ranked[: ENDINGS - 1], 1)}
        return frozen(np.array([number.get(e, 0) for e in endings], np.int32))

    @cached_property
    def url_directory(self) -> Array:
        """The number of each URL's directory, in the order of their first URLs."""
        number: dict[str, int] = {}
        found = [number.setdefault(url_directory(u), len(number)) for u in self.urls]
        return frozen(np.array(found, np.int32))

    @cached_property
    def directories(self) -> int:
        """How many directories there are."""
        return int(self.url_directory.max()) + 1

    @cached_property
    def state_bound(self) -> float:
        """A whole number, at least 1, that no state exceeds in size."""
        state = self.version_state
        if not state.size:
            return 1.0
        return max(1.0, float(np.ceil(max(-state.min(), state.max()))))

    @cached_property
    def idf(self) -> Array:
        """Inverse document frequency of every token: ``ln((1 + n) / (1 + df)) + 1``."""
        frequency = np.bincount(self.body_token, minlength=len(self.vocabulary))
        texts = len(self.body_start) - 1
        return frozen(np.log((1 + texts) / (1 + frequency)) + 1)

    @cached_property
    def text_norm(self) -> Array:
        """Length of every page text's tf-idf vector."""
        weight = self.body_count * self.idf[self.body_token]
        owner = np.repeat(np.arange(len(self.body_start) - 1), np.diff(self.body_start))
        squares = np.bincount(owner, weight * weight, len(self.body_start) - 1)
        return frozen(np.sqrt(squares))

    @cached_property
    def digest(self) -> str:
        """A checksum of the content, whatever the files look like on disk."""
        total = hashlib.sha256()
        for name, array in self.arrays().items():
            if name.startswith("tag_path") and not len(self.tag_paths):
                continue  # as before there were any
            total.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
            total.update(np.ascontiguousarray(array).view(np.uint8).reshape(-1).data)
        for key in ("begin", "end"):
            total.update(f"{key} {self.meta[key]}\n".encode())
        return total.hexdigest()

    def arrays(self) -> dict[str, Array]:
        """Return all arrays by name, the strings' bytes and offsets included."""
        found: dict[str, Array] = {}
        for name in STRING_COLUMNS:
            strings: Strings = getattr(self, name)
            found[f"{name}_data"] = strings.data
            found[f"{name}_start"] = strings.start
        found.update((name, getattr(self, name)) for name in COLUMNS)
        return found

    # --- derived traces and views

    def renamed(self, name: str, **meta: Any) -> Trace:
        """Return the same recording under another name."""
        from gym_webforage.trace.validate import check_meta

        check_meta({**self.meta, "name": name, **meta})
        return replace(self, meta={**self.meta, "name": name, **meta}, path=None)

    def rewired(self, seed: int) -> Trace:
        """Return the paper's control: same degrees, clustering destroyed."""
        from gym_webforage.trace.structure import rewired

        return rewired(self, seed)

    def closed(self) -> Trace:
        """Return it without links to URLs that were never recorded, targets aside."""
        from gym_webforage.trace.derived import closed

        return closed(self)

    def with_targets(self, urls: Sequence[int] | Array, name: str = "targets") -> Trace:
        """Return it with these URL ids as targets; ``name`` is added to its name."""
        from gym_webforage.trace.derived import with_targets

        return with_targets(self, urls, name)

    def to_networkx(self, time: int | None = None) -> nx.DiGraph:
        """Return the graph of URLs, at one ``time`` or over the whole recording."""
        from gym_webforage.trace.structure import to_networkx

        return to_networkx(self, time)

    def __repr__(self) -> str:
        """Name the trace and its size."""
        return (
            f"Trace({self.name!r}, {len(self.urls):,} URLs, "
            f"{len(self.version_seen):,} versions, {len(self.link_target):,} links)"
        )

    def __copy__(self) -> Trace:
        """Return itself: it never changes."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Trace:
        """Return itself: it never changes."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Send a loaded trace by its path, any other by its arrays."""
        if self.path is not None:
            from gym_webforage.trace.catalog import reopen

            return reopen, (str(self.path), self.name, self.digest)
        return _rebuilt, (dict(self.meta), self.arrays())


COLUMNS: dict[str, Mapping[str, Any]] = {
    column.name: column.metadata for column in fields(Trace) if column.metadata
}
STRING_COLUMNS = ("urls", "sites", "labels", "vocabulary", "tag_paths")


def url_directory(url: str) -> str:
    """Return a URL up to the last slash of its path.

    >>> url_directory("http://a.example/b/c.html?d=/e")
    'http://a.example/b/'
    """
    path = url.split("#", 1)[0].split("?", 1)[0]
    scheme, mark, rest = path.partition("://") if "://" in path else ("", "", path)
    host, slash, local = rest.partition("/")
    return f"{scheme}{mark}{host}{slash}{local[: local.rfind('/') + 1]}"


def _ending(url: str) -> str:
    """Return the file ending of a URL's path, "" if it has none."""
    path = url.split("#", 1)[0].split("?", 1)[0].split("://", 1)[-1]
    _, _, name = path.partition("/")[2].rpartition("/")
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    return ending if ending.isalnum() and len(ending) <= 5 else ""


def _packed(name: str, column: Strings | Sequence[str]) -> Strings:
    if isinstance(column, Strings):
        return column
    try:
        return Strings.of(column)
    except (AttributeError, UnicodeEncodeError) as error:
        raise TraceError(name, f"holds something that is no text: {error}") from error


def _converted(name: str, given: Any) -> Array:
    """Return ``given`` in its column's type, read-only; nothing wraps or is rounded."""
    from gym_webforage.trace.validate import check_range

    table, wanted = COLUMNS[name]["table"], COLUMNS[name]["dtype"]
    try:
        if wanted == np.uint64 and not isinstance(given, np.ndarray):
            # NumPy would make floats of a list with numbers from 2^63 on.
            array = np.array([index(number) for number in given], np.uint64)
        else:
            array = np.asarray(given)
    except (TypeError, ValueError, OverflowError) as error:
        raise TraceError(table, f"{name} is not an array: {error}") from error
    if array.ndim == 0:
        raise TraceError(table, f"{name} is a single value, expected an array")
    if array.size and array.dtype != wanted:
        if array.dtype.kind not in ("biuf" if wanted.kind == "f" else "biu"):
            raise TraceError(table, f"{name} is {array.dtype}, expected {wanted}")
        if wanted.kind == "b":
            check_range(table, name, array, 0, 2)
        elif wanted.kind != "f":
            limits = np.iinfo(wanted)
            check_range(table, name, array, limits.min, limits.max + 1)
    with np.errstate(over="ignore"):  # a state that becomes infinite is refused later
        made = np.require(array, wanted, ["C", "A"])
    if made.base is not None and made.flags.writeable:
        made = made.copy()  # or else its owner could still change it
    return frozen(made)


def find_roots(meta: Mapping[str, Any], urls: Strings) -> Array:
    """Return the ids of the start pages that ``meta`` names, in its order."""
    found = urls.find_all(meta["roots"])
    for root in meta["roots"]:
        if root not in found:
            raise TraceError("meta.json", f"the root {root!r} is not among the URLs")
    return frozen(np.array([found[root] for root in meta["roots"]], np.int32))


def from_arrays(
    meta: Mapping[str, Any], arrays: Mapping[str, Array], path: Path | None = None
) -> Trace:
    """Put a trace together from what ``Trace.arrays`` returns. Does not validate."""
    columns: dict[str, Any] = {name: arrays[name] for name in COLUMNS}
    for name in STRING_COLUMNS:
        columns[name] = Strings(arrays[f"{name}_data"], arrays[f"{name}_start"])
    return Trace(meta, **columns, path=path)


def _rebuilt(meta: dict[str, Any], arrays: dict[str, Array]) -> Trace:
    return from_arrays(meta, {name: frozen(array) for name, array in arrays.items()})


def frozen(array: Array) -> Array:
    """Return ``array`` marked read-only."""
    array.flags.writeable = False
    return array


def to_iso(time: int) -> str:
    """Write a time in milliseconds as UTC text.

    >>> to_iso(0)
    '1970-01-01T00:00:00.000Z'
    """
    whole, rest = divmod(time, 1000)
    moment = datetime.fromtimestamp(whole, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest:03d}Z"


def from_iso(text: str) -> int:
    """Read a time as milliseconds; a time without a zone is UTC.

    >>> from_iso("1970-01-02")
    86400000
    """
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = int(moment.replace(microsecond=0).timestamp())
    except (TypeError, ValueError, OverflowError) as error:
        raise TraceError("meta.json", f"{text!r} is not an ISO 8601 time") from error
    return seconds * 1000 + moment.microsecond // 1000
