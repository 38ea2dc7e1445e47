"""Steps from self-expression coefficients to a graph: truncation, scaling, and the modularity of clusters."""

from typing import Any, TypeAlias

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

Matrix: TypeAlias = Any  # an ndarray, or a sparse array of SciPy


def truncated(C: Tensor, count: int | None) -> Matrix:
    """Return the `count` coefficients of each column with the largest absolute values, as a sparse matrix.

    If `count` is None, all coefficients are returned, as an ndarray. The few largest coefficients separate the
    subspaces. Ridge regression also gives small coefficients to all other points, and together these outweigh the
    large ones (KTRR is named after this truncation).
    """
    if count is None:
        return C.cpu().numpy()
    m, b = C.shape
    rows = torch.topk(C.abs(), min(count, m), dim=0).indices
    values = torch.gather(C, 0, rows).T.reshape(-1).cpu().numpy()
    starts = np.arange(0, values.size + 1, min(count, m))
    kept = sparse.csc_array((values, rows.T.reshape(-1).cpu().numpy(), starts), shape=(m, b))
    kept.eliminate_zeros()
    return kept


def without_small(C: Tensor) -> sparse.csc_array:
    """Return coefficients, most of which are zero, as a sparse matrix."""
    return sparse.csc_array(C.cpu().numpy())


def unit_columns(C: Matrix) -> Matrix:
    """Return the absolute coefficients, with each column divided by its maximum so that all points count equally."""
    A = abs(C)
    largest = np.asarray(A.max(axis=0).todense()).ravel() if sparse.issparse(A) else A.max(axis=0)
    scale = np.divide(1.0, largest, out=np.zeros_like(largest), where=largest > 0)
    return sparse.csc_array(A.multiply(scale[None, :])) if sparse.issparse(A) else A * scale


def modularity(W: Matrix, labels: np.ndarray) -> float:
    """Return the modularity: how much more of a graph's affinity lies inside clusters than would by chance.

    It is sum_c (w_c - v_c^2), at most 1 (Newman and Girvan 2004). w_c is the share of all affinity that lies inside
    cluster c, and v_c is the share of all degrees that its points have. Spectral clustering relaxes the first term.
    The second term keeps tiny groups of points with few links to the rest from counting as clusters.

    Parameters
    ----------
    W : ndarray or sparse matrix of shape (n, n)
        Symmetric affinities without negative entries.
    labels : ndarray of shape (n,)
        Clusters, numbered from 0.
    """
    members = indicator(labels)
    degrees = np.asarray(W.sum(axis=1)).ravel()
    return modularity_of((members * np.asarray(W @ members)).sum(axis=0), degrees @ members)


def modularity_of(inside: np.ndarray, volumes: np.ndarray) -> float:
    """Return the modularity from each cluster's inner affinity and sum of degrees; 0 for a graph without affinity."""
    total = volumes.sum()
    return float(np.sum(inside / total - (volumes / total) ** 2)) if total > 0 else 0.0


def indicator(labels: np.ndarray) -> np.ndarray:
    """Return the membership of points in clusters 0, 1, ... as a matrix of zeros and ones, a column for each."""
    return np.eye(int(labels.max()) + 1)[labels]
