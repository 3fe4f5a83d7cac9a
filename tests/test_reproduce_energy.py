"""The experiments of the energy paper: runs, claims, report."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks.reproduce import __main__ as command
from benchmarks.reproduce import energy, energy_runs
from benchmarks.reproduce.energy_runs import best_pages, topics
from benchmarks.reproduce.results import Settings
from benchmarks.reproduce.verdicts import FAILS, HOLDS
from gym_webforage import TraceError, load_trace
from gym_webforage.world import Rules, World
from gym_webforage.world.topic import topic_of_label
from tests.toys import Page, web


def test_it_runs_and_reports(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for library in ("OMP", "MKL", "OPENBLAS"):  # which the command sets
        monkeypatch.setenv(f"{library}_NUM_THREADS", "1")
    monkeypatch.setattr(energy, "QUICK_PAGES", 900)
    monkeypatch.setattr(energy, "QUICK_LONG", 1_000)
    monkeypatch.setattr(energy, "READINGS", energy.READINGS[6:7])  # r + R
    arguments = ["energy", "--quick", "--seeds", "1", "--out", str(tmp_path)]
    assert command.main(arguments) == 0
    assert "[13/13] " in capsys.readouterr().out, "three runs are as reported"
    report = (tmp_path / "report.md").read_text()
    assert "Failed" not in report and "nan" not in report
    files = re.findall(r"\]\((.+?)\)", report)
    assert len(files) == 5
    for file in files:
        assert (tmp_path / file).read_bytes().startswith(b"\x89PNG"), file
    matrix = report[report.index("## Does the verdict depend on it?") :]
    line = next(x for x in matrix.splitlines() if "sigmoid: usable" in x)
    assert [cell.strip() for cell in line.split("|")[2:4]] == [HOLDS, FAILS]
    rows = [json.loads(file.read_text()) for file in tmp_path.glob("rows/*.json")]
    capped = [row for row in rows if row["result"]["stopped"]]
    assert capped and all(0 < row["result"]["fetches"] < 900 for row in capped)


def test_settings_that_a_reading_does_not_touch_are_run_once() -> None:
    experiment = energy.Experiment(Settings(True, 1))
    first = experiment.webs[0]
    for reading in energy.READINGS:
        for setting in energy.LINEAR:
            same = (
                experiment.of(first, setting)[0].name
                == experiment.of(first, setting, reading)[0].name
            )
            curve = reading.name == "balance over pages" or (
                reading.name.startswith("printed") and "division" not in reading.name
            )
            assert same == (curve or reading.name == "every visit pays")


def test_roots_are_the_pages_most_similar_to_the_topic() -> None:
    trace = load_trace("synthetic-small-v0")
    name = topics(trace, 5)[0]
    topic = topic_of_label(trace, name)
    best = best_pages(trace, topic, 10)
    world = World(trace, Rules(kind="topic"))

    def pays(url: int) -> float:
        world.reset(start=trace.end, roots=np.array([url]), topic=topic)
        return world.step(url).reward

    values = [pays(url) for url in best.tolist()]
    assert values == sorted(values, reverse=True) and values[-1] > 0
    random = np.random.default_rng(0).choice(len(trace.urls), 100)
    enough = [u for u in random.tolist() if len(trace.links_of(_newest(trace, u))) >= 5]
    assert max(pays(url) for url in enough) <= values[0]


def _newest(trace: object, url: int) -> int:
    return int(trace.version_start[url + 1]) - 1  # type: ignore[attr-defined]


def test_a_trace_without_labels_is_refused() -> None:
    with pytest.raises(TraceError, match="has 0 labels, expected at least 5"):
        energy_runs.topics(web({"home": Page()}), 5)
