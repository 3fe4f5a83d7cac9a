"""Finding a trace by name or path.

A name is looked up in the folders of ``$GYM_WEBFORAGE_TRACES`` (separated like
``$PATH``), in ``traces/`` of the working folder and of this checkout, and among the
embedded synthetic traces, which are generated on first use and kept in the cache.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from gym_webforage.cache import cache_folder
from gym_webforage.trace.errors import TraceError, TraceNotFoundError
from gym_webforage.trace.mapped import open_trace
from gym_webforage.trace.synthetic import EMBEDDED, REWIRED, generate
from gym_webforage.trace.tables import META, save_trace
from gym_webforage.trace.trace import Trace

ENVIRONMENT_VARIABLE = "GYM_WEBFORAGE_TRACES"


def load_trace(trace: str | Path | Trace) -> Trace:
    """Load a trace by path or name; a ``Trace`` is returned as it is.

    Raises TraceNotFoundError, which lists the names that exist, or TraceError if the
    files are broken.
    """
    if isinstance(trace, Trace):
        return trace
    if not isinstance(trace, str | Path):
        raise TypeError(
            f"trace must be a name, a path or a Trace, not {type(trace).__name__}"
        )
    if os.sep in str(trace) or isinstance(trace, Path):
        path = Path(os.path.expanduser(trace))
        if _holds_trace(path):
            return open_trace(path)
        reason = "holds no meta.json" if os.path.isdir(path) else "does not exist"
        raise TraceNotFoundError(f"{path} {reason}. {_known()}")
    for folder in _folders() if trace else ():
        if _holds_trace(folder / trace):
            return open_trace(folder / trace)
    if trace in EMBEDDED or trace in REWIRED:
        return _embedded(trace)
    if trace and _holds_trace(Path(trace)):
        return open_trace(trace)
    raise TraceNotFoundError(f"There is no trace {trace!r}. {_known()}")


def _holds_trace(folder: Path) -> bool:
    # Unlike the one of Path, this one takes any text for an answer.
    return os.path.isfile(folder / META)


def reopen(path: str, name: str, digest: str) -> Trace:
    """Load a trace that a pickle refers to, if it is still the same one.

    An embedded trace is found by its name as well, on another machine or after the
    cache was emptied.
    """
    places: list[str | Path] = [Path(path)] if (Path(path) / META).is_file() else []
    if name in EMBEDDED or name in REWIRED:
        places.append(name)
    for place in places:
        trace = load_trace(place)
        if trace.digest == digest:
            return trace
    if not places:
        raise TraceNotFoundError(f"{path} does not exist any more. {_known()}")
    raise TraceError(META, f"{path} was replaced: the trace is not the one it was")


def trace_names() -> list[str]:
    """Return the names that ``load_trace`` finds, sorted."""
    found = {*EMBEDDED, *REWIRED}
    for folder in _folders():
        found.update(file.parent.name for file in folder.glob(f"[!.]*/{META}"))
    return sorted(found)


def _known() -> str:
    return (
        f"Known traces: {', '.join(trace_names())}. A path to a trace folder works as "
        f"well, and ${ENVIRONMENT_VARIABLE} names folders to search."
    )


def _folders() -> Iterator[Path]:
    for folder in os.environ.get(ENVIRONMENT_VARIABLE, "").split(os.pathsep):
        if folder:
            yield Path(os.path.expanduser(folder))
    yield Path("traces")
    yield Path(__file__).parents[2] / "traces"


def _make(name: str) -> Trace:
    """Generate an embedded trace, or rewire one for a control."""
    if name in REWIRED:
        return load_trace(REWIRED[name]).rewired(seed=0).renamed(name)
    return generate(EMBEDDED[name], name)


def _embedded(name: str) -> Trace:
    home = cache_folder("traces")
    if home is None:
        return _make(name)
    # The recipe is part of the folder's name: another one makes the trace anew.
    recipe = EMBEDDED[REWIRED.get(name, name)]
    folder = home / f"{name}-{recipe.checksum()}"
    is_damaged = False
    if _holds_trace(folder):
        try:
            return open_trace(folder)
        except TraceError:
            is_damaged = True  # it can be made again
    trace = _make(name)
    # Another process may be first, which is as good; else the disk is full.
    with suppress(OSError):
        save_trace(trace, folder, overwrite=is_damaged)
    try:
        return open_trace(folder)
    except TraceError:
        return trace
