"""Clusters whose features have the shortest code: R - R_c of clusters, and points that go where they cost the least."""

import math
import warnings

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning as DistinctPointsWarning
from torch import Tensor

from mercer.losses import mcr2
from mercer.losses.directions import unit

# Points stop moving long before: after 1 to 25 rounds on features of images.
MAX_ROUNDS = 100


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
    the cluster's covariance and some noise.

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
    W = unit(Z.cpu().double(), dim=1) * (math.sqrt(Z.shape[1]) / epsilon)
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

    R_c is concave in memberships, so that it lies below its tangent at the clusters of before, which is what points
    make smallest by going where they cost the least: no round lengthens the code. Clusters are not emptied: a round
    that would empty one is not made.

    Parameters
    ----------
    Z, labels, epsilon
        As in `coding_costs`.
    """
    count = len(np.unique(labels))
    for _ in range(MAX_ROUNDS):
        moved = coding_costs(Z, labels, epsilon).argmin(axis=1)
        if len(np.unique(moved)) < count or (moved == labels).all():
            break
        labels = moved
    return labels


def k_means_labels(C: Tensor, n_clusters: int, n_runs: int, seed: int) -> list[np.ndarray]:
    """Return the clusters of several runs of k-means, each from a beginning of its own."""
    seeds = np.random.RandomState(seed).randint(2**31 - 1, size=n_runs)
    rows = C.cpu().numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DistinctPointsWarning)
        return [KMeans(n_clusters, n_init=1, random_state=one).fit(rows).labels_.astype(np.int64) for one in seeds]
