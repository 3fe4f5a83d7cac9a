"""The leaderboard's statistics: by hand, against SciPy, and as properties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchmarks import scores as S
from benchmarks.assemble import make_board
from benchmarks.scores import Interval, ranks, stratified
from benchmarks.standings import markdown

numbers = st.lists(st.floats(-5, 5, width=32), min_size=1, max_size=30)


def row(agent: str, seed: int, found: int | None, task: str = "t") -> dict[str, Any]:
    key = {"id": task, "kind": "topic", "trace": "x", "budget": 10, "options": {}}
    made: dict[str, Any] = {"agent": agent, "seed": seed, "version": "0"}
    made["task"] = {**key, "fleet": None}
    made["timing"] = {"cpu_seconds": 0.5, "wall_seconds": 1.0}
    if found is None:
        return {**made, "status": "failed", "traceback": "Error: no\n"}
    result: dict[str, Any] = {"found": found, "area": found / 2, "fetches": 100}
    result |= {"steps": 100, "summary": {"illegal": 0}, "curve": [found] * 21}
    made |= {"privileged": agent == "oracle", "training_fetches": 0, "trains": False}
    made |= {"learns": False, "slots": None, "result": result}
    return {**made, "status": "done"}


def standings(table: dict[str, tuple[int | None, ...]]) -> dict[str, Any]:
    made = [row(name, i, n) for name, own in table.items() for i, n in enumerate(own)]
    return {one["agent"]: one for one in make_board(made)["tasks"][0]["standings"]}


def test_scores_are_scaled_for_each_seed() -> None:
    # Seed 0 runs from 10 to 30, seed 1 from 0 to 10.
    found = standings(
        {"random_walk": (10, 0), "oracle": (30, 10), "mine": (20, 12), "bad": (5, 0)}
    )
    assert list(found) == ["oracle", "mine", "random_walk", "bad"]
    assert found["mine"]["score"] == pytest.approx((0.5 + 1.2) / 2)
    assert (found["mine"]["low"], found["mine"]["high"]) == (0.5, 1.2)
    assert found["bad"]["score"] == pytest.approx(-0.125)
    assert found["oracle"]["rank"] is None  # it looks into the trace
    assert found["mine"]["rank"] == 1


def test_a_failed_run_found_nothing_and_is_counted() -> None:
    table = {"random_walk": (4, 4), "oracle": (14, 14), "mine": (14, None)}
    found = standings(table)["mine"]
    assert found["score"] == pytest.approx((1 - 0.4) / 2)
    assert (found["failed"], found["runs"], found["found_mean"]) == (1, 2, 7)


def test_without_a_scale_there_is_no_score() -> None:
    same = {"random_walk": (4,), "oracle": (8,), "mine": (9,)}
    broken = {"random_walk": (4,), "oracle": (None,), "mine": (5,)}
    for table in (same, broken):
        found = standings(table)
        assert {one["score"] for one in found.values()} == {None}
        assert next(iter(found)) == "mine"  # by what was found
    half = {"random_walk": (4, 0), "oracle": (4, 10), "mine": (9, 5)}
    assert standings(half)["mine"]["score"] == 0.5  # the second seed's alone


@given(numbers)
def test_the_interquartile_mean_is_scipys(values: list[float]) -> None:
    expected = stats.trim_mean(values, 0.25)
    assert S.interquartile_mean(np.array(values)) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=25)
@given(st.lists(numbers, min_size=1, max_size=4))
def test_intervals_are_seeded_and_hold_what_was_seen(strata: list[list[float]]) -> None:
    named = {str(i): np.array(values) for i, values in enumerate(strata)}
    first, second = stratified(named), stratified(named)
    assert first == second and first is not None
    every = np.concatenate(list(named.values()))
    assert every.min() - 1e-9 <= first.value <= every.max() + 1e-9
    if first.low is not None and first.high is not None:
        assert every.min() - 1e-9 <= first.low <= first.high <= every.max() + 1e-9


def test_the_interval_is_that_of_a_bootstrap() -> None:
    values = np.random.default_rng(3).normal(size=40)
    mine = stratified({"t": values})
    theirs = stats.bootstrap(
        (values,),
        lambda x, axis: stats.trim_mean(x, 0.25, axis=axis),
        n_resamples=4000,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    assert mine is not None and mine.low is not None and mine.high is not None
    assert mine.low == pytest.approx(theirs.low, abs=0.05)
    assert mine.high == pytest.approx(theirs.high, abs=0.05)


def test_ranks_are_ties_where_intervals_overlap() -> None:
    intervals = [
        Interval(0.9, 0.8, 1.0),
        Interval(0.7, 0.6, 0.82),
        Interval(0.65, 0.5, 0.7),
        Interval(0.1, 0.0, 0.2),
        None,
    ]
    assert ranks(intervals) == [
        (1, 2, [1]),
        (1, 3, [0, 2]),
        (2, 3, [1]),
        (4, 4, []),
        (None, None, []),
    ]


def test_improvement_pairs_the_seeds() -> None:
    seeds = {"a": (10, 10, 3, 10), "b": (5, 10, 9, 8), "oracle": (30,) * 4}
    table = {**seeds, "random_walk": (0,) * 4}
    made = [row(name, i, n) for name, own in table.items() for i, n in enumerate(own)]
    found = make_board(made)["improvement"]["topic"]
    a, b = found["agents"].index("a"), found["agents"].index("b")
    assert found["mean"][a][b] == pytest.approx((1 + 0.5 + 0 + 1) / 4, abs=1e-3)
    total = np.array(found["mean"]) + np.array(found["mean"]).T
    assert total == pytest.approx(np.ones_like(total), abs=2e-3)
    low, high = np.array(found["low"]), np.array(found["high"])
    assert np.all((low <= found["mean"]) & (found["mean"] <= high))


def test_profiles_fall_from_all_to_none() -> None:
    made = [
        row(name, i, n, task)
        for task in ("t", "u")
        for name, n in (("random_walk", 0), ("oracle", 20), ("mine", 10))
        for i in range(3)
    ]
    profile = make_board(made)["profiles"]["topic"]
    share = dict(zip(profile["threshold"], profile["share"]["mine"], strict=True))
    assert (share[-0.5], share[0.45], share[0.5], share[1.0]) == (1, 1, 0, 0)


def test_who_misses_a_task_has_no_rank() -> None:
    made = [row("random_walk", 0, 0, t) for t in ("t", "u")]
    made += [row("oracle", 0, 20, t) for t in ("t", "u")]
    made += [row("mine", 0, 10, "t")]
    (group,) = make_board(made)["groups"]
    mine = next(one for one in group["standings"] if one["agent"] == "mine")
    assert (mine["rank"], mine["tasks_run"], mine["score"]) == (None, 1, 0.5)


def test_tables_in_markdown() -> None:
    text = markdown([["agent", "found"], ["a", "1"]])
    assert text == "| agent | found |\n| --- | ---: |\n| a | 1 |"
