"""Thousands of broken traces: each is refused with a reason, or is good to crawl.

Every case is made from one good folder with a seed of its own, so that a failure can
be repeated alone.
"""

from __future__ import annotations

import copy
import hashlib
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gym_webforage.trace import TraceError, load_trace, save_trace
from gym_webforage.trace.tables import (
    META,
    OPTIONAL,
    from_tables,
    read_tables,
    to_tables,
)
from gym_webforage.trace.tables import TABLES as NEEDED
from gym_webforage.trace.validate import LIST_OFFSETS
from tests.samples import TAGGED, crawl, sample_arrays, sample_trace

TABLES = (*NEEDED, *OPTIONAL)
FILES = (META, *(f"{name}.parquet" for name in TABLES))
PLACES = {META, *TABLES}

Table = pa.Table
Mutation = Callable[[Table, str], Table | None]


class Bench:
    """A folder with a good trace that is broken, read and mended, again and again."""

    def __init__(self, folder: Path) -> None:
        self.folder = save_trace(sample_trace(**TAGGED), folder)
        self.files = {name: (folder / name).read_bytes() for name in FILES}
        self.meta = json.loads(self.files[META])
        self.tables = {
            name: pq.read_table(folder / f"{name}.parquet") for name in TABLES
        }
        self.refused = self.accepted = 0

    def try_files(self, changed: dict[str, bytes], read: Any = read_tables) -> str:
        """Read the trace with some files changed; say what came of it."""
        for name, content in changed.items():
            (self.folder / name).write_bytes(content)
        try:
            trace = read(self.folder)
        except TraceError as error:
            assert error.table in PLACES and error.reason
            assert error.row is None or error.row >= 0
            self.refused += 1
            return str(error)
        finally:
            for name in changed:
                (self.folder / name).write_bytes(self.files[name])
        self.accepted += 1
        crawl(trace)
        return ""

    def try_tables(self, changed: dict[str, Table | bytes]) -> str:
        """The same with tables, whose checksums are made to fit."""
        files, meta = {}, copy.deepcopy(self.meta)
        for name, table in changed.items():
            content = table if isinstance(table, bytes) else packed(table)
            files[f"{name}.parquet"] = content
            meta["tables"][name] = hashlib.sha256(content).hexdigest()
        return self.try_files({**files, META: json.dumps(meta).encode()})

    def try_meta(self, meta: Any) -> str:
        content = meta if isinstance(meta, bytes) else json.dumps(meta).encode()
        return self.try_files({META: content})


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("broken") / "sample-v0")


def packed(table: Table) -> bytes:
    stream = io.BytesIO()
    pq.write_table(table, stream, compression="zstd")
    return stream.getvalue()


# --- bytes


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    how = rng.integers(6)
    at = int(rng.integers(len(content)))
    length = int(rng.integers(1, 9))
    if how == 0:  # flip bits
        changed = bytearray(content)
        for _ in range(length):
            changed[rng.integers(len(content))] ^= 1 << rng.integers(8)
        return bytes(changed)
    if how == 1:  # truncate
        return content[:at]
    if how == 2:  # insert
        return content[:at] + rng.bytes(length) + content[at:]
    if how == 3:  # delete
        return content[:at] + content[at + length :]
    if how == 4:  # overwrite, as a lost block would be
        return content[:at] + bytes(64) + content[at + 64 :]
    return content[at:] + content[:at]


@pytest.mark.parametrize("name", FILES)
def test_damaged_bytes_are_refused(bench: Bench, name: str) -> None:
    for seed in range(60):
        content = damaged(bench.files[name], np.random.default_rng(seed))
        error = bench.try_files({name: content})
        # Nothing but the card's wording may change without being noticed.
        assert error or name == META or content == bench.files[name]


@pytest.mark.parametrize("name", TABLES)
def test_damaged_bytes_with_the_right_checksum(bench: Bench, name: str) -> None:
    for seed in range(100):
        content = damaged(bench.files[f"{name}.parquet"], np.random.default_rng(seed))
        bench.try_tables({name: content})


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("other", TABLES)
def test_swapped_files(bench: Bench, name: str, other: str) -> None:
    if name != other:
        content = bench.files[f"{other}.parquet"]
        assert "checksum" in bench.try_files({f"{name}.parquet": content})
        bench.try_tables({name: content})


@pytest.mark.parametrize("name", FILES)
def test_missing_and_unreadable_files(tmp_path: Path, cache: Path, name: str) -> None:
    folder = save_trace(sample_trace(**TAGGED), tmp_path / "sample-v0")
    (folder / name).unlink()
    with pytest.raises(TraceError, match="cannot be read"):
        read_tables(folder)
    with pytest.raises((TraceError, FileNotFoundError), match=r"read|no meta"):
        load_trace(folder)
    (folder / name).mkdir()
    with pytest.raises(TraceError, match="cannot be read"):
        read_tables(folder)
    with pytest.raises((TraceError, FileNotFoundError), match=r"read|no meta"):
        load_trace(folder)


# --- values


def with_column(table: Table, column: str, values: Any) -> Table:
    return table.set_column(table.column_names.index(column), column, values)


def with_value(value: Any, row: int = 0) -> Mutation:
    """Put a value into a row, or into the first list that is not empty."""

    def change(table: Table, column: str) -> Table | None:
        kind = table.schema.field(column).type
        values = table.column(column).to_pylist()
        if not values:
            return None
        if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
            at = next((i for i, entry in enumerate(values) if entry), None)
            if at is None:
                return None
            values[at] = [value, *values[at][1:]]
        else:
            values[row % len(values)] = value
        return with_column(table, column, pa.array(values, kind))

    return change


def cast(kind: pa.DataType) -> Mutation:
    def change(table: Table, column: str) -> Table | None:
        return with_column(table, column, table.column(column).cast(kind))

    return change


def relisted(make: Callable[[list[Any]], list[Any]]) -> Mutation:
    def change(table: Table, column: str) -> Table | None:
        kind = table.schema.field(column).type
        values = make(table.column(column).to_pylist())
        return with_column(table, column, pa.array(values, kind))

    return change


def nested(table: Table, column: str) -> Table:
    values = [[value] for value in table.column(column).to_pylist()]
    return with_column(table, column, pa.array(values))


def as_struct(table: Table, column: str) -> Table:
    whole = table.column(column).combine_chunks()
    return with_column(table, column, pa.StructArray.from_arrays([whole], ["x"]))


def as_dictionary(table: Table, column: str) -> Table:
    return with_column(table, column, table.column(column).dictionary_encode())


def in_slices(table: Table, column: str) -> Table:
    """The same rows in chunks that begin in the middle of longer arrays."""
    whole = table.column(column).combine_chunks()
    longer = pa.concat_arrays([whole, whole, whole])
    half = len(whole) // 2
    pieces = [longer.slice(len(whole), half), longer.slice(2 * len(whole) + half)]
    pieces[1] = pieces[1].slice(0, len(whole) - half)
    return with_column(table, column, pa.chunked_array(pieces))


def invalid_text(table: Table, column: str) -> Table | None:
    values = table.column(column)
    if not pa.types.is_string(values.type) or not len(values):
        return None
    broken = [text.encode() for text in values.to_pylist()]
    broken[-1] = b"http://\xff\xfe/"
    array = pa.array(broken, pa.binary())
    text = pa.StringArray.from_buffers(len(array), *array.buffers()[1:])
    return with_column(table, column, text)


def null_in_dictionary(table: Table, column: str) -> Table:
    count = table.num_rows
    names = pa.array([None, "hír1.example"])
    codes = pa.array(np.arange(count, dtype=np.int32) % 2)
    return with_column(table, column, pa.DictionaryArray.from_arrays(codes, names))


def number_dictionary(table: Table, column: str) -> Table:
    codes = pa.array(np.zeros(table.num_rows, np.int32))
    numbers = pa.DictionaryArray.from_arrays(codes, pa.array([7]))
    return with_column(table, column, numbers)


def wider_lists(table: Table, column: str) -> Table | None:
    kind = table.schema.field(column).type
    if not pa.types.is_fixed_size_list(kind):
        return None
    flat = np.zeros(table.num_rows * 5, np.float32)
    return with_column(table, column, pa.FixedSizeListArray.from_arrays(flat, 5))


def at_time(value: int, unit: str = "ms", zone: str | None = "UTC") -> Mutation:
    def change(table: Table, column: str) -> Table | None:
        kind = table.schema.field(column).type
        if not pa.types.is_timestamp(kind):
            return None
        factor = {"s": 1, "ms": 1_000, "us": 10**6, "ns": 10**9}[unit]
        numbers = table.column(column).cast(pa.int64()).to_numpy() // 1_000 * factor
        numbers = numbers.astype(np.int64)
        if value:
            numbers[0] = value
        return with_column(
            table, column, pa.array(numbers).cast(pa.timestamp(unit, zone))
        )

    return change


TYPES = (
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32()),
    *(pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.date32()),
    *(pa.string(), pa.large_string(), pa.binary(), pa.string_view(), pa.null()),
    *(pa.list_(pa.int32()), pa.list_(pa.int64()), pa.large_list(pa.int32())),
    *(pa.list_(pa.float32(), 3), pa.list_(pa.float64()), pa.list_(pa.string())),
    *(pa.timestamp("s"), pa.timestamp("us", "Europe/Budapest"), pa.time32("s")),
    *(pa.decimal128(20, 2), pa.duration("ms"), pa.large_list(pa.large_string())),
)
VALUES = (
    *(None, -1, -2, 0, 1, 4, 7, 11, 12, 13, 200, 1_000, 2**15, 2**24, 2**31 - 1),
    *(-(2**31), 2**31, 2**40, 2**63 - 1, -(2**63), 2**64 - 1, 0.5, float("nan")),
    *(float("inf"), -float("inf"), 3e38, -1e-45, "", "x", "\0", "zebra", "a", True),
    *("http://hír0.example/p0.html", "𝄞" * 1_000, "\n", "unused.example"),
)
MUTATIONS: tuple[Mutation, ...] = (
    *(with_value(value) for value in VALUES),
    *(with_value(value, -1) for value in VALUES),
    *(cast(kind) for kind in TYPES),
    relisted(lambda values: values[::-1]),
    relisted(sorted),
    relisted(lambda values: values[1:] + values[:1]),
    relisted(lambda values: [values[0]] * len(values)),
    relisted(lambda values: [values[-1]] * len(values)),
    relisted(lambda values: [[]] * len(values)),
    relisted(lambda values: [None] * len(values)),
    relisted(lambda values: [entry + entry for entry in values]),
    relisted(lambda values: [entry[:-1] for entry in values]),
    relisted(lambda values: [[None, *entry] for entry in values]),
    *(nested, as_struct, as_dictionary, in_slices, invalid_text, wider_lists),
    number_dictionary,
    *(at_time(0, unit) for unit in ("s", "us", "ns")),
    *(at_time(0, "ms", zone) for zone in (None, "Europe/Budapest", "Mars/Base")),
    *(at_time(value) for value in (-1, -(2**62), 2**62, 253_402_300_800_000)),
    *(at_time(value, "s") for value in (2**40, 2**62, -(2**62))),
    *(at_time(value, "ns") for value in (1, 2**62, -1)),
    lambda table, column: table.drop_columns([column]),
    lambda table, column: table.append_column(column, table.column(column)),
    lambda table, column: table.append_column("x", table.column(column)),
    lambda table, column: table.rename_columns(
        [name.upper() if name == column else name for name in table.column_names]
    ),
    lambda table, column: table.select([column]),
)
WHOLE: tuple[Callable[[Table], Table], ...] = (
    lambda table: table.slice(0, 0),
    lambda table: table.slice(1),
    lambda table: table.slice(0, max(0, table.num_rows - 1)),
    lambda table: table.slice(0, 1),
    lambda table: pa.concat_tables([table, table]),
    lambda table: pa.concat_tables([table, table.slice(0, 1)]),
    lambda table: table.take(np.arange(table.num_rows)[::-1]),
    lambda table: table.select([]),
    lambda table: table.select(table.column_names[::-1]),
    lambda table: pa.table({}),
    lambda table: table.replace_schema_metadata({"ARROW:schema": "nonsense"}),
)


COLUMNS = [
    (name, column)
    for name, table in to_tables(sample_trace()).items()
    for column in table.column_names
]


@pytest.mark.parametrize(("name", "column"), COLUMNS)
def test_bad_values(bench: Bench, name: str, column: str) -> None:
    tried = 0
    for mutation in MUTATIONS:
        try:
            table = mutation(bench.tables[name], column)
            content = None if table is None else packed(table)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            continue  # there is no such column in Parquet, or no such value in it
        if content is not None:
            bench.try_tables({name: content})
            tried += 1
    assert tried > 30


@pytest.mark.parametrize("name", TABLES)
def test_other_rows(bench: Bench, name: str) -> None:
    for change in WHOLE:
        bench.try_tables({name: packed(change(bench.tables[name]))})


def test_errors_name_table_row_and_reason(bench: Bench) -> None:
    for name, column, mutation, expected in (
        ("links", "target", with_value(12, 3), "links, row 3: .* is 12, exp"),
        ("links", "target", with_value(-1, 2), "links, row 2: .* is -1, expected 0"),
        ("links", "version", with_value(9_999, -1), "links, row .* 9999, expected"),
        ("versions", "url", with_value(11, 0), "versions, row 1: .* not sorted by url"),
        (
            "versions",
            "status",
            with_value(None, 4),
            "versions, row 4: status .*missing",
        ),
        ("versions", "state", with_value(float("nan")), "versions, row 0: .* finite"),
        ("versions", "text", with_value(4, 1), "versions, row 1: .* is 4, expected -1"),
        ("urls", "url", with_value("", 6), "urls, row 6: the URL is empty"),
        ("urls", "url", invalid_text, "urls: .*(UTF8|UTF-8|utf)"),
        ("urls", "site", with_value("elsewhere", 7), "urls, row 7: .*elsewhere"),
        ("labels", "label", with_value("zebra", 2), "labels, row 2: 'zebra' .* twice"),
        ("page_texts", "counts", with_value(0), "page_texts, row 0: .* is 0, exp"),
        ("vocabulary", "token", cast(pa.binary()), "vocabulary: token is binary"),
        ("versions", "seen", cast(pa.int64()), "versions: seen is int64"),
    ):
        table = mutation(bench.tables[name], column)
        assert table is not None
        with pytest.raises(TraceError, match=expected):
            raise TraceError("nothing", bench.try_tables({name: table}))


def test_dictionary_with_a_missing_name(bench: Bench) -> None:
    """Parquet cannot hold one, but a table in memory can."""
    urls = null_in_dictionary(bench.tables["urls"], "site")
    with pytest.raises(TraceError, match="urls, row 0: site holds a missing value"):
        from_tables(bench.meta, {**bench.tables, "urls": urls})


# --- arrays in memory


def test_bad_arrays() -> None:
    """The same rules hold for those who make a trace of their own arrays."""
    good, refused = sample_arrays(), 0
    for name, array in good.items():
        bad = [array[:-1], np.append(array, array[-1:], 0), array[::-1], array[None]]
        bad += [array[:0], array.astype(float) + 0.5, array.astype(str), 7, None]
        bad += [array.tolist(), array.astype(object), [[1], [2, 3]], "text", [None]]
        for value in (-(2**63), -2, -1, 12, 1_000, 2**31, 2**40, 2**63 - 1):
            for at in (0, len(array) // 2, len(array) - 1):
                changed = np.array(array, np.int64 if array.dtype != "u8" else "u8")
                with np.errstate(all="ignore"):
                    changed[at] = np.array(value).astype(changed.dtype)
                bad.append(changed)
        for changed in bad:
            try:
                trace = sample_trace(**{name: changed})
            except TraceError as error:
                assert error.table in PLACES and name in good
                refused += 1
            else:
                crawl(trace, steps=10)
    assert refused > 400
    assert LIST_OFFSETS.keys() <= good.keys()


# --- meta.json


ANYTHING: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 1.5, 1e308, 10**400, "", "x", "\0", "../x", "a/b"),
    *("a\\b", ".", "..", ".hidden", "x" * 300, "é" * 120, "\ud800", "2020-01-01"),
    *("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "1969-12-31"),
    *([], [None], [[]], [1], ["x"], ["\ud800"], [["x"]], {}, {"x": 1}, {"x": []}),
    *({"x": [1]}, {"x": ["y"]}, {"x": {"y": []}}, {"urls": None}, [{}], float("nan")),
    ["http://hír0.example/p0.html", "http://hír0.example/p0.html"],
    ["http://hír0.example/p0.html", "http://nowhere/"],
    [f"http://hír{i % 2}.example/p{i}.html" for i in range(11)],
)


def test_edited_meta(bench: Bench) -> None:
    for key in (*bench.meta, "topics", "test"):
        for value in ANYTHING:
            bench.try_meta({**bench.meta, key: value})
        short = {name: value for name, value in bench.meta.items() if name != key}
        bench.try_meta(short)
    for table in TABLES:
        for value in ANYTHING:
            tables = {**bench.meta["tables"], table: value}
            assert bench.try_meta({**bench.meta, "tables": tables})
    for value in ANYTHING:
        assert bench.try_meta(value)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"format": 2}, "format 2 is not 1"),
        ({"roots": []}, "roots must list"),
        ({"roots": ["http://nowhere/"]}, "'http://nowhere/' is not among"),
        ({"roots": ["http://hír0.example/p0.html"] * 2}, "names a URL twice"),
        ({"name": "a/b"}, "not a plain name"),
        ({"begin": "2021-01-01", "end": "2020-01-01"}, "not a period"),
        ({"begin": "yesterday"}, "'yesterday' is not an ISO 8601 time"),
        ({"tables": {}}, "tables must give"),
    ],
)
def test_meta_errors(bench: Bench, changed: dict[str, Any], reason: str) -> None:
    assert reason in bench.try_meta({**bench.meta, **changed})


def test_meta_that_is_hard_on_a_parser(bench: Bench) -> None:
    good = bench.files[META]
    for content in (
        *(b"", b"{", b"null", b"\xff\xfe", b"\xef\xbb\xbf" + good, good * 2),
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b'{"format": 1, "roots": ' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        b'{"format": ' + b"9" * 100_000 + b"}",
    ):
        assert bench.try_meta(content)
    deep = good[:-3] + b', "x": ' + b"[" * 500 + b"]" * 500 + b"}"
    assert bench.try_meta(deep) == ""


# --- the way that users go


def test_broken_traces_by_load_trace(bench: Bench, cache: Path) -> None:
    """The cache of mapped arrays must not let anything through, or be misled."""
    assert bench.try_files({}, load_trace) == ""
    for seed in range(150):
        rng = np.random.default_rng(seed)
        name = FILES[rng.integers(len(FILES))]
        content = damaged(bench.files[name], rng)
        error = bench.try_files({name: content}, load_trace)
        assert error or name == META or content == bench.files[name]
    assert bench.try_files({}, load_trace) == ""
    shutil.rmtree(cache)


def test_enough_cases_are_planned() -> None:
    # Tests are spread over processes, so what was done cannot be counted in one.
    by_bytes = len(FILES) * 60 + len(TABLES) * 100
    by_values = len(COLUMNS) * 31  # at least, as test_bad_values asserts
    assert by_bytes + by_values >= 2_000
