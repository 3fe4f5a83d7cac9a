"""Train a learned method: ``python -m baselines.train METHOD --task topic spider ...``.

Every reset draws another topic, site or day out of ``split="train"``; some of them are
held out and serve as fixed validation tasks, by which training stops early and the
weights are chosen. A run that was stopped or killed continues when it is started again,
from the end of a round, to the same weights as one that was not.
"""

from __future__ import annotations

import argparse
import inspect
import os
import shlex
import shutil
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from baselines import LOOPS, NoAgentError, Setting
from baselines import split as split_name
from baselines._weights import FOLDER, Weights, columns_of, family

if TYPE_CHECKING:
    from baselines._training_tasks import Source

METHODS = ("masked_ppo", "masked_dqn", "boosted_trees", "cloning", "prior_bandit")
_OPTIONS = ("seed", "total", "residual", "attention", "start")  # not through --set
_HOW = ("--fresh", "--ship", "--tensorboard", "--no-tensorboard")  # not what
SHIPPED = "MIT, as the rest of gym_webforage"


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    made = argparse.ArgumentParser(
        prog="python -m baselines.train",
        description=(__doc__ or "").partition("\n\n")[2],
        epilog="Exit code: 0, 2 for wrong arguments, 130 after Ctrl-C. TensorBoard "
        "shows --logdir: losses, entropy, validation, harvest curves, pictures of a "
        "crawl, hyperparameters.",
    )
    made.add_argument("method", choices=METHODS, metavar="METHOD", help=_methods())
    made.add_argument(
        "--task",
        nargs="+",
        default=["topic"],
        choices=("topic", "spider", "news"),
        metavar="TASK",
        help="topic, spider or both at once, or news (default topic)",
    )
    made.add_argument(
        "--trace",
        nargs="+",
        default=[],
        metavar="TRACE",
        help="traces by name or path, or made for this: synthetic:urls=9000,seed=7,"
        "sites=6; each is used for every task that it can be played with (default: the "
        "embedded one)",
    )
    made.add_argument("--steps", type=_positive, default=100_000, help="100000")
    made.add_argument("--seed", type=int, default=0, help="of everything random (0)")
    made.add_argument(
        "--budget", help="of a crawl: fetches, or time as 6h (the task's)"
    )
    made.add_argument("--num-envs", type=_positive, default=32, help="crawls at once")
    made.add_argument("--slots", type=_positive, default=128, help="candidates shown")
    made.add_argument(
        "--features", help="columns, for news: state or transfer (transfer)"
    )
    made.add_argument(
        "--foragers",
        type=_positive,
        default=1,
        help="of a fleet, which share the policy that is trained (1)",
    )
    made.add_argument(
        "--price",
        type=float,
        default=0.05,
        help="news: novel pages that a fetch must bring to be worth it (0.05)",
    )
    made.add_argument(
        "--residual",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="learn what to add to the sum of z-scores (PPO, cloning)",
    )
    made.add_argument(
        "--attention",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="pool the set by attention, too",
    )
    made.add_argument("--start", help="weights of a network to begin with")
    made.add_argument(
        "--set",
        nargs="+",
        default=[],
        metavar="KEY=VALUE",
        help="the method's own settings, such as rate=0.001 epochs=4 gamma=0.95",
    )
    made.add_argument("--validation", type=int, default=8, help="validation tasks (8)")
    made.add_argument(
        "--validation-budget",
        metavar="BUDGET",
        help="of a validation crawl (that of training)",
    )
    made.add_argument(
        "--validate-every", type=_positive, default=10_000, metavar="STEPS"
    )
    made.add_argument(
        "--patience",
        type=_positive,
        default=8,
        help="validations without improvement before it stops (8)",
    )
    made.add_argument(
        "--checkpoint-every", type=float, default=30.0, metavar="SECONDS", help="30"
    )
    made.add_argument("--out", type=Path, help="folder (runs/train/METHOD-TASK-SEED)")
    made.add_argument("--logdir", type=Path, help="for TensorBoard (below --out)")
    made.add_argument(
        "--tensorboard", action=argparse.BooleanOptionalAction, default=True
    )
    made.add_argument("--fresh", action="store_true", help="do not continue a run")
    made.add_argument(
        "--ship", action="store_true", help="put the weights where `make` finds them"
    )
    return made


def _methods() -> str:
    assert "train" in LOOPS
    return "one of " + ", ".join(METHODS)


def _positive(text: str) -> int:
    value = int(text.replace("_", ""))
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def main(arguments: Sequence[str] | None = None) -> int:
    """Train and write the weights."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    made = parser()
    chosen = made.parse_args(given)
    one_thread()
    from baselines._training import Interrupted

    console = Console(stderr=True)
    try:
        loop = prepare(chosen, given, console)
        if chosen.fresh:
            loop.file.unlink(missing_ok=True)
        weights = loop.run()
    except Interrupted:
        console.print("stopped; the same command continues")
        return 130
    except (ValueError, TypeError, OSError, NoAgentError) as error:
        made.error(str(error))
    _ship(chosen, loop.out, weights)
    console.print(f"weights: {loop.out / 'weights'}.safetensors, .json", soft_wrap=True)
    return 0


def one_thread() -> None:
    """Use one thread: faster for networks this small, and sums in a fixed order."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    import torch

    torch.set_num_threads(1)


def prepare(chosen: argparse.Namespace, given: list[str], console: Console) -> Any:
    """Make the trainer and everything around it."""
    from baselines._training import Loop
    from baselines._training_envs import make_training_batch, worlds_of
    from baselines._training_tasks import sources, validation_tasks
    from baselines._validation import Validation

    settings = read_settings(chosen.method, chosen.set)
    families = {family(task) for task in chosen.task}
    if len(families) > 1:
        raise ValueError("--task: news has weights of its own, train it alone")
    group = families.pop()
    options: dict[str, Any] = {}
    if group == "news":
        options["features"] = chosen.features or "transfer"
    found = sources(chosen.task, chosen.trace, chosen.budget, options)
    batch = make_training_batch(
        found,
        chosen.num_envs,
        slots=chosen.slots,
        foragers=chosen.foragers,
        price=chosen.price if group == "news" else 0.0,
    )
    columns = columns_of(worlds_of(batch.parts[0])[0][0])
    trainer = make_trainer(chosen, batch, columns, settings, found)
    out = chosen.out or Path("runs/train") / f"{chosen.method}-{group}-{chosen.seed}"
    skipped = ("out", "logdir", "checkpoint_every", "fresh", "ship", "tensorboard")
    identity = {
        **{k: str(v) for k, v in vars(chosen).items() if k not in skipped},
        "digests": [source.trace.digest for source in found],
        "columns": columns,
    }
    card = {
        "method": chosen.method,
        "family": group,
        "columns": columns,
        "settings": {
            "residual": bool(chosen.residual),
            "attention": bool(chosen.attention),
            **settings,
        },
        "trained_on": [
            {
                "what": source.name,
                "split": "train",
                "budget": source.budget,
                "digest": source.trace.digest,
                "licence": source.trace.meta.get("licence"),
            }
            for source in found
        ],
        "seed": chosen.seed,
        "command": "python -m baselines.train " + shlex.join(_without_paths(given)),
        "licence": SHIPPED,
    }
    console.print(
        f"{chosen.method}: {', '.join(source.name for source in found)}; "
        f"{batch.num_envs} crawls at once, {len(columns)} columns",
        highlight=False,
        soft_wrap=True,
    )
    return Loop(
        trainer,
        batch,
        Validation(
            validation_tasks(found, chosen.validation, chosen.validation_budget)
        ),
        card,
        identity,
        out,
        chosen.steps,
        logdir=(chosen.logdir or out / "tensorboard") if chosen.tensorboard else None,
        validate_every=chosen.validate_every,
        patience=chosen.patience,
        checkpoint_seconds=chosen.checkpoint_every,
        console=console,
    )


def trainer_of(method: str) -> type[Any]:
    """Return the class that trains a method."""
    if method == "prior_bandit":
        from baselines._prior import PriorTrainer

        return PriorTrainer
    if method in ("boosted_trees", "cloning"):
        from baselines._imitation import CloneTrainer, TreesTrainer

        return CloneTrainer if method == "cloning" else TreesTrainer
    if method == "masked_dqn":
        from baselines._dqn import DQNTrainer

        return DQNTrainer
    from baselines._ppo import PPOTrainer

    return PPOTrainer


def read_settings(method: str, given: Sequence[str]) -> dict[str, Setting]:
    """Read what ``--set`` gives; refuse what the method's trainer does not have."""
    settings = split_name("set:" + ",".join(given))[1] if given else {}
    arguments = inspect.signature(trainer_of(method)).parameters.values()
    own = [a.name for a in arguments if a.kind is a.KEYWORD_ONLY]
    known = [name for name in own if name not in _OPTIONS]
    for key in settings:
        if key not in known:
            raise ValueError(
                f"--set: {method} has no setting {key!r}; it has: {', '.join(known)}"
            )
    return settings


def make_trainer(
    chosen: argparse.Namespace,
    batch: Any,
    columns: list[str],
    settings: dict[str, Setting],
    found: Sequence[Source],
) -> Any:
    """Make the trainer of a method."""
    common: dict[str, Any] = {"seed": chosen.seed, **settings}
    start = Weights.load(Path(chosen.start)).arrays if chosen.start else None
    trainer = trainer_of(chosen.method)
    if chosen.method == "prior_bandit":
        return trainer(batch, columns, found, **common)
    if chosen.method == "boosted_trees":
        # A few rounds: each fits all trees anew on all that was seen so far.
        common.setdefault("rollout", max(1, chosen.steps // (5 * batch.num_envs)))
        return trainer(batch, columns, **common)
    if chosen.method == "cloning":
        return trainer(
            batch,
            columns,
            residual=chosen.residual,
            attention=chosen.attention,
            start=start,
            **common,
        )
    common |= {"total": chosen.steps, "attention": chosen.attention, "start": start}
    if chosen.method == "masked_dqn":
        if chosen.residual:
            raise ValueError(
                "--residual: Q-values are no scores, DQN learns all of them"
            )
        return trainer(batch, columns, **common)
    return trainer(batch, columns, residual=chosen.residual, **common)


def _without_paths(given: list[str]) -> list[str]:
    """Leave out where files went: the command is for others to repeat."""
    kept, skip = [], False
    for word in given:
        if word in ("--out", "--logdir"):
            skip = True
        elif skip:
            skip = False
        elif not word.startswith(("--out=", "--logdir=")) and word not in _HOW:
            kept.append(word)
    return kept


def _ship(chosen: argparse.Namespace, out: Path, weights: Weights) -> None:
    if not chosen.ship:
        return
    is_plain = chosen.method == "masked_ppo" and not chosen.residual
    method = f"{chosen.method}_plain" if is_plain else chosen.method
    name = f"{method}-{weights.card['family']}"
    for ending in (".safetensors", ".json"):
        shutil.copyfile(out / f"weights{ending}", FOLDER / f"{name}{ending}")


if __name__ == "__main__":
    warnings.filterwarnings("ignore", module="stable_baselines3")
    raise SystemExit(main())
