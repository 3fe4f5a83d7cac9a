"""A trace as a folder of Parquet tables and ``meta.json``: the form for exchange.

The tables open as they are in pandas, polars or DuckDB:

=============  ========================================================================
urls           url, site, target, labels (list), tokens (list of vocabulary ids)
versions       url (id), seen, published, status, bytes, hash, text (id), state (list)
links          version (id), target (URL id), text (id), in page order
link_texts     anchor (list of vocabulary ids), near (list): what stands around a link
page_texts     title (list), body (list of distinct ids), counts (list)
vocabulary     token
=============  ========================================================================

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
import pyarrow.parquet as pq

from gym_webforage.trace.errors import TraceError
from gym_webforage.trace.strings import Strings
from gym_webforage.trace.trace import FORMAT, Trace, find_roots
from gym_webforage.trace.validate import check_meta

TABLES = ("urls", "versions", "links", "link_texts", "page_texts", "vocabulary")
META = "meta.json"


def save_trace(trace: Trace, folder: str | Path, *, overwrite: bool = False) -> Path:
    """Write ``trace`` to ``folder``: all of it or, if anything goes wrong, nothing."""
    folder = Path(folder)
    if folder.exists() and not overwrite:
        raise FileExistsError(f"{folder} exists; choose another name or overwrite it")
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    unfinished.chmod(0o755)  # mkdtemp makes it private; a trace is for sharing
    try:
        checksums = {}
        for name, table in _to_tables(trace).items():
            file = unfinished / f"{name}.parquet"
            pq.write_table(
                table, file, compression="zstd", row_group_size=1 << 20, version="2.6"
            )
            checksums[name] = sha256(file)
        meta = {
            "format": FORMAT,
            **trace.meta,
            "counts": trace.counts,
            "tables": checksums,
        }
        (unfinished / META).write_text(json.dumps(meta, indent=2) + "\n")
        replace_folder(unfinished, folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return folder


def replace_folder(made: Path, final: Path) -> None:
    """Put the finished folder ``made`` in the place of ``final``."""
    if final.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{final.name}-old-", dir=final.parent))
        os.replace(final, old / "trace")
        os.replace(made, final)
        shutil.rmtree(old, ignore_errors=True)
    else:
        os.replace(made, final)


def sha256(file: Path) -> str:
    """Return the checksum of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_meta(folder: Path) -> dict[str, Any]:
    """Read and check ``meta.json``."""
    file = folder / META
    try:
        meta = json.loads(file.read_text(encoding="utf-8"))
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
    if not isinstance(checksums, dict) or set(checksums) != set(TABLES):
        raise TraceError(META, f"tables must give the SHA-256 of {', '.join(TABLES)}")
    for key in ("begin", "end"):
        if not isinstance(meta.get(key), str):
            raise TraceError(META, f"{key} is not a time")
    check_meta(meta)
    return meta


def read_tables(folder: Path) -> Trace:
    """Read a trace from its tables into memory and validate it."""
    folder = Path(folder)
    meta = read_meta(folder)
    tables = {name: _read(folder, name, meta["tables"][name]) for name in TABLES}
    trace = _from_tables(meta, tables)
    return trace


def check_tables(folder: Path, checksums: Mapping[str, str]) -> None:
    """Raise TraceError unless every table has the checksum that it should have."""
    for name in TABLES:
        _check(folder / f"{name}.parquet", name, checksums[name])


def _check(file: Path, name: str, checksum: str) -> None:
    try:
        found = sha256(file)
    except OSError as error:
        raise TraceError(name, f"cannot be read: {error}") from error
    if found != checksum:
        raise TraceError(
            name, "the checksum differs from meta.json: the file was damaged or edited"
        )


def _read(folder: Path, name: str, checksum: str) -> pa.Table:
    file = folder / f"{name}.parquet"
    _check(file, name, checksum)
    try:
        table = pq.read_table(file, memory_map=False, partitioning=None)
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise TraceError(name, f"is not a readable Parquet table: {error}") from error
    return table


# --- tables from arrays


def _list(values: np.ndarray, start: np.ndarray) -> pa.Array:
    if len(values) >= 2**31:
        return pa.LargeListArray.from_arrays(pa.array(start), pa.array(values))
    return pa.ListArray.from_arrays(pa.array(start.astype(np.int32)), pa.array(values))


def _text(strings: Strings) -> pa.Array:
    return pa.LargeStringArray.from_buffers(
        len(strings),
        pa.py_buffer(np.ascontiguousarray(strings.start)),
        pa.py_buffer(np.ascontiguousarray(strings.data)),
    ).cast(pa.string())


def _named(codes: np.ndarray, names: Strings) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes), _text(names))


def _time(values: np.ndarray) -> pa.Array:
    return pa.array(values).cast(pa.timestamp("ms", tz="UTC"))


def _owner(start: np.ndarray) -> np.ndarray:
    rows = np.arange(len(start) - 1, dtype=np.int32)
    return np.repeat(rows, np.diff(start))


def _to_tables(trace: Trace) -> dict[str, pa.Table]:
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
    return {
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
        "versions": pa.table(versions),
        "links": pa.table(
            {
                "version": _owner(trace.link_start),
                "target": trace.link_target,
                "text": trace.link_text,
            }
        ),
        "link_texts": pa.table(
            {
                "anchor": _list(trace.anchor_token, trace.anchor_start),
                "near": _list(trace.near_token, trace.near_start),
            }
        ),
        "page_texts": pa.table(
            {
                "title": _list(trace.title_token, trace.title_start),
                "body": _list(trace.body_token, trace.body_start),
                "counts": _list(trace.body_count, trace.body_start),
            }
        ),
        "vocabulary": pa.table({"token": _text(trace.vocabulary)}),
    }


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
        if chunked.null_count:
            row = chunked.is_null().to_numpy().argmax()
            raise TraceError(self.name, f"{column} is missing", int(row))
        combined = chunked.combine_chunks()
        if isinstance(combined, pa.ChunkedArray):
            if combined.num_chunks > 1:
                raise TraceError(self.name, f"{column} is too large")
            combined = (
                combined.chunk(0)
                if combined.num_chunks
                else pa.array([], combined.type)
            )
        return combined

    def numbers(self, column: str, dtype: Any, array: pa.Array | None = None) -> Any:
        array = self.array(column) if array is None else array
        wanted = pa.from_numpy_dtype(dtype)
        if pa.types.is_timestamp(array.type):
            try:
                array = array.cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64())
            except pa.ArrowException as error:
                raise TraceError(self.name, f"{column}: {error}") from error
        if array.type != wanted:
            raise TraceError(
                self.name, f"{column} is {array.type}, expected {wanted}"
            )
        if array.null_count:
            raise TraceError(self.name, f"{column} holds a missing value")
        return array.to_numpy(zero_copy_only=False).astype(dtype, copy=False)

    def text(self, column: str, array: pa.Array | None = None) -> Strings:
        array = self.array(column) if array is None else array
        if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
            raise TraceError(self.name, f"{column} is {array.type}, expected string")
        if array.null_count:
            raise TraceError(self.name, f"{column} holds a missing value")
        array = array.cast(pa.large_string())
        _, offsets, data = array.buffers()
        if not len(array) or offsets is None:
            return Strings.of([])
        start = np.frombuffer(offsets, np.int64)[
            array.offset : array.offset + len(array) + 1
        ]
        bytes_ = np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8)
        return Strings(bytes_[start[0] : start[-1]].copy(), start - start[0])

    def lists(self, column: str) -> tuple[pa.Array, np.ndarray]:
        array = self.array(column)
        if not (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
            raise TraceError(self.name, f"{column} is {array.type}, expected a list")
        if not len(array):
            return array.flatten(), np.zeros(1, np.int64)
        offsets = array.offsets.to_numpy().astype(np.int64)
        values = array.values.slice(offsets[0], offsets[-1] - offsets[0])
        return values, offsets - offsets[0]

    def number_lists(self, column: str) -> tuple[np.ndarray, np.ndarray]:
        values, start = self.lists(column)
        return self.numbers(column, np.int32, values), start


def _codes(columns: _Columns, column: str, array: pa.Array) -> tuple[Any, Strings]:
    """Return integer codes and the names that they stand for."""
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    names = columns.text(column, array.dictionary)
    codes = array.indices.to_numpy(zero_copy_only=False)
    return np.asarray(codes).astype(np.int32), names


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
    return np.searchsorted(owner, np.arange(rows + 1)).astype(np.int64)


def _from_tables(meta: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Trace:
    urls, versions, links, link_texts, page_texts, vocabulary = (
        _Columns(name, tables[name]) for name in TABLES
    )
    site, sites = _codes(urls, "site", urls.array("site"))
    label_values, label_start = urls.lists("labels")
    label, labels = _codes(urls, "labels", label_values)
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

    state = np.zeros((versions.rows, 0), np.float32)
    if "state" in versions:
        column = versions.array("state")
        if not pa.types.is_fixed_size_list(column.type):
            raise TraceError("versions", f"state is {column.type}, not a fixed list")
        flat = versions.numbers("state", np.float32, column.flatten())
        state = flat.reshape(versions.rows, column.type.list_size)
    names = urls.text("url")
    known = {key: value for key, value in meta.items() if key != "counts"}
    find_roots(known, names)  # a clear error before the arrays are put together
    with suppress(KeyError):
        del known["tables"]
    return Trace.build(
        known,
        urls=names,
        sites=sites,
        labels=labels,
        vocabulary=vocabulary.text("token"),
        url_site=site,
        url_target=target.to_numpy(zero_copy_only=False),
        url_label_start=label_start,
        url_label=label,
        url_token_start=url_token_start,
        url_token=url_token,
        version_start=_starts(
            "versions", "url", versions.numbers("url", np.int32), urls.rows
        ),
        version_seen=versions.numbers("seen", np.int64),
        version_published=versions.numbers("published", np.int64),
        version_status=versions.numbers("status", np.int16),
        version_bytes=versions.numbers("bytes", np.int64),
        version_hash=versions.numbers("hash", np.uint64),
        version_text=versions.numbers("text", np.int32),
        version_state=state,
        link_start=_starts(
            "links", "version", links.numbers("version", np.int32), versions.rows
        ),
        link_target=links.numbers("target", np.int32),
        link_text=links.numbers("text", np.int32),
        anchor_start=anchor_start,
        anchor_token=anchor,
        near_start=near_start,
        near_token=near,
        title_start=title_start,
        title_token=title,
        body_start=body_start,
        body_token=body,
        body_count=counts,
    )
