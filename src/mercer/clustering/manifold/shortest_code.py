"""Improving clusters by moving points as long as the code of the features gets shorter (a larger R - R_c)."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercer.clustering.k_means import k_means
from mercer.losses import mcr2
from mercer.losses.coding_rate import over_precision
from mercer.losses.directions import unit

# If there are many initial clusters: the number of rounds between two selections, and how many are run to the end.
ROUNDS, FINALISTS = 4, 4
# Relative differences of code lengths up to this one are rounding.
ROUNDING = 1e-12


def rate_reduction(Z: Tensor, labels: np.ndarray, epsilon: float) -> float:
    """Return R - R_c of clusters: how much shorter the code of features is by cluster than for all of them together.

    Parameters
    ----------
    Z : tensor of shape (n, d)
        The features. To compare clusters of several trainings, use the same features for all of them.
    labels : ndarray of shape (n,)
    epsilon : float
        ε of the rates; see `mercer.losses.mcr2`.
    """
    return -float(mcr2(Z.cpu().double(), torch.from_numpy(labels), epsilon=epsilon))


def coding_costs(Z: Tensor, labels: np.ndarray, epsilon: float, new: Tensor | None = None) -> np.ndarray:
    """Return the cost of each point in each cluster, of shape (n, k): the derivative of n R_c by its membership.

    With A_j = I + d / (n_j ε^2) Z_j^T Z_j, the cost of point i in cluster j is
    log det A_j + d / ε^2 z_i^T A_j^-1 z_i - d + tr A_j^-1. The cost in an empty cluster is infinite. Except for a
    constant, it is the code length of z_i under a Gaussian that has the cluster's covariance plus some noise. The costs
    of points in their own clusters sum to n R_c.

    Parameters
    ----------
    Z : tensor of shape (n, d)
        The features. Only their directions matter.
    labels : ndarray of shape (n,)
    epsilon : float
        ε.
    new : tensor of shape (m, d), optional
        The features of other points, whose costs are returned instead.

    Notes
    -----
    O(k (n d^2 + d^3)) time.
    """
    W = over_precision(unit(Z.cpu().double(), dim=1), epsilon)
    asked = W if new is None else over_precision(unit(new.cpu().double(), dim=1), epsilon)
    d, k = W.shape[1], int(labels.max()) + 1
    costs = np.full((len(asked), k), np.inf)
    for j in np.unique(labels):
        own = W[torch.from_numpy(labels == j)]
        L = torch.linalg.cholesky(torch.eye(d, dtype=W.dtype) + own.T @ own / len(own))
        inverse = torch.cholesky_inverse(L)
        log_determinant = 2.0 * L.diagonal().log().sum()
        costs[:, j] = log_determinant + ((asked @ inverse) * asked).sum(dim=1) - d + inverse.trace()
    return costs


class Shortened(NamedTuple):
    """Clusters after some rounds of moves.

    Attributes
    ----------
    labels : ndarray of shape (n,)
    length : float
        n R_c of the clusters.
    is_done : bool
        Whether no further move makes the code shorter.
    """

    labels: np.ndarray
    length: float
    is_done: bool


class Moves(NamedTuple):
    """The effect of moving single points on the code length of clusters.

    Attributes
    ----------
    length : float
        n R_c of the current clusters.
    targets : ndarray of shape (n,)
        The best other cluster for each point.
    gains : ndarray of shape (n,)
        How much shorter the code becomes if only this point moves to its target.
    """

    length: float
    targets: np.ndarray
    gains: np.ndarray


def best_moves(W: Tensor, labels: np.ndarray) -> Moves:
    """Return the best move of each point and the exact change of n R_c by it.

    n R_c is the sum of n_j log det(I + S_j / n_j) over clusters, where S_j is the sum of w w^T over their points. If w
    leaves or joins a cluster, S_j changes by w w^T and n_j by 1. The new determinant follows from
    log det(A + w w^T / n) = log det A + log(1 + w^T A^-1 w / n).

    The derivative of n R_c (`coding_costs`) would be less exact. A point is part of the covariance of its own cluster,
    which makes its cost there too small. If clusters have few points for their dimension, no point would move.

    Parameters
    ----------
    W : tensor of shape (n, d)
        Features, scaled to length sqrt(d) / epsilon.
    labels : ndarray of shape (n,)

    Notes
    -----
    O(k (n d^2 + d^3)) time, as for `coding_costs`.
    """
    n, k = len(W), int(labels.max()) + 1
    joining, leaving, length = np.full((n, k), np.inf), np.full(n, -np.inf), 0.0
    for j in np.unique(labels):
        is_own = labels == j
        own = W[torch.from_numpy(is_own)]
        S, count = own.T @ own, len(own)
        now = count * _log_determinant(S / count)[0]
        length += now
        log_determinant, shares = _log_determinant(S / (count + 1), W, count + 1)
        joining[:, j] = ((count + 1) * (log_determinant + torch.log1p(shares)) - now).numpy()
        if count > 1:  # the last point of a cluster stays, so that the number of clusters does not change
            log_determinant, shares = _log_determinant(S / (count - 1), own, count - 1)
            without = log_determinant + torch.log1p(-shares.clamp(max=1.0 - ROUNDING))
            leaving[is_own] = (now - (count - 1) * without).numpy()
    np.put_along_axis(joining, labels[:, None], np.inf, axis=1)
    targets = joining.argmin(axis=1)
    return Moves(length, targets, leaving - _costs_in(targets, joining))


def _log_determinant(S: Tensor, W: Tensor | None = None, count: int = 1) -> tuple[float, Tensor]:
    """Return log det(I + S), and w^T (I + S)^-1 w / count for each row w of W."""
    L = torch.linalg.cholesky(torch.eye(len(S), dtype=S.dtype) + S)
    log_determinant = float(2.0 * L.diagonal().log().sum())
    if W is None:
        return log_determinant, S.new_zeros(0)
    return log_determinant, ((W @ torch.cholesky_inverse(L)) * W).sum(dim=1) / count


def shortened(Z: Tensor, labels: np.ndarray, epsilon: float, n_rounds: int | None = None) -> Shortened:
    """Move points between clusters as long as the code gets shorter; R - R_c never decreases.

    In a round, all points that would shorten the code by themselves move at once. If the code does not get shorter, the
    half of them with the largest gains is tried, then a quarter, and so on. A single point always shortens the code.

    Parameters
    ----------
    Z, labels, epsilon
        As in `coding_costs`.
    n_rounds : int or None, default=None
        The largest number of rounds. None continues until no point gains.
    """
    W = over_precision(unit(Z.cpu().double(), dim=1), epsilon)
    now = best_moves(W, labels)
    for _ in itertools.count() if n_rounds is None else range(n_rounds):
        movers = np.argsort(-now.gains, kind="stable")[: int((now.gains > 0).sum())]
        while len(movers):
            moved = with_moves(labels, movers, now.targets[movers])
            then = best_moves(W, moved)
            if then.length < (1.0 - ROUNDING) * now.length:
                break
            movers = movers[: len(movers) // 2]
        if not len(movers):
            return Shortened(labels, now.length, True)
        labels, now = moved, then
    return Shortened(labels, now.length, False)


def with_moves(labels: np.ndarray, movers: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the clusters after the points `movers` have moved to the clusters `targets`.

    If all points of a cluster would leave it, they all stay, so that the number of clusters does not change.
    """
    moved = labels.copy()
    moved[movers] = targets
    return np.where(np.isin(labels, np.setdiff1d(labels, moved)), labels, moved)


def shortest(Z: Tensor, beginnings: Sequence[np.ndarray], epsilon: float) -> np.ndarray:
    """Return the clusters with the shortest code that are reached from several initial clusters.

    All are improved for some rounds, and the third of them with the shortest codes is kept. This is repeated until only
    a few are left, which are run to the end. Most of the improvement happens in the first rounds. Runs that reach the
    same clusters count once.

    Parameters
    ----------
    Z, epsilon
        As in `coding_costs`.
    beginnings : sequence of ndarrays of shape (n,)
        The labels of each set of initial clusters.
    """
    runs = [Shortened(labels, np.inf, False) for labels in beginnings]
    while len(runs) > FINALISTS:
        runs = [run if run.is_done else shortened(Z, run.labels, epsilon, ROUNDS) for run in runs]
        # Codes whose lengths agree in ten digits belong to the same clusters.
        distinct = {float(f"{run.length:.10g}"): run for run in runs}
        runs = [distinct[length] for length in sorted(distinct)][: max(FINALISTS, len(runs) // 3)]
    ends = [run if run.is_done else shortened(Z, run.labels, epsilon) for run in runs]
    return min(ends, key=lambda run: run.length).labels


def _costs_in(labels: np.ndarray, costs: np.ndarray) -> np.ndarray:
    return np.take_along_axis(costs, labels[:, None], axis=1)[:, 0]


def k_means_labels(C: Tensor, n_clusters: int, n_runs: int, seed: int) -> list[np.ndarray]:
    """Return the clusters of several runs of k-means, each with its own initial centers."""
    seeds = np.random.RandomState(seed).randint(2**31 - 1, size=n_runs)
    rows = C.cpu().numpy()
    return [k_means(rows, n_clusters, n_init=1, random_state=one).astype(np.int64) for one in seeds]
