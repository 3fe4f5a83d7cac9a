"""Clusters of texts by principal direction divisive partitioning.

One cluster of all texts is split again and again: the cluster with the largest scatter
(sum of squared distances from its centroid) falls into the two halves on either side of
the plane through its centroid that is normal to its principal direction.

Reference: D. Boley, "Principal direction divisive partitioning", Data Mining and
Knowledge Discovery 2 (1998).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

Array = np.ndarray
Sparse = Any  # a csr_array, of which the type checker thinks that it has no shape

SMALL = 128  # texts up to which a cluster's direction is computed exactly
STEPS = 32  # Lanczos steps between restarts
RESTARTS = 30
TOLERANCE = 1e-9  # of the direction: the residual in parts of the eigenvalue
ROUNDING = 1e-10  # in parts of the largest value, below which a value counts as zero


def pddp(matrix: Sparse, clusters: int = 50, seed: int = 0) -> Array:
    """Cluster the rows of ``matrix``.

    Rows that are equal stay together, so that there may be fewer clusters than asked
    for. The matrix is never centred in memory, and stays sparse.

    Args:
        matrix: The texts' vectors, one a row.
        clusters: How many to make.
        seed: Where the search for a direction starts. It matters only if a cluster has
            no single principal direction.

    Returns:
        The cluster of each row (int32), numbered in the order of their first rows.
    """
    if clusters < 1:
        raise ValueError(f"clusters must be at least 1, not {clusters}")
    matrix = sparse(matrix, dtype=np.float64)
    rng = np.random.default_rng(seed)
    members = [np.arange(matrix.shape[0])]
    scatters = [_scatter(matrix)]
    while len(members) < clusters:
        chosen = int(np.argmax(scatters))  # the oldest of equals
        if scatters[chosen] <= 0:
            break  # every cluster holds equal rows only
        rows = members[chosen]
        part = matrix[rows]
        apart = _far_side(_projections(part, rng))
        if not apart.any():
            scatters[chosen] = 0.0  # nothing but rounding told its rows apart
            continue
        near, far = part[~apart], part[apart]
        members[chosen], scatters[chosen] = rows[~apart], _scatter(near)
        members.append(rows[apart])
        scatters.append(_scatter(far))
    labels = np.empty(matrix.shape[0], np.int32)
    members = [rows for rows in members if len(rows)]
    for label, rows in enumerate(sorted(members, key=lambda rows: int(rows[0]))):
        labels[rows] = label
    return labels


def sparse(*args: Any, **options: Any) -> Sparse:
    """Make a csr_array."""
    return csr_array(*args, **options)


def _scatter(part: Sparse) -> float:
    """Return the sum of squared distances from the centroid, 0 for equal rows."""
    rows = part.shape[0]
    if rows < 2:
        return 0.0
    total = np.asarray(part.sum(axis=0)).reshape(-1)
    squares = float(np.dot(part.data, part.data))
    scatter = squares - float(np.dot(total, total)) / rows
    return scatter if scatter > ROUNDING * squares else 0.0


def _far_side(projections: Array) -> Array:
    """Say which rows lie on the other side of the centroid than the first one.

    A direction may point either way. Going by the first row off the plane makes the
    split independent of that; rows in the plane stay with this row.
    """
    limit = ROUNDING * np.abs(projections).max()
    off = np.flatnonzero(np.abs(projections) > limit)
    if not len(off):
        return np.zeros(len(projections), bool)
    if projections[off[0]] > 0:
        return projections < -limit
    return projections > limit


def _projections(part: Sparse, rng: np.random.Generator) -> Array:
    """Project the rows, seen from their centroid, on their principal direction.

    With M the centred matrix, these are the entries of the leading eigenvector of
    M M^T, up to a factor: the direction itself, in the space of words, is not needed.
    """
    rows = part.shape[0]
    # Drawn in any case, so that one cluster's size does not change another's start.
    start = int(rng.integers(2**32))
    if rows <= SMALL:
        gram = (part @ part.T).toarray()
        gram -= gram.mean(axis=0)
        gram -= gram.mean(axis=1, keepdims=True)
        leading = np.linalg.eigh(gram)[1][:, -1]
    else:
        leading = _leading(part, np.random.default_rng(start))
    # A product row by row: equal rows get bit-equal values, which the eigenvector's
    # rounding does not promise.
    return _centred(part @ (part.T @ _centred(leading)))


def _centred(values: Array) -> Array:
    return values - values.mean()


def _leading(part: Sparse, rng: np.random.Generator) -> Array:
    """Return the leading eigenvector of M M^T by Lanczos steps with restarts."""
    words = part.T
    guess = _centred(rng.standard_normal(part.shape[0]))
    for _ in range(RESTARTS):
        basis = np.zeros((STEPS, part.shape[0]))
        diagonal, beside = np.zeros(STEPS), np.zeros(STEPS)
        vector = guess / np.linalg.norm(guess)
        size = 0
        while size < STEPS:
            basis[size] = vector
            image = _centred(part @ (words @ vector))
            diagonal[size] = vector @ image
            size += 1
            known = basis[:size]
            for _ in range(2):  # once is not enough against rounding
                image -= known.T @ (known @ image)
            beside[size - 1] = np.linalg.norm(image)
            if beside[size - 1] <= ROUNDING * diagonal[:size].max():
                break  # the whole space that the guess reaches is known
            vector = image / beside[size - 1]
        small = np.diag(diagonal[:size])
        small += np.diag(beside[: size - 1], 1) + np.diag(beside[: size - 1], -1)
        values, vectors = np.linalg.eigh(small)
        guess = _centred(vectors[:, -1] @ basis[:size])
        if beside[size - 1] * abs(vectors[-1, -1]) <= TOLERANCE * values[-1]:
            break
    return guess
