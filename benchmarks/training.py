"""How fast PPO trains: ``python -m benchmarks.training``.

Rounds of masked PPO as `baselines.train` runs them, on one thread: steps/s by CPU time,
the environment's share of it, and how long 100,000 steps take at that pace. *Wide* has
as many columns as ``--columns`` says, those of Topic over and over, for the network's
cost with more features than there are.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from rich.console import Console
from rich.table import Table

from benchmarks.leaderboard import positive

TRACE = "synthetic-v0"
LONG = 100_000  # steps


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.training", description=__doc__
    )
    made.add_argument(
        "--rounds", type=positive, default=6, help="measured, of each (6)"
    )
    made.add_argument(
        "--slots", type=positive, default=128, help="candidates shown (128)"
    )
    made.add_argument("--columns", type=positive, default=64, help="of wide (64)")
    made.add_argument(
        "--epochs", type=positive, default=4, help="over each rollout (4)"
    )
    made.add_argument(
        "--num-envs", type=positive, default=32, help="crawls at once (32)"
    )
    made.add_argument("--attention", action="store_true", help="pool by attention, too")
    return made


def widened(batch: Any, columns: int) -> Any:
    """Return the batch with its columns over and over, ``columns`` in all."""
    from stable_baselines3.common.vec_env import VecEnvWrapper

    class Wide(VecEnvWrapper):
        def _wide(self, seen: Any) -> Any:
            return {**seen, "candidates": seen["candidates"][:, :, order]}

        def reset(self) -> Any:
            return self._wide(self.venv.reset())

        def step_wait(self) -> Any:
            seen, rewards, dones, infos = self.venv.step_wait()
            for info in infos:
                if "terminal_observation" in info:
                    last = info["terminal_observation"]
                    wide = last["candidates"][:, order]
                    info["terminal_observation"] = {**last, "candidates": wide}
            return self._wide(seen), rewards, dones, infos

    space = dict(batch.observation_space.spaces)
    slots, have = space["candidates"].shape
    order = np.arange(columns) % have
    bound = float(space["candidates"].high.max())
    space["candidates"] = spaces.Box(-bound, bound, (slots, columns), np.float32)
    return Wide(batch, observation_space=spaces.Dict(space))


def measure(kind: Any, columns: int | None, given: argparse.Namespace) -> list[str]:
    """Return a row of the table; ``columns`` asks for more than there are."""
    from baselines._ppo import PPOTrainer
    from baselines._training_envs import make_training_batch, worlds_of
    from baselines._training_tasks import sources
    from baselines._weights import columns_of

    is_news = kind == "news"
    options = {"features": "transfer"} if is_news else {}
    found = sources([kind], [TRACE], "12h" if is_news else 400, options)
    batch: Any = make_training_batch(
        found, given.num_envs, slots=given.slots, foragers=1, price=0.05 * is_news
    )
    names = columns_of(worlds_of(batch.parts[0])[0][0])
    if columns is not None:
        batch = widened(batch, columns)
        names = [f"{names[i % len(names)]} {i}" for i in range(columns)]
    trainer = PPOTrainer(
        batch,
        names,
        seed=0,
        total=LONG,
        residual=False,
        attention=given.attention,
        epochs=given.epochs,
    )
    trainer.round()  # compiles, and fills the frontiers
    trainer.model.env_seconds, before = 0.0, trainer.steps
    began = time.process_time()
    for _ in range(given.rounds):
        trainer.round()
    seconds = time.process_time() - began
    pace = (trainer.steps - before) / seconds
    return [
        kind if columns is None else f"{kind}, wide",
        str(len(names)),
        f"{pace:,.0f}",
        f"{trainer.model.env_seconds / seconds:.0%}",
        f"{LONG / pace / 60:.1f} min",
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a table."""
    given = parser().parse_args(arguments)
    warnings.filterwarnings("ignore", module="stable_baselines3")
    from baselines.train import one_thread

    one_thread()
    console = Console()
    table = Table(title=f"PPO, {given.slots} slots, {given.epochs} epochs, one thread")
    for title in ("task", "columns", "steps/s", "environment", f"{LONG:,} steps"):
        table.add_column(title, justify="left" if title == "task" else "right")
    cases: list[tuple[str, int | None]] = [
        ("topic", None),
        ("topic", given.columns),
        ("news", None),
    ]
    for kind, columns in cases:
        with console.status(f"{kind}, {columns or 'its own'} columns"):
            table.add_row(*measure(kind, columns, given))
    console.print(table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
