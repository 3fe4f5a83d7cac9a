"""The leaderboard end to end on small tasks, and its figures by hand."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import baselines
from benchmarks.leaderboard import main
from benchmarks.runs import Job
from benchmarks.standings import interval, markdown, rank, task_table
from benchmarks.tasks import QUICK, TASKS, Task
from benchmarks.work import read_row, write_row

ROOT = Path(__file__).parents[1]

AGENT = """
import time
from pathlib import Path

from baselines.agent import Agent


class Mine(Agent):
    def act(self, observation, info):
        {act}
        return int(info["action_set"][-1])


def make(env, seed):
    return Mine()
"""


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("OMP", "MKL", "OPENBLAS"):  # which the command sets
        monkeypatch.setenv(f"{library}_NUM_THREADS", "1")


def rows(out: Path) -> dict[str, dict[str, Any]]:
    """Return what all rows say, without what the clock says."""
    found = {
        file.name: json.loads(file.read_text()) for file in (out / "rows").iterdir()
    }
    for row in found.values():
        del row["timing"]
    return found


# --- end to end


def test_it_runs_ranks_and_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["--quick", "--seeds", "2", "--tasks", "news", "--out", str(tmp_path)]
    assert main(command) == 0
    printed = capsys.readouterr().out
    first = rows(tmp_path)
    total = 2 * len(baselines.names())
    assert len(first) == total
    assert f"[{total}/{total}] quick-news, " in printed
    assert "quick-news: novel pages in 2h" in printed
    assert f"The report is {tmp_path / 'leaderboard.md'}" in printed
    report = (tmp_path / "leaderboard.md").read_text()
    for name in baselines.names():
        assert f"\n| {name}" in report
    assert "\n| oracle * |" in report

    # Nothing to do.
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert f"{total} of {total} runs are there already" in printed
    assert "[1/" not in printed
    assert (tmp_path / "leaderboard.md").read_text() == report

    # One row is gone, one is broken, as an interruption of another kind leaves them.
    gone, broken = sorted((tmp_path / "rows").iterdir())[:2]
    gone.unlink()
    broken.write_text("{")
    times = {file: file.stat().st_mtime_ns for file in (tmp_path / "rows").iterdir()}
    assert main(command) == 0
    assert "[2/2] quick-news, " in capsys.readouterr().out
    assert rows(tmp_path) == first
    changed = {file for file, at in times.items() if file.stat().st_mtime_ns != at}
    assert changed == {broken}

    # All anew, with other processes and in another order: the same figures.
    assert main([*command, "--fresh", "--workers", "1"]) == 0
    assert f"[{total}/{total}]" in capsys.readouterr().out
    assert rows(tmp_path) == first


def test_failures_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    acts = {
        "raising": 'raise RuntimeError("lost my way")',
        "dying": "import os; os._exit(3)",
        "fine": "pass",
    }
    command = ["--quick", "--seeds", "1", "--tasks", "spider"]
    command += ["--agents", "random_walk", "--out", str(tmp_path)]
    for name, act in acts.items():
        file = tmp_path / f"{name}.py"
        file.write_text(AGENT.format(act=act))
        command += ["--agent", str(file)]
    (tmp_path / "broken.py").write_text("import no_such_module_anywhere\n")
    command += ["--agent", str(tmp_path / "broken.py")]
    assert main(command) == 1
    printed = capsys.readouterr().out
    assert printed.count("failed (1 of 1)") == 3
    assert "failed: quick-spider, raising, seed 0: RuntimeError: lost my way" in printed
    assert "dying, seed 0: the process ended with exit code 3" in printed
    assert "No module named 'no_such_module_anywhere'" in printed
    report = (tmp_path / "leaderboard.md").read_text()
    assert "Traceback (most recent call last)" in report
    assert 'raise RuntimeError("lost my way")' in report
    by_agent = {row["agent"]: row for row in rows(tmp_path).values()}
    assert len(by_agent) == 6
    assert by_agent["fine"]["status"] == "done"
    assert by_agent["fine"]["result"]["fetches"] == 100
    assert {name for name, row in by_agent.items() if row["status"] == "failed"} == {
        "raising",
        "dying",
        "broken",
    }


def test_ctrl_c_keeps_what_is_finished(tmp_path: Path) -> None:
    slow = tmp_path / "is_slow"
    slow.touch()
    agent = tmp_path / "sleepy.py"
    act = f"Path({str(slow)!r}).exists() and time.sleep(60)"
    agent.write_text(AGENT.format(act=act))
    command = [sys.executable, "-m", "benchmarks.leaderboard", "--quick"]
    command += ["--seeds", "1", "--tasks", "news", "--agents", "random_walk"]
    command += ["--agent", str(agent), "--out", str(tmp_path)]
    log = tmp_path / "log.txt"
    with log.open("w") as stream:
        process = subprocess.Popen(command, cwd=ROOT, stdout=stream, stderr=stream)
        try:
            # The two others finish; then only the sleeper is left.
            for _ in range(600):
                if log.read_text().count("[2/3]") or process.poll() is not None:
                    break
                time.sleep(0.1)
            os.kill(process.pid, signal.SIGINT)
            assert process.wait(30) == 130, log.read_text()
        finally:
            process.kill()
            process.wait()
    said = log.read_text()
    assert "Finished runs are kept" in said
    assert "Traceback" not in said
    assert {row["agent"] for row in rows(tmp_path).values()} == {
        "random_walk",
        "oracle",
    }
    slow.unlink()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "2 of 3 runs are there already" in done.stdout
    assert "[1/1] quick-news, sleepy, seed 0" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tasks", "chess"], "there is no task 'chess'"),
        (["--agents", "nobody"], "there is no agent 'nobody'"),
        (["--agent", "no_such.module"], "there is no agent"),
        (["--seeds", "0"], "not a positive number"),
        (["--agent", "baselines/oracle.py"], "the same name"),
    ],
)
def test_mistakes_are_named(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


# --- tasks and rows


def test_tasks_are_what_they_say() -> None:
    assert [task.id for task in QUICK] == [f"quick-{task.id}" for task in TASKS]
    for task in QUICK:
        env = task.make(slots=8).unwrapped
        assert env.episodes.split == "test"
        assert env.rules.budget == task.budget
        assert env.trace.name == task.trace


def test_a_row_belongs_to_its_key(tmp_path: Path) -> None:
    task = Task("t", "WebForage/Topic-v0", "trace", 10, "pages")
    job = Job(task, "random_walk", 0, "digest", "code")
    others = [
        Job(
            Task("t", task.env, "trace", 11, "pages"),
            "random_walk",
            0,
            "digest",
            "code",
        ),
        Job(task, "oracle", 0, "digest", "code"),
        Job(task, "random_walk", 1, "digest", "code"),
        Job(task, "random_walk", 0, "other", "code"),
        Job(task, "random_walk", 0, "digest", "other"),
    ]
    write_row(job, tmp_path, {"status": "done"})
    assert read_row(job, tmp_path) == {"status": "done"}
    assert len(list(tmp_path.iterdir())) == 1  # nothing is left beside it
    assert [read_row(other, tmp_path) for other in others] == [None] * 5


# --- figures by hand


def row(agent: str, seed: int, found: int | None) -> dict[str, Any]:
    made: dict[str, Any] = {"agent": agent, "seed": seed, "task": {"id": "t"}}
    made["timing"] = {"cpu_seconds": 0.5, "wall_seconds": 1.0}
    if found is None:
        return {**made, "status": "failed", "traceback": "Error: no\n"}
    result = {"found": found, "area": found / 2, "fetches": 100}
    result["summary"] = {"illegal": 0}
    privileged = agent == "oracle"
    made |= {"privileged": privileged, "training_fetches": 0, "result": result}
    return {**made, "status": "done"}


def test_scores_are_scaled_for_each_seed() -> None:
    # Seed 0 runs from 10 to 30, seed 1 from 0 to 10.
    table = {
        "random_walk": (10, 0),
        "oracle": (30, 10),
        "mine": (20, 12),
        "bad": (5, 0),
    }
    made = [row(name, i, n) for name, pair in table.items() for i, n in enumerate(pair)]
    ranked = {standing.agent: standing.scores for standing in rank(made)}
    assert ranked == {
        "oracle": [1, 1],
        "mine": [0.5, 1.2],
        "random_walk": [0, 0],
        "bad": [-0.25, 0],
    }
    assert list(ranked) == ["oracle", "mine", "random_walk", "bad"]
    cells = {line[0]: line for line in task_table(rank(made))}
    # Two values 0.7 apart: standard error 0.35, Student's t at one degree 12.706.
    assert cells["mine"][1:] == [
        "16.0 (12-20)",
        "8.0",
        "0.850 ± 4.447",
        "0.500 to 1.200",
        "100",
        "0.5",
    ]
    assert cells["oracle *"][3] == "1.000"


def test_whoever_fails_once_has_no_score() -> None:
    made = [row(name, 0, n) for name, n in (("random_walk", 0), ("oracle", 4))]
    made += [row(name, 1, n) for name, n in (("random_walk", 0), ("oracle", 4))]
    made += [row("mine", 0, 4), row("mine", 1, None)]
    last = rank(made)[-1]
    assert (last.agent, last.score, last.failed) == ("mine", None, 1)
    assert task_table(rank(made))[-1][:4] == [
        "mine",
        "4.0 (4-4)",
        "2.0",
        "failed (1 of 2)",
    ]


def test_without_a_scale_there_is_no_score() -> None:
    same = [row("random_walk", 0, 4), row("oracle", 0, 4), row("mine", 0, 5)]
    missing = [row("random_walk", 0, 4), row("oracle", 0, None), row("mine", 0, 5)]
    for made in (same, missing):
        assert {standing.score for standing in rank(made)} == {None}
    assert rank(same)[0].agent == "mine"  # by what was found


def test_intervals_and_tables() -> None:
    assert interval([1.0]) is None
    assert interval([1.0, 1.0, 1.0]) == 0
    assert interval([0.0, 1.0, 2.0]) == pytest.approx(4.3027 / 3**0.5, rel=1e-4)
    text = markdown([["agent", "found"], ["a", "1"]])
    assert text == "| agent | found |\n| --- | ---: |\n| a | 1 |"


def test_runs_can_be_watched_in_tensorboard(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    logs = tmp_path / "logs"
    options = ["--quick", "--seeds", "1", "--agents", "random_walk", "--workers", "1"]
    places = ["--out", str(tmp_path / "out"), "--logdir", str(logs)]
    assert main([*options, *places]) == 0
    for task in ("news", "topic", "spider"):
        found = EventAccumulator(str(logs / f"quick-{task}-random_walk-0")).Reload()
        assert "reward" in found.Tags()["scalars"]
