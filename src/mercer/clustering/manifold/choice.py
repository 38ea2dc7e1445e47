"""The choice between clusters from memberships at several η and from k-means, by the length of their code."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from sklearn.metrics import adjusted_rand_score
from torch import Tensor

from mercer.clustering.manifold.memberships import Memberships, SpectralClusters, spectral_clusters
from mercer.clustering.manifold.shortest_code import (
    coding_costs,
    k_means_labels,
    rate_reduction,
    shortest,
)

# The largest and the smallest number of runs of k-means from which clusters are improved, beside the memberships.
# Between these, the number of all their clusters together is fixed, since the cost of a round is proportional to it.
MOST_BEGINNINGS, LEAST_BEGINNINGS, CLUSTERS_OF_ALL = 50, 5, 500
# The initial clusters are found for at most this many rows. The other rows join the cluster in which they cost least.
BEGINNING_ROWS = 1000


class Clustered(NamedTuple):
    """Clusters of codes.

    Attributes
    ----------
    labels : ndarray of shape (n,)
    reduction : float
        R - R_c of the clusters; see `mercer.clustering.manifold.shortest_code.rate_reduction`.
    C : tensor of shape (n, d)
        The codes.
    spectral : SpectralClusters
        The spectral clusters of the membership that assigns new points.
    """

    labels: np.ndarray
    reduction: float
    C: Tensor
    spectral: SpectralClusters


class Judge(NamedTuple):
    """The features by which clusters are compared, and the ε of their coding rates.

    Attributes
    ----------
    Z : tensor of shape (n, d)
    epsilon : float
    """

    Z: Tensor
    epsilon: float

    def reduction(self, labels: np.ndarray) -> float:
        """Return R - R_c of the clusters."""
        return rate_reduction(self.Z, labels, self.epsilon)


def best_spectral(C: Tensor, n_clusters: int, candidates: Sequence[Memberships], seed: int, judge: Judge) -> Clustered:
    """Cluster codes by each of several memberships, and return the clusters with the largest R - R_c.

    Parameters
    ----------
    C : tensor of shape (n, d)
        The codes.
    n_clusters : int
    candidates : sequence of Memberships
        With a single one, this is line 10 of Algorithm 1.
    seed : int
    judge : Judge
    """
    found = [spectral_clusters(C, n_clusters, one, seed) for one in candidates]
    best = max(found, key=lambda clusters: judge.reduction(clusters.labels))
    return Clustered(best.labels, judge.reduction(best.labels), C, best)


def best_shortened(C: Tensor, n_clusters: int, candidates: Sequence[Memberships], seed: int, judge: Judge) -> Clustered:
    """Return the clusters with the largest R - R_c that are reached from several initial clusters by moving points.

    The initial clusters are those of each membership and those of k-means on the codes. New points are assigned by the
    membership whose own clusters, by its eigenvectors, agree most with the result. The parameters are those of
    `best_spectral`.
    """
    some = np.sort(np.random.RandomState(seed).permutation(len(C))[:BEGINNING_ROWS])
    found = [spectral_clusters(C[some], n_clusters, one, seed) for one in candidates]
    beginnings = [clusters.labels for clusters in found]
    beginnings += k_means_labels(C[some], n_clusters, number_of_beginnings(n_clusters), seed)
    # If many codes are equal, k-means returns fewer clusters than were asked for.
    counts = [len(np.unique(labels)) for labels in beginnings]
    beginnings = [labels for labels, count in zip(beginnings, counts, strict=True) if count == max(counts)]
    labels = shortest(judge.Z, [joined(judge, labels, some) for labels in beginnings], judge.epsilon)
    nearest = max(found, key=lambda clusters: adjusted_rand_score(labels[some], clusters.labels))
    voted = nearest if len(some) == len(C) else spectral_clusters(C, n_clusters, nearest.memberships, seed)
    return Clustered(labels, judge.reduction(labels), C, voted)


def joined(judge: Judge, labels: np.ndarray, some: np.ndarray) -> np.ndarray:
    """Return the clusters of all rows, given those of `some`; the others join the cluster in which they cost least."""
    if len(some) == len(judge.Z):
        return labels
    everyone = coding_costs(judge.Z[some], labels, judge.epsilon, judge.Z).argmin(axis=1)
    everyone[some] = labels
    return everyone


def number_of_beginnings(n_clusters: int) -> int:
    """Return the number of runs of k-means that give initial clusters."""
    return max(LEAST_BEGINNINGS, min(MOST_BEGINNINGS, CLUSTERS_OF_ALL // n_clusters))


CLUSTERINGS: dict[str, Callable[[Tensor, int, Sequence[Memberships], int, Judge], Clustered]] = {
    "rate": best_shortened,
    "spectral": best_spectral,
}
