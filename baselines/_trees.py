"""Gradient-boosted trees as plain arrays, and a compiled evaluator for them.

The arrays come from scikit-learn's ``HistGradientBoostingRegressor`` and give exactly
its predictions: the same comparisons, summed in the same order.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from baselines._set_scorer import CLIP, Survey, survey_of, z_scores
from baselines._weights import State

LEAF = -1

# Compiled in each process: the package's own cache watches the package's files alone.
compiled = numba.njit(nogil=True)


def arrays_of(model: Any) -> State:
    """Return the trees of a fitted regressor without categories or missing values."""
    trees = [predictor[0].nodes for predictor in model._predictors]
    offsets = np.cumsum([0, *(len(nodes) for nodes in trees)])
    nodes = np.concatenate(trees)
    shift = np.repeat(offsets[:-1], np.diff(offsets))
    is_leaf = nodes["is_leaf"].astype(np.bool_)
    return {
        "root": offsets[:-1].astype(np.int32),
        "feature": np.where(is_leaf, LEAF, nodes["feature_idx"]).astype(np.int32),
        "threshold": nodes["num_threshold"].astype(np.float64),
        "left": np.where(is_leaf, 0, nodes["left"] + shift).astype(np.int32),
        "right": np.where(is_leaf, 0, nodes["right"] + shift).astype(np.int32),
        "value": nodes["value"].astype(np.float64),
        "baseline": np.asarray(model._baseline_prediction, np.float64).reshape(1),
    }


@compiled
def evaluate_one(root, feature, threshold, left, right, value, baseline, row):
    """Return the sum of all trees for a row."""
    total = baseline
    for tree in range(len(root)):
        node = root[tree]
        while feature[node] >= 0:
            if row[feature[node]] <= threshold[node]:
                node = left[node]
            else:
                node = right[node]
        total += value[node]
    return total


@compiled
def evaluate(root, feature, threshold, left, right, value, baseline, rows, out):
    """Write the sum of all trees for each row."""
    for i in range(len(rows)):
        out[i] = evaluate_one(
            root, feature, threshold, left, right, value, baseline, rows[i]
        )


@compiled
def evaluate_changed(
    root, feature, threshold, left, right, value, baseline,
    edge_start, edges, rows, numbers, bins, cached, out,
):  # fmt: skip
    """The same, but trees are asked only where a value has passed a threshold."""
    columns = rows.shape[1]
    for i in range(len(rows)):
        number = numbers[i]
        changed = False
        for column in range(columns):
            low, high = edge_start[column], edge_start[column + 1]
            begin = low
            while low < high:
                middle = (low + high) >> 1
                if rows[i, column] <= edges[middle]:
                    high = middle
                else:
                    low = middle + 1
            place = low - begin
            if bins[number, column] != place:
                bins[number, column] = place
                changed = True
        if changed:
            cached[number] = evaluate_one(
                root, feature, threshold, left, right, value, baseline, rows[i]
            )
        out[i] = cached[number]


def tree_rows(
    rows: np.ndarray, context: np.ndarray, survey: Survey | None = None
) -> np.ndarray:
    """Return what trees look at: the columns, their z-scores, and the context."""
    scaled = np.clip(z_scores(rows, survey), -CLIP, CLIP)
    shared = np.broadcast_to(context, (len(rows), len(context)))
    return np.concatenate([rows, scaled, shared], axis=1)


class TreeScorer:
    """Trained trees, and what they said of each URL of the crawl so far."""

    def __init__(self, arrays: State) -> None:
        names = ("root", "feature", "threshold", "left", "right", "value")
        self._trees = tuple(arrays[name] for name in names)
        self._baseline = float(arrays["baseline"][0])
        self._edges: tuple[np.ndarray, np.ndarray] | None = None
        self.reset()

    def reset(self) -> None:
        """Forget the crawl."""
        self._bins: np.ndarray = np.empty((0, 0), np.int16)
        self._cached: np.ndarray = np.empty(0)

    def _edges_of(self, columns: int) -> tuple[np.ndarray, np.ndarray]:
        if self._edges is None:
            feature, threshold = self._trees[1], self._trees[2]
            found = [np.unique(threshold[feature == c]) for c in range(columns)]
            start = np.cumsum([0, *map(len, found)])
            self._edges = start, np.concatenate(found)
        return self._edges

    def predict(self, inputs: np.ndarray) -> np.ndarray:
        """Return the trees' predictions for rows that `tree_rows` made."""
        found = np.empty(len(inputs))
        run: Any = evaluate
        run(*self._trees, self._baseline, inputs, found)
        return found

    def score(
        self,
        rows: np.ndarray,
        context: np.ndarray,
        numbers: np.ndarray,
        survey: Survey | None = None,
    ) -> tuple[np.ndarray, Survey]:
        """Return one score a candidate; ``numbers`` are their discovery numbers.

        ``survey`` has means and spreads of the whole frontier if this is a part of it.
        """
        survey = survey_of(rows) if survey is None else survey
        inputs = tree_rows(rows, context, survey)
        edges = self._edges_of(inputs.shape[1])
        most = int(numbers.max()) + 1
        if most > len(self._bins):
            size = max(1024, 2 * most)
            bins = np.full((size, inputs.shape[1]), -1, np.int16)
            cached = np.zeros(size)
            if len(self._bins):
                bins[: len(self._bins)] = self._bins
            cached[: len(self._cached)] = self._cached
            self._bins, self._cached = bins, cached
        found = np.empty(len(inputs))
        run: Any = evaluate_changed
        run(
            *self._trees,
            self._baseline,
            *edges,
            inputs,
            numbers,
            self._bins,
            self._cached,
            found,
        )
        return found, survey
