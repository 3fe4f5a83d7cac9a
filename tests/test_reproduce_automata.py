"""The learning automata paper's experiment end to end on little."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks.reproduce import __main__ as command
from benchmarks.reproduce import automata
from benchmarks.reproduce.results import Settings
from benchmarks.reproduce.topics import draw_roots, largest_labels
from gym_webforage import load_trace

SMALL = "synthetic-small-v0"


def test_topics_and_roots() -> None:
    trace = load_trace(SMALL)
    labels = largest_labels(trace, 3)
    sizes = [len(trace.labelled(trace.labels.find(label))) for label in labels]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == np.bincount(trace.url_label).max()
    roots = draw_roots(trace, labels[0], 1)
    assert len(roots) == 2
    assert set(roots) <= set(trace.labelled(trace.labels.find(labels[0])).tolist())
    assert roots == draw_roots(trace, labels[0], 1) != draw_roots(trace, labels[0], 2)


def test_everybody_gets_the_same() -> None:
    experiment = automata.Experiment(Settings(False, 10))
    runs = experiment.runs()
    assert len({run.name for run in runs}) == len(runs)
    main = [run for run in runs if run.agent.partition(":")[0] != "lafc"]
    assert len(main) == (len(automata.AGENTS) - 1) * 5 * 10 * 2
    assert {run.budget for run in runs} == {automata.BUDGET}
    repeated = {run.agent.partition(":")[0] for run in runs if run.crawls > 1}
    assert repeated == {"lafc"}
    last = f"remember_last_crawl:crawls={automata.CRAWLS - 1}"
    assert last in {run.agent for run in runs}


@pytest.mark.slow
def test_it_runs_and_reports(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for library in ("OMP", "MKL", "OPENBLAS"):  # which the command sets
        monkeypatch.setenv(f"{library}_NUM_THREADS", "1")
    monkeypatch.setattr(automata, "QUICK_BUDGET", 60)
    arguments = ["automata", "--quick", "--out", str(tmp_path)]
    assert command.main(arguments) == 0
    rows = [json.loads(file.read_text()) for file in tmp_path.glob("rows/*.json")]
    assert len(rows) == 13 * 2 * 2 * 2 + 8 * 2
    for row in rows:
        result = row["result"]
        assert result["curve"][-1] == result["found"] == len(result["relevant"])
        assert result["found_by_crawl"][-1] == result["found"]
        earlier = row["agent"].startswith(("lafc", "remember", "ljm", "bpm", "hw"))
        assert (result["training_fetches"] > 0) == earlier
    report = (tmp_path / "report.md").read_text()
    assert "Failed" not in report and "nan" not in report
    for file in re.findall(r"\]\((.+?)\)", report):
        assert (tmp_path / file).read_bytes().startswith(b"\x89PNG"), file
    capsys.readouterr()
    assert command.main(arguments) == 0  # everything is there already
    assert f"{len(rows)} of {len(rows)} runs are there" in capsys.readouterr().out
