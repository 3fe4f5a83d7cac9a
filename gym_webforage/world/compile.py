"""Compiling kernels with Numba, once per machine.

Numba's own cache looks only at the file that a function stands in, and so would keep
code compiled for an older layout of the arrays. Here the compiled code lives in the
cache folder under a checksum of all files of this package: any change recompiles.
Where that folder cannot be written, the kernels are compiled anew in each process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import types
from numba.extending import intrinsic

from gym_webforage.cache import cache_path, writable


@cache
def _code_folder() -> Path | None:
    total = hashlib.sha256(numba.__version__.encode())
    for file in sorted(Path(__file__).parent.glob("*.py")):
        total.update(file.read_bytes())
    folder = cache_path() / "kernels" / total.hexdigest()[:20]
    return folder if writable(folder) else None


def compiled(function: Callable[..., Any]) -> Any:
    """Compile ``function`` on first call, without the interpreter lock."""
    folder = _code_folder()
    if folder is not None:
        before = numba.config.CACHE_DIR  # type: ignore[attr-defined]
        numba.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
        try:
            return numba.njit(cache=True, nogil=True)(function)
        except RuntimeError:  # no place to cache: compile in memory
            pass
        finally:
            numba.config.CACHE_DIR = before  # type: ignore[attr-defined]
    return numba.njit(nogil=True)(function)


def _pointer_to(element: types.Type) -> Any:
    """Make a compiled function from an address to a typed, indexable pointer.

    A kernel gets one array of addresses in place of forty arrays, whose unpacking
    would cost more than the step itself. Bounds are the caller's duty: `World` sizes
    the arrays, and `validate` has checked every id in a trace.
    """
    pointer = types.CPointer(element)

    def cast(typing_context: Any, address: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(pointer))

        return pointer(types.int64), build

    return intrinsic(cast)


u8 = _pointer_to(types.uint8)
i16 = _pointer_to(types.int16)
i32 = _pointer_to(types.int32)
i64 = _pointer_to(types.int64)
f32 = _pointer_to(types.float32)
f64 = _pointer_to(types.float64)
