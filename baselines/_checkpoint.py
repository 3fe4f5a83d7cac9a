"""Nested dicts and lists of arrays and plain values, as one file without pickle.

The file is an ``.npz``: its arrays, and beside them a JSON text with everything else
and the arrays' places. It is written beside the old one and then put in its place, so
that whenever the process is killed there is a whole file, the old or the new one.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

_PLACE = "__array__"
_TEXT = "tree"


def write(file: Path, tree: Any) -> None:
    """Write a tree, in place of what the file was."""
    arrays: list[np.ndarray] = []
    text = json.dumps(_take_out(tree, arrays))
    columns = {str(place): array for place, array in enumerate(arrays)}
    columns[_TEXT] = np.frombuffer(text.encode(), np.uint8)
    file.parent.mkdir(parents=True, exist_ok=True)
    with _beside(file).open("wb") as stream:
        np.savez(stream, allow_pickle=False, **columns)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(_beside(file), file)


def read(file: Path) -> Any:
    """Return the tree in a file, tuples as lists."""
    with np.load(file, allow_pickle=False) as columns:
        tree = json.loads(columns[_TEXT].tobytes())
        return _put_back(tree, columns)


def remove(file: Path) -> None:
    """Remove a file, and what a kill may have left beside it."""
    file.unlink(missing_ok=True)
    _beside(file).unlink(missing_ok=True)


def _beside(file: Path) -> Path:
    return file.with_name(f".{file.name}.new")


def _take_out(tree: Any, arrays: list[np.ndarray]) -> Any:
    if isinstance(tree, np.ndarray):
        if tree.dtype.hasobject:
            raise TypeError("an array of objects cannot be kept")
        arrays.append(tree)
        return {_PLACE: len(arrays) - 1}
    if isinstance(tree, np.generic):
        return tree.item()
    if isinstance(tree, dict):
        if not all(isinstance(key, str) for key in tree) or _PLACE in tree:
            raise TypeError(f"keys are {list(tree)}, expected text")
        return {key: _take_out(value, arrays) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_take_out(value, arrays) for value in tree]
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    raise TypeError(f"a {type(tree).__name__} cannot be kept")


def _put_back(tree: Any, columns: Any) -> Any:
    if isinstance(tree, list):
        return [_put_back(value, columns) for value in tree]
    if isinstance(tree, dict):
        if _PLACE in tree:
            return columns[str(tree[_PLACE])]
        return {key: _put_back(value, columns) for key, value in tree.items()}
    return tree
