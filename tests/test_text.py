"""From page text to page state: clusters, the classifier, projections, traces."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from gym_webforage.trace import Trace, load_trace, save_trace
from gym_webforage.trace.pddp import SMALL, pddp
from gym_webforage.trace.prtfidf import PrTFIDF, yes_or_no
from gym_webforage.trace.text import (
    METHODS,
    fit_states,
    inverse_frequency,
    page_counts,
    saturation,
    singular_directions,
    tfidf,
)
from gym_webforage.trace.trace import frozen, to_iso

DATA = os.environ.get("WEBFORAGE_DATA")
DAY = 86_400_000


def texts_trace(texts: list[dict[int, int]], seen: list[int], **meta: Any) -> Trace:
    """One URL a text, in this order; vocabulary w0 to w9."""
    return Trace.build(
        {"name": "texts-v0", "roots": ["http://a.example/0"], **meta},
        urls=[f"http://a.example/{i}" for i in range(len(texts))],
        vocabulary=[f"w{i}" for i in range(10)],
        version_start=np.arange(len(texts) + 1),
        version_seen=seen,
        version_text=np.arange(len(texts)),
        body_start=np.append(0, np.cumsum([len(text) for text in texts])),
        body_token=[token for text in texts for token in text],
        body_count=[count for text in texts for count in text.values()],
    )


def random_texts(count: int, seed: int = 0) -> list[dict[int, int]]:
    rng = np.random.default_rng(seed)
    return [
        {int(w): int(rng.integers(1, 5)) for w in np.sort(rng.permutation(10)[:4])}
        for _ in range(count)
    ]


def random_trace(count: int = 60) -> Trace:
    return texts_trace(random_texts(count), [i * DAY for i in range(count)])


# --- tf-idf


def test_tfidf_by_hand() -> None:
    # Token 0 stands in both texts, tokens 1 and 2 in one, token 3 in none.
    counts = csr_array(np.array([[1.0, 2, 0, 0], [3, 0, 1, 0]]))
    weights = inverse_frequency(counts)
    once, never = np.log(3 / 2) + 1, np.log(3) + 1
    np.testing.assert_allclose(weights, [1, once, once, never])
    first = np.array([1, 2 * once, 0, 0])
    found = tfidf(counts, weights).toarray()
    np.testing.assert_allclose(found[0], first / np.linalg.norm(first))
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1)


def test_tfidf_agrees_with_the_trace() -> None:
    trace = random_trace()
    counts = page_counts(trace)
    np.testing.assert_allclose(inverse_frequency(counts), trace.idf)
    length = np.linalg.norm((counts * trace.idf).toarray(), axis=1)
    np.testing.assert_allclose(length, trace.text_norm)


def test_an_empty_text_stays_empty() -> None:
    counts = csr_array(np.array([[0.0, 0], [1, 1]]))
    assert not tfidf(counts, inverse_frequency(counts)).toarray()[0].any()


# --- clusters


def plain_pddp(matrix: np.ndarray, clusters: int) -> np.ndarray:
    """The same from the definition, on dense matrices, by full decompositions."""
    members = [np.arange(len(matrix))]
    while len(members) < clusters:
        centred = [matrix[rows] - matrix[rows].mean(axis=0) for rows in members]
        scatters = [np.linalg.norm(part) ** 2 for part in centred]
        chosen = int(np.argmax(scatters))
        direction = np.linalg.svd(centred[chosen], full_matrices=False)[2][0]
        is_right = centred[chosen] @ direction > 0
        rows = members.pop(chosen)
        members += [rows[is_right], rows[~is_right]]
    labels = np.empty(len(matrix), int)
    for label, rows in enumerate(sorted(members, key=lambda rows: rows[0])):
        labels[rows] = label
    return labels


@pytest.mark.parametrize("seed", range(12))
def test_pddp_is_what_its_definition_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.random((40, 15)) * (rng.random((40, 15)) < 0.4)
    for clusters in (1, 2, 5, 12):
        found = pddp(csr_array(matrix), clusters, seed)
        np.testing.assert_array_equal(found, plain_pddp(matrix, clusters))
        assert found.dtype == np.int32


@pytest.mark.parametrize("seed", range(3))
def test_pddp_of_many_rows_is_what_its_definition_says(seed: int) -> None:
    """Large clusters go by Lanczos steps instead of a full decomposition."""
    rng = np.random.default_rng(seed)
    shape = (5 * SMALL, 30)
    # Unequal columns, so that each cluster has one leading direction.
    matrix = rng.random(shape) * (rng.random(shape) < 0.3) * np.geomspace(1, 9, 30)
    found = pddp(csr_array(matrix), 10)
    np.testing.assert_array_equal(found, plain_pddp(matrix, 10))
    np.testing.assert_array_equal(found, pddp(csr_array(matrix), 10, seed=99))


def test_pddp_when_directions_compete() -> None:
    """The second direction is nearly as long as the first: many steps are needed."""
    rng = np.random.default_rng(0)
    rows = 4 * SMALL
    left = rng.standard_normal((rows, 200))
    left = np.linalg.qr(left - left.mean(axis=0))[0]
    right = np.linalg.qr(rng.standard_normal((200, 200)))[0]
    lengths = 1 - 0.0005 * np.arange(200)
    labels = pddp(csr_array(left * lengths @ right), 2)
    is_far = left[:, 0] * np.sign(left[0, 0]) < 0
    np.testing.assert_array_equal(labels, is_far)


def test_pddp_splits_two_obvious_groups() -> None:
    rng = np.random.default_rng(0)
    matrix = np.zeros((300, 20))
    group = rng.integers(0, 2, 300)
    group[0] = 0
    matrix[group == 0, :10] = rng.random((np.sum(group == 0), 10))
    matrix[group == 1, 10:] = rng.random((np.sum(group == 1), 10))
    np.testing.assert_array_equal(pddp(csr_array(matrix), 2), group)


def test_pddp_keeps_equal_rows_together() -> None:
    rng = np.random.default_rng(0)
    kinds = rng.random((7, 12))
    for size in (30, 3 * SMALL):
        kind = rng.integers(0, 7, size)
        labels = pddp(csr_array(kinds[kind]), 50)
        assert labels.max() == 6  # seven kinds of rows give seven clusters, not 50
        assert len(set(zip(kind, labels, strict=True))) == 7


def test_pddp_of_next_to_nothing() -> None:
    assert pddp(csr_array((0, 4)), 3).tolist() == []
    assert pddp(csr_array((5, 4)), 3).tolist() == [0] * 5
    assert pddp(csr_array(np.eye(1)), 3).tolist() == [0]
    some_empty = csr_array(np.array([[0.0, 0], [1, 0], [0, 0]]))
    assert pddp(some_empty, 3).tolist() == [0, 1, 0]
    with pytest.raises(ValueError, match="clusters must be at least 1"):
        pddp(csr_array((5, 4)), 0)


def test_pddp_leaves_its_input_alone() -> None:
    matrix = csr_array(np.random.default_rng(0).random((20, 5)))
    before = matrix.toarray()
    pddp(matrix, 4)
    np.testing.assert_array_equal(matrix.toarray(), before)


# --- the classifier

#      a  b  c  d   P(w|d)            class
LEARNT = [
    [3, 1, 0, 0],  # 3/4, 1/4, 0, 0    0
    [0, 1, 3, 0],  # 0, 1/4, 3/4, 0    1
    [0, 2, 2, 0],  # 0, 1/2, 1/2, 0    2, the background
]
# Each class is a third of the texts, so that P(c|w) is P(w|c) over its sum:
#   a: 1, 0, 0    b: (1/4, 1/4, 1/2) / 1    c: (0, 3/4, 1/2) / (5/4) = 0, 3/5, 2/5


def small_classifier() -> PrTFIDF:
    return PrTFIDF.fit(csr_array(np.array(LEARNT, float)), np.arange(3), 3)


def test_prtfidf_by_hand() -> None:
    asked = csr_array(
        np.array(
            [
                [1.0, 1, 0, 0],  # (1, 0, 0) / 2 + (1/4, 1/4, 1/2) / 2
                [0, 0, 7, 0],  # as c
                [0, 1, 1, 6],  # d is not known, so (b + c) / 2
                [0, 0, 0, 5],  # nothing is known
                [0, 0, 0, 0],
            ]
        )
    )
    expected = [
        [5 / 8, 1 / 8, 1 / 4],
        [0, 3 / 5, 2 / 5],
        [1 / 8, 17 / 40, 9 / 20],
        [0, 0, 0],
        [0, 0, 0],
    ]
    np.testing.assert_allclose(small_classifier().probabilities(asked), expected)


def test_prtfidf_weighs_classes_by_their_texts() -> None:
    # Word a: a share of 1 in the one text of class 0, 1/2 in each of two of class 1.
    texts = csr_array(np.array([[1.0, 0], [1, 1], [2, 2]]))
    classifier = PrTFIDF.fit(texts, np.array([0, 1, 1]), 2)
    # P(0|a) = (1 * 1/3) / (1 * 1/3 + 1/2 * 2/3) = 1/2; b stands in class 1 only.
    found = classifier.probabilities(csr_array(np.eye(2)))
    np.testing.assert_allclose(found, [[1 / 2, 1 / 2], [0, 1]])


def test_prtfidf_without_the_text_asked_about() -> None:
    background = csr_array(np.array([LEARNT[2]], float))
    # Without it, b is (1/4, 1/4) / (1/2), c is (0, 3/4) / (3/4): half of each.
    found = small_classifier().probabilities_without(background)
    np.testing.assert_allclose(found, [[1 / 4, 3 / 4, 0]])


def test_prtfidf_without_is_a_classifier_that_never_saw_the_text() -> None:
    rng = np.random.default_rng(0)
    counts = csr_array(rng.integers(0, 4, (30, 12)) * (rng.random((30, 12)) < 0.3))
    labels = np.append(rng.integers(0, 3, 20), np.full(10, 3))
    classifier = PrTFIDF.fit(counts, labels, 4)
    found = classifier.probabilities_without(counts[20:])
    for text in range(20, 30):
        others = np.delete(np.arange(30), text)
        apart = PrTFIDF.fit(counts[others], labels[others], 4)
        expected = apart.probabilities(counts[[text]])[0]
        np.testing.assert_allclose(found[text - 20, :3], expected[:3], atol=1e-12)


def test_the_printed_mapping() -> None:
    found = yes_or_no(np.array([5 / 8, 1 / 8, 1 / 2]))
    np.testing.assert_allclose(found, [0.9999092042625951, -1, 0], rtol=1e-12)
    calibrated = yes_or_no(np.array([0.25, 0.3]), np.array([0.25, 0.275]))
    np.testing.assert_allclose(calibrated, [0, np.tanh(1)])


# --- states of a trace


@pytest.mark.parametrize("method", METHODS)
def test_every_version_gets_a_state(method: str) -> None:
    trace = random_trace()
    made = fit_states(trace, method=method, states=5)
    assert made.version_state.shape == (60, 5)
    assert made.version_state.dtype == np.float32
    assert np.abs(made.version_state).max() <= 1 + 1e-6
    assert made.version_state.any(axis=1).all()
    for name, array in trace.arrays().items():
        if name != "version_state":
            assert array is made.arrays()[name], name
    told = made.meta["states"]
    # 60 texts in 59 days: a third ends within the twentieth.
    assert told["until"] == to_iso(59 * DAY // 3)
    assert (told["method"], told["seed"], told["texts"]) == (method, 0, 20)
    assert told["saturation"] == saturation(made)


@pytest.mark.parametrize("is_calibrated", [False, True])
def test_prtfidf_from_end_to_end(is_calibrated: bool) -> None:
    """The whole way once more: plainly, densely and without leaving one out in turn."""
    trace = random_trace()
    method = "prtfidf-calibrated" if is_calibrated else "prtfidf"
    made = fit_states(trace, method=method, states=4, until=50 * DAY, seed=6)
    counts = page_counts(trace).toarray()
    share = counts / counts.sum(axis=1, keepdims=True)
    order = np.random.default_rng(6).permutation(50)
    background, clustered = order[:10], np.sort(order[10:])
    frequency = np.count_nonzero(counts[:50], axis=0)
    weighted = counts[clustered] * (np.log(51 / (1 + frequency)) + 1)
    weighted /= np.linalg.norm(weighted, axis=1, keepdims=True)
    labels = np.full(50, 4)
    labels[clustered] = plain_pddp(weighted, 4)

    def outputs(text: int, learnt: np.ndarray) -> np.ndarray:
        rows = [
            share[learnt][labels[learnt] == label].sum(axis=0) for label in range(5)
        ]
        return (np.array(rows) / np.sum(rows, axis=0) @ share[text])[:4]

    threshold: Any = 0.5
    if is_calibrated:
        apart = [outputs(i, np.delete(np.arange(50), i)) for i in background]
        threshold = np.quantile(apart, 0.75, axis=0)
    every = np.array([outputs(text, np.arange(50)) for text in range(60)])
    expected = np.tanh(40 * (every - threshold))
    np.testing.assert_allclose(made.version_state, expected, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_states_are_saved(method: str, tmp_path: Path) -> None:
    made = fit_states(random_trace(), method=method, states=5)
    again = load_trace(save_trace(made, tmp_path / "it"))
    np.testing.assert_array_equal(again.version_state, made.version_state)
    assert again.meta["states"] == made.meta["states"]


@pytest.mark.parametrize("method", METHODS)
def test_the_future_teaches_nothing(method: str) -> None:
    early = random_texts(40)
    moments = [i * DAY for i in range(60)]
    one = texts_trace([*early, *random_texts(20, 1)], moments)
    # Other texts, and words that were never seen before.
    late = [{9: 7}, {8: 1, 9: 1}, {}, *random_texts(17, 2)]
    other = texts_trace([*early, *late], moments)
    until = 40 * DAY
    first, second = (
        fit_states(trace, method=method, states=6, until=until).version_state
        for trace in (one, other)
    )
    np.testing.assert_array_equal(first[:40], second[:40])
    assert not np.array_equal(first[40:], second[40:]) or method == "prtfidf"
    # And the past does.
    third = fit_states(other, method=method, states=6, until=until - 20 * DAY)
    assert not np.array_equal(third.version_state, second)


@pytest.mark.parametrize("method", METHODS)
def test_later_words_teach_nothing(method: str) -> None:
    """A vocabulary with more words gives the same states, but for rounding."""
    trace = load_trace("synthetic-small-v0")
    until = trace.begin + (trace.end - trace.begin) // 4
    more = [*trace.vocabulary, *(f"later{i}" for i in range(500))]
    larger = replace(trace, vocabulary=type(trace.vocabulary).of(more))
    one, other = (
        fit_states(each, method=method, until=until).version_state
        for each in (trace, larger)
    )
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("method", METHODS)
def test_same_seed_same_states(method: str) -> None:
    trace = load_trace("synthetic-small-v0")
    np.random.seed(1)
    one = fit_states(trace, method=method, seed=3)
    np.random.seed(2)
    other = fit_states(trace, method=method, seed=3)
    assert one.digest == other.digest
    assert one.meta == other.meta
    # Singular vectors do not depend on where the search for them starts.
    if method != "svd":
        assert fit_states(trace, method=method, seed=4).digest != one.digest


def test_same_states_in_another_process() -> None:
    """Hashes of texts differ between processes unless made with care."""
    command = (
        "from gym_webforage.trace import load_trace\n"
        "from gym_webforage.trace.text import METHODS, fit_states\n"
        "trace = load_trace('synthetic-small-v0')\n"
        "print(*(fit_states(trace, method=m).digest for m in METHODS))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    told = subprocess.run(
        [sys.executable, "-c", command],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    trace = load_trace("synthetic-small-v0")
    here = [fit_states(trace, method=method).digest for method in METHODS]
    assert told.stdout.split() == here


def test_until_may_be_text_or_milliseconds() -> None:
    trace = random_trace()
    one = fit_states(trace, states=5, until="1970-02-01")
    other = fit_states(trace, states=5, until=31 * DAY)
    assert one.digest == other.digest
    assert one.meta["states"]["until"] == "1970-02-01T00:00:00.000Z"
    # A version seen at that very moment is not learnt from.
    assert one.meta["states"]["texts"] == 31


def test_a_recording_of_one_moment_has_no_future() -> None:
    trace = texts_trace(random_texts(30), [DAY] * 30)
    assert fit_states(trace, states=4).meta["states"]["texts"] == 30


@pytest.mark.parametrize("method", METHODS)
def test_no_text_no_state(method: str) -> None:
    texts = [*random_texts(30), {}, {1: 2}]
    trace = texts_trace(texts, [DAY] * 32)
    text = trace.version_text.copy()
    text[3] = -1
    trace = replace(trace, version_text=frozen(text))
    made = fit_states(trace, method=method, states=4)
    is_zero = ~made.version_state.any(axis=1)
    assert np.flatnonzero(is_zero).tolist() == [3, 30]
    assert made.meta["states"]["saturation"]["zero"] == 2 / 32


@pytest.mark.parametrize("method", ["prtfidf", "prtfidf-calibrated", "svd"])
def test_a_text_of_unknown_words_has_no_state(method: str) -> None:
    early = [{token % 9: 1, (token + 2) % 9: 2} for token in range(30)]
    trace = texts_trace([*early, {9: 4}], [*range(30), DAY])
    made = fit_states(trace, method=method, states=3, until=30)
    assert not made.version_state[30].any()
    assert made.version_state[:30].any(axis=1).all()


@pytest.mark.parametrize("method", ["svd", "hashed"])
def test_projections_have_unit_length(method: str) -> None:
    made = fit_states(load_trace("synthetic-small-v0"), method=method)
    length = np.linalg.norm(made.version_state, axis=1)
    np.testing.assert_allclose(length[made.version_text >= 0], 1, rtol=1e-5)


def test_svd_is_a_singular_value_decomposition() -> None:
    trace = random_trace()
    made = fit_states(trace, method="svd", states=3, until=60 * DAY)
    counts = page_counts(trace)
    matrix = tfidf(counts, inverse_frequency(counts)).toarray()
    right = np.linalg.svd(matrix, full_matrices=False)[2][:3]
    expected = matrix @ right.T
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    sign = np.sign(np.sum(expected * made.version_state, axis=0))
    np.testing.assert_allclose(made.version_state, expected * sign, atol=1e-5)


def test_svd_does_not_depend_on_its_start() -> None:
    trace = random_trace()
    first = fit_states(trace, method="svd", states=4)
    for seed in range(1, 8):
        other = fit_states(trace, method="svd", states=4, seed=seed)
        np.testing.assert_allclose(other.version_state, first.version_state, atol=1e-5)


def test_svd_finds_the_longest_directions() -> None:
    """Fifty out of hundreds keep as much as the exact ones, but for a hundredth."""
    counts = page_counts(load_trace("synthetic-small-v0"))[:500]
    matrix = tfidf(counts, inverse_frequency(counts))
    directions = singular_directions(matrix, 50)
    np.testing.assert_allclose(directions.T @ directions, np.eye(50), atol=1e-9)
    lengths = np.linalg.svd(matrix.toarray(), compute_uv=False)
    kept = np.linalg.norm(matrix @ directions) ** 2
    assert 0.99 < kept / np.sum(lengths[:50] ** 2) < 1 + 1e-9


def test_svd_of_fewer_words_than_states() -> None:
    made = fit_states(random_trace(), method="svd", states=15, until=60 * DAY)
    assert not made.version_state[:, 10:].any()  # there are ten words


def test_hashing_keeps_words_apart_by_their_letters() -> None:
    """A word goes to the same place whatever its number in the vocabulary."""
    trace = texts_trace([{i: 1} for i in range(10)], [DAY] * 10)
    turned = replace(
        trace, vocabulary=type(trace.vocabulary).of([f"w{9 - i}" for i in range(10)])
    )
    one, other = (
        fit_states(each, method="hashed", states=8).version_state
        for each in (trace, turned)
    )
    np.testing.assert_array_equal(one, other[::-1])
    # One word each: a single entry, of either sign.
    assert (np.count_nonzero(one, axis=1) == 1).all()
    assert {-1.0, 1.0} == set(one[one != 0].tolist())


def test_calibration_makes_one_in_k_a_yes() -> None:
    trace = load_trace("synthetic-v0")
    made = fit_states(trace, method="prtfidf-calibrated")
    is_later = trace.version_seen >= trace.begin + (trace.end - trace.begin) // 3
    states = made.version_state[is_later & (trace.version_text >= 0)]
    # On average one yes in 50, on texts that were never seen in fitting.
    assert 0.8 < np.mean(states > 0) * 50 < 1.25


@pytest.mark.parametrize("method", ["prtfidf-calibrated", "svd", "hashed"])
def test_states_tell_labels_apart(method: str) -> None:
    """Of texts later than those learnt from, the nearest one has the same label."""
    trace = load_trace("synthetic-small-v0")
    made = fit_states(trace, method=method)
    label = np.full(len(trace.urls), -1)
    has_label = np.diff(trace.url_label_start) > 0
    label[has_label] = trace.url_label[trace.url_label_start[:-1][has_label]]
    is_later = trace.version_seen >= trace.begin + (trace.end - trace.begin) // 3
    rows = np.flatnonzero(is_later & (trace.version_text >= 0))
    rows = rows[label[trace.version_url[rows]] >= 0]
    rows = rows[np.unique(trace.version_text[rows], return_index=True)[1]]
    labels = label[trace.version_url[rows]]
    states = made.version_state[rows].astype(float)
    distance = ((states[:, None] - states[None]) ** 2).sum(axis=2)
    np.fill_diagonal(distance, np.inf)
    agree = float(np.mean(labels[distance.argmin(axis=1)] == labels))
    chance = float(np.mean(labels[:, None] == labels[None]))
    assert chance < 0.05
    assert agree > (0.2 if method == "hashed" else 0.7)


# --- saturation


def with_states(states: list[list[float]]) -> Trace:
    trace = texts_trace([{0: 1}] * len(states), [DAY] * len(states))
    return replace(trace, version_state=frozen(np.array(states, np.float32)))


def test_saturation_by_hand() -> None:
    found = saturation(with_states([[-1, 1], [-1, 1], [0, -0.0], [0.5, 1]]))
    assert found == {
        "most common": 2 / 4,  # the first two
        "distinct": 3 / 4,
        "zero": 1 / 4,
        "extreme": 5 / 8,
    }
    # Zero is zero, whatever its sign.
    assert saturation(with_states([[0.0, 1], [-0.0, 1]]))["distinct"] == 1 / 2


def test_the_printed_classifier_saturates() -> None:
    trace = load_trace("synthetic-small-v0")
    told = {
        method: fit_states(trace, method=method).meta["states"]["saturation"]
        for method in METHODS
    }
    assert told["prtfidf"]["most common"] > 0.8
    assert told["prtfidf"]["extreme"] > 0.95
    for method in ("prtfidf-calibrated", "svd", "hashed"):
        assert told[method]["most common"] < 0.05
        # No more can be told apart than there are texts.
        texts = len(np.unique(trace.version_text))
        assert told[method]["distinct"] == texts / len(trace.version_seen)


# --- errors


def test_a_trace_without_text_is_refused() -> None:
    bare = Trace.build(
        {"name": "bare-v0", "roots": ["http://a.example/"]},
        urls=["http://a.example/"],
        version_start=[0, 1],
        version_seen=[DAY],
    )
    with pytest.raises(ValueError, match="bare-v0 has no page text"):
        fit_states(bare)
    with pytest.raises(ValueError, match="bare-v0 has no states"):
        saturation(bare)
    with pytest.raises(ValueError, match="texts-v0 has no page text"):
        fit_states(texts_trace([{}, {}], [0, DAY]))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"method": "magic"}, "method is 'magic', expected prtfidf, prtfidf-cal"),
        ({"states": 1}, "states must be at least 2, not 1"),
        ({"states": 2.5}, "states is 2.5, expected a whole number"),
        ({"states": True}, "states is True"),
        ({"seed": -1}, "seed must be at least 0, not -1"),
        ({"states": 20}, "20 states by prtfidf need at least 21 page texts, but .* 20"),
        ({"states": 21, "method": "svd"}, "21 states by svd need at least 21 page"),
        ({"until": 0}, "no page text before 1970-01-01.*choose a later `until`"),
        ({"until": "1960-01-01"}, "no page text before 1970-01-01"),
        ({"until": -(10**20)}, "no page text before 1970-01-01"),
        ({"until": "soon"}, "until: 'soon' is not an ISO 8601 time"),
        ({"until": 1.5}, r"until is 1\.5, expected ISO 8601 text or milliseconds"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        fit_states(random_trace(), **options)


def test_as_many_states_as_texts() -> None:
    trace = random_trace()
    assert fit_states(trace, states=19).states == 19  # and one for the background
    assert fit_states(trace, states=20, method="svd").states == 20
    assert fit_states(trace, states=5, until=10**20).meta["states"]["texts"] == 60


# --- real pages


@pytest.mark.slow
@pytest.mark.skipif(DATA is None, reason="$WEBFORAGE_DATA names no recordings")
@pytest.mark.parametrize("station", ["ard", "sr"])
def test_teletext(station: str) -> None:
    from gym_webforage.record import Builder, Options
    from gym_webforage.record.warc import record_warc

    builder = Builder(Options("teletext-v0"))
    record_warc([Path(str(DATA)) / f"teletext-{station}.warc.gz"], builder)
    trace = builder.finish()
    told = {
        method: fit_states(trace, method=method).meta["states"]["saturation"]
        for method in METHODS
    }
    # Most pages get one state from the printed classifier, hardly any otherwise.
    assert told["prtfidf"]["most common"] > 0.4
    for method in ("prtfidf-calibrated", "svd", "hashed"):
        assert told[method]["most common"] < 0.05
        assert told[method]["distinct"] > 0.7
