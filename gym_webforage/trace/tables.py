"""A trace as a folder of Parquet tables and ``meta.json``: the form for exchange.

The tables open as they are in pandas, polars or DuckDB:

=============  ========================================================================
urls           url, site, target, labels (list), tokens (list of vocabulary ids)
sites          site: all sites, in the order of their ids
labels         label: all labels, in the order of their ids
versions       url (id), seen, published, status, bytes, hash, text (id), state (list)
links          version (id), target (URL id), text (id), in page order
link_texts     anchor (list of vocabulary ids), near (list): what stands around a link;
               path (id of a tag path, -1 for none): where in the markup it stands
page_texts     title (list), body (list of distinct ids), counts (list)
vocabulary     token
tag_paths      path: the tags around links, as ``body div.menu li a``
=============  ========================================================================

The last table, and the column that refers to it, may be missing.

``meta.json`` says what was recorded, from where, how and under which licence, and
holds the SHA-256 of each table, which is checked before a table is read.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gym_webforage.trace.errors import TraceError
from gym_webforage.trace.strings import Strings
from gym_webforage.trace.trace import FORMAT, Trace, frozen
from gym_webforage.trace.validate import check_meta

TABLES = (
    "urls",
    "sites",
    "labels",
    "versions",
    "links",
    "link_texts",
    "page_texts",
    "vocabulary",
)
OPTIONAL = ("tag_paths",)
META = "meta.json"
WRITTEN_KEYS = ("format", "counts", "tables")  # of meta.json, by `save_trace`


def save_trace(trace: Trace, folder: str | Path, *, overwrite: bool = False) -> Path:
    """Write ``trace`` to ``folder``: all of it or, if anything goes wrong, nothing.

    Only a folder that is empty or holds a trace is ever overwritten.
    """
    folder = Path(folder)
    final = folder.resolve()
    if final.exists() and not (overwrite and _may_overwrite(final)):
        reason = "is no trace folder" if overwrite else "exists"
        raise FileExistsError(f"{folder} {reason}; choose another name")
    final.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{final.name}-", dir=final.parent))
    try:
        unfinished.chmod(0o755)  # mkdtemp makes it private; a trace is for sharing
        checksums = {}
        for name, table in to_tables(trace).items():
            file = unfinished / f"{name}.parquet"
            pq.write_table(
                table, file, compression="zstd", row_group_size=1 << 20, version="2.6"
            )
            checksums[name] = sha256(file)
        meta = {
            "format": FORMAT,
            **_without_written(trace.meta),
            "counts": trace.counts,
            "tables": checksums,
        }
        (unfinished / META).write_text(json.dumps(meta, indent=2) + "\n")
        replace_folder(unfinished, final)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return folder


def _may_overwrite(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    return (folder / META).is_file() or not any(folder.iterdir())


def _without_written(meta: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in meta.items() if key not in WRITTEN_KEYS}


def replace_folder(made: Path, final: Path) -> None:
    """Put the finished folder ``made`` in the place of ``final``."""
    if not final.exists():
        os.replace(made, final)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{final.name}-old-", dir=final.parent))
    try:
        os.replace(final, aside / "old")
        try:
            os.replace(made, final)
        except OSError:
            with suppress(OSError):  # another process may have put one there
                os.replace(aside / "old", final)
            raise
    finally:
        if final.exists():  # else the old one, moved aside, is all that is left
            shutil.rmtree(aside, ignore_errors=True)


def sha256(file: Path) -> str:
    """Return the checksum of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_meta(folder: Path) -> tuple[dict[str, Any], str]:
    """Read and check ``meta.json``; return it and its own checksum."""
    try:
        content = (folder / META).read_bytes()
        meta = json.loads(content.decode())
    except OSError as error:
        raise TraceError(META, f"cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:
        raise TraceError(META, f"is not JSON: {error}") from error
    if not isinstance(meta, dict):
        raise TraceError(META, "is not a JSON object")
    if meta.get("format") != FORMAT:
        raise TraceError(
            META,
            f"format {meta.get('format')!r} is not {FORMAT}, the one that this "
            "version of gym_webforage reads",
        )
    checksums = meta.get("tables")
    if not isinstance(checksums, dict) or {*checksums} - {*OPTIONAL} != {*TABLES}:
        raise TraceError(META, f"tables must give the SHA-256 of {', '.join(TABLES)}")
    for key in ("begin", "end"):
        if not isinstance(meta.get(key), str):
            raise TraceError(META, f"{key} is not a time")
    check_meta(meta)
    return meta, hashlib.sha256(content).hexdigest()


def read_tables(folder: Path, meta: Mapping[str, Any] | None = None) -> Trace:
    """Read a trace from its tables into memory and validate it.

    ``meta`` is what `read_meta` returned, where that was called before.
    """
    folder = Path(folder)
    if meta is None:
        meta, _ = read_meta(folder)
    checksums = meta["tables"]
    tables = {name: _read(folder, name, checksums[name]) for name in checksums}
    return from_tables(meta, tables)


def check_tables(folder: Path, checksums: Mapping[str, str]) -> None:
    """Raise TraceError unless every table has the checksum that it should have."""
    for name in checksums:
        try:
            found = sha256(folder / f"{name}.parquet")
        except OSError as error:
            raise TraceError(name, f"cannot be read: {error}") from error
        _check(name, found, checksums[name])


def _check(name: str, found: str, checksum: str) -> None:
    if found != checksum:
        raise TraceError(
            name, "the checksum differs from meta.json: the file was damaged or edited"
        )


def _read(folder: Path, name: str, checksum: str) -> pa.Table:
    try:
        content = (folder / f"{name}.parquet").read_bytes()
    except OSError as error:
        raise TraceError(name, f"cannot be read: {error}") from error
    _check(name, hashlib.sha256(content).hexdigest(), checksum)
    try:
        table = pq.ParquetFile(pa.BufferReader(content)).read()
        table.validate(full=True)
    except Exception as error:  # the reader of a broken file may raise anything
        raise TraceError(name, f"is not a readable Parquet table: {error}") from error
    return table


# --- tables from arrays


def _list(values: np.ndarray, start: np.ndarray) -> pa.Array:
    if len(values) >= 2**31:
        return pa.LargeListArray.from_arrays(pa.array(start), pa.array(values))
    return pa.ListArray.from_arrays(pa.array(start.astype(np.int32)), pa.array(values))


def _text(strings: Strings) -> pa.Array:
    column = strings.to_arrow()
    # Not every reader knows large strings, so only where nothing else will do.
    return column if len(strings.data) >= 2**31 else column.cast(pa.string())


def _named(codes: np.ndarray, names: Strings) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes), _text(names))


def _time(values: np.ndarray) -> pa.Array:
    return pa.array(values).cast(pa.timestamp("ms", tz="UTC"))


def _owner(start: np.ndarray) -> np.ndarray:
    rows = np.arange(len(start) - 1, dtype=np.int32)
    return np.repeat(rows, np.diff(start))


def to_tables(trace: Trace) -> dict[str, pa.Table]:
    """Return the tables of a trace by name."""
    labels = _named(trace.url_label, trace.labels).dictionary_decode()
    versions = {
        "url": _owner(trace.version_start),
        "seen": _time(trace.version_seen),
        "published": _time(trace.version_published),
        "status": trace.version_status,
        "bytes": trace.version_bytes,
        "hash": trace.version_hash,
        "text": trace.version_text,
    }
    if trace.states:
        flat = pa.array(trace.version_state.reshape(-1))
        versions["state"] = pa.FixedSizeListArray.from_arrays(flat, trace.states)
    link_texts: dict[str, Any] = {
        "anchor": _list(trace.anchor_token, trace.anchor_start),
        "near": _list(trace.near_token, trace.near_start),
    }
    if len(trace.tag_paths):
        link_texts["path"] = trace.tag_path
    tables = {
        "urls": pa.table(
            {
                "url": _text(trace.urls),
                "site": _named(trace.url_site, trace.sites),
                "target": trace.url_target,
                "labels": pa.ListArray.from_arrays(
                    pa.array(trace.url_label_start.astype(np.int32)), labels
                ),
                "tokens": _list(trace.url_token, trace.url_token_start),
            }
        ),
        "sites": pa.table({"site": _text(trace.sites)}),
        "labels": pa.table({"label": _text(trace.labels)}),
        "versions": pa.table(versions),
        "links": pa.table(
            {
                "version": _owner(trace.link_start),
                "target": trace.link_target,
                "text": trace.link_text,
            }
        ),
        "link_texts": pa.table(link_texts),
        "page_texts": pa.table(
            {
                "title": _list(trace.title_token, trace.title_start),
                "body": _list(trace.body_token, trace.body_start),
                "counts": _list(trace.body_count, trace.body_start),
            }
        ),
        "vocabulary": pa.table({"token": _text(trace.vocabulary)}),
    }
    if len(trace.tag_paths):
        tables["tag_paths"] = pa.table({"path": _text(trace.tag_paths)})
    return tables


# --- arrays from tables


class _Columns:
    """One table's columns, each fetched with a check of its type and of nulls."""

    def __init__(self, name: str, table: pa.Table) -> None:
        self.name = name
        self.table = table
        self.rows = table.num_rows

    def __contains__(self, column: str) -> bool:
        return column in self.table.column_names

    def array(self, column: str) -> pa.Array:
        if self.table.column_names.count(column) != 1:
            raise TraceError(self.name, f"has no single column {column!r}")
        chunked = self.table.column(column)
        self._refuse_nulls(column, chunked, np.arange(self.rows + 1))
        if chunked.num_chunks == 1:
            return chunked.chunk(0)
        try:
            return pa.concat_arrays(chunked.chunks or [pa.array([], chunked.type)])
        except pa.ArrowException as error:  # more than 2^31 entries, for example
            raise TraceError(self.name, f"{column}: {error}") from error

    def numbers(self, column: str, dtype: Any, given: Any = None) -> np.ndarray:
        array: Any = self.array(column) if given is None else given
        wanted = pa.from_numpy_dtype(dtype)
        if array.type != wanted:
            raise TraceError(self.name, f"{column} is {array.type}, expected {wanted}")
        return array.to_numpy(zero_copy_only=False)

    def times(self, column: str) -> np.ndarray:
        """Return milliseconds; finer units will do if nothing is lost."""
        array = self.array(column)
        if not pa.types.is_timestamp(array.type):
            raise TraceError(self.name, f"{column} is {array.type}, expected timestamp")
        try:
            array = array.cast(pa.timestamp("ms", array.type.tz)).cast(pa.int64())
        except pa.ArrowException as error:
            raise TraceError(self.name, f"{column}: {error}") from error
        return self.numbers(column, np.int64, array)

    def text(self, column: str) -> Strings:
        array = self.array(column)
        if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
            raise TraceError(self.name, f"{column} is {array.type}, expected string")
        if not len(array):
            return Strings.of([])
        array = array.cast(pa.large_string())
        _, offsets, data = array.buffers()
        start = np.frombuffer(offsets, np.int64)
        start = start[array.offset : array.offset + len(array) + 1]
        whole = np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8)
        return Strings(whole[start[0] : start[-1]], frozen(start - start[0]))

    def lists(self, column: str) -> tuple[pa.Array, np.ndarray]:
        array = self.array(column)
        if not (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
            raise TraceError(self.name, f"{column} is {array.type}, expected a list")
        if not len(array):
            return array.flatten(), np.zeros(1, np.int64)
        start = array.offsets.to_numpy().astype(np.int64)
        values = array.values.slice(start[0], start[-1] - start[0])
        start -= start[0]
        self._refuse_nulls(column, values, start)
        return values, start

    def number_lists(self, column: str) -> tuple[np.ndarray, np.ndarray]:
        values, start = self.lists(column)
        return self.numbers(column, np.int32, values), start

    def states(self, column: str) -> np.ndarray:
        """Return a column of lists of one length as a matrix."""
        array = self.array(column)
        if not pa.types.is_fixed_size_list(array.type):
            raise TraceError(self.name, f"{column} is {array.type}, not a fixed list")
        width = array.type.list_size
        values = array.flatten()
        self._refuse_nulls(column, values, np.arange(self.rows + 1) * width)
        return self.numbers(column, np.float32, values).reshape(self.rows, width)

    def codes(
        self, column: str, names: Strings, lists: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return which of ``names`` the texts are, and for lists their offsets."""
        if lists:
            values, start = self.lists(column)
        else:
            values, start = self.array(column), np.arange(self.rows + 1)
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
            self._refuse_nulls(column, values, start)
        if not (
            pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
        ):
            raise TraceError(self.name, f"{column} is {values.type}, expected string")
        known = names.to_arrow().cast(values.type)
        codes = pc.call_function(
            "index_in", [values], pc.SetLookupOptions(value_set=known)
        )
        if codes.null_count:
            at = codes.is_null().to_numpy(zero_copy_only=False).argmax()
            row = int(np.searchsorted(start, at, "right")) - 1
            raise TraceError(
                self.name, f"{column}: {values[at].as_py()!r} is not listed", row
            )
        return codes.to_numpy(), start

    def _refuse_nulls(self, column: str, values: Any, start: np.ndarray) -> None:
        if values.null_count:
            missing = values.is_null().to_numpy(zero_copy_only=False)
            row = int(np.searchsorted(start, missing.argmax(), "right")) - 1
            raise TraceError(self.name, f"{column} holds a missing value", row)


def _starts(name: str, column: str, owner: np.ndarray, rows: int) -> np.ndarray:
    """Turn a sorted column of owners into offsets."""
    if len(owner):
        falling = owner[1:] < owner[:-1]
        if falling.any():
            row = int(np.argmax(falling)) + 1
            raise TraceError(name, f"rows are not sorted by {column}", row)
        if owner[0] < 0 or owner[-1] >= rows:
            row = 0 if owner[0] < 0 else len(owner) - 1
            raise TraceError(
                name, f"{column} is {owner[row]}, expected 0 to {rows - 1}", row
            )
    start = np.zeros(rows + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=rows), out=start[1:])
    return start


def from_tables(meta: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Trace:
    """Make a trace from its tables, with every type and value checked."""
    columns = {name: _Columns(name, table) for name, table in tables.items()}
    urls, versions, links = columns["urls"], columns["versions"], columns["links"]
    link_texts, page_texts = columns["link_texts"], columns["page_texts"]
    sites, labels = columns["sites"].text("site"), columns["labels"].text("label")
    site, _ = urls.codes("site", sites)
    label, label_start = urls.codes("labels", labels, lists=True)
    target = urls.array("target")
    if not pa.types.is_boolean(target.type):
        raise TraceError("urls", f"target is {target.type}, expected bool")
    url_token, url_token_start = urls.number_lists("tokens")
    anchor, anchor_start = link_texts.number_lists("anchor")
    near, near_start = link_texts.number_lists("near")
    title, title_start = page_texts.number_lists("title")
    body, body_start = page_texts.number_lists("body")
    counts, counts_start = page_texts.number_lists("counts")
    if not np.array_equal(body_start, counts_start):
        raise TraceError("page_texts", "body and counts differ in length")

    tag_paths, tag_path = Strings.of([]), np.full(link_texts.rows, -1, np.int32)
    if "tag_paths" in columns:
        tag_paths = columns["tag_paths"].text("path")
        tag_path = link_texts.numbers("path", np.int32)
    no_state = np.zeros((versions.rows, 0), np.float32)
    return Trace.build(
        _without_written(meta),
        urls=urls.text("url"),
        sites=sites,
        labels=labels,
        vocabulary=columns["vocabulary"].text("token"),
        tag_paths=tag_paths,
        url_site=site,
        url_target=target.to_numpy(zero_copy_only=False),
        url_label_start=label_start,
        url_label=label,
        url_token_start=url_token_start,
        url_token=url_token,
        version_start=_starts(
            "versions", "url", versions.numbers("url", np.int32), urls.rows
        ),
        version_seen=versions.times("seen"),
        version_published=versions.times("published"),
        version_status=versions.numbers("status", np.int16),
        version_bytes=versions.numbers("bytes", np.int64),
        version_hash=versions.numbers("hash", np.uint64),
        version_text=versions.numbers("text", np.int32),
        version_state=versions.states("state") if "state" in versions else no_state,
        link_start=_starts(
            "links", "version", links.numbers("version", np.int32), versions.rows
        ),
        link_target=links.numbers("target", np.int32),
        link_text=links.numbers("text", np.int32),
        anchor_start=anchor_start,
        anchor_token=anchor,
        near_start=near_start,
        near_token=near,
        tag_path=tag_path,
        title_start=title_start,
        title_token=title,
        body_start=body_start,
        body_token=body,
        body_count=counts,
    )
