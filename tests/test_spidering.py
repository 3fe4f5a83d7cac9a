"""The spidering paper's experiment: its figures by hand, its choices, end to end."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from baselines._naive_bayes import train
from baselines._spider_q import site_links
from benchmarks.reproduce import __main__ as command
from benchmarks.reproduce import spidering
from benchmarks.reproduce.spidering_claims import many_claims, single_claims
from benchmarks.reproduce.spidering_runs import (
    BREADTH,
    OPTIMAL,
    RANDOM,
    SPIDERS,
    Fold,
    Group,
    area,
    curve,
    deep_pages,
    judged,
    links_to,
    rich_sites,
    rooted_sites,
    with_single_targets,
)
from benchmarks.reproduce.verdicts import FAILS, HOLDS
from gym_webforage import load_trace
from gym_webforage.trace import Trace
from tests.test_naive_bayes import PAGES, sited
from tests.toys import Page

SMALL = "synthetic-small-sites-v0"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("OMP", "MKL", "OPENBLAS"):  # which the command sets
        monkeypatch.setenv(f"{library}_NUM_THREADS", "1")


@pytest.fixture(scope="module")
def small() -> Trace:
    return load_trace(SMALL)


def group(trace: Trace) -> Group:
    return Group(trace.name, (trace.name,), (trace.digest,), 0.01)


RESULT: dict[str, Any] = {
    "urls": 10,
    "targets": 4,
    "found_at": {"one": [[1, 2, 3, 8]], "two": [[2, 4, 6, 8], [4, 6, 8, 10]]},
}


def test_figures_by_hand() -> None:
    assert [links_to(RESULT, "one", s) for s in (0.05, 0.25, 0.5, 0.75, 1)] == [
        0.1,
        0.1,
        0.2,
        0.3,
        0.8,
    ]
    assert links_to(RESULT, "two", 0.5) == 0.5  # 4 and 6 of 10
    assert links_to(RESULT, "nobody", 0.5) is None
    # Found at the first fetch of ten: there for 9.5 of 10, and so on.
    assert area(RESULT, "one") == pytest.approx((0.95 + 0.85 + 0.75 + 0.25) / 4)
    grid = np.array([0, 0.2, 0.5, 1])
    assert curve(RESULT, "one", grid).tolist() == [0, 0.5, 0.75, 1]
    assert curve(RESULT, "two", grid).tolist() == [0, 0.125, 0.375, 1]


def test_a_fold_learns_on_the_others(small: Trace) -> None:
    site = (0, small.sites[1])
    fold = Fold(group(small), "open", "many", site, 0, 2, True, "code")
    result = fold.play(Path())["result"]
    assert set(result["found_at"]) == {OPTIMAL, BREADTH, RANDOM, *SPIDERS}
    assert len(result["found_at"][RANDOM]) == 2
    for crawls in result["found_at"].values():
        for at in crawls:  # every spider finds all targets in the end
            assert len(at) == result["targets"] == 16
            assert at == sorted(set(at)) and 1 <= at[0] and at[-1] <= result["urls"]
    assert area(result, OPTIMAL) > 0.9  # type: ignore[operator]
    name = "RL Future (3 bins), related"
    others = [site_links(small, s) for s in small.sites if s != site[1]]
    model = train(others, bins=3, text="related")
    own = site_links(small, site[1])
    assert result["classifiers"][name] == judged(model, own)
    assert result["words"][name][0] == model.telling_words(0)
    assert fold.play(Path())["result"] == result
    assert json.loads(json.dumps(result)) is not None
    for change in ({"seed": 1}, {"world": "closed"}, {"endings": False}, {"code": "x"}):
        assert replace(fold, **change).name != fold.name


def test_classifiers_are_judged_by_what_is_immediate() -> None:
    trace = sited(PAGES)
    a, b = (site_links(trace, site) for site in "ab")
    found = judged(train([a], bins=3, text="related"), b)
    # b news other, b staff two steps, b t1 immediate, b gone other.
    assert found["recall"] == found["precision"] == found["two_bin_accuracy"] == 1
    assert found["accuracy"] == 1
    silent = replace(b, is_immediate=np.zeros(len(b.link), np.bool_))
    assert judged(train([a], bins=2, text="related"), silent)["recall"] is None


def test_single_targets_are_of_one_kind(small: Trace) -> None:
    drawn = set()
    for seed in range(4):
        (trace,), sites, kind = with_single_targets([small], seed)
        chosen = np.flatnonzero(trace.url_target)
        drawn.add(tuple(chosen.tolist()))
        assert sorted(trace.url_site[chosen]) == list(range(6)) and len(sites) == 6
        assert set(chosen) <= set(small.labelled(kind))
        for url in chosen.tolist():
            assert url in deep_pages(small, small.sites[int(small.url_site[url])])
        again = with_single_targets([small], seed)[0][0]
        assert (again.url_target == trace.url_target).all()
    assert len(drawn) > 1


def test_single_targets_without_labels_share_a_word_of_titles() -> None:
    names = ("python-docs-v0", "sqlalchemy-docs-v0")
    traces = [load_trace(name) for name in names]
    made, sites, word = with_single_targets(traces, 0)
    assert sites == rooted_sites(traces)
    for trace in made:
        (url,) = np.flatnonzero(trace.url_target).tolist()
        text = int(trace.version_text[trace.version_start[url + 1] - 1])
        low, high = trace.title_start[text : text + 2]
        title = [trace.vocabulary[int(token)] for token in trace.title_token[low:high]]
        assert word in title
    with pytest.raises(ValueError, match="no kind of page is on every site of drawn"):
        with_single_targets([sited(PAGES)], 0)


def test_deep_pages() -> None:
    pages = {
        "a home": Page([("a x", ""), ("a y", "")]),
        "a x": Page([("a y", ""), ("a z", ""), ("a home", "")]),
        "a y": Page(),
        "a z": Page([("a gone", ""), ("a dead", "")]),
        "a dead": Page(status=404),
        "a apart": Page(),
    }
    trace = sited(pages)
    assert [trace.urls[u] for u in deep_pages(trace, "a")] == ["a z"]


def test_groups(small: Trace) -> None:
    found = spidering.find_groups(spidering.QUICK)
    names = [one.name for one in found]
    assert names == [SMALL, "python-docs-v0 and sqlalchemy-docs-v0"]
    assert len(spidering.find_groups([SMALL, SMALL, "python-docs-v0"])) == 1
    assert rich_sites(found[1].load("open")) == [(0, "docs.python.org")]
    closed = found[0].load("closed")[0]
    recorded = np.diff(small.version_start) > 0
    assert recorded[closed.link_target].all()
    assert not recorded[small.link_target].all()


def test_claims_follow_the_figures() -> None:
    def row(fast: int, slow: int) -> dict[str, Any]:
        found = {name: [[fast, 2 * fast, 3 * fast, 4 * fast]] for name in SPIDERS}
        found |= {name: [[slow, 2 * slow, 3 * slow, 4 * slow]] for name in (BREADTH,)}
        figures = ("accuracy", "two_bin_accuracy", "recall")
        judged = {name: dict.fromkeys(figures, 0.5) for name in SPIDERS}
        return {"urls": 400, "targets": 4, "found_at": found, "classifiers": judged}

    rows = [row(2, 20), row(3, 33), row(4, 41)]
    by_text = {claim.text: claim.verdict for claim in many_claims(rows)}
    assert by_text["Future is sooner than Breadth-First at 75%"] == HOLDS
    assert by_text["Future is three times as fast as Breadth-First at 75%"] == HOLDS
    assert by_text["Future (3) is never behind Breadth-First"] == HOLDS
    turned = {
        c.text: c.verdict for c in many_claims([row(20, 2), row(33, 3), row(41, 4)])
    }
    assert turned["Future is sooner than Breadth-First at 75%"] == FAILS
    assert turned["Future (3) is never behind Breadth-First"] == FAILS
    single = {claim.text: claim for claim in single_claims(rows)}
    assert single["4 bins are sooner than Breadth-First"].verdict == HOLDS
    assert single["4 bins are twice as fast as Immediate"].verdict == FAILS


@pytest.mark.slow
def test_it_runs_reports_and_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spidering, "CLOSED_FROM", 0.001)
    arguments = ["spidering", "--quick", "--seeds", "1", "--out", str(tmp_path)]
    assert command.main(arguments) == 0
    # Many: 6 sites, open, closed, no endings; single: 6 in two worlds, 2 docs.
    total = 6 * 3 + 6 * 2 + 2
    assert f"[{total}/{total}] " in capsys.readouterr().out
    report = (tmp_path / "report.md").read_text()
    assert "Failed" not in report and "nan" not in report
    pictures = re.findall(r"\]\((.+?)\)", report)
    assert len(pictures) == 4
    for file in pictures:
        assert (tmp_path / file).read_bytes().startswith(b"\x89PNG")
    for part in ("Table 1 on", "Table 2", "Classifiers", "Optimal is exceeded by"):
        assert part in report
    assert command.main(arguments) == 0
    assert f"{total} of {total} runs are there already" in capsys.readouterr().out
    assert (tmp_path / "report.md").read_text() == report
