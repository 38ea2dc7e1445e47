"""Clusters whose features have the shortest code: R - R_c of clusters, and points that move while it gets shorter."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

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

# A race of beginnings: rounds between two looks at who leads, and how many go to their end.
ROUNDS, FINALISTS = 4, 4
# A code is shorter if it is by more than this share.
ROUNDING = 1e-12


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


def coding_costs(Z: Tensor, labels: np.ndarray, epsilon: float, new: Tensor | None = None) -> np.ndarray:
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
    new : tensor of shape (m, d), optional
        Features of the points that are asked about, if they are others.

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
    """Clusters on their way to a shorter code.

    Attributes
    ----------
    labels : ndarray of shape (n,)
    length : float
        n R_c of them.
    is_done : bool
        Whether no point moves any more.
    """

    labels: np.ndarray
    length: float
    is_done: bool


class Moves(NamedTuple):
    """What moving single points does to the code of clusters.

    Attributes
    ----------
    length : float
        n R_c of the clusters as they are.
    targets : ndarray of shape (n,)
        The best other cluster of each point.
    gains : ndarray of shape (n,)
        By how much the code is shorter with the point there, and all others where they are.
    """

    length: float
    targets: np.ndarray
    gains: np.ndarray


def best_moves(W: Tensor, labels: np.ndarray) -> Moves:
    """Return by how much n R_c changes if one point moves, exactly, for every point.

    n R_c is the sum of n_j log det(I + S_j / n_j) over clusters, S_j the sum of w w^T over their points. With w out of
    its cluster, or in another, S_j changes by w w^T and n_j by 1, and log det(A + w w^T / n) is log det A +
    log(1 + w^T A^-1 w / n).

    The derivative of n R_c, `coding_costs`, would say less: a point is counted in the covariance of its own cluster,
    which makes it look at home there. Where clusters have few points for their dimension nothing moves by it.

    Parameters
    ----------
    W : tensor of shape (n, d)
        Features of length sqrt(d) / epsilon.
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
        if count > 1:  # a last point stays, so that as many clusters remain
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
    """Return clusters of no smaller R - R_c: points move to where the code is shorter with them, until none gains.

    In a round all points that gain by themselves move at once; if that makes the code no shorter, the half of them that
    gain the most, and so on. A single one always shortens it.

    Parameters
    ----------
    Z, labels, epsilon
        As in `coding_costs`.
    n_rounds : int or None, default=None
        At most so many rounds.
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
    """Return the clusters after some points have gone elsewhere.

    The points of a cluster that all would leave stay, so that as many clusters remain.
    """
    moved = labels.copy()
    moved[movers] = targets
    return np.where(np.isin(labels, np.setdiff1d(labels, moved)), labels, moved)


def shortest(Z: Tensor, beginnings: Sequence[np.ndarray], epsilon: float) -> np.ndarray:
    """Return the clusters of the shortest code that several beginnings lead to.

    A race: all go some rounds, the third with the shortest codes goes on, and the last few go to their end. Most of
    what is gained is gained in the first rounds. Beginnings that have met count once.

    Parameters
    ----------
    Z, epsilon
        As in `coding_costs`.
    beginnings : sequence of ndarrays of shape (n,)
    """
    runs = [Shortened(labels, np.inf, False) for labels in beginnings]
    while len(runs) > FINALISTS:
        runs = [run if run.is_done else shortened(Z, run.labels, epsilon, ROUNDS) for run in runs]
        # Codes of one length, to ten digits, are of the same clusters.
        distinct = {float(f"{run.length:.10g}"): run for run in runs}
        runs = [distinct[length] for length in sorted(distinct)][: max(FINALISTS, len(runs) // 3)]
    ends = [run if run.is_done else shortened(Z, run.labels, epsilon) for run in runs]
    return min(ends, key=lambda run: run.length).labels


def _costs_in(labels: np.ndarray, costs: np.ndarray) -> np.ndarray:
    return np.take_along_axis(costs, labels[:, None], axis=1)[:, 0]


def k_means_labels(C: Tensor, n_clusters: int, n_runs: int, seed: int) -> list[np.ndarray]:
    """Return the clusters of several runs of k-means, each from a beginning of its own."""
    seeds = np.random.RandomState(seed).randint(2**31 - 1, size=n_runs)
    rows = C.cpu().numpy()
    # scikit-learn limits the BLAS and puts back what it found, which threads that overlap confuse: here all find one.
    with ignored(DistinctPointsWarning), one_thread():
        return [KMeans(n_clusters, n_init=1, random_state=one).fit(rows).labels_.astype(np.int64) for one in seeds]
