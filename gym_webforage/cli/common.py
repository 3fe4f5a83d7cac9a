"""What the commands share: errors in one line, and progress on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from gym_webforage.trace import Trace

BAD_INPUT = 2
INTERRUPTED = 130  # what shells expect after Ctrl-C


def fail(message: object) -> NoReturn:
    """End with one line that says what is wrong."""
    text = " ".join(str(message).split())
    typer.echo(f"webforage: {text}", err=True)
    raise typer.Exit(BAD_INPUT)


@contextmanager
def clear_errors(*kinds: type[Exception]) -> Iterator[None]:
    """Turn the errors that a user can mend into one line."""
    try:
        yield
    except (*kinds, OSError, ValueError) as error:  # TraceError is a ValueError
        fail(error)


def stderr() -> Console:
    """Return a console for progress, which stays silent in files and pipes."""
    from rich.console import Console

    return Console(stderr=True, quiet=not sys.stderr.isatty())


def load(name: str) -> Trace:
    """Load a trace; making an embedded one takes a moment the first time."""
    from gym_webforage.trace import TraceError, load_trace

    with clear_errors(), stderr().status(f"loading {name}"):
        try:
            return load_trace(name)
        except TraceError as error:
            fail(f"{name} is broken: {error}")


def check_out(folder: Path, force: bool) -> None:
    """Refuse a folder that must not be written, before any work is done."""
    from gym_webforage.trace.tables import META

    if not folder.exists() and not folder.is_symlink():
        return
    if not force:
        fail(f"{folder} exists; choose another folder or replace it with --force")
    is_trace = (folder / META).is_file()
    if (
        folder.is_symlink()
        or not folder.is_dir()
        or not (is_trace or not any(folder.iterdir()))
    ):
        fail(f"{folder} is no trace folder, so --force does not replace it")
