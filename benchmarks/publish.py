"""The published leaderboard: its rows in a small file, and what is made from them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.assemble import make_board
from benchmarks.board import Board
from benchmarks.standings import LEGEND, markdown, report, summary_table
from benchmarks.work import Row, write_whole

HERE = Path(__file__).parent
ROWS = HERE / "results" / "rows.jsonl.gz"
REPORT = HERE / "LEADERBOARD.md"
README = HERE.parent / "README.md"
BEGIN, END = "<!-- leaderboard -->", "<!-- /leaderboard -->"
KEPT = ("illegal",)  # of a run's summary; the rest is in its event log's checksum
SHARED = ("task", "made", "digest", "code", "version", "format")  # said once


def pack(rows: Sequence[Row]) -> bytes:
    """Return rows as a small file: a line of what they share, then a line a row."""
    shared: dict[str, list[str]] = {name: [] for name in SHARED}
    numbers: dict[str, dict[str, int]] = {name: {} for name in SHARED}
    lines = []
    ordered = sorted(rows, key=lambda r: (r["task"]["id"], r["agent"], r["seed"]))
    for row in ordered:
        small = dict(row)
        for name in SHARED:
            if name in row:
                text = json.dumps(row[name], sort_keys=True)
                if text not in numbers[name]:
                    numbers[name][text] = len(shared[name])
                    shared[name].append(row[name])
                small[name] = numbers[name][text]
        small["timing"] = {"cpu_seconds": round(row["timing"]["cpu_seconds"], 3)}
        if "result" in row:
            summary = {k: row["result"]["summary"][k] for k in KEPT}
            small["result"] = {**row["result"], "summary": summary}
        lines.append(json.dumps(small))
    text = "\n".join([json.dumps(shared), *lines]) + "\n"
    return gzip.compress(text.encode(), mtime=0)


def unpack(content: bytes) -> list[Row]:
    """Return the rows that `pack` wrote."""
    first, *lines = gzip.decompress(content).decode().splitlines()
    shared = json.loads(first)
    rows = []
    for line in lines:
        row = json.loads(line)
        for name in SHARED:
            if name in row:
                row[name] = shared[name][row[name]]
        rows.append(row)
    return rows


def read_published() -> list[Row]:
    """Return the rows of the published leaderboard, none if there is none."""
    return unpack(ROWS.read_bytes()) if ROWS.is_file() else []


def block(board: Board) -> str:
    """Return what the README shows."""
    made = board["made"]
    parts = [
        f"{made['rows']:,} runs, {made['seeds']} seeds a task. Scores from the random "
        "walk (0) to the oracle (1), interquartile mean over a group's tasks and "
        "seeds; in brackets the places that the 95 % intervals allow, if it runs on "
        "every task of the group. Empty: not made for it. Sorted by the best column. "
        "* looks into the trace.",
        markdown(summary_table(board)),
        "[All tables](benchmarks/LEADERBOARD.md), one for each group and task. Their "
        "columns:",
        LEGEND,
    ]
    return "\n\n".join(parts)


def fill(text: str, content: str) -> str:
    """Return a text with what stands between the markers replaced."""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"there is no {BEGIN} ... {END} to fill")
    return f"{head}{BEGIN}\n{content}\n{END}{tail}"


def publish(rows: Sequence[Row], readme: Path = README) -> list[Path]:
    """Write rows, report and the README's table; return what was written.

    Everything is made from the rows as they were packed, so that anyone can make it
    again from the file.
    """
    ROWS.parent.mkdir(exist_ok=True)
    write_whole(ROWS, pack(rows))
    board = make_board(read_published())
    write_whole(REPORT, report(board))
    written = [ROWS, REPORT]
    text = readme.read_text(encoding="utf-8")
    if BEGIN in text:
        write_whole(readme, fill(text, block(board)))
        written.append(readme)
    return written
