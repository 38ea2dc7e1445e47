"""From coefficients to a graph: truncation, columns of one scale, and how cleanly clusters cut it."""

from typing import Any, TypeAlias

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

Matrix: TypeAlias = Any  # an ndarray, or a sparse array of SciPy


def truncated(C: Tensor, count: int | None) -> Matrix:
    """Return each column's `count` largest coefficients by absolute value, as a sparse matrix; all of them if None.

    What separates subspaces is in the few largest coefficients: the many small ones, which ridge regression spreads
    over all points, together outweigh them (KTRR is named after this step).
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
    """Return coefficients that are mostly zero as a sparse matrix."""
    return sparse.csc_array(C.cpu().numpy())


def unit_columns(C: Matrix) -> Matrix:
    """Return absolute coefficients with 1 as the largest of each column, so that every point has the same say."""
    A = abs(C)
    largest = np.asarray(A.max(axis=0).todense()).ravel() if sparse.issparse(A) else A.max(axis=0)
    scale = np.divide(1.0, largest, out=np.zeros_like(largest), where=largest > 0)
    return sparse.csc_array(A.multiply(scale[None, :])) if sparse.issparse(A) else A * scale


def modularity(W: Matrix, labels: np.ndarray) -> float:
    """Return how much more of a graph's affinity lies inside clusters than chance would put there; 1 at most.

    It is sum_c (w_c - v_c^2), w_c the share of all affinity that is inside of cluster c, and v_c the share of its
    points' degrees (Newman and Girvan 2004). The first part is what spectral clustering relaxes; the second keeps
    specks that hang by a thread from counting as clusters.

    Parameters
    ----------
    W : ndarray or sparse matrix of shape (n, n)
        Symmetric, nowhere negative.
    labels : ndarray of shape (n,)
        Clusters, numbered from 0.
    """
    members = indicator(labels)
    degrees = np.asarray(W.sum(axis=1)).ravel()
    return modularity_of((members * np.asarray(W @ members)).sum(axis=0), degrees @ members)


def modularity_of(inside: np.ndarray, volumes: np.ndarray) -> float:
    """Return the modularity of clusters by the affinity inside of them and the sum of their degrees; 0 without any."""
    total = volumes.sum()
    return float(np.sum(inside / total - (volumes / total) ** 2)) if total > 0 else 0.0


def indicator(labels: np.ndarray) -> np.ndarray:
    """Return the membership of points in clusters 0, 1, ... as a matrix of ones and zeros."""
    return np.eye(int(labels.max()) + 1)[labels]
