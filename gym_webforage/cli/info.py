"""``webforage info``: what a trace is, where it is from and how it is built."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from gym_webforage.cli.common import clear_errors, fail, load, stderr

if TYPE_CHECKING:
    from gym_webforage.trace import Trace

TOP = 5  # labels and sites that are shown
MOST_COMPARED = 500_000  # versions; comparing the states of more takes too long


def info(
    trace: Annotated[str, typer.Argument(help="Name or path of a trace.")],
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
    structure: Annotated[
        bool, typer.Option(help="Whether to show or measure the link structure.")
    ] = True,
    topic: Annotated[
        str | None,
        typer.Option(help="A label, or words: show how similar the pages are to it."),
    ] = None,
    topic_pages: Annotated[
        list[str] | None,
        typer.Option(help="URL of an example page, as topic; may be repeated."),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Of relevance, 0 to 1, with a topic.")
    ] = None,
) -> None:
    """Show what a trace holds, its source and licence, and its link structure.

    With a topic it shows instead how similar the pages are to it, by either similarity
    of the Topic environment, so that you can choose a threshold.

    Validates everything on the way: a broken trace is an error that names table, row
    and reason.

    Try:

      webforage info synthetic-v0 --json

      webforage info synthetic-v0 --topic fega --threshold 0.3
    """
    if topic is not None or topic_pages:
        _topic_info(trace, topic, topic_pages or [], threshold, as_json)
        return
    if threshold is not None:
        fail("--threshold is given without --topic or --topic-pages")
    loaded = load(trace)
    facts = describe(loaded)
    if structure:
        facts["structure"] = _structure(loaded)
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
    else:
        _show(facts)


def _topic_info(
    name: str, topic: str | None, pages: list[str], threshold: float | None, json_: bool
) -> None:
    """Show how similar the pages of a trace are to a topic."""
    from gym_webforage.cli.similarity import describe_topic, find_topic, show_topic
    from gym_webforage.world.rules import Rules

    if topic is not None and pages:
        fail("--topic and --topic-pages are both given, expected one of them")
    with clear_errors():
        rules = Rules(kind="topic")
        if threshold is not None:
            rules = replace(rules, threshold=threshold)
    loaded = load(name)
    with clear_errors():
        found = find_topic(loaded, topic, pages)
    facts = describe_topic(loaded, found, rules.threshold)
    if json_:
        typer.echo(json.dumps({"trace": loaded.name, "topic": facts}, indent=2))
    else:
        show_topic(facts)


def describe(trace: Trace) -> dict[str, Any]:
    """Return what there is to say of a trace as plain values."""
    meta = trace.meta
    days = (trace.end - trace.begin) / 86_400_000
    return {
        "name": trace.name,
        **{key: meta.get(key) for key in ("title", "description", "source")},
        "recorder": meta.get("recorder"),
        "licence": meta.get("licence"),
        "begin": meta["begin"],
        "end": meta["end"],
        "days": days,
        "versions_a_day": len(trace.version_seen) / days if days else None,
        "roots": list(meta["roots"]),
        "counts": {key.replace(" ", "_"): n for key, n in trace.counts.items()},
        "top_sites": _top(trace.sites, trace.url_site),
        "top_labels": _top(trace.labels, trace.url_label),
        "states": _states(trace),
        "digest": trace.digest,
        "path": str(trace.path) if trace.path else None,
    }


def _states(trace: Trace) -> dict[str, Any] | None:
    """Return how the states were made, and how many of them are alike."""
    known = trace.meta.get("states")
    if known is not None or not 0 < len(trace.version_state) <= MOST_COMPARED:
        return known
    if not trace.states:
        return None
    from gym_webforage.trace.text import saturation

    return {"saturation": saturation(trace)}


def _top(names: Any, owners: np.ndarray) -> dict[str, int]:
    """Return the names on most URLs, with their numbers."""
    counts = np.bincount(owners, minlength=len(names))
    best = np.argsort(-counts, kind="stable")[:TOP]
    return {names[int(i)]: int(counts[i]) for i in best if counts[i]}


def _structure(trace: Trace) -> dict[str, Any]:
    """Return the figures of the trace's card, or measure them now."""
    card = trace.meta.get("structure")
    if isinstance(card, dict) and isinstance(card.get("measured"), dict):
        return {"from": "the trace's card", **card}
    from gym_webforage.trace.structure import structure

    with stderr().status("measuring the link structure"):
        measured = structure(trace)
    return {"from": "measured now", "measured": measured}


# --- on a terminal


def _states_line(length: int, states: dict[str, Any] | None) -> str:
    if not length:
        return "none"
    method = (states or {}).get("method")
    line = f"{length} numbers" + (f" by {method}" if method else "")
    alike = (states or {}).get("saturation")
    if not alike:
        return line
    return (
        f"{line}; {alike['distinct']:.0%} of the versions' states are distinct, "
        f"{alike['most common']:.0%} are the same one"
    )


def _show(facts: dict[str, Any]) -> None:
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    table = Table(box=box.SIMPLE_HEAD, show_header=False, title=escape(facts["name"]))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    counts = facts["counts"]
    rate = facts["versions_a_day"]
    period = f"{facts['begin'][:16]} to {facts['end'][:16]} ({facts['days']:.3g} days)"
    versions = f"{counts['versions']:,}" + (f" ({rate:,.0f} a day)" if rate else "")
    urls = f"{counts['urls']:,} ({counts['recorded_urls']:,} recorded)"
    for name, value in (
        ("title", facts["title"]),
        ("about", facts["description"]),
        ("source", facts["source"]),
        ("recorded by", facts["recorder"]),
        ("licence", facts["licence"]),
        ("period", period),
        ("roots", _listed(facts["roots"])),
        ("URLs", urls),
        ("versions", versions),
        ("links", f"{counts['links']:,}"),
        ("sites", _with_top(counts["sites"], facts["top_sites"])),
        ("labels", _with_top(counts["labels"], facts["top_labels"])),
        ("targets", f"{counts['targets']:,}"),
        ("tokens", f"{counts['tokens']:,}"),
        ("states", _states_line(counts["states"], facts["states"])),
        ("digest", facts["digest"]),
        ("stored in", facts["path"] or "memory"),
    ):
        if value:
            table.add_row(name, escape(str(value)))
    console.print(table)
    if "structure" in facts:
        console.print(_structure_table(facts["structure"]))


def _structure_table(found: dict[str, Any]) -> Any:
    from rich import box
    from rich.table import Table

    measured = found["measured"]
    published = found.get("published", {})
    meets = found.get("meets", {})
    sample = measured.get("sample")
    how = (
        f", paths from a sample of {sample:,} pages" if measured.get("sampled") else ""
    )
    table = Table(box=box.SIMPLE_HEAD, title=f"Link structure ({found['from']}{how})")
    table.add_column("figure", style="bold")
    table.add_column("this trace", justify="right")
    if published:
        table.add_column("published", justify="right")
        table.add_column("within 20 %")
    for name, value in measured.items():
        if name in ("sample", "sampled"):
            continue
        row = [name, f"{value:,}" if isinstance(value, int) else f"{value:.3g}"]
        if published:
            row.append(f"{published[name]:g}" if name in published else "")
            row.append({True: "yes", False: "no"}.get(meets.get(name), ""))
        table.add_row(*row)
    return table


def _listed(names: list[str]) -> str:
    more = f", ... ({len(names)} in all)" if len(names) > TOP else ""
    return ", ".join(names[:TOP]) + more


def _with_top(count: int, top: dict[str, int]) -> str:
    if not top:
        return f"{count:,}"
    shown = ", ".join(f"{name} ({number:,})" for name, number in top.items())
    return f"{count:,}: {shown}" + (", ..." if count > len(top) else "")
