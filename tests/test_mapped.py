"""The mapped form: fast, shared, never trusted blindly and never in the way."""

from __future__ import annotations

import errno
import gc
import json
import mmap
import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from gym_webforage.cache import ENVIRONMENT_VARIABLE
from gym_webforage.trace import Trace, TraceError, load_trace, mapped, save_trace
from gym_webforage.trace.mapped import DERIVED_ARRAYS, DERIVED_NUMBERS, MANIFEST
from gym_webforage.trace.tables import META
from tests.samples import crawl, sample_trace
from tests.test_trace import assert_same

ROOT = Path(__file__).parents[1]


@pytest.fixture
def folder(tmp_path: Path, cache: Path) -> Path:
    return save_trace(sample_trace(), tmp_path / "sample-v0")


def load_anew(folder: Path) -> Trace:
    """Load as a new process would."""
    mapped._opened.clear()
    return load_trace(folder)


def form_of(cache: Path) -> Path:
    (only,) = (cache / "mapped").iterdir()
    return only


def is_mapped(array: np.ndarray) -> bool:
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return isinstance(owner, mmap.mmap) or not array.size


def assert_good(trace: Trace) -> None:
    """The trace is the sample, with right derived values, and mapped."""
    expected = sample_trace()
    assert_same(trace, expected)
    for name in DERIVED_ARRAYS:
        np.testing.assert_array_equal(getattr(trace, name), getattr(expected, name))
    for name in DERIVED_NUMBERS:
        assert getattr(trace, name) == getattr(expected, name)
    for name, array in trace.arrays().items():
        assert is_mapped(array), name
        assert not array.flags.writeable


def test_second_load_reads_no_table(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_good(load_trace(folder))

    def fail(*args: Any, **options: Any) -> None:
        raise AssertionError("a table was read")

    monkeypatch.setattr(pq, "read_table", fail)
    monkeypatch.setattr(pq, "ParquetFile", fail)
    monkeypatch.setattr(mapped, "sha256", fail)
    monkeypatch.setattr(mapped, "check_tables", fail)
    trace = load_anew(folder)
    assert_good(trace)
    crawl(trace)
    assert [file.name for file in (cache / "mapped").iterdir()] == [form_of(cache).name]


def test_open_traces_are_shared_and_let_go(folder: Path) -> None:
    trace = load_trace(folder)
    assert load_trace(str(folder)) is trace
    identity = id(trace.arrays())
    del trace
    gc.collect()
    assert not mapped._opened and identity
    assert_good(load_trace(folder))


def test_loaded_traces_travel_by_path(folder: Path) -> None:
    trace = load_trace(folder)
    message = pickle.dumps(trace)
    assert len(message) < 1_000
    assert pickle.loads(message) is trace
    again = trace.renamed("again-v0")
    assert again.path is None and again.digest == trace.digest
    assert pickle.loads(pickle.dumps(again)).digest == trace.digest


# --- damage


def damages(content: bytes) -> list[bytes]:
    header = content.index(b"\n") + 1
    flipped = []
    for at in {0, 7, 20, header, len(content) // 2, len(content) - 1}:
        changed = bytearray(content)
        if at < len(content):
            changed[at] ^= 1
        flipped.append(bytes(changed))
    other = content.replace(b"'<i", b"'>i").replace(b"(", b"[", 1)
    return [*flipped, content[:-1], content[:header], b"", content + b"\0", other]


@pytest.mark.parametrize("when", ["later", "at the same time"])
def test_damaged_arrays_are_made_again(folder: Path, cache: Path, when: str) -> None:
    load_trace(folder)
    names = sorted(file.name for file in form_of(cache).glob("*.npy"))
    for number, name in enumerate(names):
        contents = damages((form_of(cache) / name).read_bytes())
        for content in (contents[number % len(contents)], contents[-4]):
            file = form_of(cache) / name
            before = file.stat()
            file.write_bytes(content)
            if when == "at the same time":  # as a careless tool could do
                os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
            assert_good(load_anew(folder))
    assert len(list((cache / "mapped").iterdir())) == 1


def test_lost_files_are_made_again(folder: Path, cache: Path) -> None:
    load_trace(folder)
    for file in sorted(form_of(cache).iterdir()):
        if file.is_file():
            file.unlink()
        assert_good(load_anew(folder))
    for file in sorted(form_of(cache).iterdir()):
        if file.suffix == ".npy":
            (form_of(cache) / file.name).unlink()
            (form_of(cache) / file.name).mkdir()
            assert_good(load_anew(folder))
    shutil.rmtree(cache)
    assert_good(load_anew(folder))


def test_damaged_manifests_are_made_again(folder: Path, cache: Path) -> None:
    """A wrong number there would be as bad as a wrong array."""
    load_trace(folder)
    good = json.loads((form_of(cache) / MANIFEST).read_text())
    for number in DERIVED_NUMBERS:
        changed = json.loads(json.dumps(good))
        changed["content"]["numbers"][number] = 0
        (form_of(cache) / MANIFEST).write_text(json.dumps(changed))
        assert_good(load_anew(folder))
    text = (form_of(cache) / MANIFEST).read_text()
    verified = next(form_of(cache).glob("verified-*")).name
    for content in (
        "",
        "{",
        "[]",
        "null",
        "1",
        '{"content": 1}',
        "[" * 100_000,
        text[9:],
    ):
        (form_of(cache) / MANIFEST).write_text(content)
        assert_good(load_anew(folder))
        (form_of(cache) / verified).write_text(content)
        assert_good(load_anew(folder))
    for seed in range(40):
        rng = np.random.default_rng(seed)
        changed = bytearray(text.encode())
        changed[rng.integers(len(changed))] ^= 1 << rng.integers(7)
        (form_of(cache) / MANIFEST).write_bytes(changed)
        assert_good(load_anew(folder))


# --- stale forms


def test_changed_tables_are_refused(folder: Path) -> None:
    load_trace(folder)
    for file in sorted(folder.glob("*.parquet")):
        content = file.read_bytes()
        before = file.stat()
        for changed in (content[:-1] + b"x", content + b"x", b""):
            file.write_bytes(changed)
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
            with pytest.raises(TraceError, match=f"{file.stem}: the checksum"):
                load_trace(folder)
        file.unlink()
        with pytest.raises(TraceError, match="cannot be read"):
            load_trace(folder)
        file.write_bytes(content)
        assert_good(load_trace(folder))


def test_changed_meta_is_read(folder: Path, cache: Path) -> None:
    old = load_trace(folder)
    meta = json.loads((folder / META).read_text())
    meta["title"], meta["roots"] = "New", meta["roots"][::-1]
    (folder / META).write_text(json.dumps(meta))
    new = load_trace(folder)
    assert new.meta["title"] == "New" and list(new.roots) == [1, 0]
    assert list(old.roots) == [0, 1]
    meta["roots"] = ["http://nowhere/"]
    (folder / META).write_text(json.dumps(meta))
    for _ in range(2):
        with pytest.raises(TraceError, match="not among the URLs"):
            load_trace(folder)


def test_overwritten_traces_are_read(folder: Path) -> None:
    old = load_trace(folder)
    other = sample_trace(url_target=np.ones(12, bool))
    save_trace(other, folder, overwrite=True)
    new = load_trace(folder)
    assert new.url_target.all() and not old.url_target.all()
    assert new.digest == other.digest != old.digest


def test_moved_and_copied_traces_share_the_form(
    folder: Path, cache: Path, tmp_path: Path
) -> None:
    load_trace(folder)
    again = shutil.copytree(folder, tmp_path / "copy")
    assert_good(load_trace(again))
    form_of(cache)
    table = again / "links.parquet"
    table.write_bytes(table.read_bytes()[:-1])
    with pytest.raises(TraceError, match="links: the checksum"):
        load_trace(again)
    assert_good(load_anew(folder))


def test_leftovers_are_removed(folder: Path, cache: Path) -> None:
    for name, age in ((".killed-x", 100_000), (".at-work-y", 0)):
        made = cache / "mapped" / name
        made.mkdir(parents=True)
        os.utime(made, (time.time() - age,) * 2)
    load_trace(folder)
    left = {file.name for file in (cache / "mapped").glob(".*")}
    assert left == {".at-work-y"}


# --- where nothing can be written


def test_without_a_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(folder / META / "cache"))
    with pytest.warns(RuntimeWarning, match="in memory") as warned:
        trace = load_trace(folder)
    assert len(warned) == 1
    assert_same(trace, sample_trace())
    assert trace.path == folder
    assert load_trace(folder) is trace and pickle.loads(pickle.dumps(trace)) is trace
    crawl(trace, steps=5)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
@pytest.mark.parametrize("failing", ["save", "mkdtemp", "replace"])
def test_full_disk(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, code: int, failing: str
) -> None:
    owner: Any = {"save": np, "mkdtemp": mapped.tempfile, "replace": os}[failing]
    real, calls = getattr(owner, failing), []

    def fail(*args: Any, **options: Any) -> Any:
        calls.append(args)
        if failing == "save" and len(calls) < 9:
            return real(*args, **options)
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(owner, failing, fail)
    with pytest.warns(RuntimeWarning, match=os.strerror(code)) as warned:
        trace = load_trace(folder)
    assert len(warned) == 1
    assert_same(trace, sample_trace())
    assert not list((cache / "mapped").iterdir())
    monkeypatch.undo()
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(cache))
    assert_good(load_anew(folder))


def test_nothing_is_written_beside_the_trace_or_the_code(
    folder: Path, tmp_path: Path
) -> None:
    """So both may stand on a disk that is read-only."""
    package = ROOT / "gym_webforage"

    def listing(place: Path) -> set[Path]:
        return {file for file in place.rglob("*") if "__pycache__" not in file.parts}

    before = listing(package), listing(folder)
    code = """
        import sys, warnings
        from gym_webforage.trace import load_trace
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            print(load_trace(sys.argv[1]).digest, len(caught))
    """
    (tmp_path / "file").touch()
    done = subprocess.run(
        [sys.executable, "-B", "-c", textwrap.dedent(code), str(folder)],
        cwd=ROOT,
        env={**os.environ, ENVIRONMENT_VARIABLE: str(tmp_path / "file" / "x")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [sample_trace().digest, "1"]
    assert (listing(package), listing(folder)) == before


# --- several processes


def load_at(moment: float, folders: list[str], results: Any) -> None:
    """Load each trace at the same moment as the other processes do."""
    import warnings

    warnings.simplefilter("error")
    answers = []
    try:
        for number, folder in enumerate(folders):
            time.sleep(max(0.0, moment + 0.3 * number - time.time()))
            trace = load_trace(folder)
            assert all(is_mapped(array) for array in trace.arrays().values())
            answers.append((trace.digest, float(trace.idf.sum()), trace.most_links))
    except BaseException as error:
        answers.append(repr(error))
    results.put(answers)


@pytest.mark.parametrize("is_damaged", [False, True])
def test_processes_at_once(tmp_path: Path, cache: Path, is_damaged: bool) -> None:
    folders = [
        str(save_trace(sample_trace().renamed(f"it-{i}"), tmp_path / f"it-{i}"))
        for i in range(6)
    ]
    if is_damaged:
        for folder in folders:
            load_trace(folder)
        for file in (cache / "mapped").glob("*/link_target.npy"):
            file.write_bytes(file.read_bytes()[:-4])
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    moment = time.time() + 4
    workers = [
        context.Process(target=load_at, args=(moment, folders, results))
        for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    found = [results.get(timeout=100) for _ in workers]
    for worker in workers:
        worker.join(100)
    trace = sample_trace()
    expected = (trace.digest, float(trace.idf.sum()), trace.most_links)
    assert found == [[expected] * len(folders)] * len(workers)
    assert len(list((cache / "mapped").iterdir())) == len(folders)
