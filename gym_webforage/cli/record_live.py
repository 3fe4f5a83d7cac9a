"""``webforage record live``: crawl politely, now or again and again."""

from __future__ import annotations

import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gym_webforage.cli.common import INTERRUPTED, clear_errors, fail
from gym_webforage.cli.record_options import make_options, record, with_common_options

if TYPE_CHECKING:
    from gym_webforage.record import Builder
    from gym_webforage.record.live import LiveResult

BETWEEN_LINES = 10.0  # seconds, where progress is no bar but lines
FEW = 5  # pages, which make one wonder
HINTS = 3
SIZES = {"": 1, "B": 1, "KB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}


@with_common_options
def live(
    common: dict[str, Any],
    urls: Annotated[
        list[str] | None,
        typer.Argument(metavar="URL...", help="Where to start.", show_default=False),
    ] = None,
    contact: Annotated[
        str,
        typer.Option(help="Mail address or web page of yours, told to every server."),
    ] = "",
    state: Annotated[
        Path | None,
        typer.Option(help="Folder for WARC files and state; default: OUT.live."),
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(
            help="Host that may be crawled, or *.host for all below it; may be "
            "repeated; default: the hosts of the URLs."
        ),
    ] = None,
    depth: Annotated[int, typer.Option(min=0, help="Links from the start.")] = 16,
    max_bytes: Annotated[str, typer.Option(help="Bytes a round.")] = "1GB",
    max_time: Annotated[str, typer.Option(help="Time a round.")] = "1d",
    delay: Annotated[
        float, typer.Option(min=0, help="Seconds between requests to a host.")
    ] = 1.0,
    timeout: Annotated[float, typer.Option(help="Seconds for one page.")] = 30.0,
    retries: Annotated[
        int, typer.Option(min=0, help="Further tries after a network error.")
    ] = 1,
    every: Annotated[
        str | None, typer.Option(help="Crawl again so often, such as 1h.")
    ] = None,
    period: Annotated[
        str | None, typer.Option("--for", help="Go on so long, such as 18d.")
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on with the crawl that is in --state."),
    ] = False,
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="Reach private addresses, too.")
    ] = False,
    allow_private_host: Annotated[
        list[str] | None,
        typer.Option(help="Host that may have a private address; may be repeated."),
    ] = None,
) -> None:
    """Crawl politely, now or again and again, and make a trace of what is found.

    Obeys robots.txt, asks one host for one page at a time, and asks for at most
    --max-pages (1,000 unless given) a round. What is captured is kept in WARC files;
    stopped by Ctrl-C or by anything else, the same command goes on where it was.

    Try:

      webforage record live https://example.org/ --contact me@example.org --out mine-v0

      webforage record live URL --every 1h --for 18d --contact ME --out news-v0

      webforage record live --resume --out news-v0
    """
    from gym_webforage.record.live import LiveOptions, default_state, record_live

    out = common["out"]
    folder = state or default_state(out)
    options = None
    with clear_errors():
        make_options(common)  # before the crawl rather than after it
        if resume and urls:
            fail("--resume takes the URLs from the state folder; leave them out")
        if not resume:
            options = LiveOptions(
                urls=tuple(urls or ()),
                contact=contact,
                hosts=tuple(host or ()),
                depth=depth,
                max_pages=common["max_pages"] or LiveOptions.max_pages,
                max_bytes=_size(max_bytes, "--max-bytes"),
                max_time=_seconds(max_time, "--max-time"),
                page_bytes=common["page_bytes"],
                delay=delay,
                timeout=timeout,
                retries=retries,
                every=_seconds(every, "--every"),
                period=_seconds(period, "--for"),
                allow_private=allow_private,
                allow_private_hosts=tuple(allow_private_host or ()),
            )
        with _progress() as tell:
            result = record_live(options, folder, tell=tell)
    _report(result, folder)
    _hint(result)
    if result.interrupted:
        words = ["webforage", "record", "live", "--resume", "--out", str(out)]
        words += ["--state", str(state)] if state else []
        typer.echo(
            f"webforage: stopped; go on by the same command or {shlex.join(words)}",
            err=True,
        )
        raise typer.Exit(INTERRUPTED)
    if not result.pages:
        fail("no page could be recorded")
    _make_trace(result, common)


def _size(text: str, option: str) -> int:
    """Return bytes.

    >>> _size("1.5MB", "--max-bytes"), _size("800", "--max-bytes")
    (1500000, 800)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kKMG]?B)?", text.strip())
    if not match:
        raise ValueError(f'{option} is {text!r}, expected bytes, "500kB" or "1GB"')
    return int(float(match[1]) * SIZES[(match[2] or "").upper()])


def _seconds(text: str | None, option: str) -> float:
    from gym_webforage.world.rules import parse_duration

    return parse_duration(text, option) / 1000 if text else 0.0


# --- progress


@contextmanager
def _progress() -> Iterator[Callable[[dict[str, Any]], None]]:
    """Show what is saved: in place on a terminal, in a line now and then elsewhere."""
    rate = _Rate()
    if not sys.stderr.isatty():
        told = 0.0

        def line(facts: dict[str, Any]) -> None:
            nonlocal told
            now = time.monotonic()
            important = "ended" in facts or "stopping" in facts
            if "broken" in facts:  # the error that follows says it
                return
            if not important and now - told < BETWEEN_LINES:
                return
            told = now
            typer.echo(rate.text(facts), err=True)

        yield line
        return
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True)
    with console.status("starting") as status:
        yield lambda facts: status.update(escape(rate.text(facts)))


class _Rate:
    """Puts figures into words, with the pages a second since the round began."""

    def __init__(self) -> None:
        self.round, self.began, self.before = -1, 0.0, 0
        self.stopping = ""

    def text(self, facts: dict[str, Any]) -> str:
        """Return one line."""
        name = f"round {facts['round'] + 1}"
        if "wait" in facts:
            return f"{name}: begins in {facts['wait']:,.0f} s"
        if "stopping" in facts:
            self.stopping = ", stopping after the pages under way (Ctrl-C: now)"
        if "pages" not in facts:
            return f"{name}{self.stopping}"
        if facts["round"] != self.round:
            self.round, self.before = facts["round"], facts["pages"]
            self.began = time.monotonic()
        passed = max(time.monotonic() - self.began, 0.001)
        rate = (facts["pages"] - self.before) / passed
        ended = f", ended: {facts['ended']}" if "ended" in facts else ""
        return (
            f"{name}: {facts['pages']:,} pages, {facts['failed']:,} failed, "
            f"{facts['forbidden']:,} forbidden, {facts['bytes'] / 1e6:,.1f} MB, "
            f"{rate:.1f} pages/s, {facts['queue']:,} waiting{ended}{self.stopping}"
        )


# --- the end


def _report(result: LiveResult, state: Path) -> None:
    rounds = f"{result.rounds:,} complete round{'' if result.rounds == 1 else 's'}"
    typer.echo(
        f"{result.pages:,} pages ({result.bytes / 1e6:,.1f} MB) in {rounds}, "
        f"{result.failed:,} failed, {result.forbidden:,} forbidden; "
        f"WARC files are in {state}"
    )


def _hint(result: LiveResult) -> None:
    """Say why there is little, as when a start page leads to another host."""
    from gym_webforage.record.live_warc import outcomes

    if result.pages > FEW or not result.warcs:
        return
    reasons = [o for o in outcomes(result.warcs[-1]) if o.error]
    for outcome in reasons[:HINTS]:
        typer.echo(f"webforage: {outcome.url}: {outcome.error}", err=True)


def _make_trace(result: LiveResult, common: dict[str, Any]) -> None:
    """Make a trace of the WARC files."""

    def collect(builder: Builder) -> None:
        from gym_webforage.record.urls import normalise
        from gym_webforage.record.warc import record_warc

        record_warc(result.warcs, builder)
        if not common["root"]:
            starts = (url for url in map(normalise, result.urls) if url in builder.urls)
            found = tuple(str(url) for url in starts)
            builder.options = replace(builder.options, roots=found)

    # The page limit is one a round; a later round may well have brought other pages.
    source = common["source"] or " ".join(result.urls)
    record({**common, "max_pages": None, "source": source}, "live", collect)
