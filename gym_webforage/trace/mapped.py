"""A trace as memory-mapped arrays: the form for running, derived from the tables.

The first load of a trace reads its tables, validates them and writes one ``.npy`` file
an array into the cache; later loads map those files in milliseconds, and all processes
share their pages. The folder's name is a checksum of ``meta.json`` (which holds those
of the tables), so another trace never gets the wrong arrays. Files are written beside
their place and moved there whole: two processes may do it at once. A file whose size
and times are not as they were is compared with its checksum before it is trusted.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa

from gym_webforage.cache import cache_folder
from gym_webforage.trace.errors import TraceError
from gym_webforage.trace.tables import (
    META,
    WRITTEN_KEYS,
    check_tables,
    read_meta,
    read_tables,
    replace_folder,
    sha256,
)
from gym_webforage.trace.trace import Trace, from_arrays, frozen

LAYOUT = 3  # of the mapped files; another number makes them anew
MANIFEST = "manifest.json"
DERIVED_ARRAYS = ("version_url", "url_ending", "url_directory", "idf", "text_norm")
DERIVED_NUMBERS = ("most_links", "mean_bytes", "state_bound", "directories", "digest")

_opened: WeakValueDictionary[str, Trace] = WeakValueDictionary()


def open_trace(folder: str | Path) -> Trace:
    """Load the trace in ``folder``, mapped where the cache can be written."""
    folder = Path(folder).resolve()
    meta, key = read_meta(folder)
    try:
        stamps = _stamps(folder / f"{name}.parquet" for name in meta["tables"])
    except OSError as error:
        raise TraceError(META, f"a table cannot be read: {error}") from error
    identity = f"{folder} {key} {stamps}"
    if (known := _opened.get(identity)) is not None:
        return known
    home = cache_folder("mapped")
    if home is None:
        trace = read_tables(folder, meta)
    else:
        name = f"{meta['name']}-{key[:20]}-{LAYOUT}"
        trace = _open_mapped(home / name, folder, meta, stamps)
    object.__setattr__(trace, "path", folder)
    _opened[identity] = trace
    return trace


def _stamps(files: Iterable[Path]) -> list[list[int]]:
    """Return size and times of files: if they are as before, so is the content."""
    found = [file.stat() for file in files]
    return [[one.st_size, one.st_mtime_ns, one.st_ctime_ns] for one in found]


def _open_mapped(
    mapped: Path, folder: Path, meta: Mapping[str, Any], stamps: list[list[int]]
) -> Trace:
    trace = _map(mapped, folder, meta, stamps)
    if trace is not None:
        return trace
    read = read_tables(folder, meta)
    reason = "it was changed meanwhile"
    try:
        _write(read, mapped, folder, meta, stamps)
    except OSError as error:  # the disk is full, or another process was first
        reason = str(error)
    for pause in (0, 0.01, 0.1):  # for the moment in which another one replaces it
        time.sleep(pause)
        trace = _map(mapped, folder, meta, stamps)
        if trace is not None:
            # Arrow would keep the memory of the tables for the process.
            del read
            pa.default_memory_pool().release_unused()
            return trace
    warnings.warn(
        f"{mapped} could not be written ({reason}), so this process keeps the trace "
        "in memory.",
        RuntimeWarning,
        stacklevel=2,
    )
    return read


def _verified_file(mapped: Path, folder: Path) -> Path:
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:20]
    return mapped / f"verified-{name}.json"


def _array_files(mapped: Path, names: Iterable[str]) -> list[Path]:
    return [mapped / f"{name}.npy" for name in names]


def _write_json(file: Path, value: Any) -> None:
    beside = file.with_name(f".{file.name}-{os.getpid()}")
    beside.write_text(json.dumps(value))
    os.replace(beside, file)


def _checksum(content: Any) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _write(
    trace: Trace,
    mapped: Path,
    folder: Path,
    meta: Mapping[str, Any],
    stamps: list[list[int]],
) -> None:
    _remove_leftovers(mapped.parent)
    made = Path(tempfile.mkdtemp(prefix=f".{mapped.name}-", dir=mapped.parent))
    try:
        arrays = trace.arrays()
        arrays.update((name, getattr(trace, name)) for name in DERIVED_ARRAYS)
        files = {}
        for name, array in arrays.items():
            file = made / f"{name}.npy"
            np.save(file, array, allow_pickle=False)
            files[name] = sha256(file)
        numbers = {name: getattr(trace, name) for name in DERIVED_NUMBERS}
        content = {"files": files, "numbers": numbers}
        manifest = {"content": content, "checksum": _checksum(content)}
        _write_json(made / MANIFEST, manifest)
        trusted = [_stamps(_array_files(made, files)), stamps]
        _write_json(_verified_file(made, folder), trusted)
        # What is there by now is of another process, unless it is still damaged.
        if _map(mapped, folder, meta, stamps) is None:
            replace_folder(made, mapped)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _remove_leftovers(home: Path) -> None:
    """Remove what processes that were killed left behind a day ago or earlier."""
    for folder in home.glob(".*"):
        with suppress(OSError):
            if folder.stat().st_mtime < time.time() - 86_400:
                shutil.rmtree(folder, ignore_errors=True)


def _map(
    mapped: Path, folder: Path, meta: Mapping[str, Any], stamps: list[list[int]]
) -> Trace | None:
    """Open the mapped form, or return None if it is missing or not to be trusted."""
    verified = _verified_file(mapped, folder)
    try:
        manifest = json.loads((mapped / MANIFEST).read_text())
        content = manifest["content"]
        if manifest["checksum"] != _checksum(content):
            return None
        names = content["files"]
        files = _array_files(mapped, names)
        found = [_stamps(files), stamps]
        is_verified = verified.is_file() and json.loads(verified.read_bytes()) == found
        if not is_verified and [sha256(file) for file in files] != [*names.values()]:
            return None
        arrays = {name: _map_array(mapped / f"{name}.npy") for name in names}
        kept = {key: meta[key] for key in meta if key not in WRITTEN_KEYS}
        trace = from_arrays(kept, arrays)
        # These are cached properties, so their values may be put in place.
        trace.__dict__.update({name: arrays[name] for name in DERIVED_ARRAYS})
        numbers = content["numbers"]
        trace.__dict__.update({name: numbers[name] for name in DERIVED_NUMBERS})
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if not is_verified:
        check_tables(folder, meta["tables"])
        with suppress(OSError):
            _write_json(verified, found)
    return trace


def _map_array(file: Path) -> np.ndarray:
    with file.open("rb") as stream:
        version = np.lib.format.read_magic(stream)
        reader = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = reader(stream)
        offset = stream.tell()
    if 0 in shape:  # an empty file cannot be mapped
        return frozen(np.zeros(shape, dtype))
    return np.memmap(file, dtype, "r", offset, shape).view(np.ndarray)
