"""Figures of the network, and the rewired control, against known answers."""

import os
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest

from gym_webforage.trace.structure import (
    distinct_links,
    least_squares,
    power_law,
    rewired,
    structure,
    to_networkx,
)
from gym_webforage.trace.synthetic import Recipe, generate
from gym_webforage.trace.trace import Trace

RECIPE = Recipe(urls=1_500, text=True)


@pytest.fixture(scope="module")
def news() -> Trace:
    return generate(RECIPE)


@pytest.fixture(scope="module")
def control(news) -> Trace:
    return rewired(news, 3)


@pytest.fixture(scope="module")
def tiny() -> Trace:
    """Two versions of a, one of b and c; d is never recorded, e stands alone.

    time 10: a -> b, a (itself); b -> c
    time 20: c -> a
    time 30: a -> c, c (twice), d
    """
    return Trace.build(
        {"name": "tiny", "roots": ["a"]},
        urls=["a", "b", "c", "d", "e"],
        sites=["one", "two"],
        labels=["red", "blue"],
        url_site=[0, 0, 1, 1, 1],
        url_target=[False, False, True, False, False],
        url_label=[0, 1, 1],
        url_label_start=[0, 2, 2, 3, 3, 3],
        version_start=[0, 2, 3, 4, 4, 4],
        version_seen=[10, 30, 10, 20],
        link_start=[0, 2, 5, 6, 7],
        link_target=[1, 0, 2, 2, 3, 2, 0],
    )


def test_to_networkx(tiny):
    graph = to_networkx(tiny)
    assert set(graph) == {0, 1, 2, 3}
    assert set(graph.edges) == {(0, 1), (0, 0), (0, 2), (0, 3), (1, 2), (2, 0)}
    assert graph.nodes[0] == {
        "url": "a",
        "site": "one",
        "target": False,
        "labels": ["red", "blue"],
    }
    assert graph.nodes[2]["target"] is True
    assert graph.nodes[2]["site"] == "two"


@pytest.mark.parametrize(
    ("time", "nodes", "edges"),
    [
        (9, set(), set()),
        (10, {0, 1, 2}, {(0, 1), (0, 0), (1, 2)}),
        (20, {0, 1, 2}, {(0, 1), (0, 0), (1, 2), (2, 0)}),
        (30, {0, 1, 2, 3}, {(0, 2), (0, 3), (1, 2), (2, 0)}),
    ],
)
def test_to_networkx_at_a_time(tiny, time, nodes, edges):
    graph = tiny.to_networkx(time)
    assert set(graph) == nodes
    assert set(graph.edges) == edges


def test_structure_by_hand(tiny):
    # Between different URLs: a-b, a-c, a-d, b-c, c-a. Paths of length 1: five; of
    # length 2: b-a, c-b, c-d; of length 3: b-d.
    found = structure(tiny)
    assert (found["nodes"], found["links"]) == (4, 5)
    assert found["mean path"] == pytest.approx((5 + 3 * 2 + 3) / 9)
    assert found["diameter"] == 3
    # Undirected a-b, a-c, a-d, b-c: a has one of three pairs, b and c their only one.
    assert found["clustering"] == pytest.approx((1 / 3 + 1 + 1 + 0) / 4)
    assert found["sampled"] is False
    assert structure(tiny, time=9) == {
        "nodes": 0,
        "links": 0,
        "out exponent": 0.0,
        "out exponent from degree": 1,
        "out exponent by least squares": 0.0,
        "in exponent": 0.0,
        "in exponent from degree": 1,
        "in exponent by least squares": 0.0,
        "clustering": 0.0,
        "mean path": 0.0,
        "diameter": 0,
        "sampled": False,
        "sample": 0,
    }


def test_against_networkx(news):
    graph = to_networkx(news)
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    found = structure(news)
    assert found["sampled"] is False
    assert found["nodes"] == len(graph)
    assert found["links"] == graph.number_of_edges()
    expected = nx.average_clustering(graph.to_undirected())
    assert found["clustering"] == pytest.approx(expected)
    lengths = [
        length
        for _, reached in nx.all_pairs_shortest_path_length(graph)
        for length in reached.values()
        if length
    ]
    assert found["mean path"] == pytest.approx(np.mean(lengths))
    assert found["diameter"] == max(lengths)


def test_sample(news):
    complete, part = structure(news), structure(news, sample=100, seed=1)
    assert part["sampled"] is True
    assert part["sample"] == 100
    assert part["mean path"] == pytest.approx(complete["mean path"], rel=0.1)
    assert part == structure(news, sample=100, seed=1)
    assert part != structure(news, sample=100, seed=2)
    with pytest.raises(ValueError, match="sample must be at least 1, not 0"):
        structure(news, sample=0)


@pytest.mark.parametrize("exponent", [1.5, 2.1, 2.57, 3.5])
def test_exponent_is_recovered(exponent):
    degrees = np.random.default_rng(0).zipf(exponent, 50_000)
    assert power_law(degrees, 1)[0] == pytest.approx(exponent, rel=0.02)
    assert power_law(degrees)[0] == pytest.approx(exponent, rel=0.05)


def test_lower_end_is_found():
    """A power law from 10 on, below it something else."""
    rng = np.random.default_rng(1)
    tail = rng.zipf(2.5, 400_000)
    degrees = np.concatenate([tail[tail >= 10], rng.integers(0, 10, 20_000)])
    exponent, least = power_law(degrees)
    assert exponent == pytest.approx(2.5, rel=0.05)
    assert 8 <= least <= 16
    assert power_law(degrees, 1)[0] < 2


def test_degenerate_degrees():
    for degrees in ([], [0, 0], [3], [3, 3, 3]):
        assert power_law(np.array(degrees, int))[0] == 0
        assert power_law(np.array(degrees, int), 1)[0] == 0
        assert least_squares(np.array(degrees, int)) == 0


def test_least_squares_of_an_exact_line():
    # 1000 of degree 1, 250 of 2, 40 of 5: counts fall as the square.
    degrees = np.repeat([1, 2, 5, 10], [1_000, 250, 40, 10])
    assert least_squares(degrees) == pytest.approx(2)


# --- the control


def degrees(trace: Trace) -> tuple[np.ndarray, np.ndarray]:
    source, target = distinct_links(trace)
    count = len(trace.urls)
    return np.bincount(source, minlength=count), np.bincount(target, minlength=count)


def test_rewiring_keeps_every_degree(news, control):
    for before, after in zip(degrees(news), degrees(control), strict=True):
        assert np.array_equal(before, after)
    assert np.array_equal(news.link_start, control.link_start)
    assert (news.link_target != control.link_target).mean() > 0.8
    source, target = distinct_links(control)
    assert (source != target).all()


def test_rewiring_destroys_clustering(news, control):
    before, after = structure(news), structure(control)
    assert after["clustering"] < 0.6 * before["clustering"]
    for figure in ("nodes", "links", "out exponent", "in exponent"):
        assert before[figure] == after[figure]


def test_rewired_links_are_possible_in_time(news, control):
    version = np.repeat(np.arange(len(news.version_seen)), np.diff(news.link_start))
    born = np.full(len(news.urls), -1)
    recorded = np.diff(news.version_start) > 0
    born[recorded] = news.version_seen[news.version_start[:-1][recorded]]
    assert (born[news.link_target] <= news.version_seen[version]).all()
    assert (born[control.link_target] <= news.version_seen[version]).all()
    assert (news.version_seen > news.begin).mean() > 0.3  # else it says little


def test_rewiring_is_the_same_in_all_versions_of_a_page(news, control):
    version = np.repeat(np.arange(len(news.version_seen)), np.diff(news.link_start))
    source = news.version_url[version].tolist()
    new: dict[tuple[int, int], int] = {}
    for page, old, now in zip(
        source, news.link_target.tolist(), control.link_target.tolist(), strict=True
    ):
        assert new.setdefault((page, old), now) == now


def test_link_text_goes_with_the_target(news, control):
    assert np.array_equal(control.link_text // 3, control.link_target)


def test_rewired_is_named_and_fixed_by_its_seed(news, control):
    assert control.name == f"{news.name}-rewired"
    assert "seed 3" in control.meta["recorder"]
    assert "structure" not in control.meta
    assert control.path is None
    assert not control.link_target.flags.writeable
    code = (
        "from gym_webforage.trace.synthetic import Recipe, generate\n"
        f"print(generate({RECIPE!r}).rewired(3).digest)"
    )
    printed = subprocess.check_output(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "5"},
        text=True,
    )
    assert printed.strip() == control.digest
    assert news.rewired(4).digest != control.digest


def test_rewiring_what_cannot_be_rewired(tiny):
    again = rewired(tiny, 0)
    for before, after in zip(degrees(tiny), degrees(again), strict=True):
        assert np.array_equal(before, after)
    lonely = Trace.build({"name": "lonely", "roots": ["a"]}, urls=["a"])
    assert len(rewired(lonely, 0).link_target) == 0
