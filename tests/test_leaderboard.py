"""The leaderboard end to end on small tasks: it survives, continues and publishes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import baselines
from benchmarks import publish
from benchmarks.assemble import make_board
from benchmarks.code import checksum
from benchmarks.leaderboard import main
from benchmarks.runs import Job
from benchmarks.standings import report
from benchmarks.tasks import QUICK, TASKS, Fleet, Task, chosen, tasks_on
from benchmarks.verify import differences
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
        row.pop("made", None)
    return found


def timeless(file: Path) -> str:
    """Return a board without what the clock says."""
    return re.sub(r'"cpu_seconds": [^,]+', "", file.read_text())


# --- end to end


def test_it_runs_ranks_and_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agents = ["best_first", "breadth_first", "oracle", "random_walk"]
    command = ["--quick", "--seeds", "2", "--tasks", "quick-news", "--agents", *agents]
    command += ["--out", str(tmp_path)]
    assert main(command) == 0
    printed = capsys.readouterr().out
    first = rows(tmp_path)
    total = 2 * len(agents)
    assert len(first) == total
    assert f"[{total}/{total}] quick-news, " in printed
    assert f"{total} runs to make, about" in printed
    assert "News: novel pages" in printed
    last = printed.rstrip().splitlines()[-1]
    assert last.startswith(f"The report is {tmp_path / 'leaderboard.md'}")
    assert last.endswith((tmp_path / "leaderboard.html").as_uri())
    report = (tmp_path / "leaderboard.md").read_text()
    assert "## quick-news: novel pages in 2h on synthetic-small-v0" in report
    for name in agents:
        assert f"\n| {name}" in report
    assert "\n| oracle * |" in report
    page = (tmp_path / "leaderboard.html").read_text()
    assert "breadth_first" in page and "<html" in page

    # Nothing to do.
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert f"{total} of {total} runs are there already" in printed
    assert "[1/" not in printed
    assert (tmp_path / "leaderboard.md").read_text() == report

    figures = timeless(tmp_path / "board.json")
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
    again = timeless(tmp_path / "board.json")
    assert again == figures


def test_failures_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    acts = {
        "raising": 'raise RuntimeError("lost my way")',
        "dying": "import os; os._exit(3)",
        "fine": "pass",
    }
    command = ["--quick", "--seeds", "1", "--tasks", "quick-spider"]
    command += ["--agents", "random_walk", "--out", str(tmp_path)]
    for name, act in acts.items():
        file = tmp_path / f"{name}.py"
        file.write_text(AGENT.format(act=act))
        command += ["--agent", str(file)]
    (tmp_path / "broken.py").write_text("import no_such_module_anywhere\n")
    command += ["--agent", str(tmp_path / "broken.py")]
    assert main(command) == 1
    printed = capsys.readouterr().out
    assert printed.count("1 of 1") == 3
    assert "failed: quick-spider, raising, seed 0: RuntimeError: lost my way" in printed
    assert "dying, seed 0: the process ended with exit code 3" in printed
    assert "No module named 'no_such_module_anywhere'" in printed
    report = (tmp_path / "leaderboard.md").read_text()
    assert "Traceback (most recent call last)" in report
    assert 'raise RuntimeError("lost my way")' in report
    page = (tmp_path / "leaderboard.html").read_text()
    assert "RuntimeError: lost my way" in page
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
    command += ["--seeds", "1", "--tasks", "quick-news", "--agents", "random_walk"]
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


def test_kill_costs_what_is_under_way(tmp_path: Path) -> None:
    """A worker is killed, then the parent: no process lives on, no row is lost."""
    hold, pids = tmp_path / "hold", tmp_path / "pids"
    pids.mkdir()
    act = (
        "import os",
        f"hold = Path({str(hold)!r})",
        f"hold.exists() and Path({str(pids)!r}, str(os.getpid())).touch()",
        "while hold.exists(): time.sleep(0.05)",
    )
    agent = tmp_path / "held.py"
    agent.write_text(AGENT.format(act="\n        ".join(act)))

    def command(out: Path) -> list[str]:
        line = [sys.executable, "-m", "benchmarks.leaderboard", "--quick", "--out"]
        line += [str(out), "--seeds", "2", "--tasks", "quick-topic", "--agents"]
        return [*line, "random_walk", "--agent", str(agent), "--workers", "1"]

    whole = tmp_path / "whole"
    unbroken = subprocess.run(command(whole), cwd=ROOT, capture_output=True, text=True)
    assert unbroken.returncode == 0, unbroken.stderr

    hold.touch()
    broken = tmp_path / "broken"
    log = tmp_path / "log.txt"
    with log.open("w") as stream:
        process = subprocess.Popen(
            command(broken),
            cwd=ROOT,
            stdout=stream,
            stderr=stream,
            start_new_session=True,  # so that all of its processes have one group
        )
        try:
            _until(lambda: len(list(pids.iterdir())) == 1, log)
            os.kill(int(next(pids.iterdir()).name), signal.SIGKILL)
            _until(lambda: len(list(pids.iterdir())) == 2, log)
            process.kill()
            process.wait()
            _until(lambda: not _living(process.pid), log)
        finally:
            if _living(process.pid):
                os.killpg(process.pid, signal.SIGKILL)
    kept = {row["agent"]: row for row in rows(broken).values() if row["seed"] == 0}
    assert kept["held"]["traceback"] == "the process ended with exit code -9\n"
    finished = {
        file: file.stat().st_mtime_ns
        for file in (broken / "rows").iterdir()
        if json.loads(file.read_text())["status"] == "done"
    }
    assert len(finished) == 4  # two agents with two seeds
    hold.unlink()
    again = subprocess.run(command(broken), cwd=ROOT, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert "4 of 6 runs are there already" in again.stdout
    assert {file: file.stat().st_mtime_ns for file in finished} == finished
    assert rows(broken) == rows(whole)
    assert timeless(broken / "board.json") == timeless(whole / "board.json")


def _until(condition: Callable[[], bool], log: Path) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError(log.read_text())


def _living(group: int) -> bool:
    """Say whether any process of a group is there."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tasks", "chess"], "there is no task 'chess'"),
        (["--agents", "nobody"], "there is no agent 'nobody'"),
        (["--agent", "no_such.module"], "there is no agent"),
        (["--seeds", "0"], "not a positive number"),
        (["--agent", "baselines/oracle.py"], "the same name"),
        (["--agent", "tests/toys.py"], "toys.py offers no make(env, seed)"),
        (["--agent", "linucb:alphas=1"], "no setting 'alphas'; it has: ridge, gamma"),
        (["--quick", "--full"], "not allowed with argument"),
        (
            ["--quick", "--tasks", "topic-python"],
            "among the quick tasks there is no task 'topic-python': quick-news",
        ),
        (["verify", "--workers", "0"], "'0' is not a positive number"),
        (["verify", "--sample", "-3"], "'-3' is not a positive number"),
    ],
)
def test_mistakes_are_named(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


# --- tasks


def test_tasks_are_what_they_say() -> None:
    assert len({task.id for task in TASKS}) == len(TASKS)
    for task in QUICK:
        env = task.make(slots=8).unwrapped
        inner = env if task.fleet is None else env.crew
        assert inner.episodes.split == "test"
        assert inner.rules.budget == task.budget
        assert inner.trace.name == task.trace
        assert Task.from_key(json.loads(json.dumps(task.key))) == task
    groups = {task.group for task in TASKS}
    assert groups >= {"news", "topic", "spider", "fleet-news"}
    assert {task.group for task in TASKS if task.core} >= {"news", "topic", "spider"}


def test_tasks_are_chosen_by_id_or_group() -> None:
    assert [task.id for task in chosen(TASKS, ["news-calm"])] == ["news-calm"]
    assert {task.group for task in chosen(TASKS, ["topic"])} == {"topic"}
    with pytest.raises(LookupError, match="there is no task 'chess'"):
        chosen(TASKS, ["chess"])


def test_a_trace_says_which_tasks_it_is_for() -> None:
    def kinds(name: str) -> dict[str, Task]:
        return {task.kind: task for task in tasks_on(name)}

    assert set(kinds("python-docs-v0")) == {"topic", "spider"}
    found = kinds("sqlalchemy-docs-v0")
    assert set(found) == {"news", "topic"}
    assert dict(found["news"].options)["fetch_seconds"] == 86_400
    assert found["topic"].budget == 47  # a fifth of its pages
    assert kinds("synthetic-small-v0")["news"].options == ()


def test_traces_of_users_join(tmp_path: Path) -> None:
    from gym_webforage import load_trace, save_trace

    save_trace(
        load_trace("synthetic-small-v0").renamed("mine-v0"), tmp_path / "mine-v0"
    )
    command = ["--quick", "--tasks", "topic-mine-v0", "--agents", "best_first"]
    command += ["--traces", str(tmp_path / "mine-v0"), "--seeds", "1"]
    assert main([*command, "--out", str(tmp_path)]) == 0
    assert {row["task"]["trace"] for row in rows(tmp_path).values()} == {"mine-v0"}
    assert str(tmp_path) not in (tmp_path / "leaderboard.md").read_text()


# --- rows


def test_a_row_belongs_to_its_key(tmp_path: Path) -> None:
    task = Task("t", "topic", "trace", 10)
    job = Job(task, "random_walk", 0, "digest", "code")
    others = [
        Job(Task("t", "topic", "trace", 11), "random_walk", 0, "digest", "code"),
        Job(
            Task("t", "topic", "trace", 10, fleet=Fleet(2)),
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
    assert [read_row(other, tmp_path) for other in others] == [None] * 6
    elsewhere = Job(task, "random_walk", 0, "digest", "code", command="other words")
    assert read_row(elsewhere, tmp_path) == {"status": "done"}


def test_the_checksum_follows_what_a_method_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in baselines.FOLDER.glob("*.py"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.setattr(baselines, "FOLDER", tmp_path)
    before = {name: checksum(name) for name in ("weblog", "breadth_first")}
    (tmp_path / "_new.py").write_text("")
    (tmp_path / "newcomer.py").write_text("from baselines import _new\n")
    assert {name: checksum(name) for name in before} == before
    (tmp_path / "_greedy.py").write_text("# changed\n")  # through _forager
    assert checksum("weblog") != before["weblog"]
    assert checksum("breadth_first") == before["breadth_first"]
    newcomer = checksum("newcomer")
    (tmp_path / "_new.py").write_text("# changed\n")
    assert checksum("newcomer") != newcomer


def test_fleets_take_those_that_can(tmp_path: Path) -> None:
    alone = tmp_path / "alone.py"
    alone.write_text(
        "from baselines import random_walk\n"
        "from baselines.agent import forage_env\n\n\n"
        "def make(env, seed):\n"
        "    forage_env(env)\n"
        "    return random_walk.make(env, seed)\n"
    )
    barren = tmp_path / "barren.py"
    barren.write_text(AGENT.format(act="pass"))
    command = ["--quick", "--seeds", "1", "--tasks", "quick-fleet", "--out"]
    command += [str(tmp_path), "--agents", "weblog", "breadth_first", "best_first"]
    assert main([*command, "--agent", str(alone), "--agent", str(barren)]) == 0
    by_agent = {row["agent"]: row for row in rows(tmp_path).values()}
    assert by_agent["alone"]["reason"] == "made for one crawler alone"
    assert by_agent["barren"]["reason"] == "its agents do not divide"
    for name in ("weblog", "breadth_first", "best_first", "random_walk", "oracle"):
        assert by_agent[name]["status"] == "done"
        assert by_agent[name]["result"]["course"]["population"][0] == 2
    found = {
        name: row["result"]["found"]
        for name, row in by_agent.items()
        if "result" in row
    }
    assert found["oracle"] == max(found.values())
    report = (tmp_path / "leaderboard.md").read_text()
    assert "| barren" not in report and "| alone" not in report


# --- publishing and verifying


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made")
    command = ["--quick", "--seeds", "2", "--agents", "best_first"]
    assert main([*command, "--out", str(out), "--logdir", str(out / "logs")]) == 0
    return out


def test_what_is_published_is_made_from_its_rows(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "ROWS", tmp_path / "results" / "rows.jsonl.gz")
    monkeypatch.setattr(publish, "REPORT", tmp_path / "LEADERBOARD.md")
    found = [json.loads(file.read_text()) for file in (made / "rows").iterdir()]
    readme = tmp_path / "README.md"
    readme.write_text(
        "before\n<!-- leaderboard -->\nold\n<!-- /leaderboard -->\nafter\n"
    )
    written = publish.publish(found, readme)
    assert [file.name for file in written] == [
        "rows.jsonl.gz",
        "LEADERBOARD.md",
        "README.md",
    ]
    board = make_board(publish.read_published())
    assert (tmp_path / "LEADERBOARD.md").read_text() == report(board)
    text = readme.read_text()
    assert text.startswith("before\n<!-- leaderboard -->\n")
    assert text.endswith("<!-- /leaderboard -->\nafter\n")
    assert "| oracle * | 1.00 | 1.00 | 1.00 | 1.00 |" in text and "old" not in text
    # Packing again changes nothing, whatever the order.
    content = publish.ROWS.read_bytes()
    assert publish.pack(found[::-1]) == content
    assert publish.pack(publish.unpack(content)) == content


def test_the_published_leaderboard_is_that_of_its_rows() -> None:
    if not publish.ROWS.is_file():
        pytest.skip("no leaderboard has been published yet")
    board = make_board(publish.read_published())
    assert publish.REPORT.read_text() == report(board)
    readme = publish.README.read_text()
    assert publish.fill(readme, publish.block(board)) == readme


def test_verify_tells_what_differs(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in sorted((made / "rows").glob("quick-spider-*")):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    command = ["verify", "--rows", str(tmp_path), "--sample", "4", "--workers", "1"]
    assert main(command) == 0
    assert "4 of 4 rows are the same" in capsys.readouterr().out
    forged = next(tmp_path.glob("quick-spider-best_first-*"))
    row = json.loads(forged.read_text())
    row["result"]["found"] += 1
    forged.write_text(json.dumps(row))
    assert main([*command[:-3], "9", "--workers", "1"]) == 1
    printed = capsys.readouterr().out
    was = row["result"]["found"]
    assert f"result.found was {was}, and is {was - 1} now" in printed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"agent": "nobody"}, "say where it stands: --agent MODULE"),
        ({"trace": "nowhere-v0"}, "Say where it stands: --traces PATH"),
    ],
)
def test_verify_asks_for_what_it_cannot_find(
    change: dict[str, str],
    message: str,
    made: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    row = json.loads(next((made / "rows").glob("quick-spider-*")).read_text())
    (row if "agent" in change else row["task"]).update(change)
    (tmp_path / "row.json").write_text(json.dumps(row))
    with pytest.raises(SystemExit) as stopped:
        main(["verify", "--rows", str(tmp_path)])
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert message in said and next(iter(change.values())) in said


def test_differences_pass_over_the_clock() -> None:
    old = {"timing": {"cpu_seconds": 1}, "result": {"a": [1, 2], "b": 1.0}}
    new = {"timing": {"cpu_seconds": 2}, "result": {"a": [1, 2], "b": 1.0}, "more": 1}
    assert list(differences(old, new)) == []
    new["result"] = {"a": [1, 3]}
    assert list(differences(old, new)) == [
        "result.a was [1, 2], and is [1, 3] now",
        "result.b was 1.0, and is None now",
    ]


def test_runs_can_be_watched_in_tensorboard(made: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for task in ("news", "topic", "spider", "fleet"):
        place = made / "logs" / f"quick-{task}" / "best_first"
        found = EventAccumulator(str(place)).Reload()
        curve = [event.value for event in found.Scalars("found/mean")]
        assert len(curve) == 21 and curve == sorted(curve)
        assert found.Scalars("result/found")[0].value == curve[-1]
        written = b"".join(file.read_bytes() for file in place.iterdir())
        assert b"_hparams_/session_start_info" in written
