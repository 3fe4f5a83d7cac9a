"""Speed, as ratios against peers measured in the same run.

Machines differ and shared ones waver, so nothing here is an absolute time: every
contender takes its turn in each round, and what counts is the ratio of CPU times
within a round. Policies cost nothing: the actions were recorded in a rehearsal with
the same seed, and only the steps are timed, not the resets.

    python -m benchmarks.throughput            # the table, and JSON below runs/
    python -m benchmarks.throughput --quick    # 40k URLs only, few rounds
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import resource
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import gym_webforage
from gym_webforage.cache import cache_folder
from gym_webforage.trace import Recipe, Trace, generate, load_trace, save_trace

CARTPOLE = "CartPole-v1"
CARTPOLE_BATCH = "64 x CartPole-v1 (sync)"
REFERENCE = "reference world"  # of the tests: dicts and sets, written to be read
BATCH = 64

Round = Callable[[], tuple[float, int]]  # CPU seconds, steps


@dataclass(frozen=True)
class Bar:
    """What a contender must reach against a peer, in steps per CPU second."""

    contender: str
    peer: str
    at_least: float


BARS = (
    Bar("News 40k", CARTPOLE, 1.0),
    Bar("News 1M", CARTPOLE, 0.75),
    Bar("64 x News 40k (batch)", CARTPOLE_BATCH, 2.5),
    Bar("News 40k", REFERENCE, 15.0),
)


def rehearsed(env: gym.Env, steps: int, legal: bool) -> Round:
    """Play ``steps`` random steps once; return a round that repeats just them."""
    episodes: list[tuple[int, list[int]]] = []
    random = np.random.default_rng(0)
    left = steps
    while left > 0:
        seed = len(episodes)
        observation, _ = env.reset(seed=seed)
        actions: list[Any] = []
        ended = False
        while not ended and left > 0:
            if legal:
                choices = np.flatnonzero(observation["action_mask"])
                action = int(choices[random.integers(len(choices))])
            else:
                action = env.action_space.sample()
                action = int(action) if np.ndim(action) == 0 else tuple(action)
            actions.append(action)
            observation, _, terminated, truncated, _ = env.step(action)
            ended = bool(terminated) or bool(truncated)
            left -= 1
        episodes.append((seed, actions))

    def round_() -> tuple[float, int]:
        spent = 0.0
        step = env.step
        for seed, actions in episodes:
            result: Any = env.reset(seed=seed)
            before = time.process_time()
            for action in actions:
                result = step(action)
            spent += time.process_time() - before
            del result  # held while stepping, as a user's loop would
        return spent, steps

    return round_


def rehearsed_native(env: gym.Env, steps: int) -> Round:
    """The same for URL actions."""
    random = np.random.default_rng(0)
    _, info = env.reset(seed=0)
    actions = []
    for _ in range(steps):
        choices = info["action_set"]
        actions.append(int(choices[random.integers(len(choices))]))
        _, _, _, truncated, info = env.step(actions[-1])
        if truncated:
            break

    def round_() -> tuple[float, int]:
        env.reset(seed=0)
        step = env.step
        before = time.process_time()
        for action in actions:
            step(action)
        return time.process_time() - before, len(actions)

    return round_


def rehearsed_batch(env: gym.vector.VectorEnv, steps: int, legal: bool) -> Round:
    """The same for a batch; resets inside it are part of a step."""
    random = np.random.default_rng(0)
    observation, _ = env.reset(seed=0)
    actions = []
    for _ in range(steps):
        if legal:
            mask = observation["action_mask"]
            noise = random.random(mask.shape) * mask
            actions.append(noise.argmax(axis=1))
        else:
            actions.append(env.action_space.sample())
        observation, *_ = env.step(actions[-1])

    def round_() -> tuple[float, int]:
        result: Any = env.reset(seed=0)
        before = time.process_time()
        for action in actions:
            result = env.step(action)
        spent = time.process_time() - before
        del result
        return spent, len(actions) * env.num_envs

    return round_


def reference_round(trace: Trace, steps: int) -> Round:
    """The plain world of the tests, with its observation."""
    from gym_webforage.world import Rules
    from tests.reference import ReferenceWorld

    def make() -> Any:
        world = ReferenceWorld(trace, Rules(kind="news"), slots=128, features="state")
        world.reset(start=trace.begin, roots=trace.roots)
        return world

    world = make()
    random = np.random.default_rng(0)
    actions = []
    for _ in range(steps):
        choices = world.foragers[0].action_set()
        actions.append(int(choices[random.integers(len(choices))]))
        world.step(actions[-1])

    def round_() -> tuple[float, int]:
        world = make()
        before = time.process_time()
        for action in actions:
            world.step(action)
            world.observe(0)
        return time.process_time() - before, steps

    return round_


def large_trace(urls: int, console: Console) -> Trace:
    """Return a synthetic trace of this size without text, kept in the cache."""
    home = cache_folder("traces")
    if home is None:
        home = Path(tempfile.mkdtemp())
    recipe = Recipe(urls=urls, text=False)
    folder = home / f"synthetic-{urls}-{recipe.checksum()}"
    if not (folder / "meta.json").is_file():
        with console.status(f"Generating a trace of {urls:,} URLs (first time only)"):
            save_trace(generate(recipe, f"synthetic-{urls}"), folder, overwrite=True)
    return load_trace(folder)


def contenders(quick: bool, console: Console) -> dict[str, Round]:
    """Return what takes part, by name."""
    news = load_trace("synthetic-v0")
    made: dict[str, Round] = {
        CARTPOLE: rehearsed(gym.make(CARTPOLE), 6000, legal=False),
        CARTPOLE_BATCH: rehearsed_batch(
            gym.make_vec(CARTPOLE, BATCH, vectorization_mode="sync"), 100, legal=False
        ),
        "News 40k": rehearsed(gym.make("WebForage/News-v0", trace=news), 6000, True),
        "News 40k, URL actions": rehearsed_native(
            gym.make("WebForage/News-v0", trace=news, slots=None), 1000
        ),
        "Topic 40k": rehearsed(gym.make("WebForage/Topic-v0"), 3000, True),
        "Spider 40k": rehearsed(gym.make("WebForage/Spider-v0"), 3000, True),
        "64 x News 40k (batch)": rehearsed_batch(
            gym.make_vec("WebForage/News-v0", BATCH, trace=news), 150, True
        ),
        "64 x Topic 40k (batch)": rehearsed_batch(
            gym.make_vec("WebForage/Topic-v0", BATCH), 60, True
        ),
    }
    if importlib.util.find_spec("tests") and importlib.util.find_spec("hypothesis"):
        made[REFERENCE] = reference_round(news, 150)
    if importlib.util.find_spec("lbforaging"):
        import lbforaging  # noqa: F401  # pyright: ignore[reportMissingImports]

        env = gym.make("Foraging-8x8-2p-3f-v3", disable_env_checker=True)
        made["lb-foraging 8x8-2p-3f"] = rehearsed(env, 1000, legal=False)
    if not quick:
        million = large_trace(1_000_000, console)
        made["News 1M"] = rehearsed(
            gym.make("WebForage/News-v0", trace=million), 6000, True
        )
        made["64 x News 1M (batch)"] = rehearsed_batch(
            gym.make_vec("WebForage/News-v0", BATCH, trace=million), 150, True
        )
    return made


def resident_kilobytes() -> int:
    """Return how much memory this process holds now (Linux; else its peak)."""
    try:
        text = Path("/proc/self/smaps_rollup").read_text()
        return int(text.split("Rss:")[1].split()[0])
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def private_kilobytes() -> int:
    """Return how much of it is this process's alone (Linux)."""
    text = Path("/proc/self/smaps_rollup").read_text()
    return sum(
        int(text.split(f"{kind}:")[1].split()[0])
        for kind in ("Private_Clean", "Private_Dirty")
    )


def memory(trace: str, steps: int = 2000) -> dict[str, float]:
    """Open a trace in a fresh process, crawl it, fork a worker that crawls it too."""
    import subprocess

    code = (
        "import json; from benchmarks.throughput import _memory_here; "
        f"print(json.dumps(_memory_here({trace!r}, {steps})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def _memory_here(path: str, steps: int) -> dict[str, float]:
    import gym_webforage.envs

    before = resident_kilobytes()
    clock = time.perf_counter()
    trace = load_trace(path)
    opened = time.perf_counter() - clock
    env = gym_webforage.envs.NewsEnv(trace)
    round_ = rehearsed(env, steps, legal=True)
    round_()
    resident = resident_kilobytes()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        start = private_kilobytes()
        round_()
        os.write(writer, str(private_kilobytes() - start).encode())
        os._exit(0)
    os.waitpid(child, 0)
    added = int(os.read(reader, 64))
    return {
        "open seconds": opened,
        "resident MB": resident / 1024,
        "of which before opening MB": before / 1024,
        "forked worker adds MB": added / 1024,
    }


def measure(
    rounds: int, made: dict[str, Round], console: Console
) -> dict[str, list[float]]:
    """Return CPU microseconds a step, one number a round."""
    found: dict[str, list[float]] = {name: [] for name in made}
    for round_ in made.values():
        round_()  # warm up: caches, branch predictors, the other core's frequency
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("Measuring", total=rounds * len(made))
        for _ in range(rounds):
            for name, round_ in made.items():
                seconds, steps = round_()
                found[name].append(seconds / steps * 1e6)
                progress.advance(task)
    return found


def ratios(found: dict[str, list[float]], name: str, peer: str) -> list[float]:
    """Return how many times as fast ``name`` is as ``peer``, round by round."""
    return [b / a for a, b in zip(found[name], found[peer], strict=True)]


def spread(values: list[float]) -> tuple[float, float, float]:
    """Return the median and the quartiles."""
    if len(values) < 2:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return middle, low, high


def table(found: dict[str, list[float]]) -> Table:
    """Return what a person reads."""
    shown = Table(title="CPU time per step, and speed as a multiple of the peers'")
    shown.add_column("contender")
    shown.add_column("µs a step", justify="right")
    peers = [p for p in (CARTPOLE, CARTPOLE_BATCH, REFERENCE) if p in found]
    heads = {CARTPOLE: "x CartPole", CARTPOLE_BATCH: "x 64 CartPoles"}
    for peer in peers:
        shown.add_column(heads.get(peer, "x reference"), justify="right")
    for name in found:
        cells = [name, f"{spread(found[name])[0]:.2f}"]
        for peer in peers:
            middle, low, high = spread(ratios(found, name, peer))
            digits = 0 if peer == REFERENCE and middle > 10 else 2
            cells.append(f"{middle:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})")
        shown.add_row(*cells)
    shown.caption = "median (quartiles) over rounds; each ratio within one round"
    return shown


def main() -> int:
    """Measure, print the table, write JSON; say which bars are met."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.throughput",
        description="Measure CPU time per step as ratios against peers in one run.",
    )
    parser.add_argument("--rounds", type=int, default=15, help="turns (default 15)")
    parser.add_argument("--quick", action="store_true", help="40k URLs, 5 rounds")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("runs/throughput.json"),
        help="where the JSON goes (default %(default)s)",
    )
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # peers' own
    console = Console(width=None if sys.stdout.isatty() else 110)
    with console.status("Preparing: traces, compiled kernels, recorded actions"):
        made = contenders(arguments.quick, console)
    rounds = min(5, arguments.rounds) if arguments.quick else arguments.rounds
    found = measure(max(1, rounds), made, console)
    console.print(table(found))

    verdicts = []
    for bar in BARS:
        if bar.contender not in found or bar.peer not in found:
            continue
        ratio = spread(ratios(found, bar.contender, bar.peer))[0]
        met = ratio >= bar.at_least
        verdicts.append({**asdict(bar), "measured": ratio, "met": met})
        console.print(
            f"{'met ' if met else 'MISSED'}  {bar.contender}: {ratio:.2f} x {bar.peer} "
            f"(bar {bar.at_least})"
        )
    memories = {}
    if not arguments.quick and Path("/proc/self/smaps_rollup").exists():
        path = large_trace(1_000_000, console).path
        memories = memory(str(path))
        for name, value in memories.items():
            console.print(f"1M URLs, {name}: {value:.2f}")
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    result = {
        "version": gym_webforage.__version__,
        "python": platform.python_version(),
        "microseconds": found,
        "bars": verdicts,
        "memory": memories,
    }
    arguments.out.write_text(json.dumps(result, indent=2) + "\n")
    console.print(f"Written to {arguments.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
