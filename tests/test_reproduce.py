"""The papers' experiments end to end on little, and their verdicts by hand."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.reproduce import __main__ as command
from benchmarks.reproduce import course, evolution, selection, verdicts
from benchmarks.reproduce.fleets import FleetRun, Web, as_web, read_series, rewired_web
from benchmarks.reproduce.results import Variant, per_cent, unique
from benchmarks.reproduce.verdicts import FAILS, HOLDS, OPEN, Interval
from gym_webforage import fleet_v0, load_trace
from gym_webforage.metrics import HOUR, NOVEL, SENT, VISITED
from gym_webforage.trace import Trace
from tests.test_metrics import log

DAY = 24 * HOUR


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("OMP", "MKL", "OPENBLAS"):  # which the command sets
        monkeypatch.setenv(f"{library}_NUM_THREADS", "1")


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the experiments be even smaller than quick ones."""
    monkeypatch.setattr(selection, "QUICK_BUDGET", "7h")
    monkeypatch.setattr(evolution, "QUICK_BUDGET", "7h")
    monkeypatch.setattr(selection, "VARIANTS", selection.VARIANTS[:1])
    monkeypatch.setattr(evolution, "VARIANTS", evolution.VARIANTS[:1])


def contents(out: Path) -> dict[str, bytes]:
    """Return all that must be the same whenever it is made."""
    found = {}
    for file in sorted(out.rglob("*.*")):
        data = file.read_bytes()
        if file.suffix == ".json":
            row = json.loads(data)
            del row["timing"]
            data = json.dumps(row).encode()
        if file.suffix == ".md":
            data = re.sub(rb"\| CPU seconds a run .*", b"", data)
        found[str(file.relative_to(out))] = data
    return found


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("paper", ["selection", "evolution"])
def test_it_runs_reports_and_continues(
    paper: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [paper, "--quick", "--out", str(tmp_path)]
    assert command.main(arguments) == 0
    printed = capsys.readouterr().out
    total = {"selection": 2 * 2 * 3 + 2 * 2 * 2, "evolution": 2 * 2 * 2 + 2}[paper]
    assert f"[{total}/{total}] " in printed
    first = contents(tmp_path)
    rows = [name for name in first if name.endswith(".json")]
    assert len(rows) == total
    report = first["report.md"].decode()
    assert "CPU seconds a run" in (tmp_path / "report.md").read_text()
    assert "Failed" not in report and "nan" not in report
    for file in re.findall(r"\]\((.+?)\)", report):
        assert first[file].startswith(b"\x89PNG"), file
    assert all(verdict in report for verdict in (HOLDS, FAILS, OPEN))

    # A row is gone, and one was cut short.
    gone, broken = (tmp_path / name for name in rows[:2])
    gone.unlink()
    broken.write_text("{")
    assert command.main(arguments) == 0
    printed = capsys.readouterr().out
    assert f"{total - 2} of {total} runs are there already" in printed
    assert "[2/2] " in printed
    assert contents(tmp_path) == first  # the pictures as well


@pytest.mark.usefixtures("short")
def test_failures_are_shown(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Workers are new processes, so what fails must be in the run itself.
    monkeypatch.setattr(evolution, "VARIANTS", (Variant("odd", {"judge": "nobody"}),))
    arguments = ["evolution", "--quick", "--seeds", "1", "--out", str(tmp_path)]
    assert command.main(arguments) == 1
    assert (
        "failed: synthetic-small-v0, WLRL, 22 foragers, odd" in capsys.readouterr().out
    )
    report = (tmp_path / "report.md").read_text()
    assert "## Failed runs" in report
    assert "judge is 'nobody'" in report


def test_mistakes_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        (["chess"], "invalid choice"),
        (["selection", "--seeds", "0"], "not a positive number"),
        (["selection", "--quick", "--traces", "no-such-trace"], "no-such-trace"),
    ):
        with pytest.raises(SystemExit) as stopped:
            command.main(arguments)
        assert stopped.value.code == 2
        assert message in capsys.readouterr().err


# --- runs


@pytest.fixture(scope="module")
def web() -> Web:
    return as_web(load_trace("synthetic-small-v0"), "synthetic-small-v0")


def test_a_run_is_the_same_from_a_checkpoint(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = FleetRun(web, "weblog_td", 3, "30h", 16, "code")
    whole = run.play(tmp_path / "a" / "rows")
    assert not list((tmp_path / "a" / "checkpoints").glob("*"))

    class Killed(Exception):
        pass

    def kill(*_: Any) -> None:
        raise Killed

    # It dies after its last checkpoint, at one day.
    monkeypatch.setattr("baselines.fleet._Run.result", kill)
    monkeypatch.setattr("pathlib.Path.unlink", lambda *_, **__: None)
    with pytest.raises(Killed):
        run.play(tmp_path / "b" / "rows")
    monkeypatch.undo()
    again = run.play(tmp_path / "b" / "rows")
    assert again["result"] == whole["result"]
    one, two = (read_series(run, tmp_path / x / "rows") for x in "ab")
    for name, values in one.items():
        if name != "window_weight_norm":  # not taken before the checkpoint
            np.testing.assert_array_equal(values, two[name], err_msg=name)


def test_a_rule_that_does_not_matter_makes_no_other_run(web: Web) -> None:
    run = FleetRun(web, "weblog", 0, "1d", 16, "code", rules=(("judge", "evolution"),))
    same = Variant("x", fields={"linear_td": {"first": "discovered"}}).of(run)
    assert same != run and same.name == run.name
    other = Variant("y", {"document": "url"}).of(run)
    assert dict(other.rules) == {"judge": "evolution", "document": "url"}
    assert unique([run, same, other, run]) == [run, other]
    for change in ({"seed": 1}, {"most": 22}, {"code": "z"}, {"kind": "linear_td"}):
        assert replace(run, **change).name != run.name


def test_a_run_is_no_longer_than_its_recording(web: Web) -> None:
    assert FleetRun(web, "weblog", 0, "2d", 16, "code").time == 2 * DAY
    long = FleetRun(web, "weblog", 0, "900d", 16, "code")
    assert long.time == web.length < 900 * DAY


def test_variants_change_the_agents(web: Web) -> None:
    run = FleetRun(web, "linear_td", 0, "1d", 16, "c", fields=(("ties", "newest"),))
    env = fleet_v0.env(web.source, slots=None)
    assert run.maker()(env, 1).ties == "newest"
    assert replace(run, fields=()).maker().make(env, 1).ties == "oldest"


def test_the_control_is_made_once(web: Web) -> None:
    control = rewired_web(web)
    meta = Path(control.source) / "meta.json"
    made = meta.stat().st_mtime_ns
    assert rewired_web(web) == control
    assert meta.stat().st_mtime_ns == made
    assert control.digest == load_trace(web.source).rewired(0).digest


# --- what is kept


def test_peaks() -> None:
    # A day that does not count, then 1 1 4 1 1 1 2 1: the median is 1, peaks are 4 and
    # 2, the highest twentieth is 4; changes 0 3 3 0 0 1 1, mean 8 / 7 over 1.5.
    values = np.array([9.0] * 8 + [1, 1, 4, 1, 1, 1, 2, 1])
    series = {
        "window_begin": np.arange(16) * 3 * HOUR,
        "window_download_efficiency": values,
    }
    assert course.peaks(series) == {
        "more": 2.0,
        "higher": 4.0,
        "sharper": pytest.approx(8 / 7 / 1.5),
    }
    series["window_download_efficiency"] = np.zeros(16)
    assert course.peaks(series) == {"more": None, "higher": None, "sharper": None}


def test_halves() -> None:
    # Two weeks; what was found on day 1 and day 8 does not count.
    found = VISITED | SENT | NOVEL
    days = [0.5, 3, 4, 7.5, 10, 11, 12]
    flags = [found, found, VISITED, found, found, VISITED | SENT, found]
    urls = [0, 1, 1, 2, 3, 3, 4]
    rows = [
        (round(day * DAY), url, url, i, 0, flag, 0)
        for i, (day, flag, url) in enumerate(zip(days, flags, urls, strict=True))
    ]
    trace = Trace.build(
        {"name": "tiny", "roots": ["0"]},
        urls=[str(i) for i in range(5)],
        version_start=np.arange(6),
        version_seen=np.array([0, 2, 0, 9, 9]) * DAY,
        link_start=[0] * 6,
    )
    run: Any = SimpleNamespace(events=log(*rows), start=0, end=14 * DAY)
    assert course.halves(run, trace) == {
        "first": {
            "download_efficiency": 1 / 2,
            "sent_efficiency": 1,
            "lag_hours": 24,
            "new_urls_a_day": 1 / 6,
        },
        "second": {
            "download_efficiency": 2 / 3,
            "sent_efficiency": 2 / 3,
            "lag_hours": (24 + 72) / 2,
            "new_urls_a_day": 2 / 6,
        },
    }


# --- verdicts


def test_intervals() -> None:
    # Student's t at two degrees of freedom: 4.3027.
    found = verdicts.mean([1.0, 2.0, 3.0, None, math.nan])
    assert (found.mean, found.high - 2) == pytest.approx((2, 4.3027 / 3**0.5), rel=1e-4)
    assert math.isnan(verdicts.mean([1.0]).low) and math.isnan(verdicts.mean([]).mean)
    # Welch: variances 1 / 3 and 4 / 3, 1.6667 ** 2 / (1 / 18 + 16 / 18) degrees.
    found = verdicts.difference([5.0, 6.0, 7.0], [0.0, 2.0, 4.0])
    freedom = (5 / 3) ** 2 / (1 / 9 / 2 + 16 / 9 / 2)
    assert freedom == pytest.approx(2.9412, rel=1e-4)
    assert found.mean == 4
    assert found.high - 4 == pytest.approx(3.2185 * (5 / 3) ** 0.5, rel=1e-3)
    found = verdicts.paired([3.0, None, 5.0], [1.0, 9.0, 3.0])
    assert (found.mean, found.low, found.high) == (2, 2, 2)
    # Chi-squared at two degrees: 0.050636 and 7.37776.
    found = verdicts.spread([9.0, 10.0, 11.0])
    expected = (0.1, 0.1 * (2 / 7.37776) ** 0.5, 0.1 * (2 / 0.050636) ** 0.5)
    assert (found.mean, found.low, found.high) == pytest.approx(expected, rel=1e-4)


def test_what_is_shown() -> None:
    assert Interval(1234.5, 1000, 1500).show(0) == "1,234 (1,000 to 1,500)"
    assert Interval(0.5, math.nan, math.nan).show(2) == "0.50"
    assert Interval(math.nan, math.nan, math.nan).show(2) == "-"
    assert per_cent(Interval(0.02, 0.01, 0.03), 0) == "2 (1 to 3) %"


def test_verdicts() -> None:
    clear, other, wide = Interval(2, 1, 3), Interval(-2, -3, -1), Interval(1, -1, 3)
    single = Interval(2, math.nan, math.nan)
    ways = [verdicts.above(x) for x in (clear, other, wide, single)]
    assert ways == [HOLDS, FAILS, OPEN, OPEN]
    assert [verdicts.below(x) for x in (clear, other, wide)] == [FAILS, HOLDS, OPEN]
    assert [verdicts.within(clear, *limits) for limits in ((0, 4), (4, 5), (2, 4))] == [
        HOLDS,
        FAILS,
        OPEN,
    ]
    assert verdicts.similar([100.0, 101.0, 102.0], [101.0, 102.0, 103.0])[0] == HOLDS
    assert verdicts.similar([100.0, 101.0, 102.0], [201.0, 202.0, 203.0])[0] == FAILS
    assert verdicts.similar([50.0, 100.0], [60.0, 110.0])[0] == OPEN
    assert [verdicts.always(x) for x in ([True], [False], [True, False], [])] == [
        HOLDS,
        FAILS,
        OPEN,
        OPEN,
    ]
    assert verdicts.never_otherwise([True, False]) == FAILS
