"""The text classifier of the news papers: probabilities of classes, made yes or no.

Reference: T. Joachims, "A probabilistic analysis of the Rocchio algorithm with TFIDF
for text categorization", International Conference on Machine Learning (1997).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gym_webforage.trace.pddp import Sparse, sparse

Array = np.ndarray

SLOPE = 40.0  # of the hyperbolic tangent, as printed
THRESHOLD = 0.5  # taken from every output, as printed


@dataclass(frozen=True, eq=False)
class PrTFIDF:
    """Joachims' probabilistic Rocchio classifier: P(c|d) = sum over w P(c|w) P(w|d).

    P(w|d) is the share of the word among those of the text that the classifier knows;
    P(w|c) is its mean over the texts of the class, P(c) the class's share of the texts,
    and P(c|w) follows by Bayes' rule. Make one with `PrTFIDF.fit`.
    """

    weight: Array
    """The sum of P(w|d) over the texts of each class, (words, classes)."""

    total: Array
    """The same over all classes; a word without it is not known."""

    @classmethod
    def fit(cls, counts: Sparse, labels: Array, classes: int) -> PrTFIDF:
        """Learn from texts, one a row, and the class of each."""
        shares = _shares(counts, np.ones(counts.shape[1]))
        # P(w|c) P(c) is this sum over the number of texts, which cancels in P(c|w).
        rows = np.arange(counts.shape[0])
        member = sparse((np.ones(len(rows)), (labels, rows)), (classes, len(rows)))
        weight = np.ascontiguousarray((member @ shares).toarray().T)
        return cls(weight, weight.sum(axis=1))

    @property
    def known(self) -> Array:
        """Which words stood in a text learnt from."""
        return self.total > 0

    def probabilities(self, counts: Sparse) -> Array:
        """Return P(c|d), (texts, classes); all zero for a text without a known word."""
        total = np.where(self.known, self.total, 1)
        return _shares(counts, self.known) @ (self.weight / total[:, None])

    def probabilities_without(self, counts: Sparse) -> Array:
        """Return P(c|d) of texts of the last class as if each had not been learnt from.

        A text that was learnt from looks more like its own class, and so less like
        all others, than a new text would. The last column is left at zero.
        """
        own = _shares(counts, self.known)
        others = self.total[own.indices] - own.data
        # A word of this text only would not have been known at all.
        shared = others > 1e-12 * self.total[own.indices]
        known = _shares(with_data(counts, counts.data * shared), self.known)
        scaled = known.data / np.where(shared, others, 1)
        found = with_data(known, scaled) @ self.weight
        found[:, -1] = 0
        return found


def yes_or_no(probabilities: Array, threshold: float | Array = THRESHOLD) -> Array:
    """Map a classifier's outputs to -1 to 1 as the papers do, very steeply."""
    return np.tanh(SLOPE * (probabilities - threshold))


def with_data(like: Sparse, data: Array) -> Sparse:
    """Return a matrix with the same places filled, by other values."""
    return sparse((data, like.indices, like.indptr), like.shape)


def _shares(counts: Sparse, known: Array) -> Sparse:
    """Return P(w|d) over the ``known`` words: each row sums to one or is all zero."""
    values = counts.data * known[counts.indices]
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    total = np.bincount(rows, values, counts.shape[0])
    return with_data(counts, values / np.where(total > 0, total, 1)[rows])
