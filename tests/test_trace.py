"""The trace in memory and as a folder of tables, and finding it by name."""

from __future__ import annotations

import copy
import errno
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gym_webforage.cache
from gym_webforage.cache import cache_folder, cache_path
from gym_webforage.trace import (
    Trace,
    TraceError,
    TraceNotFoundError,
    catalog,
    load_trace,
    save_trace,
    strings,
    trace_names,
)
from gym_webforage.trace.strings import Strings
from gym_webforage.trace.synthetic import Recipe
from gym_webforage.trace.tables import META, TABLES, read_tables
from gym_webforage.trace.trace import from_iso, to_iso
from tests.samples import TAGGED, crawl, sample_arrays, sample_trace
from tests.strategies import traces

COLUMNS = {
    "urls": ["url", "site", "target", "labels", "tokens"],
    "sites": ["site"],
    "labels": ["label"],
    "versions": "url seen published status bytes hash text state".split(),
    "links": ["version", "target", "text"],
    "link_texts": ["anchor", "near"],
    "page_texts": ["title", "body", "counts"],
    "vocabulary": ["token"],
}


def assert_same(one: Trace, other: Trace) -> None:
    arrays = other.arrays()
    for name, array in one.arrays().items():
        np.testing.assert_array_equal(array, arrays[name], err_msg=name)
        assert array.dtype == arrays[name].dtype
        assert array.shape == arrays[name].shape
    assert one.meta == other.meta
    assert one.digest == other.digest


# --- round trip


@settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
@given(trace=traces())
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, trace: Trace) -> None:
    folder = tmp_path_factory.mktemp("trace") / "it"
    assert save_trace(trace, folder) == folder
    assert_same(trace, read_tables(folder))


@settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    urls=st.lists(st.text(min_size=1), min_size=1, max_size=8, unique=True),
    sites=st.lists(st.text(), min_size=1, max_size=4, unique=True),
    labels=st.lists(st.text(), max_size=4, unique=True),
    words=st.lists(st.text(), max_size=4, unique=True),
    note=st.text(),
)
def test_round_trip_of_any_text(
    tmp_path_factory: pytest.TempPathFactory,
    urls: list[str],
    sites: list[str],
    labels: list[str],
    words: list[str],
    note: str,
) -> None:
    """URLs without versions, sites and labels without URLs, text in any script."""
    try:
        "".join([*urls, *sites, *labels, *words]).encode()
    except UnicodeEncodeError:
        with pytest.raises(TraceError, match="no text"):
            Trace.build(
                {"name": "it", "roots": urls[:1]},
                urls=urls,
                sites=sites,
                labels=labels,
                vocabulary=words,
            )
        return
    trace = Trace.build(
        {"name": "it", "roots": urls[-1:], "note": note},
        urls=urls,
        sites=sites,
        labels=labels,
        vocabulary=words,
        url_site=np.arange(len(urls)) % len(sites),
    )
    loaded = read_tables(save_trace(trace, tmp_path_factory.mktemp("trace") / "it"))
    assert_same(trace, loaded)
    assert (loaded.urls, loaded.sites, loaded.labels) == (urls, sites, labels)
    assert list(loaded.roots) == [len(urls) - 1]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"version_state": np.zeros((len(sample_arrays()["version_seen"]), 0))},
        {"url_label": [], "url_label_start": np.zeros(13, int), "labels": []},
        {"url_label": [], "url_label_start": np.zeros(13, int)},
        {"version_hash": [2**64 - 1] * len(sample_arrays()["version_seen"])},
        TAGGED,
    ],
)
def test_round_trip_of_the_sample(
    tmp_path: Path, cache: Path, changes: dict[str, Any]
) -> None:
    trace = sample_trace(**changes)
    folder = save_trace(trace, tmp_path / "sample-v0")
    for loaded in (read_tables(folder), load_trace(folder)):
        assert_same(trace, loaded)
    crawl(load_trace(folder))


def test_tag_paths_are_optional(tmp_path: Path, cache: Path) -> None:
    plain, tagged = sample_trace(), sample_trace(**TAGGED)
    assert plain.digest != tagged.digest
    assert not len(plain.tag_paths) and (plain.tag_path == -1).all()
    assert "tag paths" not in plain.counts and tagged.counts["tag paths"] == 3
    folder = save_trace(tagged, tmp_path / "sample-v0")
    table = pq.read_table(folder / "link_texts.parquet")
    assert table.column("path").to_pylist() == TAGGED["tag_path"]
    table = pq.read_table(folder / "tag_paths.parquet")
    assert table.column("path").to_pylist() == TAGGED["tag_paths"]
    with pytest.raises(TraceError, match=r"link_texts.*is 3, expected -1 to 2"):
        sample_trace(tag_paths=TAGGED["tag_paths"], tag_path=[0, 1, 2, 3, 0])
    with pytest.raises(TraceError, match="tag_path has 1 of 5 rows"):
        sample_trace(tag_paths=TAGGED["tag_paths"], tag_path=[0])


def test_one_url(tmp_path: Path, cache: Path) -> None:
    trace = Trace.build({"name": "one", "roots": ["http://a/"]}, urls=["http://a/"])
    loaded = load_trace(save_trace(trace, tmp_path / "one"))
    assert_same(trace, loaded)
    assert loaded.counts["urls"] == 1 and loaded.most_links == 0
    assert loaded.begin == loaded.end == 0
    crawl(loaded)


def test_tables_are_as_documented(tmp_path: Path) -> None:
    trace = sample_trace()
    folder = save_trace(trace, tmp_path / "sample-v0")
    assert {file.name for file in folder.iterdir()} == {
        META,
        *(f"{name}.parquet" for name in TABLES),
    }
    tables = {name: pq.read_table(folder / f"{name}.parquet") for name in TABLES}
    assert {name: table.column_names for name, table in tables.items()} == COLUMNS
    assert tables["urls"].column("url").to_pylist() == list(trace.urls)
    assert set(tables["urls"].column("site").to_pylist()) <= set(trace.sites)
    first = tables["urls"].column("labels").to_pylist()[0]
    ids = trace.url_label[: trace.url_label_start[1]]
    assert first == [trace.labels[i] for i in ids]
    seen = tables["versions"].schema.field("seen").type
    assert seen == pa.timestamp("ms", tz="UTC")
    state = tables["versions"].column("state").to_pylist()
    np.testing.assert_array_equal(np.array(state, np.float32), trace.version_state)
    meta = json.loads((folder / META).read_text())
    assert meta["counts"] == trace.counts and meta["format"] == 1
    assert meta["roots"] == trace.meta["roots"]


def test_tables_with_other_spellings_load(tmp_path: Path) -> None:
    """Another tool may write finer times, plain strings and large lists."""
    from gym_webforage.trace.tables import from_tables, to_tables

    trace = sample_trace()
    tables = to_tables(trace)
    urls, versions = tables["urls"], tables["versions"]
    site = urls.column("site").cast(pa.large_string())
    tokens = urls.column("tokens").cast(pa.large_list(pa.int32()))
    tables["urls"] = urls.set_column(1, "site", site).set_column(4, "tokens", tokens)
    seen = versions.column("seen").cast(pa.timestamp("ns"))
    tables["versions"] = versions.set_column(1, "seen", seen)
    assert_same(trace, from_tables(trace.meta, tables))
    chunked = {
        name: pa.concat_tables([table.slice(0, 1), table.slice(1)])
        for name, table in tables.items()
    }
    assert_same(trace, from_tables(trace.meta, chunked))


# --- all or nothing


def test_existing_folders_are_safe(tmp_path: Path) -> None:
    trace, folder = sample_trace(), tmp_path / "sample-v0"
    save_trace(trace, folder)
    with pytest.raises(FileExistsError, match="exists"):
        save_trace(trace, folder)
    other = trace.renamed("other-v0")
    save_trace(other, folder, overwrite=True)
    assert read_tables(folder).name == "other-v0"
    precious = tmp_path / "precious"
    precious.mkdir()
    save_trace(trace, precious, overwrite=True)  # empty: nothing is lost
    (precious / META).unlink()
    with pytest.raises(FileExistsError, match="no trace folder"):
        save_trace(trace, precious, overwrite=True)
    with pytest.raises(FileExistsError):
        save_trace(trace, precious / "urls.parquet", overwrite=True)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["precious", "sample-v0"]


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("failing", ["write_table", "sha256", "dumps", "replace"])
def test_failed_writing_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overwrite: bool, failing: str
) -> None:
    from gym_webforage.trace import tables

    folder = tmp_path / "sample-v0"
    if overwrite:
        save_trace(sample_trace(), folder)
    owner = {"write_table": pq, "dumps": json, "replace": os}.get(failing, tables)
    real, calls = getattr(owner, failing), []

    def fail(*args: Any, **options: Any) -> Any:
        calls.append(args)
        # In the middle: at the third table; or when the old folder has moved aside.
        if len(calls) == {"dumps": 1, "replace": 1 + overwrite}.get(failing, 3):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*args, **options)

    monkeypatch.setattr(owner, failing, fail)
    with pytest.raises(OSError, match="No space"):
        save_trace(sample_trace().renamed("other-v0"), folder, overwrite=overwrite)
    monkeypatch.undo()
    assert [file.name for file in tmp_path.iterdir()] == ["sample-v0"] * overwrite
    if overwrite:
        assert read_tables(folder).name == "sample-v0"


def test_killed_writer_leaves_nothing_half(tmp_path: Path) -> None:
    """Whenever it is killed, the folder is whole or absent."""
    code = """
        import sys, time
        from tests.samples import sample_trace
        from gym_webforage.trace import tables
        real = tables.sha256
        tables.sha256 = lambda file: (print(file.name, flush=True), time.sleep(0.02),
                                      real(file))[2]
        tables.save_trace(sample_trace(), sys.argv[1], overwrite=True)
        print("done", flush=True)
        time.sleep(60)
    """
    for files in (1, 4, 8):
        folder = tmp_path / "sample-v0"
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), str(folder)],
            cwd=Path(__file__).parents[1],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout
        for _ in range(files):
            process.stdout.readline()
        if files == len(TABLES):
            time.sleep(0.02 + 0.002)  # about when the folder is moved
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        if files < len(TABLES):
            assert not folder.exists()
        elif folder.exists():
            assert_same(read_tables(folder), sample_trace())


# --- building


@pytest.mark.parametrize(
    ("name", "bad", "reason"),
    [
        ("link_target", [2**32], "link_target is 4294967296, expected -2147483648"),
        ("link_target", [0.5], "link_target is float64, expected int32"),
        ("link_target", ["0"], "expected int32"),
        ("link_target", [None], "link_target is object"),
        ("link_target", 0, "a single value"),
        ("link_target", [[1], [2, 3]], "not an array"),
        ("version_hash", [-1], "version_hash is not an array"),
        ("version_hash", [2**64], "version_hash is not an array"),
        ("version_hash", [1.5], "version_hash is not an array"),
        ("version_status", [40_000], "version_status is 40000"),
        ("url_target", [2], "url_target is 2, expected 0 to 1"),
        ("version_state", [[1e39]], "not finite"),
        ("version_seen", [2**62], "version_seen is"),
        ("version_seen", np.array([2**63], np.uint64), "version_seen is"),
        ("anchor_start", [], "0 offsets"),
    ],
)
def test_nothing_wraps_or_is_rounded(name: str, bad: Any, reason: str) -> None:
    good: dict[str, Any] = {
        "version_start": [0, 1],
        "version_seen": [5],
        "link_start": [0, 1],
        "link_target": [0],
    }
    meta = {"name": "it", "roots": ["http://a/"]}
    Trace.build(meta, urls=["http://a/"], **good)
    with pytest.raises(TraceError, match=reason):
        Trace.build(meta, urls=["http://a/"], **{**good, name: bad})


def test_arrays_cannot_be_changed_later() -> None:
    arrays = sample_arrays()
    base = np.zeros(100, np.int32)
    base[:12] = arrays["url_site"]
    trace = sample_trace(**{**arrays, "url_site": base[:12]})
    for array in trace.arrays().values():
        assert not array.flags.writeable
    base[:] = 1_000_000
    assert trace.url_site.max() < 3
    wrong = Strings(np.zeros(3, np.uint8), np.array([0, 2, 1, 3]))
    with pytest.raises(TraceError, match="falls"):
        Trace.build({"name": "it", "roots": ["\0\0"]}, urls=wrong)


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="no array colour"):
        sample_trace(colour=[1])
    with pytest.raises(TraceError, match="plain name"):
        sample_trace().renamed("a/b")
    with pytest.raises(TraceError, match="urls: holds something that is no text"):
        sample_trace(urls=[1, 2])
    with pytest.raises(TraceError, match="page_texts, row 0: body has 3 twice"):
        sample_trace(
            version_text=np.full(len(sample_arrays()["version_seen"]), -1),
            body_start=[0, 3],
            body_token=[3, 1, 3],
            body_count=[1, 1, 1],
            title_start=[0, 0],
            title_token=[],
        )


def test_errors_travel() -> None:
    error = pickle.loads(pickle.dumps(TraceError("links", "is bad", 3)))
    assert (error.table, error.reason, error.row) == ("links", "is bad", 3)
    assert str(error) == "links, row 3: is bad" and isinstance(error, ValueError)
    assert isinstance(pickle.loads(pickle.dumps(TraceNotFoundError("x"))), OSError)


def test_pickle_and_copy_in_memory() -> None:
    trace = sample_trace()
    again = pickle.loads(pickle.dumps(trace))
    assert_same(trace, again)
    assert not again.url_site.flags.writeable
    crawl(again, steps=5)
    assert copy.copy(trace) is trace and copy.deepcopy([trace])[0] is trace


@given(st.integers(0, 253_402_300_799_999))
def test_times(time: int) -> None:
    assert from_iso(to_iso(time)) == time


def test_times_with_zones() -> None:
    assert from_iso("1970-01-01T01:00:00.5+01:00") == 500
    assert from_iso("0001-01-01T00:00:00+23:59") < 0
    for text in ("", "x", None, 5):
        with pytest.raises(TraceError, match="ISO 8601"):
            from_iso(text)  # type: ignore[arg-type]


# --- strings


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_strings_are_a_sequence(texts: list[str]) -> None:
    packed = Strings.of(texts)
    assert list(packed) == texts == packed[:] == packed.to_arrow().to_pylist()
    assert packed == texts and len(packed) == len(texts)
    assert [packed[i - len(texts)] for i in range(len(texts))] == texts
    for text in texts:
        assert text in packed and packed[packed.find(text)] == text
    assert packed.find("\ud800") == -1 and 7 not in packed
    with pytest.raises(IndexError):
        packed[len(texts)]


def test_large_columns_are_searched_without_an_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(strings, "LARGE", 2)
    packed = Strings.of(["one", "two", "drei", "négy", ""])
    assert [packed.find(text) for text in packed] == [0, 1, 2, 3, 4]
    assert packed.find("six") == packed.find("fünfzig") == -1
    assert packed.find_all(["two", "", "six"]) == {"two": 1, "": 4}
    assert packed._index is None
    with pytest.raises(ValueError, match="not in the column"):
        packed.index("six")


# --- finding traces


def test_names(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    save_trace(sample_trace(), second / "sample-v0")
    save_trace(sample_trace(), second / ".hidden-v0")
    path = os.pathsep.join(["", str(first), "~nobody/x", str(second)])
    monkeypatch.setenv(catalog.ENVIRONMENT_VARIABLE, path)
    assert load_trace("sample-v0").path == second / "sample-v0"
    assert "sample-v0" in trace_names() and "synthetic-v0" in trace_names()
    assert ".hidden-v0" not in trace_names()
    monkeypatch.chdir(second)
    monkeypatch.delenv(catalog.ENVIRONMENT_VARIABLE)
    assert load_trace("sample-v0").path == second / "sample-v0"
    assert load_trace("./sample-v0") is load_trace(second / "sample-v0")
    trace = sample_trace()
    assert load_trace(trace) is trace


@pytest.mark.parametrize(
    "wrong", ["nonsense", "no/such", Path("nowhere"), "", "a\0b", "x" * 5_000, "~q/x"]
)
def test_unknown_traces(wrong: str | Path) -> None:
    with pytest.raises(TraceNotFoundError, match="synthetic-small-v0, "):
        load_trace(wrong)


@pytest.mark.parametrize("wrong", [None, 7, b"synthetic-v0", ["synthetic-v0"]])
def test_wrong_types(wrong: Any) -> None:
    with pytest.raises(TypeError, match=f"not {type(wrong).__name__}"):
        load_trace(wrong)


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace the embedded traces by a sample that counts how often it is made."""
    made = []

    def generate(recipe: Recipe, name: str) -> Trace:
        made.append(name)
        return sample_trace().renamed(name)

    monkeypatch.setattr(catalog, "EMBEDDED", {"made-v0": Recipe()})
    monkeypatch.setattr(catalog, "generate", generate)
    return made


def test_embedded_traces_are_made_once(cache: Path, embedded: list[str]) -> None:
    trace = load_trace("made-v0")
    assert load_trace("made-v0").digest == sample_trace().digest
    assert embedded == ["made-v0"]
    assert trace.path
    table = trace.path / "links.parquet"
    table.write_bytes(table.read_bytes()[:-1])
    assert_same(load_trace("made-v0"), trace)
    assert embedded == ["made-v0"] * 2
    (trace.path / META).unlink()  # as a deletion that was broken off leaves it
    assert_same(load_trace("made-v0"), trace)


def test_embedded_traces_without_a_cache(
    tmp_path: Path, embedded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(gym_webforage.cache.ENVIRONMENT_VARIABLE, f"{tmp_path}/file/x")
    with pytest.warns(RuntimeWarning, match="cannot be written") as warned:
        assert load_trace("made-v0").digest == sample_trace().digest
    assert len(warned) == 1


# --- the cache folder


def test_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variable = gym_webforage.cache.ENVIRONMENT_VARIABLE
    monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_path().name == "gym_webforage"
    if sys.platform == "linux":
        assert cache_path() == tmp_path / "gym_webforage"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(variable, "~/mine")
    if os.name == "posix":
        assert cache_path() == tmp_path / "mine"
    assert not cache_path().exists()
    folder = cache_folder("part")
    assert folder == cache_path() / "part" and folder.is_dir()
    assert not list(folder.iterdir())


@pytest.mark.parametrize("how", ["below a file", "read-only"])
def test_unwritable_cache_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    target = tmp_path / "cache"
    monkeypatch.setenv(gym_webforage.cache.ENVIRONMENT_VARIABLE, str(target))
    if how == "below a file":
        target.touch()
    else:

        def refuse(**options: Any) -> None:
            raise OSError(errno.EROFS, "Read-only file system")

        monkeypatch.setattr(gym_webforage.cache.tempfile, "TemporaryFile", refuse)
    with pytest.warns(RuntimeWarning, match="Set \\$GYM_WEBFORAGE_CACHE") as warned:
        assert cache_folder("part") is None
    assert len(warned) == 1
