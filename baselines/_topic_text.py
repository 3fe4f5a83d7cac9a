"""Words of pages as vectors: tf-idf by example pages, clusters of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from baselines._examples import Bag


@dataclass(frozen=True)
class Weighting:
    """tf-idf, with document frequencies from example pages.

    A crawler has no statistics of the web it has yet to see. The weight of a word that
    occurs in d of n examples is ln((1 + n) / (1 + d)) + 1.
    """

    idf: np.ndarray

    @classmethod
    def of(cls, texts: Sequence[Bag], vocabulary: int) -> Weighting:
        """Count in how many texts each word occurs."""
        count = np.zeros(vocabulary)
        for tokens, _ in texts:
            count[tokens] += 1
        return cls(np.log((1 + len(texts)) / (1 + count)) + 1)

    def weigh(self, text: Bag) -> tuple[np.ndarray, np.ndarray]:
        """Return a text as a vector of length 1 (or empty): words and weights."""
        tokens, counts = text
        weights = counts * self.idf[tokens]
        length = math.sqrt(float(weights @ weights))
        return tokens, weights / length if length else weights

    def matrix(self, texts: Sequence[Bag]) -> sparse.csr_array:
        """Return texts as the rows of a matrix."""
        rows = [self.weigh(text) for text in texts]
        start = np.cumsum([0, *(len(tokens) for tokens, _ in rows)])
        tokens = np.concatenate([tokens for tokens, _ in rows])
        weights = np.concatenate([weights for _, weights in rows])
        shape = (len(rows), len(self.idf))
        return sparse.csr_array((weights, tokens, start), shape=shape)

    def centroid(self, texts: Sequence[Bag]) -> np.ndarray:
        """Return the mean direction of texts: a vector of length 1, or zeros."""
        return unit(np.asarray(self.matrix(texts).sum(axis=0)))

    def similarity(self, text: Bag, centroid: np.ndarray) -> float:
        """Return the cosine of a text with a vector of length 1."""
        tokens, weights = self.weigh(text)
        return float(weights @ centroid[tokens])


def unit(rows: np.ndarray) -> np.ndarray:
    """Return vectors scaled to length 1; zeros stay."""
    length = np.linalg.norm(rows, axis=-1, keepdims=True)
    return np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)


def semantic_axes(matrix: sparse.csr_array, dimensions: int) -> np.ndarray:
    """Return the axes of latent semantic indexing, one a column.

    They are the right singular vectors of the matrix, of which the rows are texts, with
    the largest singular values; fewer than ``dimensions`` if there are no more.
    """
    squares, vectors = np.linalg.eigh((matrix @ matrix.T).toarray())
    kept = np.argsort(-squares, kind="stable")[:dimensions]
    kept = kept[squares[kept] > 1e-9 * squares.max()]
    return np.asarray(matrix.T @ (vectors[:, kept] / np.sqrt(squares[kept])))


# --- clusters


def x_means(rows: np.ndarray, most: int) -> np.ndarray:
    """Return the cluster of each row: X-means, that is k-means that finds its k.

    The cluster that loses most spread by a division in two is divided, then all are
    improved by k-means, up to ``most`` clusters; of these clusterings the one that is
    best by `bic` counts, the first among equals.
    """
    of_row = best = np.zeros(len(rows), np.int64)
    best_bic = bic(rows, of_row)
    for count in range(1, most):
        divisions = [_division(rows, of_row == cluster) for cluster in range(count)]
        gains = [gain for gain, _ in divisions]
        chosen = int(np.argmax(gains))
        if gains[chosen] <= 0:
            break
        of_row = of_row.copy()
        of_row[divisions[chosen][1]] = count
        of_row = k_means(rows, of_row)
        value = bic(rows, of_row)
        if value > best_bic:
            best, best_bic = of_row, value
    return best


def k_means(rows: np.ndarray, of_row: np.ndarray) -> np.ndarray:
    """Return clusters improved by k-means; none of them is emptied."""
    for _ in range(50):
        before = of_row
        centres = [rows[before == i].mean(axis=0) for i in range(before.max() + 1)]
        far = np.stack([_squares(rows, centre) for centre in centres])
        of_row = np.argmin(far, axis=0)
        if len(np.unique(of_row)) < len(centres) or (of_row == before).all():
            return before
    return of_row


def bic(rows: np.ndarray, of_row: np.ndarray) -> float:
    """Return the Bayesian information criterion of clusters as round Gaussians.

    All have one variance, as in X-means; higher is better.
    """
    count, width = rows.shape
    sizes = np.bincount(of_row)
    free = max(count - len(sizes), 1)
    spread = sum(_spread(rows[of_row == i]) for i in range(len(sizes)))
    variance = max(spread / (free * width), 1e-12)
    likelihood = float(sizes @ np.log(sizes / count))
    likelihood -= count * width / 2 * math.log(2 * math.pi * variance)
    likelihood -= free * width / 2
    parameters = len(sizes) * (width + 1)
    return likelihood - parameters / 2 * math.log(count)


def _division(rows: np.ndarray, own: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the spread that a cluster loses by a division, and who leaves it.

    2-means begins with the row furthest from the mean and that furthest from it.
    """
    members = np.flatnonzero(own)
    inside = rows[members]
    first = inside[np.argmax(_squares(inside, inside.mean(axis=0)))]
    second = inside[np.argmax(_squares(inside, first))]
    leaves = _squares(inside, second) < _squares(inside, first)
    if not leaves.any() or leaves.all():
        return 0.0, members[:0]
    leaves = k_means(inside, leaves.astype(np.int64)) == 1
    gain = _spread(inside) - _spread(inside[leaves]) - _spread(inside[~leaves])
    return gain, members[leaves]


def _spread(rows: np.ndarray) -> float:
    return float(_squares(rows, rows.mean(axis=0)).sum())


def _squares(rows: np.ndarray, centre: np.ndarray) -> np.ndarray:
    return np.square(rows - centre).sum(axis=1)
