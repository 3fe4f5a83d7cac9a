"""A trace as memory-mapped arrays: the form for running, derived from the tables.

The first load of a trace reads its tables, validates them and writes one ``.npy`` file
an array into the cache; later loads map those files in milliseconds, and all processes
share their pages. The folder's name is a checksum of ``meta.json`` (which holds those
of the tables), so another trace never gets the wrong arrays. Files are written beside
their place and moved there whole: two processes may do it at once.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from gym_webforage.cache import cache_folder
from gym_webforage.trace.errors import TraceError
from gym_webforage.trace.tables import (
    META,
    TABLES,
    check_tables,
    read_meta,
    read_tables,
    sha256,
)
from gym_webforage.trace.trace import Trace, from_arrays, frozen

LAYOUT = 1  # of the mapped files; another number makes them anew
MANIFEST = "manifest.json"
DERIVED_ARRAYS = ("version_url", "url_ending", "idf", "text_norm")
DERIVED_NUMBERS = ("most_links", "mean_bytes", "state_bound", "digest")

_opened: WeakValueDictionary[str, Trace] = WeakValueDictionary()


def open_trace(folder: str | Path) -> Trace:
    """Load the trace in ``folder``, mapped where the cache can be written."""
    folder = Path(folder).resolve()
    meta = read_meta(folder)
    key = hashlib.sha256((folder / META).read_bytes()).hexdigest()[:20]
    home = cache_folder("mapped")
    if home is None:
        return _placed(read_tables(folder), folder)
    mapped = home / f"{meta['name']}-{key}-{LAYOUT}"
    stamp = f"{mapped} {folder} {_stamps(folder)}"
    if (known := _opened.get(stamp)) is not None:
        return known
    trace = _map(mapped, folder, meta)
    if trace is None:
        _write(read_tables(folder), mapped, folder)
        trace = _map(mapped, folder, meta)
    if trace is None:  # another process removed it, or the disk is full
        return _placed(read_tables(folder), folder)
    _opened[stamp] = trace
    return trace


def _stamps(folder: Path) -> list[list[int]]:
    """Return size and time of each table: if they are as before, so is the table."""
    stamps = []
    for name in TABLES:
        try:
            found = (folder / f"{name}.parquet").stat()
        except OSError as error:
            raise TraceError(name, f"cannot be read: {error}") from error
        stamps.append([found.st_size, found.st_mtime_ns])
    return stamps


def _placed(trace: Trace, folder: Path) -> Trace:
    object.__setattr__(trace, "path", folder)
    return trace


def _verified_file(mapped: Path, folder: Path) -> Path:
    name = hashlib.sha256(str(folder).encode()).hexdigest()[:20]
    return mapped / f"verified-{name}.json"


def _write_json(file: Path, value: Any) -> None:
    beside = file.with_name(f".{file.name}-{os.getpid()}")
    beside.write_text(json.dumps(value))
    os.replace(beside, file)


def _write(trace: Trace, mapped: Path, folder: Path) -> None:
    made = Path(tempfile.mkdtemp(prefix=f".{mapped.name}-", dir=mapped.parent))
    try:
        arrays = trace.arrays()
        arrays.update((name, getattr(trace, name)) for name in DERIVED_ARRAYS)
        files = {}
        for name, array in arrays.items():
            file = made / f"{name}.npy"
            np.save(file, array, allow_pickle=False)
            found = file.stat()
            files[name] = [found.st_size, found.st_mtime_ns, sha256(file)]
        numbers = {name: getattr(trace, name) for name in DERIVED_NUMBERS}
        _write_json(_verified_file(made, folder), _stamps(folder))
        _write_json(made / MANIFEST, {"files": files, "numbers": numbers})
        if mapped.exists():  # stale or damaged: _map just refused it
            shutil.rmtree(mapped, ignore_errors=True)
        os.replace(made, mapped)
    except OSError:
        # Another process was first, or the disk is full: the caller looks again.
        shutil.rmtree(made, ignore_errors=True)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise


def _map(mapped: Path, folder: Path, meta: dict[str, Any]) -> Trace | None:
    """Open the mapped form, or return None if it is missing or not to be trusted."""
    try:
        manifest = json.loads((mapped / MANIFEST).read_text())
        files, numbers = manifest["files"], manifest["numbers"]
        for name, (size, time, checksum) in files.items():
            file = mapped / f"{name}.npy"
            found = file.stat()
            if found.st_size != size or (
                found.st_mtime_ns != time and sha256(file) != checksum
            ):
                return None
        arrays = {name: _map_array(mapped / f"{name}.npy") for name in files}
        trace = from_arrays(meta, arrays, folder)
        # These are cached properties, so their values may be put in place.
        trace.__dict__.update({name: arrays[name] for name in DERIVED_ARRAYS})
        trace.__dict__.update({name: numbers[name] for name in DERIVED_NUMBERS})
    except (OSError, ValueError, KeyError, TypeError):
        return None
    _verify_source(mapped, folder, meta)
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


def _verify_source(mapped: Path, folder: Path, meta: dict[str, Any]) -> None:
    """Check the tables' checksums unless this very folder was checked before."""
    stamps = _stamps(folder)
    verified = _verified_file(mapped, folder)
    with suppress(OSError, ValueError):
        if json.loads(verified.read_text()) == stamps:
            return
    check_tables(folder, meta["tables"])
    with suppress(OSError):
        _write_json(verified, stamps)
