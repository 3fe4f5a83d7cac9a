"""The command ``webforage``: look at traces, make them, and let an agent crawl one.

Only what parses the command line is loaded here; a command loads what it needs.
"""

from __future__ import annotations

from typing import Annotated

import typer

from gym_webforage.cli import info, play, record, traces

app = typer.Typer(
    name="webforage",
    help="Record a piece of the web once, replay it, compare any crawler.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # what is no user's mistake is a plain traceback
    rich_markup_mode="rich",
)
app.command("info")(info.info)
app.command("play")(play.play)
app.add_typer(traces.app, name="trace")
app.add_typer(record.app, name="record")


def _show_version(asked: bool) -> None:
    if asked:
        from gym_webforage import __version__

        typer.echo(f"webforage {__version__}")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    """Record a piece of the web once, replay it, compare any crawler.

    Try:

      webforage trace list

      webforage info synthetic-v0

      webforage play News --agent random --seed 1 --budget 2h
    """


def main() -> None:
    """Run the command line."""
    app()
