"""Training in TensorBoard: losses, validation, harvest curves, a crawl in pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from baselines._training_tasks import ValidationTask
from baselines._validation import POINTS, Validation, freshness, mean_curve
from baselines.agent import Result, Transition, run_episode

FRAMES = 4


class TrainingLog:
    """Writes events below a folder, or nothing where there is none."""

    def __init__(self, logdir: Path | None, step: int) -> None:
        self._writer: Any = None
        if logdir is not None:
            from torch.utils.tensorboard.writer import SummaryWriter

            # What a killed run logged after its checkpoint is logged anew.
            self._writer = SummaryWriter(str(logdir), purge_step=step or None)

    def scalars(self, values: dict[str, float], step: int) -> None:
        """Log numbers by tag."""
        if self._writer is not None:
            for tag, value in values.items():
                self._writer.add_scalar(tag, value, step)

    def validation(
        self, validation: Validation, results: Sequence[Result], step: int
    ) -> None:
        """Log how the validation tasks went."""
        if self._writer is None:
            return
        curve = mean_curve(results)
        values = {
            "validation/score": validation.score([r.area for r in results]),
            "validation/z_sum": validation.bar,
            "validation/found": float(np.mean([r.found for r in results])),
        }
        for percent in (10, 25, 50, 100):
            place = percent * (POINTS - 1) // 100
            values[f"harvest/found_at_{percent}_percent"] = curve[place]
        fresh = freshness(results)
        if fresh is not None:
            values["validation/freshness"] = fresh
        self.scalars(values, step)
        picture = harvest_picture({**validation.curves, "learner": curve})
        self._writer.add_image("harvest/curves", picture, step, dataformats="HWC")
        self._writer.flush()

    def crawl(self, task: ValidationTask, make: Any, step: int) -> None:
        """Log pictures of one crawl, at equal steps of it."""
        if self._writer is None:
            return
        frames = pictures(task, make)
        self._writer.add_images("crawl", frames, step, dataformats="NHWC")

    def settings(self, values: dict[str, Any], score: float) -> None:
        """Log hyperparameters and what came of them."""
        if self._writer is None:
            return
        from torch.utils.tensorboard.summary import hparams

        plain = {
            key: value if isinstance(value, bool | int | float | str) else str(value)
            for key, value in values.items()
        }
        for part in hparams(plain, {"hparam/validation_score": score}):
            self._writer.file_writer.add_summary(part)
        self._writer.add_scalar("hparam/validation_score", score, 0)

    def close(self) -> None:
        """Write out what is left."""
        if self._writer is not None:
            self._writer.close()


def harvest_picture(curves: dict[str, list[float]]) -> np.ndarray:
    """Draw pages found against the share of the budget used."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), dpi=100, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for name, curve in curves.items():
        shares = np.linspace(0, 1, len(curve))
        axes.plot(shares, curve, label=name, linewidth=3 if name == "learner" else 1.5)
    axes.set_xlabel("share of the budget")
    axes.set_ylabel("pages found, mean over tasks")
    axes.legend()
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()


def pictures(task: ValidationTask, make: Any) -> np.ndarray:
    """Draw a crawl at equal steps of it."""
    counter = task.make()
    steps = run_episode(
        counter, make(counter), seed=task.seed, options=task.options
    ).steps
    env = task.make(render_mode="rgb_array")
    wanted = {max(1, steps * (i + 1) // FRAMES) for i in range(FRAMES)}
    frames: list[np.ndarray] = []
    done: list[Transition] = []

    def draw(step: Transition) -> None:
        done.append(step)
        if len(done) in wanted:
            frames.append(np.asarray(env.render()))

    run_episode(env, make(env), seed=task.seed, options=task.options, on_step=draw)
    return np.stack(frames)
