"""Clusters whose features have the shortest code: R - R_c of clusters, and points that go where they cost the least."""

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning as DistinctPointsWarning
from torch import Tensor

from mercer.exceptions import ignored
from mercer.linalg import one_thread
from mercer.losses import mcr2
from mercer.losses.coding_rate import over_precision
from mercer.losses.directions import unit


def rate_reduction(Z: Tensor, labels: np.ndarray, epsilon: float) -> float:
    """Return R - R_c of clusters: how much shorter a code features have cluster by cluster than all together.

    Parameters
    ----------
    Z : tensor of shape (n, d)
        Features. To compare clusters of several trainings they must be the same for all.
    labels : ndarray of shape (n,)
    epsilon : float
        ε of the rates; see `mercer.losses.mcr2`.
    """
    return -float(mcr2(Z.cpu().double(), torch.from_numpy(labels), epsilon=epsilon))


def coding_costs(Z: Tensor, labels: np.ndarray, epsilon: float) -> np.ndarray:
    """Return what each point would cost in each cluster, of shape (n, k): the derivative of n R_c by its membership.

    With A_j = I + d / (n_j ε^2) Z_j^T Z_j, point i costs log det A_j + d / ε^2 z_i^T A_j^-1 z_i - d + tr A_j^-1 in
    cluster j; in one without points, infinitely much. But for a constant it is the code of z_i by a Gaussian that has
    the cluster's covariance and some noise. What points cost in their own clusters sums to n R_c.

    Parameters
    ----------
    Z : tensor of shape (n, d)
        Features, which enter by their directions.
    labels : ndarray of shape (n,)
    epsilon : float

    Notes
    -----
    O(k (n d^2 + d^3)) time.
    """
    W = over_precision(unit(Z.cpu().double(), dim=1), epsilon)
    d, k = W.shape[1], int(labels.max()) + 1
    costs = np.full((len(W), k), np.inf)
    for j in np.unique(labels):
        own = W[torch.from_numpy(labels == j)]
        L = torch.linalg.cholesky(torch.eye(d, dtype=W.dtype) + own.T @ own / len(own))
        inverse = torch.cholesky_inverse(L)
        log_determinant = 2.0 * L.diagonal().log().sum()
        costs[:, j] = log_determinant + ((W @ inverse) * W).sum(dim=1) - d + inverse.trace()
    return costs


def with_shorter_code(Z: Tensor, labels: np.ndarray, epsilon: float) -> np.ndarray:
    """Return clusters of no smaller R - R_c: points go to the cluster where they cost the least, until none moves.

    R_c is concave in memberships, so that it lies below its tangent at the clusters of before, which points make
    smaller by going where they cost less, be it all or some of them: no round lengthens the code.

    Parameters
    ----------
    Z, labels, epsilon
        As in `coding_costs`.
    """
    kept, length = labels, np.inf
    while True:
        costs = coding_costs(Z, labels, epsilon)
        # Where points are, their costs sum to n R_c. Rounding may let two clusterings take turns: it must fall.
        now = float(_costs_in(labels, costs).sum())
        if not now < length:
            return kept
        kept, length = labels, now
        labels = cheaper(labels, costs)


def cheaper(labels: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Return the clusters after all points have gone, at once, to where they cost the least.

    The points of a cluster that all would leave stay, so that as many clusters remain.
    """
    cheapest = costs.argmin(axis=1)
    moved = np.where(_costs_in(cheapest, costs) < _costs_in(labels, costs), cheapest, labels)
    return np.where(np.isin(labels, np.setdiff1d(labels, moved)), labels, moved)


def _costs_in(labels: np.ndarray, costs: np.ndarray) -> np.ndarray:
    return np.take_along_axis(costs, labels[:, None], axis=1)[:, 0]


def k_means_labels(C: Tensor, n_clusters: int, n_runs: int, seed: int) -> list[np.ndarray]:
    """Return the clusters of several runs of k-means, each from a beginning of its own."""
    seeds = np.random.RandomState(seed).randint(2**31 - 1, size=n_runs)
    rows = C.cpu().numpy()
    # scikit-learn limits the BLAS and puts back what it found, which threads that overlap confuse: here all find one.
    with ignored(DistinctPointsWarning), one_thread():
        return [KMeans(n_clusters, n_init=1, random_state=one).fit(rows).labels_.astype(np.int64) for one in seeds]
