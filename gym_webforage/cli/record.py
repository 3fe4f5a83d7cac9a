"""``webforage record``: make a trace of a recording of the real web."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gym_webforage.cli.record_live import live
from gym_webforage.cli.record_options import record, with_common_options

if TYPE_CHECKING:
    from gym_webforage.record import Builder

app = typer.Typer(
    help="Record the real web: WARC files, a folder, a git repository, live.",
    no_args_is_help=True,
)


@app.command()
@with_common_options
def warc(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="WARC files; - reads stdin.")
    ],
    common: dict[str, Any],
) -> None:
    r"""Make a trace of WARC files, as crawlers and archives write them.

    Several captures of a URL become its versions in time. Damaged records are
    skipped or cut, and counted.

    Example: webforage record warc crawl-*.warc.gz --targets '\.pdf$' --out mine-v0
    """

    def collect(builder: Builder) -> None:
        from gym_webforage.record.warc import record_warc

        record_warc(files, builder)

    record(common, "warc", collect)


@app.command()
@with_common_options
def folder(
    folder: Annotated[Path, typer.Argument(help="Directory of HTML files.")],
    base_url: Annotated[
        str, typer.Option(help="The URL that the directory stands for.")
    ],
    common: dict[str, Any],
    date: Annotated[
        str, typer.Option(help="The moment that all pages are seen at (UTC).")
    ] = "2000-01-01",
) -> None:
    """Make a trace of a directory of HTML files, as they stand.

    Example: webforage record folder html --base-url https://docs.example/ --out docs-v0
    """

    def collect(builder: Builder) -> None:
        from gym_webforage.record.folder import record_folder

        record_folder(folder, base_url, builder, date)

    record(common, "folder", collect)


@app.command()
@with_common_options
def git(
    repository: Annotated[Path, typer.Argument(help="Working copy or bare.")],
    common: dict[str, Any],
    branch: Annotated[str, typer.Option(help="Branch, tag or commit.")] = "HEAD",
    since: Annotated[
        str | None, typer.Option(help="Begin with the site as it was then (UTC).")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Leave out later commits.")] = None,
    base_url: Annotated[
        str | None, typer.Option(help="The URL that the site's folder stands for.")
    ] = None,
    path: Annotated[str, typer.Option(help="The site's folder in it.")] = "",
) -> None:
    """Make a trace of a site kept in git: each commit is a moment in time.

    HTML, Markdown and reStructuredText files are its pages; removed ones are gone.

    Example: webforage record git website --since 2024-01-01 --out website-v0
    """

    def collect(builder: Builder) -> None:
        from gym_webforage.record.git import record_git

        record_git(
            repository,
            builder,
            branch=branch,
            since=since,
            until=until,
            base_url=base_url,
            path=path,
        )

    record(common, "git", collect)


app.command("live")(live)
