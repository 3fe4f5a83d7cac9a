"""The options that all ways of recording share, and what happens around them."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from gym_webforage.cli.common import (
    INTERRUPTED,
    check_out,
    clear_errors,
    fail,
    stderr,
)

if TYPE_CHECKING:
    from gym_webforage.record import Builder, Options
    from gym_webforage.trace import Trace

BETWEEN_UPDATES = 100  # captures from one look of the progress bar to the next


def _common(
    out: Annotated[
        Path, typer.Option("--out", help="Folder to write; its name names the trace.")
    ],
    name: Annotated[
        str | None, typer.Option(help="Name of the trace, if not the folder's.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a trace that is there.")
    ] = False,
    title: Annotated[str | None, typer.Option(help="For the trace's card.")] = None,
    source: Annotated[
        str | None, typer.Option(help="Where the pages are from, for the card.")
    ] = None,
    licence: Annotated[
        str | None, typer.Option(help="Under which the pages stand, for the card.")
    ] = None,
    targets: Annotated[
        str | None,
        typer.Option(metavar="REGEX", help="URLs it is found in are target pages."),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(metavar="TSV", help="Table of url, label; more columns allowed."),
    ] = None,
    target_label: Annotated[
        list[str] | None,
        typer.Option(help="Pages with this label are targets; may be repeated."),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(metavar="WORDS", help="A topic in words; may be repeated."),
    ] = None,
    world: Annotated[
        str,
        typer.Option(
            help="Links to pages that were not recorded: open keeps those on "
            "recorded hosts, closed drops all but targets."
        ),
    ] = "open",
    root: Annotated[
        list[str] | None,
        typer.Option("--root", "--roots", metavar="URL", help="Start page; repeat."),
    ] = None,
    site: Annotated[
        str | None, typer.Option(help="One name for the site of all pages.")
    ] = None,
    site_from: Annotated[
        str, typer.Option(help="host, or the column of the labels that names the site.")
    ] = "host",
    max_pages: Annotated[
        int | None, typer.Option(min=1, help="Record no more URLs than this.")
    ] = None,
    drop_template_links: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Drop links to what more than this share of a site's pages link to.",
        ),
    ] = None,
    keep_template_links: Annotated[
        bool, typer.Option("--keep-template-links", help="Keep them: the default.")
    ] = False,
    vocabulary: Annotated[
        int, typer.Option(min=1, help="Keep the words on most pages.")
    ] = 50_000,
    url_endings: Annotated[
        bool, typer.Option(help="Whether file endings are among a URL's words.")
    ] = True,
    states: Annotated[
        str,
        typer.Option(
            help="Page states from the text, for News: none, prtfidf (the papers'), "
            "prtfidf-calibrated, svd or hashed."
        ),
    ] = "none",
    state_length: Annotated[int, typer.Option(min=2, help="Of a page's state.")] = 50,
    states_until: Annotated[
        str | None,
        typer.Option(help="Learn states from what was seen before (UTC)."),
    ] = None,
    drop_css: Annotated[
        str | None,
        typer.Option(metavar="SELECTOR", help="Remove these elements first."),
    ] = None,
    page_bytes: Annotated[
        int, typer.Option(min=1, help="Cut longer pages.")
    ] = 10_000_000,
    page_links: Annotated[
        int, typer.Option(min=1, help="Drop a page's links after this many.")
    ] = 10_000,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Parsing processes; default: the cores.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Damaged input is an error.")
    ] = False,
) -> dict[str, Any]:
    """Return what was given."""
    return dict(locals())


def with_common_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command all common options; it gets them as the dict ``common``."""
    own = inspect.signature(command)
    hints = get_type_hints(command, include_extras=True)
    shared = inspect.signature(_common)
    shared_hints = get_type_hints(_common, include_extras=True)
    parameters = [
        parameter.replace(annotation=hints[name], kind=parameter.KEYWORD_ONLY)
        for name, parameter in own.parameters.items()
        if name != "common"
    ]
    parameters += [
        parameter.replace(annotation=shared_hints[name], kind=parameter.KEYWORD_ONLY)
        for name, parameter in shared.parameters.items()
    ]

    @functools.wraps(command)
    def wrapped(**given: Any) -> None:
        common = {name: given.pop(name) for name in shared.parameters}
        command(**given, common=common)

    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
    return wrapped


def make_options(common: dict[str, Any]) -> Options:
    """Check the common options and make the recorder's of them."""
    from gym_webforage.record import Options, RecordError
    from gym_webforage.record.labels import Labels, read_labels

    check_out(common["out"], common["force"])
    share = common["drop_template_links"]
    if share is not None and common["keep_template_links"]:
        raise RecordError("template links can be kept or dropped, not both")
    labels = common["labels"]
    same = "title source licence targets world site site_from max_pages".split()
    same += "drop_template_links vocabulary url_endings drop_css".split()
    same += "states state_length states_until page_bytes page_links strict".split()
    return Options(
        name=common["name"] or common["out"].absolute().name,
        labels=Labels() if labels is None else read_labels(labels),
        target_labels=tuple(common["target_label"] or ()),
        topics=tuple(common["topic"] or ()),
        roots=tuple(common["root"] or ()),
        workers=common["workers"] or os.cpu_count() or 1,
        **{name: common[name] for name in same},
    )


def record(
    common: dict[str, Any], recorder: str, collect: Callable[[Builder], None]
) -> None:
    """Record with a progress bar, write the trace, and say what was skipped.

    Args:
        common: The common options.
        recorder: The command, for the trace's card.
        collect: Gives all captures to a builder.
    """
    _check_installed()
    from gym_webforage import __version__
    from gym_webforage.record import Builder
    from gym_webforage.trace import save_trace

    with clear_errors():
        options = make_options(common)
        with _progress() as (update, stage):
            maker = f"webforage record {recorder} ({__version__})"
            builder = Builder(options, maker, update)
            try:
                collect(builder)
                stage("putting together")
                trace = builder.finish()
                stage("writing")
                save_trace(trace, common["out"], overwrite=common["force"])
            except KeyboardInterrupt:
                typer.echo("webforage: interrupted, nothing was written", err=True)
                raise typer.Exit(INTERRUPTED) from None
            finally:
                builder.close()
    _summarise(trace, common["out"], builder)


def _check_installed() -> None:
    for needed in ("fastwarc", "resiliparse", "markdown_it", "docutils"):
        if importlib.util.find_spec(needed) is None:
            fail(
                f'recording needs {needed}: pip install "gym-webforage[record]", or '
                'from a checkout pip install -e ".[record]"'
            )


def _summarise(trace: Trace, out: Path, builder: Builder) -> None:
    for line in builder.notes.lines():
        typer.echo(f"warning: {line}", err=True)
    typer.echo(f"{trace} is in {out}")


@contextmanager
def _progress() -> Iterator[tuple[Callable[[int, int], None], Callable[[str], None]]]:
    """Show captures, links and rate on a terminal."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.completed:,.0f} pages"),
        TextColumn("{task.fields[links]:,} links"),
        TextColumn("{task.fields[rate]:,.0f} pages/s"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=stderr(), transient=True) as bar:
        task = bar.add_task("recording", total=None, links=0, rate=0.0)

        def update(captures: int, links: int) -> None:
            if captures % BETWEEN_UPDATES == 0:
                rate = captures / max(bar.tasks[0].elapsed or 0.0, 0.1)
                bar.update(task, completed=captures, links=links, rate=rate)

        yield update, lambda stage: bar.update(task, description=stage)
