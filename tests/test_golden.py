"""Golden crawls: what each baseline does on each toy web, one line a visit.

After a change that is meant, look at the difference of what this writes:

    python -m tests.test_golden
"""

from __future__ import annotations

from pathlib import Path

import pytest

import baselines
from baselines.agent import Transition, run_episode
from tests.toys import TOYS

FOLDER = Path(__file__).parent / "golden"
CASES = [
    (toy, name)
    for toy in TOYS
    for name in baselines.names()
    if TOYS[toy]().world.rules.kind in baselines.kinds(name)
    and not baselines.trains(name)
]


def crawl(toy: str, name: str) -> str:
    """Return a crawl as text."""
    env = TOYS[toy]()
    agent = baselines.load(name).make(env, 0)
    lines = [f"# {TOYS[toy].__doc__}", "# visit, seconds, fetches, reward, URL"]
    start: list[int] = []

    def write(step: Transition) -> None:
        seconds = (step.info["clock"] - env.world.start) / 1000
        start.append(step.action)
        lines.append(
            f"{len(start):3d} {seconds:7.1f} {step.info['fetches']:4d} "
            f"{step.reward:8.3f}  {env.trace.urls[step.action]}"
        )

    result = run_episode(env, agent, seed=0, on_step=write)
    lines.append(f"# {result.found} found")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("toy", "name"), CASES)
def test_crawl_is_as_recorded(toy: str, name: str) -> None:
    golden = FOLDER / f"{toy}-{name}.txt"
    assert golden.is_file(), "run python -m tests.test_golden, and look at the file"
    assert crawl(toy, name) == golden.read_text()


def test_no_golden_file_is_left_over() -> None:
    assert {f"{toy}-{name}.txt" for toy, name in CASES} == {
        file.name for file in FOLDER.iterdir()
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for toy, name in CASES:
        (FOLDER / f"{toy}-{name}.txt").write_text(crawl(toy, name))
