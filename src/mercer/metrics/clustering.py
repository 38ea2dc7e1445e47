"""Scores of clusters, and of the affinities that they are made from, if the classes are known."""

from contextlib import suppress
from typing import Any

import numpy as np
import scipy.linalg
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from mercer.checks import ASYMMETRY
from mercer.exceptions import invalid_parameter
from mercer.metrics.arrays import check_labels, check_square

# The graph of a class with up to so many rows is decomposed as a whole, a larger one by Lanczos steps.
FEW_POINTS = 500


def clustering_accuracy(labels_true: Any, labels_pred: Any) -> float:
    """What share of the rows is in the right cluster, under the best assignment of clusters to classes?

    Each cluster is assigned to at most one class, and each class to at most one cluster, so that the share is largest.
    If there are more clusters than classes, rows of clusters without a class count as wrong. O(n + k^3) time for k
    classes or clusters.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n,)
        The classes and the clusters, as labels of any type. A label for noise counts as a cluster like the others.

    Examples
    --------
    >>> from mercer.metrics import clustering_accuracy
    >>> clustering_accuracy(["cat", "cat", "dog", "dog"], [1, 1, 0, 1])
    0.75
    """
    true = check_labels("labels_true", labels_true)
    pred = check_labels("labels_pred", labels_pred, len(true))
    counts = np.zeros((true.max() + 1, pred.max() + 1))
    np.add.at(counts, (true, pred), 1)
    return float(counts[linear_sum_assignment(counts, maximize=True)].sum() / len(true))


def subspace_preserving_error(coefficients: Any, labels: Any) -> float:
    """How much are rows expressed by rows of other classes? Return the mean share; 0 is best.

    The share of row i is the part of |c_i|_1 that belongs to rows of other classes (You, Robinson and Vidal, 2016). A
    row that is not expressed by others, with c_i = 0, has a share of 1, as in the public code of the paper.

    Parameters
    ----------
    coefficients : array, tensor or scipy.sparse matrix of shape (n, n)
        C. Its column c_i expresses row i by the other rows.
    labels : array-like of shape (n,)
        The classes.

    Examples
    --------
    >>> from mercer.metrics import subspace_preserving_error
    >>> subspace_preserving_error([[0.0, 1.0, 0.5], [1.0, 0.0, -0.5], [0.0, 0.0, 0.0]], ["a", "a", "b"])
    0.3333333333333333
    """
    C = abs(check_square("coefficients", coefficients))
    total = C.sum(axis=0)
    own = _within(C, check_labels("labels", labels, C.shape[0])).sum(axis=0)
    return float(np.mean(1.0 - np.divide(own, total, out=np.zeros_like(own), where=total > 0)))


def connectivity(affinity: Any, labels: Any, *, average: bool = False) -> float:
    """How well is the graph of each class connected, so that clustering does not divide it? Return the smallest value.

    The value of a class is the second smallest eigenvalue of its normalized Laplacian I - D^-1/2 W D^-1/2, where W are
    the affinities within the class and D = diag(W 1) (You, Robinson and Vidal, 2016). It is 0 if and only if the graph
    of W is not connected, and n / (n - 1) if all n rows are equal. A class of one row has no edge and counts as 0. The
    diagonal of the affinity is left out, as in scikit-learn's spectral clustering.

    Parameters
    ----------
    affinity : array, tensor or scipy.sparse matrix of shape (n, n)
        Symmetric and nonnegative, |C| + |C|^T for coefficients C.
    labels : array-like of shape (n,)
        The classes.
    average : bool, default=False
        Whether to return the mean over the classes in place of the smallest value.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.metrics import connectivity
    >>> path = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    >>> round(connectivity(path, [0, 0, 0]), 6), connectivity(path, [0, 1, 0])
    (1.0, 0.0)
    """
    W = check_square("affinity", affinity)
    if W.min() < 0:
        raise invalid_parameter("affinity", float(W.min()), "at least 0 throughout")
    asymmetry = float(abs(W - W.T).max())
    if asymmetry > ASYMMETRY * W.max():
        raise invalid_parameter("affinity", f"a matrix that differs from its transpose by {asymmetry:g}", "symmetric")
    classes = check_labels("labels", labels, W.shape[0])
    W = _without_diagonal(W)
    members = [np.flatnonzero(classes == k) for k in range(classes.max() + 1)]
    values = [_algebraic_connectivity(W[rows][:, rows]) for rows in members]
    return float(np.mean(values) if average else np.min(values))


def block_mass(matrix: Any, labels: Any, *, diagonal: bool = True) -> float:
    """What share of a kernel matrix or an affinity, by absolute values, is between rows of the same class?

    Parameters
    ----------
    matrix : array, tensor or scipy.sparse matrix of shape (n, n)
        At least one entry must not be zero.
    labels : array-like of shape (n,)
        The classes.
    diagonal : bool, default=True
        Whether to count the diagonal, which always lies within the classes.

    Examples
    --------
    >>> from mercer.metrics import block_mass
    >>> block_mass([[1.0, 0.5], [0.5, 1.0]], [0, 1]), block_mass([[1.0, 0.5], [0.5, 1.0]], [0, 1], diagonal=False)
    (0.6666666666666666, 0.0)
    """
    M = abs(check_square("matrix", matrix))
    classes = check_labels("labels", labels, M.shape[0])
    if not diagonal:
        M = _without_diagonal(M)
    total = float(M.sum())
    if not total:
        raise invalid_parameter(
            "matrix", 0.0, "different from zero somewhere" + ("" if diagonal else " off its diagonal")
        )
    return float(_within(M, classes).sum() / total)


def _within(M: Any, classes: np.ndarray) -> Any:
    """Return M with zeros between rows of different classes."""
    if not sparse.issparse(M):
        return np.where(classes[:, None] == classes, M, 0.0)
    entries = M.tocoo()
    inside = classes[entries.row] == classes[entries.col]
    return sparse.csr_array((np.where(inside, entries.data, 0.0), (entries.row, entries.col)), shape=M.shape)


def _without_diagonal(M: Any) -> Any:
    """Return M with zeros on its diagonal."""
    if sparse.issparse(M):
        return M - sparse.diags_array(M.diagonal(), format="csr")
    return M - np.diag(np.diagonal(M))


def _algebraic_connectivity(W: Any) -> float:
    """Return the second smallest eigenvalue of the normalized Laplacian of a graph."""
    n = W.shape[0]
    if n == 1 or connected_components(W, directed=False, return_labels=False) > 1:
        return 0.0
    roots = np.sqrt(W.sum(axis=1))
    N = _scaled(W, 1.0 / roots)
    if n > FEW_POINTS:
        # The eigenvalue 1 of N, whose eigenvector is known, is moved to -1, so that the second one becomes the largest.
        # The first vector is fixed, so that the result is reproducible.
        top = roots / np.linalg.norm(roots)
        moved = LinearOperator((n, n), matvec=lambda v: N @ v - 2.0 * top * (top @ v), dtype=np.float64)
        with suppress(ArpackNoConvergence):
            second = eigsh(moved, 1, which="LA", v0=np.cos(np.arange(n)), return_eigenvectors=False)[0]
            return float(max(0.0, 1.0 - second))
    dense = N.toarray() if sparse.issparse(N) else N
    second = scipy.linalg.eigh(dense, eigvals_only=True, subset_by_index=(n - 2, n - 2))[0]
    return float(max(0.0, 1.0 - second))


def _scaled(W: Any, scales: np.ndarray) -> Any:
    """Return diag(scales) W diag(scales)."""
    if sparse.issparse(W):
        return sparse.diags_array(scales) @ W @ sparse.diags_array(scales)
    return scales[:, None] * W * scales
