"""The training loop: rounds, validation, early stopping, exact checkpoints."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from baselines import _checkpoint
from baselines._trainer import Trainer
from baselines._training_envs import TrainingBatch
from baselines._training_log import TrainingLog
from baselines._validation import Validation
from baselines._weights import Weights

CHECKPOINT = "checkpoint.npz"
WEIGHTS = "weights"


class Interrupted(Exception):
    """Ctrl-C came; what was done is kept."""


@dataclass
class Loop:
    """A training run and where it stands."""

    trainer: Trainer
    batch: TrainingBatch
    validation: Validation
    card: dict[str, Any]
    """What is known of the weights before training; the rest is added at the end."""
    identity: dict[str, Any]
    """What must be equal for a run to go on from a checkpoint."""
    out: Path
    steps: int
    logdir: Path | None = None
    validate_every: int = 10_000
    patience: int = 8
    checkpoint_seconds: float = 30.0
    console: Console = field(default_factory=lambda: Console(stderr=True))

    best: float = field(default=float("-inf"), init=False)
    best_arrays: dict[str, Any] = field(default_factory=dict, init=False)
    best_steps: int = field(default=0, init=False)
    waited: int = field(default=0, init=False)
    next_validation: int = field(default=0, init=False)
    scores: list[list[float]] = field(default_factory=list, init=False)
    _stop: bool = field(default=False, init=False)

    @property
    def file(self) -> Path:
        """Where the checkpoint is."""
        return self.out / CHECKPOINT

    def run(self) -> Weights:
        """Train until the steps are used up, or nothing has improved for long."""
        if self.file.exists():
            self._load(_checkpoint.read(self.file))
            self._tell(f"continues at {self.trainer.steps:,} steps")
        if self.validation.tasks:
            self.validation.prepare(self._tell)
        log = TrainingLog(self.logdir, self.trainer.steps)
        before = signal.getsignal(signal.SIGINT)
        signal.signal(signal.SIGINT, self._interrupt)
        try:
            self._rounds(log)
        finally:
            signal.signal(signal.SIGINT, before)
            log.close()
        weights = self.weights()
        weights.save(self.out / WEIGHTS)
        _checkpoint.remove(self.file)
        return weights

    def _interrupt(self, number: int, frame: Any) -> None:
        if self._stop:
            raise KeyboardInterrupt
        self._stop = True
        self._tell("stopping after this round (again: at once)")

    def _tell(self, text: str) -> None:
        self.console.print(text, highlight=False)

    # --- rounds

    def _rounds(self, log: TrainingLog) -> None:
        kept = time.monotonic()
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[rate]} steps/s, left:"),
            TimeRemainingColumn(),
            console=self.console,
        ) as progress:
            bar = progress.add_task(
                "training", total=self.steps, completed=self.trainer.steps, rate="?"
            )
            began, first = time.monotonic(), self.trainer.steps
            while not self._is_done():
                log.scalars(self.trainer.round(), self.trainer.steps)
                if self.validation.tasks and self.trainer.steps >= self.next_validation:
                    self._validate(log)
                passed = time.monotonic() - began
                rate = (self.trainer.steps - first) / max(passed, 1e-9)
                log.scalars({"time/steps_per_second": rate}, self.trainer.steps)
                progress.update(bar, completed=self.trainer.steps, rate=f"{rate:,.0f}")
                is_due = time.monotonic() - kept >= self.checkpoint_seconds
                if (is_due or self._stop) and not self._is_done():
                    _checkpoint.write(self.file, self._save())
                    kept = time.monotonic()
                if self._stop:
                    raise Interrupted
        if self.validation.tasks and not self.scores:
            self._validate(log)
        self._finish(log)

    def _is_done(self) -> bool:
        return self.trainer.steps >= self.steps or self.waited >= self.patience

    def _validate(self, log: TrainingLog) -> None:
        self.next_validation = self.trainer.steps + self.validate_every
        arrays = self.trainer.arrays()
        now = Weights(arrays, self.card)
        results = self.validation.run(
            lambda env: self.trainer.agent(env.unwrapped.world, now)
        )
        score = self.validation.score([result.area for result in results])
        log.validation(self.validation, results, self.trainer.steps)
        self.scores.append([self.trainer.steps, score])
        self.waited += 1
        if score > self.best:
            self.best, self.best_arrays, self.waited = score, arrays, 0
            self.best_steps = self.trainer.steps
        self._tell(
            f"{self.trainer.steps:>9,} steps: validation {score:.3f} "
            f"(best {self.best:.3f}, z-sum {self.validation.bar:.3f})"
        )

    def _finish(self, log: TrainingLog) -> None:
        if not self.validation.tasks:
            return
        weights = self.weights()
        task = self.validation.tasks[0]
        log.crawl(
            task,
            lambda env: self.trainer.agent(env.unwrapped.world, weights),
            self.trainer.steps,
        )
        log.settings(self.identity, self.best)

    # --- what is kept

    def weights(self) -> Weights:
        """Return the best weights so far, with their card."""
        card = dict(self.card)
        card["steps"] = self.best_steps if self.best_arrays else self.trainer.steps
        card["training_fetches"] = self.batch.fetches
        if self.validation.tasks:
            validation = self.validation
            card["validation"] = {
                "score": round(self.best, 4),
                "z_sum": round(validation.bar, 4),
                "what": "area under the curve, random walk 0, oracle 1",
                "tasks": [task.name for task in validation.tasks],
                "course": [[int(s), round(x, 4)] for s, x in self.scores],
            }
        return Weights(self.best_arrays or self.trainer.arrays(), card)

    def _save(self) -> dict[str, Any]:
        return {
            "identity": self.identity,
            "trainer": self.trainer.save(),
            "validation": self.validation.save(),
            "best": self.best if self.best_arrays else None,
            "best_arrays": self.best_arrays,
            "best_steps": self.best_steps,
            "waited": self.waited,
            "next_validation": self.next_validation,
            "scores": self.scores,
        }

    def _load(self, state: dict[str, Any]) -> None:
        other = [
            key
            for key in {**self.identity, **state["identity"]}
            if self.identity.get(key) != state["identity"].get(key)
        ]
        if other:
            raise ValueError(
                f"{self.file} is of another run ({', '.join(sorted(other))} differ); "
                "--fresh starts anew, --out takes another folder"
            )
        self.trainer.load(state["trainer"])
        self.validation.load(state["validation"])
        if state["best"] is not None:
            self.best = state["best"]
        self.best_arrays = dict(state["best_arrays"])
        self.best_steps = state["best_steps"]
        self.waited = state["waited"]
        self.next_validation = state["next_validation"]
        self.scores = [list(pair) for pair in state["scores"]]
