"""``webforage trace``: list, generate and rewire traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gym_webforage.cli.common import check_out, clear_errors, load, stderr

if TYPE_CHECKING:
    from gym_webforage.trace import Trace

app = typer.Typer(help="List, generate and rewire traces.", no_args_is_help=True)

Out = Annotated[
    Path, typer.Option("--out", help="Folder to write; its name names the trace.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace a trace that is there.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Of the random numbers.")]


@app.command("list")
def list_traces(
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """Name the traces that can be given by name."""
    from gym_webforage.trace import trace_names
    from gym_webforage.trace.synthetic import EMBEDDED, REWIRED

    if as_json:
        typer.echo(json.dumps(trace_names()))
        return
    for name in trace_names():
        recipe = EMBEDDED.get(REWIRED.get(name, name))
        about = f"embedded, {recipe.urls:,} URLs" if recipe else "recorded"
        typer.echo(f"{name:<28} {about}")


@app.command()
def synthetic(
    out: Out,
    urls: Annotated[int, typer.Option(help="URLs in all.")] = 40_000,
    seed: Seed = 0,
    sites: Annotated[int, typer.Option(help="Number of sites.")] = 1,
    days: Annotated[float, typer.Option(help="Length of the period.")] = 18.0,
    states: Annotated[int, typer.Option(help="Length of a page's state.")] = 50,
    text: Annotated[bool, typer.Option(help="Whether pages have words.")] = True,
    force: Force = False,
) -> None:
    """Generate a made-up news site.

    Example: webforage trace synthetic --urls 5000 --seed 7 --out traces/mine-v0
    """
    from gym_webforage.trace import Recipe, generate

    check_out(out, force)
    with clear_errors():
        recipe = Recipe(
            urls=urls, seed=seed, sites=sites, days=days, states=states, text=text
        )
        with stderr().status("generating") as status:
            trace = generate(
                recipe,
                out.absolute().name,
                lambda stage: status.update(f"generating: {stage}"),
            )
    _save(trace, out, force)


@app.command()
def rewire(
    trace: Annotated[str, typer.Argument(help="Name or path of a trace.")],
    out: Out,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Exchange the ends of a trace's links: same degrees, clustering destroyed.

    Example: webforage trace rewire synthetic-v0 --seed 1 --out traces/control-v0
    """
    check_out(out, force)
    original = load(trace)
    with clear_errors(), stderr().status("rewiring"):
        made = original.rewired(seed).renamed(out.absolute().name)
    _save(made, out, force)


def _save(trace: Trace, out: Path, force: bool) -> None:
    from gym_webforage.trace import save_trace

    with clear_errors(), stderr().status("writing"):
        save_trace(trace, out, overwrite=force)
    typer.echo(f"{trace} is in {out}")


@app.command()
def states(
    trace: Annotated[str, typer.Argument(help="Name or path of a trace with text.")],
    out: Out,
    method: Annotated[
        str, typer.Option(help="prtfidf, prtfidf-calibrated, svd or hashed.")
    ] = "prtfidf-calibrated",
    length: Annotated[int, typer.Option(min=2, help="Numbers in a state.")] = 50,
    until: Annotated[
        str | None,
        typer.Option(help="Learn from what was seen before this UTC time only."),
    ] = None,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Give the pages of a trace states made from their text, for News.

    By default what was seen in the first third of the recording teaches the classes.
    ``prtfidf`` is the news papers' classifier as printed, which gives most short pages
    one and the same state; the others do not.

    Example: webforage trace states mine-v0 --method svd --out mine-states-v0
    """
    from gym_webforage.trace import save_trace
    from gym_webforage.trace.text import fit_states

    check_out(out, force)
    original = load(trace)
    with clear_errors(), stderr().status("learning from the text"):
        made = fit_states(
            original, method=method, states=length, until=until, seed=seed
        )
        named = made.renamed(
            out.name,
            recorder=f"{made.meta.get('recorder') or ''}"
            f"; webforage trace states --method {method} --seed {seed}".lstrip("; "),
        )
        save_trace(named, out, overwrite=force)
    alike = made.meta["states"]["saturation"]
    typer.echo(
        f"{out}: {length} numbers a state, {alike['distinct']:.0%} of the versions' "
        f"states are distinct, {alike['most common']:.0%} are the same one"
    )
