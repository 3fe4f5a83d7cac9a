"""Runs in TensorBoard: how a crawl or a fleet went over simulated time.

``make tensorboard`` shows them. Steps of a course are simulated minutes since its
start, and wall times are simulated as well, so that the *wall* axis shows the dates of
the recording. Steps of a leaderboard are hundredths of the budget.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import baselines
from benchmarks.board import Board
from benchmarks.reproduce.course import Array
from benchmarks.reproduce.ground import territory

# Tags, and the columns of a run's course behind them.
SCALARS = {
    "reward": "window_reward",
    "efficiency/download": "window_download_efficiency",
    "efficiency/sent": "window_sent_efficiency",
    "found/relevant": "window_relevant",
    "found/urls": "window_found_urls",
    "documents/freshness": "window_freshness",
    "documents/age_hours": "window_age_hours",
    "documents/lag_hours": "window_lag_hours",
    "fleet/population": "window_population",
    "fleet/weight_norm": "window_weight_norm",
}
PICTURE = "territory"

Settings = dict[str, bool | int | float | str]
"""What a run was made with, by name."""


def log_series(
    logdir: Path | str, series: Mapping[str, Array], *, start: int, title: str = ""
) -> None:
    """Log what was kept of a run's course; ``start`` is when it began, in ms.

    What was logged in this folder before is replaced.
    """
    from torch.utils.tensorboard.writer import SummaryWriter

    for old in Path(logdir).glob("events.out.tfevents.*"):
        old.unlink()
    minutes = np.round(series["window_end"] / 60_000).astype(np.int64)
    seconds = (start + series["window_end"]) / 1000
    with SummaryWriter(str(logdir)) as writer:
        for tag, column in SCALARS.items():
            for step, wall, value in zip(
                minutes.tolist(),
                seconds.tolist(),
                np.asarray(series[column], np.float64).tolist(),
                strict=True,
            ):
                if math.isfinite(value):
                    writer.add_scalar(tag, value, step, walltime=wall)
        figure = territory(series, title or f"Forager {int(series['ground_forager'])}")
        canvas: Any = figure.canvas
        canvas.draw()
        picture = np.asarray(canvas.buffer_rgba())[:, :, :3]
        writer.add_image(
            PICTURE,
            picture,
            int(minutes[-1]),
            walltime=float(seconds[-1]),
            dataformats="HWC",
        )


def log_curves(
    logdir: Path | str,
    curves: Mapping[str, tuple[Sequence[int], Sequence[float]]],
    settings: Settings,
    figures: Mapping[str, float],
) -> None:
    """Log curves by tag, as steps and values, and a line of HParams.

    Figures stand at the last step of all. What was logged there before is replaced.
    """
    from torch.utils.tensorboard.summary import hparams
    from torch.utils.tensorboard.writer import SummaryWriter

    for old in Path(logdir).glob("events.out.tfevents.*"):
        old.unlink()
    last = max((step for steps, _ in curves.values() for step in steps), default=0)
    with SummaryWriter(str(logdir)) as writer:
        for tag, (steps, values) in curves.items():
            for step, value in zip(steps, values, strict=True):
                if math.isfinite(value):
                    writer.add_scalar(tag, value, step)
        for tag, value in figures.items():
            writer.add_scalar(tag, value, last)
        for part in hparams(settings, figures):
            writer.file_writer.add_summary(part)  # type: ignore[union-attr]


def log_board(logdir: Path | str, board: Board) -> None:
    """Log a leaderboard: a run for each task and agent, with its line of HParams.

    What was logged there before is replaced.
    """
    for task in board["tasks"]:
        for standing in task["standings"]:
            name = re.sub(r"[^\w.=-]+", "-", standing["agent"])
            place = Path(logdir) / task["id"] / name
            settings: Settings = {
                "agent": standing["agent"],
                "task": task["id"],
                "kind": task["kind"],
                "trace": task["trace"],
                "fleet": task["fleet"] or "one crawler",
                "privileged": standing["sees"]["privileged"],
                "trains": standing["sees"]["trains"],
                **baselines.split(standing["agent"])[1],
            }
            figures: dict[str, float] = {
                "result/found": standing["found_mean"],
                "result/area": standing["area"],
                "result/cpu_seconds": standing["cpu_seconds"],
                "result/failed": float(standing["failed"]),
            }
            if standing["score"] is not None:
                figures["result/score"] = standing["score"]
            curve = standing["curve"]
            steps = [round(100 * share) for share in curve["x"]]
            lines = {
                f"found/{line}": (steps, curve[line])
                for line in ("mean", "low", "high")
            }
            log_curves(place, lines, settings, figures)
